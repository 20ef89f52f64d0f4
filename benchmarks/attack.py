"""Attacks a service of its own, on this machine alone, and prints attack, wanted and got.

    python benchmarks/attack.py                          # SQLite, and PostgreSQL if it is here
    python benchmarks/attack.py --on sqlite --only names arms
    python benchmarks/attack.py --only load --minutes 5  # 32 clients that mean no harm

Every attack has a database of its own, and is bounded in count and time. The exit status is the
number of attacks that succeeded.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from statistics import quantiles
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the server of the tests

import httpx
import numpy as np
import psycopg
import pytest
from service import resident, seconds_of_work
from tests.team.campaign.conftest import running_server

import contextgap as cg
from contextgap.team import client
from contextgap.team.campaign.database import Database

ARMS = ["hull", "panel", "boom"]
JSON = "Content-Type: application/json\r\n"
# Seconds within which a service answers whatever else it does; twice as many on a busy machine.
SOON = 2.0 if os.getloadavg()[0] < (os.cpu_count() or 1) else 4.0
FORTY = [[0.1 * number, 0.5] for number in range(40)]
Outcome = tuple[bool, str]


class Attack(NamedTuple):
    """What is tried, and what a service should do."""

    name: str
    what: str
    wanted: str
    run: Callable[[Place], Outcome]
    on: str


ATTACKS: list[Attack] = []


def attack(what: str, wanted: str, on: str = "sqlite postgresql") -> Callable[[Any], Any]:
    """Add a function to the attacks; it returns whether the service held, and what it did."""

    def add(run: Callable[[Place], Outcome]) -> Callable[[Place], Outcome]:
        ATTACKS.append(Attack(run.__name__.replace("_", " "), what, wanted, run, on))
        return run

    return add


class Service:
    """A service that runs, and a client with its first token."""

    def __init__(self, process: subprocess.Popen[str], url: str, token: str) -> None:
        self.process, self.url = process, url
        self.token = {"Authorization": f"Bearer {token}"} if token else {}
        self.http = httpx.Client(base_url=url, headers=self.token, timeout=90)

    def post(self, path: str, body: Any, timeout: float = 90) -> httpx.Response:
        return self.http.post(f"/v1/campaigns{path}", json=body, timeout=timeout)

    def connect(self) -> socket.socket:
        host, _, port = self.url.removeprefix("http://").partition(":")
        return socket.create_connection((host, int(port)), timeout=30)

    def head(self, path: str, more: str) -> bytes:
        """Return the header of a POST of JSON."""
        token = self.token.get("Authorization", "none")
        text = f"POST /v1/campaigns{path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {token}\r\n"
        return f"{text}{JSON}{more}\r\n\r\n".encode()

    def stop(self, number: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(timeout=90)


class Place:
    """A database of an attack's own, and services on it."""

    def __init__(self, url: str, folder: Path, stack: ExitStack) -> None:
        self.url, self.folder, self._stack = url, folder, stack
        self.is_file = url.startswith("sqlite")
        self.file = folder / "bench.db"

    def serve(self, *options: str, files: int | None = None, size: int | None = None) -> Service:
        """Start a service; ``files`` and ``size`` limit what its process may open and write."""
        command = [sys.executable, "-m", "contextgap", "serve", "--port", "0", "--log", "text"]
        log = self._stack.enter_context((self.folder / "log").open("a"))

        def limit() -> None:
            if files is not None:
                resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
            if size is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

        process = subprocess.Popen(
            [*command, "--database", self.url, *options],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            preexec_fn=limit,
        )
        self._stack.callback(_end, process)
        assert process.stdout is not None
        first = process.stdout.readline()
        if " at http" not in first:
            raise RuntimeError((self.folder / "log").read_text()[-300:])
        words = [process.stdout.readline() for _ in range(2)]
        if "this once" in words[1]:
            words.append(process.stdout.readline())
        found = re.search(r"#token=(\S+)", words[-1])
        return Service(process, first.split()[-1], found[1] if found else "")

    def create(self, name: str = "sensors", rewards: int = 0) -> cg.Campaign:
        """Begin a campaign, and tell it some rewards."""
        rng = np.random.default_rng(0)
        campaign = cg.Campaign.create(self.url, name, ARMS, kernel=cg.Gaussian(0.5), seed=0)
        if rewards:
            contexts, arms = rng.uniform(-1, 1, size=(rewards, 2)), rng.choice(ARMS, rewards)
            campaign.tell(contexts=contexts, arms=arms.tolist(), reward=rng.normal(size=rewards))
        return campaign

    def execute(self, *statements: str) -> None:
        """Change rows behind the library's back."""
        if self.is_file:
            with closing(sqlite3.connect(self.file)) as connection, connection:
                for statement in statements:
                    connection.execute(statement)
        else:
            with psycopg.connect(self.url) as connection:
                for statement in statements:
                    connection.execute(statement)

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run the command line."""
        command = [sys.executable, "-m", "contextgap", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    def python(self, text: str) -> subprocess.Popen[str]:
        """Run a program that waits after it printed a line; return when it did."""
        process = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True)
        self._stack.callback(_end, process)
        assert process.stdout is not None
        process.stdout.readline()
        return process


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


class Pulse:
    """Asks whether a service lives while a block runs; ``slowest`` is its slowest answer."""

    def __init__(self, service: Service) -> None:
        self._http = httpx.Client(base_url=service.url, timeout=30)
        self._stop, self._thread = threading.Event(), threading.Thread(target=self._beat)
        self.slowest, self.failed = 0.0, ""

    def _beat(self) -> None:
        while not self._stop.wait(0.02):
            start = time.perf_counter()
            try:
                self._http.get("/livez").raise_for_status()
            except httpx.HTTPError as error:
                self.failed = f"{type(error).__name__} "
            self.slowest = max(self.slowest, time.perf_counter() - start)

    def __enter__(self) -> Pulse:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._http.close()

    @property
    def fine(self) -> bool:
        return self.slowest < SOON and not self.failed

    def __str__(self) -> str:
        return f"{self.failed}/livez {self.slowest:.2g} s"


@contextmanager
def asking(service: Service, path: str, body: Any) -> Iterator[socket.socket]:
    """Send a request, and do not wait for its answer."""
    content = json.dumps(body).encode()
    with service.connect() as line:
        line.sendall(service.head(path, f"Content-Length: {len(content)}") + content)
        yield line


def many(count: int) -> dict[str, Any]:
    """Return an ask for many contexts."""
    return {"contexts": np.random.default_rng(1).uniform(-1, 1, size=(count, 2)).round(3).tolist()}


def seconds(call: Callable[[], httpx.Response]) -> tuple[httpx.Response, float]:
    start = time.perf_counter()
    return call(), time.perf_counter() - start


@attack("an object with 300,000 names, the last one twice", f"400, /livez < {SOON:.2g} s")
def names(place: Place) -> Outcome:
    place.create()
    service = place.serve()
    body = "{" + ",".join(f'"k{number}":0' for number in range(300_000)) + ',"k299999":0}'
    with Pulse(service) as pulse:
        how = {"content": body, "headers": {"Content-Type": "application/json"}}
        answer = service.http.post("/v1/campaigns/sensors/recommend", **how)
    return answer.status_code == 400 and pulse.fine, f"{answer.status_code}, {pulse}"


@attack("Content-Length: 5 and chunks of 100 MB", "400, closed")
def lengths(place: Place) -> Outcome:
    place.create()
    service = place.serve()
    head = service.head("/sensors/ask", "Content-Length: 5\r\nTransfer-Encoding: chunked")
    return flood(service, head, b"HTTP/1.1 400")


@attack("chunks of 100 MB", "413, closed")
def chunks(place: Place) -> Outcome:
    place.create()
    service = place.serve()
    return flood(
        service, service.head("/sensors/ask", "Transfer-Encoding: chunked"), b"HTTP/1.1 413"
    )


def flood(service: Service, head: bytes, wanted: bytes) -> Outcome:
    """Send chunks of 100 MB as long as somebody takes them."""
    sent, chunk = 0, b"10000\r\n" + b" " * 65536 + b"\r\n"
    with service.connect() as line, contextlib.suppress(OSError):
        line.sendall(head)
        line.setblocking(True)
        for _ in range(1600):
            line.sendall(chunk)
            sent += 65536
    answer = b""
    with service.connect() as line, contextlib.suppress(OSError):  # again, to see the answer
        line.sendall(head + chunk * 2)
        line.settimeout(5)
        if wanted.endswith(b"413"):
            line.sendall(chunk * 130)
        answer = line.recv(12)
    held = sent < 50_000_000 and answer == wanted
    return held, f"{answer[9:].decode()}, closed after {sent / 1e6:.3g} MB"


@attack("one context of 300,001 numbers; four bodies of 7.8 MB", f"413, /livez < {SOON:.2g} s")
def wide(place: Place) -> Outcome:
    place.create()
    service = place.serve()
    one = b'{"contexts":[' + b"0," * 300_000 + b"0]}"
    rows = b'{"contexts":[' + b"[0,0]," * 1_290_000 + b"[0,0]]}"
    statuses = []

    def send(content: bytes) -> None:
        said = {"Content-Type": "application/json"}
        path = "/v1/campaigns/sensors/ask"
        statuses.append(service.http.post(path, content=content, headers=said).status_code)

    with Pulse(service) as pulse:
        send(one)
        threads = [threading.Thread(target=send, args=(rows,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return statuses == [413] * 5 and pulse.fine, f"{sorted(set(statuses))}, {pulse}"


@attack("300 half-sent requests, 256 open files", "200")
def half_sent(place: Place) -> Outcome:
    service = place.serve(files=256)
    lines = []
    for _ in range(300):
        with contextlib.suppress(OSError):
            lines.append(service.connect())
            lines[-1].sendall(b"GET /livez HTTP/1.1\r\nHost: loc")
    try:
        answer, took = seconds(lambda: service.http.get("/livez", timeout=20))
        return answer.status_code == 200, f"{answer.status_code} in {took:.2g} s"
    except httpx.HTTPError as error:
        return False, type(error).__name__
    finally:
        for line in lines:
            line.close()


@attack("a header that does not come", "closed within 15 s")
def no_header(place: Place) -> Outcome:
    service, start = place.serve(), time.perf_counter()
    with service.connect() as line:
        while time.perf_counter() - start < 20:
            try:
                line.sendall(b"G")
                line.settimeout(1)
                if line.recv(1) == b"":
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        took = time.perf_counter() - start
    return took < 15, f"closed after {took:.3g} s" if took < 20 else "open after 20 s"


@attack("an ask of 2,000 contexts, 300 rewards", "200 within 3 s")
def batch(place: Place) -> Outcome:
    place.create(rewards=300)
    service = place.serve()
    before = seconds_of_work(service.process.pid)
    answer, took = seconds(lambda: service.post("/sensors/ask", many(2000)))
    work = seconds_of_work(service.process.pid) - before
    held = answer.status_code == 200 and took < 3
    return held, f"{answer.status_code} in {took:.2g} s, of which {work:.2g} s of work"


@attack("an ask of 20,000 contexts whose client left", "others, tokens and /readyz are served")
def long_ask(place: Place) -> Outcome:
    place.create(rewards=300)
    place.create("other")
    service = place.serve("--deadline", "1000")
    service.post("/other/ask", {"contexts": [0.0, 0.0]})
    with asking(service, "/sensors/ask", many(20_000)):
        time.sleep(3)
    with Pulse(service) as pulse:
        other, took = seconds(lambda: service.post("/other/ask", {"contexts": [0.0, 0.0]}))
        ready = service.http.get("/readyz").status_code
        where = ["--database", place.url]
        made = place.command(
            "serve", "token", "create", "--name", "x", "--scopes", "read", *where
        ).returncode
    held = (other.status_code, ready, made) == (200, 200, 0) and took < 5 and pulse.fine
    return held, f"{other.status_code} in {took:.2g} s, {ready}, token {made}, {pulse}"


@attack("an ask that would take longer than the deadline", "413 that says how to split it")
def too_long(place: Place) -> Outcome:
    place.create(rewards=300)
    service = place.serve("--deadline", "5")
    answer, took = seconds(lambda: service.post("/sensors/ask", many(100_000)))
    said = re.search(r"at most \d+ at a time", answer.text)
    held = answer.status_code == 413 and said is not None
    return held, f"{answer.status_code} {said[0] if said else ''} in {took:.2g} s"


@attack("SIGTERM during an ask of 100,000 contexts, --grace 5", "ends within 6 s")
def stop(place: Place) -> Outcome:
    place.create(rewards=300)
    service = place.serve("--grace", "5", "--deadline", "100000")
    with asking(service, "/sensors/ask", many(100_000)):
        time.sleep(3)
        start = time.perf_counter()
        status = service.stop()
        took = time.perf_counter() - start
    return status == 0 and took < 6, f"status {status} after {took:.2g} s"


@attack("40 campaigns that begin while the database is locked", "reading: 200", on="sqlite")
def locked(place: Place) -> Outcome:
    place.create()
    service = place.serve()
    with closing(sqlite3.connect(place.file)) as other, ExitStack() as stack:
        other.execute("BEGIN IMMEDIATE")
        for number in range(40):
            stack.enter_context(asking(service, "", {"name": f"c{number}", "arms": 2}))
        time.sleep(1)
        answer, took = seconds(lambda: service.http.get("/v1/campaigns"))
        other.rollback()
    return answer.status_code == 200 and took < SOON, f"{answer.status_code} in {took:.2g} s"


@attack("a peer stopped inside a transaction", "503 with Retry-After, later 200", on="postgresql")
def peer(place: Place) -> Outcome:
    place.create()
    service = place.serve()
    service.post("/sensors/ask", {"contexts": [0.0, 0.0]})
    stopped = place.python(
        "import time\n"
        "from contextgap.team.campaign.database import Database\n"
        "from contextgap.team.campaign.store import find_store\n"
        f"with find_store(Database({place.url!r}), 'sensors').locked():\n"
        "    print('locked', flush=True); time.sleep(600)"
    )
    stopped.send_signal(signal.SIGSTOP)
    try:
        first, took = seconds(lambda: service.post("/sensors/ask", {"contexts": [0.0, 0.0]}, 60))
    except httpx.TimeoutException:
        return False, "no answer in 60 s"
    deadline, later = time.monotonic() + 90, first
    while later.status_code != 200 and time.monotonic() < deadline:
        time.sleep(1)
        later = service.post("/sensors/ask", {"contexts": [0.0, 0.0]}, 60)
    held = "retry-after" in first.headers or first.status_code == 200
    return held and later.status_code == 200, (
        f"{first.status_code} in {took:.2g} s, later {later.status_code}"
    )


@attack("10**6 arms; a reference of 50,000 columns", "413")
def arms(place: Place) -> Outcome:
    service = place.serve()
    reference = {"tolerance": 0.1, "reference": [[0.0] * 50_000] * 2}
    bodies = [{"name": "x", "arms": 10**6}, {"name": "y", "arms": 2, "goal": reference}]
    answers = [service.post("", body).status_code for body in bodies]
    return answers == [413, 413], f"{answers}"


@attack("4,000 invented methods of 2 kB", "/metrics < 100 kB")
def methods(place: Place) -> Outcome:
    service = place.serve()
    for number in range(4000):
        service.http.request(f"M{number}{'X' * 2000}", "/livez")
    size = len(service.http.get("/metrics").content)
    return size < 100_000, f"{size / 1000:.3g} kB"


@attack("the first list of 357 campaigns", f"200 within {SOON:.2g} s")
def listed(place: Place) -> Outcome:
    database = Database(place.url)
    for number in range(357):
        cg.Campaign.create(database, f"campaign {number}", 2, seed=0)
    database.close()
    service = place.serve()
    answer, took = seconds(lambda: service.http.get("/page/campaigns"))
    held = len(answer.json()["campaigns"]) == 357 and took < SOON
    return held, f"{answer.status_code} in {took:.2g} s"


@attack("nginx before it, with its defaults, and no token", "401")
def nginx(place: Place) -> Outcome:
    if shutil.which("nginx") is None:
        return True, "nginx is not installed"
    service, port = place.serve(), free_port()
    paths = "".join(
        f"{name}_temp_path {place.folder}/{name};"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    server = f"server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass {service.url}; }} }}"
    user = "user root; " if os.geteuid() == 0 else ""
    (place.folder / "nginx.conf").write_text(
        f"{user}pid {place.folder}/pid; events {{}} http {{ access_log off; {paths} {server} }}"
    )
    where = ["-p", place.folder, "-c", place.folder / "nginx.conf", "-e", place.folder / "errors"]
    process = subprocess.Popen(["nginx", *where, "-g", "daemon off;"])
    try:
        time.sleep(1)
        answer = httpx.post(
            f"http://127.0.0.1:{port}/v1/campaigns",
            json={"name": "x", "arms": 2},
            headers={"Host": "cg.example.org"},
        )
    finally:
        process.terminate()
        process.wait()
    return answer.status_code == 401, f"{answer.status_code}"


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@attack("numbers and text that no column has", "4xx")
def types(place: Place) -> Outcome:
    place.create()
    service = place.serve()
    here, page, far = "/v1/campaigns/sensors", "/page/campaigns/sensors/trials", "9" * 30
    paths = [f"{here}/trials/9000000000", f"{here}/trials/{far}", f"{here}/trials?after={far}"]
    paths += [
        f"{page}?before={far}",
        f"{page}?before=-{far}",
        f"{page}?text=%00",
        f"{page}?arm=%00",
    ]
    found = [service.http.get(path).status_code for path in paths]
    found += [
        service.post("/sensors/tell", {"trial": trial, "reward": 1}).status_code
        for trial in (3_000_000_000, int(far))
    ]
    table = {"columns": ["x"], "rows": [[0]], "levels": [{"x": 1}]}
    answer = service.post("/sensors/ask", {"contexts": {"table": table}})
    found.append(answer.status_code if "unhashable" not in answer.text else 500)
    return all(400 <= status < 500 for status in found), f"{sorted(set(found))}"


@attack("a redirect, frames, line breaks in the log", "404, not framed, one line")
def headers(place: Place) -> Outcome:
    place.create()
    service = place.serve()
    moved = service.http.get("/v1/campaigns/", headers={"Host": "evil.example"})
    framed = service.http.get("/docs")
    asked = service.post("/sensors/ask", {"contexts": [0.0, 0.0]})
    service.http.get("/%0Aforged%1B[2J")
    log = (place.folder / "log").read_text()
    safe = "frame-ancestors 'none'" in framed.headers["content-security-policy"]
    safe = safe and asked.headers.get("x-content-type-options") == "nosniff"
    lines = "\nforged" not in log and "\x1b" not in log
    shown = "not framed" if safe else "framed", "one line" if lines else "forged"
    return moved.status_code == 404 and safe and lines, (f"{moved.status_code}, {', '.join(shown)}")


@attack("=HYPERLINK, +cmd and @SUM in a sheet", "quoted", on="sqlite")
def formulas(place: Place) -> Outcome:
    texts = ['=HYPERLINK("http://x.example")', "+1+cmd|' /C x'!A0", "@SUM(1)"]
    campaign = cg.Campaign.create(place.file, "sensors", texts, seed=0)
    for text in texts:
        campaign.ask({texts[0]: text})
    campaign.close()
    sheet = place.command("campaign", "sheet", "--database", str(place.file)).stdout
    begin = [cell.lstrip('"')[:1] for line in sheet.splitlines() for cell in line.split(",")]
    return not {"=", "+", "@"} & set(begin), "quoted" if "'=" in sheet else "formulas"


@attack("a .cgap with 400 entries for one member; a name twice; /dev/zero", "refused", on="sqlite")
def archives(place: Place) -> Outcome:
    held = cg.Learner(2, kernel=cg.Gaussian(1.0)).fit([[0.0], [1.0]], [0, 1], [0, 1]).freeze()
    good = io.BytesIO()
    held.save(good)
    with zipfile.ZipFile(good) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    repeated, twice = place.folder / "repeated.cgap", place.folder / "twice.cgap"
    with zipfile.ZipFile(repeated, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        archive.filelist += [archive.infolist()[-1]] * 400
        archive._didModify = True  # type: ignore[attr-defined]
    with zipfile.ZipFile(twice, "w") as archive:
        for name, content in members.items():
            more = content.replace(b"{", b'{"kind": "policy",', 1)
            archive.writestr(name, more if name == "header.json" else content)
    said = []
    for path in (repeated, twice, Path("/dev/zero")):
        code = f"import contextgap as cg; cg.Policy.load({str(path)!r})"
        try:
            done = subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, timeout=20
            )
            said.append("refused" if "FileFormatError" in done.stderr else "taken")
        except subprocess.TimeoutExpired:
            said.append("no end")
    return said == ["refused"] * 3, ", ".join(said)


@attack("a backup restored under a running service", "no hole; served after a restart")
def restore(place: Place) -> Outcome:
    place.create().close()
    service = place.serve()

    def pairs(count: int) -> list[int]:
        statuses = []
        for context in FORTY[:count]:
            asked = service.post("/sensors/ask", {"contexts": context})
            statuses.append(asked.status_code)
            if asked.is_success:
                body = {"trial": asked.json()["trial"]["id"], "reward": context[0]}
                statuses.append(service.post("/sensors/tell", body).status_code)
        return statuses

    before = pairs(10)
    back_up = _sqlite_backup(place) if place.is_file else _postgresql_backup(place)
    before += pairs(10)
    back_up()
    live = pairs(2)
    service.stop()
    with cg.Campaign.open(place.url, "sensors") as campaign:
        try:
            numbers = [trial.id for trial in campaign.find_trials()]
        except ValueError as error:
            return False, f"live {sorted(set(live))}, then {error}"
    hole = numbers != list(range(1, len(numbers) + 1))
    service = place.serve()
    service.http.headers.update(_new_token(place))
    after = service.post("/sensors/ask", {"contexts": [0.0, 0.5]}).status_code
    held = set(before) == {200} and not hole and after == 200 and live[-1] == 200
    return held, f"live {sorted(set(live))}, {'a hole' if hole else 'no hole'}, then {after}"


def _new_token(place: Place) -> dict[str, str]:
    scopes = ["--scopes", "read,explore,freeze,admin", "--database", place.url]
    made = place.command("serve", "token", "create", "--name", f"n{time.time_ns()}", *scopes)
    return {"Authorization": f"Bearer {made.stdout.strip()}"}


def _sqlite_backup(place: Place) -> Callable[[], None]:
    copy = place.folder / "copy.db"
    with closing(sqlite3.connect(place.file)) as now, closing(sqlite3.connect(copy)) as kept:
        now.backup(kept)

    def back() -> None:
        with closing(sqlite3.connect(place.file)) as now, closing(sqlite3.connect(copy)) as kept:
            kept.backup(now)

    return back


def _postgresql_backup(place: Place) -> Callable[[], None]:
    kept = subprocess.run(
        ["pg_dump", "--clean", place.url], check=True, capture_output=True, timeout=60
    ).stdout

    def back() -> None:
        command = ["psql", "-q", "-v", "ON_ERROR_STOP=1", place.url]
        subprocess.run(command, input=kept, check=True, capture_output=True, timeout=60)

    return back


TAMPERED = {
    "an event": "UPDATE contextgap_events SET request = replace(request, '-0.5', '0.75') "
    "WHERE kind = 'tell' AND number < 9",
    "a policy": "UPDATE contextgap_files SET bytes = (SELECT bytes FROM contextgap_files other "
    "WHERE other.kind = 'policy' AND other.campaign = 2) WHERE kind = 'policy' AND campaign = 1",
    "a trial": "UPDATE contextgap_trials SET reward = 9 WHERE campaign = 1 AND id = 2",
}


@attack("an event, a policy or a trial altered in the database", "database verify says which")
def tampering(place: Place) -> Outcome:
    for name in ("sensors", "other"):
        campaign = place.create(name)
        for number, context in enumerate(FORTY[:8]):
            campaign.tell(campaign.ask(context), -0.5 if name == "sensors" else number)
        campaign.freeze("p")
        campaign._session.store.database.close()
    clean = place.command("database", "verify", place.url)
    if clean.returncode != 0:
        return False, f"not altered: {_last_line(clean)}"
    back_up = _sqlite_backup(place) if place.is_file else _postgresql_backup(place)
    found = []
    for what, statement in TAMPERED.items():
        place.execute(statement)
        done = place.command("database", "verify", place.url)
        if done.returncode == 0:
            found.append(f"{what}: not noticed")
        back_up()
    return not found, ", ".join(found) or "all are noticed"


def _last_line(done: subprocess.CompletedProcess[str]) -> str:
    lines = (done.stdout + done.stderr).strip().splitlines()
    words = [line.strip("│╭╮╰╯─ ") for line in lines]
    return next((each for each in reversed(words) if each), "nothing")[:60]


@attack("a column dropped", "said at the start or by /readyz")
def schema(place: Place) -> Outcome:
    place.create().close()
    place.execute("ALTER TABLE contextgap_trials DROP COLUMN why")
    try:
        service = place.serve()
    except RuntimeError as error:
        return True, f"does not start: {str(error).strip().splitlines()[-1][:60]}"
    answer = service.http.get("/readyz")
    return answer.status_code == 503, f"/readyz {answer.status_code}"


@attack("one read with a clock 30 days ahead", "trials stay open")
def clock(place: Place) -> Outcome:
    campaign = place.create()
    for context in FORTY[:5]:
        campaign.ask(context)
    ahead = (
        "import datetime as d, warnings\n"
        "import contextgap as cg\n"
        "from contextgap.team.campaign import values\n"
        "class Ahead(d.datetime):\n"
        "    @classmethod\n"
        "    def now(cls, tz=None): return d.datetime.now(tz) + d.timedelta(days=30)\n"
        "values.datetime = Ahead\n"
        f"cg.Campaign.open({place.url!r}, 'sensors').status(fresh=False)\n"
    )
    subprocess.run([sys.executable, "-c", ahead], capture_output=True, timeout=60)
    states = campaign.status(fresh=False).trials
    return states["open"] == 5, f"{states['open']} open, {states['expired']} expired"


@attack("a full disk", "ask 503, /readyz 503", on="sqlite")
def full_disk(place: Place) -> Outcome:
    place.create(rewards=200).close()
    place.serve().stop()  # makes the token's table
    service = place.serve(size=max(each.stat().st_size for each in place.folder.glob("bench.db*")))
    service.http.headers.update(_new_token(place))
    for rows in [60] * 60 + [1] * 200:  # until there is no room for one more
        answer = service.post("/sensors/ask", {"contexts": [[0.5, 0.5]] * rows})
        if answer.status_code != 200 and rows == 1:
            break
    checks, ready = 0, 200  # a check writes less than an ask, so a few may still find room
    while ready == 200 and checks < 20:
        checks, ready = checks + 1, service.http.get("/readyz").status_code
    held = (answer.status_code, ready) == (503, 503)
    return held, f"{answer.status_code}, /readyz {ready} at check {checks}"


_TOLD = 10  # rewards that each client tells: a learner's memory grows with its rewards


def load(place: Place, minutes: float, clients: int = 32) -> Outcome:
    """Have clients ask, tell, cancel, recommend and look; return errors, memory and times."""
    names = [f"campaign {number}" for number in range(4)]
    for name in names:
        place.create(name, rewards=30).freeze("p")
    service = place.serve("--rate", "1e6", "--burst", "1000000")
    end, times, errors = time.monotonic() + 60 * minutes, [], []

    def work(who: int) -> None:
        dice = random.Random(who)
        try:
            with client.Campaign.open(
                service.url, names[who % 4], token=service.token["Authorization"][7:]
            ) as campaign:
                for step in itertools.count():
                    if time.monotonic() > end:
                        return
                    start = time.perf_counter()
                    context = [dice.uniform(-1, 1), dice.uniform(-1, 1)]
                    kind = step % 8
                    if kind in (0, 4):
                        trial = campaign.ask(context)
                    elif kind == 1 and step < 8 * _TOLD:
                        campaign.tell(trial, context[0])
                    elif kind in (1, 5):
                        campaign.cancel(trial)
                    elif kind == 6:
                        campaign.status(fresh=False)
                    elif kind == 7:
                        campaign.find_trials("open", most=20)
                    else:
                        campaign.recommend([context] * 5)
                    times.append(time.perf_counter() - start)
        except Exception as error:
            errors.append(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=work, args=(who,)) for who in range(clients)]
    for thread in threads:
        thread.start()
    sizes = []
    for share in (0.25, 0.5, 0.75, 1.0):
        time.sleep(max(0.0, end - (1 - share) * 60 * minutes - time.monotonic()))
        sizes.append(resident(service.process.pid))
    for thread in threads:
        thread.join()
    p50, p99 = (quantiles(times, n=100)[place] for place in (49, 98))
    flat = sizes[-1] - sizes[0] < 0.1 * sizes[0]
    sizes_text = ", ".join(f"{size:.0f}" for size in sizes)
    return not errors and flat, (
        f"{len(errors)} errors {errors[:1] or ''}, {sizes_text} MB, {len(times)} requests, "
        f"median {1000 * p50:.0f} ms, p99 {1000 * p99:.0f} ms"
    )


@contextmanager
def fresh(kind: str, server: str | None, name: str) -> Iterator[Place]:
    """Yield a database of its own; end what was started on it."""
    with tempfile.TemporaryDirectory() as text, ExitStack() as stack:
        folder = Path(text)
        if kind == "sqlite":
            yield Place(f"sqlite:///{folder / 'bench.db'}", folder, stack)
            return
        assert server is not None
        own = re.sub(r"\W", "_", f"attack_{name}")
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{own}"')  # type: ignore[call-overload]
        yield Place(server.replace("/postgres?", f"/{own}?"), folder, stack)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--on", choices=["sqlite", "postgresql", "both"], default="both")
    options.add_argument(
        "--only", nargs="+", help="names of attacks; load is one that means no harm"
    )
    options.add_argument("--minutes", type=float, default=5.0, help="of load")
    chosen = options.parse_args()

    def harmless(place: Place) -> Outcome:
        return load(place, chosen.minutes)

    mixed = f"32 clients for {chosen.minutes:g} minutes"
    every = [
        *ATTACKS,
        Attack("load", mixed, "no error, memory flat", harmless, "sqlite postgresql"),
    ]
    wanted = [each for each in every if not chosen.only or each.name in chosen.only]
    failed = 0
    print(f"{'':10} {'attack':66} {'wanted':38} {'held':4} got")
    with ExitStack() as stack:
        server = None
        if chosen.on != "sqlite":
            try:
                server = stack.enter_context(running_server())
            except pytest.skip.Exception as missing:
                print(missing)
        kinds = ["sqlite"] * (chosen.on != "postgresql") + ["postgresql"] * (server is not None)
        for each, kind in itertools.product(wanted, kinds):
            if kind not in each.on:
                continue
            with fresh(kind, server, each.name) as place:
                try:
                    held, got = each.run(place)
                except Exception as error:
                    held, got = False, f"{type(error).__name__}: {error}".splitlines()[0][:100]
            failed += not held
            shown = f"{each.name}: {each.what}"
            print(
                f"{kind:10} {shown:66} {each.wanted:38} {'yes' if held else 'NO':4} {got}",
                flush=True,
            )
    raise SystemExit(failed)


if __name__ == "__main__":
    main()
