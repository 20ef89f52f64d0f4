"""The service: requests per second, beside an empty endpoint in the same run, and what stays flat.

    python benchmarks/service.py                                  # a SQLite file
    python benchmarks/service.py --database postgresql://...      # a server
    python benchmarks/service.py --only recommend                 # one part

The client writes requests to sockets as they are, because a comfortable one would take longer than
the server does. Every rate is the best of several rounds that take turns with the empty endpoint's.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

import numpy as np
from timing import row

import contextgap as cg

ARMS = ("hull", "panel", "boom")
KERNEL = cg.Gaussian(0.5)
EMPTY = """
import sys, uvicorn
from fastapi import FastAPI

app = FastAPI()

@app.post("/")
async def empty():
    return {}

class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        name = self.servers[0].sockets[0].getsockname()
        print(f"at http://{name[0]}:{name[1]}", flush=True)

Server(uvicorn.Config(app, port=0, log_level="warning", access_log=False)).run()
"""
PARTS = ("recommend", "pairs", "opening", "status", "page", "memory")


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--database")
    options.add_argument("--only", choices=PARTS)
    options.add_argument("--requests", type=int, default=4000)
    options.add_argument("--trials", type=int, default=100_000)
    options.add_argument("--many", type=int, default=50_000)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        database = chosen.database or f"sqlite:///{Path(folder) / 'bench.db'}"
        print(f"{'':58} {'measured':>9}    target")
        wanted = [chosen.only] if chosen.only else PARTS
        if "recommend" in wanted:
            recommend(database, chosen.requests)
        if "pairs" in wanted:
            pairs(database, "")
            if chosen.database is None:
                pairs(f"{database}?synchronous=normal", ", not synchronous")
        if "opening" in wanted:
            opening(database)
        if "status" in wanted:
            status(database, chosen.trials)
        if "page" in wanted:
            page(database, chosen.trials)
        if "memory" in wanted:
            memory(database, chosen.many)


@contextmanager
def running(command: list[str]) -> Iterator[tuple[str, int]]:
    """Run a server that says where it listens; yield the address and the process."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment
        )
        try:
            assert process.stdout is not None
            words = process.stdout.readline().split()
            yield words[words.index("at") + 1].rstrip(";"), process.pid
        finally:
            process.terminate()
            process.wait()


def service(database: str) -> AbstractContextManager[tuple[str, int]]:
    command = [sys.executable, "-m", "contextgap", "serve", "--port", "0", "--no-tokens"]
    rates = ["--rate", "1e6", "--burst", "1000000", "--row-rate", "1e6"]
    return running([*command, *rates, "--database", database])


class Line:
    """One connection, kept open."""

    def __init__(self, address: str) -> None:
        self._host = urlsplit(address).netloc
        host, _, port = self._host.partition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, method: str, path: str, body: object = None) -> dict:
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: {self._host}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        self._socket.sendall(head.encode() + content)
        return self._answer()

    def _answer(self) -> dict:
        got = b""
        while b"\r\n\r\n" not in got:
            got += self._receive()
        head, _, rest = got.partition(b"\r\n\r\n")
        lines = head.decode().lower().split("\r\n")
        length = next(int(x.partition(":")[2]) for x in lines if x.startswith("content-length"))
        while len(rest) < length:
            rest += self._receive()
        if not lines[0].split()[1].startswith("2"):
            raise RuntimeError(rest.decode())
        return dict(json.loads(rest))

    def _receive(self) -> bytes:
        got = self._socket.recv(65536)
        if not got:
            raise ConnectionError("the server closed the connection")
        return got


def told(database: str, what: str, points: int = 300) -> cg.Campaign:
    """A campaign with so many points for each of three arms."""
    rng = np.random.default_rng(0)
    name = f"{what} {time.time_ns()}"
    campaign = cg.Campaign.create(database, name, ARMS, kernel=KERNEL, seed=0)
    contexts = rng.uniform(-1, 1, size=(3 * points, 2))
    rewards = rng.normal(size=3 * points)
    campaign.tell(contexts=contexts, arms=np.repeat(ARMS, points), reward=rewards)
    return campaign


def path(campaign: cg.Campaign, rest: str) -> str:
    return f"/v1/campaigns/{campaign.name.replace(' ', '%20')}/{rest}"


def per_second(line: Line, where: str, body: object, times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        line.send("POST", where, body)
    return times / (time.perf_counter() - start)


def recommend(database: str, times: int) -> None:
    """Recommendations by a frozen policy of 3 x 300 points, beside an empty endpoint.

    Both take turns every 50 requests, so that other work on the machine slows both alike.
    """
    campaign = told(database, "recommend")
    campaign.freeze("policy")
    where, body = path(campaign, "policies/policy/recommend"), {"contexts": [0.3, -0.2]}
    empty, ours, each = [], [], 50
    with (
        service(database) as (here, our_process),
        running([sys.executable, "-c", EMPTY]) as (there, empty_process),
    ):
        lines = Line(here), Line(there)
        per_second(lines[0], where, body, each)
        per_second(lines[1], "/", body, each)
        before = [seconds_of_work(process) for process in (our_process, empty_process)]
        for _ in range(times // each):
            ours.append(per_second(lines[0], where, body, each))
            empty.append(per_second(lines[1], "/", body, each))
        after = [seconds_of_work(process) for process in (our_process, empty_process)]
    work = [1000 * (b - a) / times for a, b in zip(before, after, strict=True)]
    print(row("empty endpoint, requests per second, median", median(empty), "/s", "", True))
    print(row("  of which work of the server, per request", work[1], "ms", "", True))
    print(row("recommend, 3 x 300 points, requests per second", median(ours), "/s", "", True))
    print(row("  of which work of the server, per request", work[0], "ms", "", True))
    share = median(a / b for a, b in zip(ours, empty, strict=True))
    print(row("  share of the empty endpoint's, median", share, "", ">= 0.7", share >= 0.7))


def pairs(database: str, how: str) -> None:
    """Asks and tells over HTTP, one client and eight."""
    for clients in (1, 8):
        campaign = told(database, "pairs")
        with service(database) as (address, process):
            ask_and_tell(address, campaign, 99, 20)
            start, times, busy = time.perf_counter(), 240 // clients, seconds_of_work(process)
            with ThreadPoolExecutor(clients) as pool:
                waiting = [
                    pool.submit(ask_and_tell, address, campaign, who, times)
                    for who in range(clients)
                ]
                for each in waiting:
                    each.result()
            rate = clients * times / (time.perf_counter() - start)
            work_each = 1000 * (seconds_of_work(process) - busy) / (clients * times)
        label = f"pairs of ask and tell per second, {clients} client(s){how}"
        print(row(label, rate, "/s", ">= 150", rate >= 150))
        print(row("  of which work of the server, per pair", work_each, "ms", "", True))


def seconds_of_work(process: int) -> float:
    """Seconds of work that a process did; less than those on the clock where others work too."""
    words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def ask_and_tell(address: str, campaign: cg.Campaign, who: int, times: int) -> None:
    line, rng = Line(address), np.random.default_rng(who)
    for _ in range(times):
        context = rng.uniform(-1, 1, size=2).tolist()
        trial = line.send("POST", path(campaign, "ask"), {"contexts": context})["trial"]
        line.send("POST", path(campaign, "tell"), {"trial": trial["id"], "reward": context[0]})


def opening(database: str) -> None:
    """The first answer of a service about a campaign of 10,000 trials."""
    campaign, rng = told(database, "opening", 3333), np.random.default_rng(1)
    campaign.tell(campaign.ask(rng.uniform(-1, 1, size=2)), 0.0)
    campaign.close()
    seconds = []
    for _ in range(3):
        with service(database) as (address, _):
            line = Line(address)
            line.send("GET", "/readyz")
            start = time.perf_counter()
            line.send("GET", path(campaign, "arms"))
            seconds.append(time.perf_counter() - start)
    found = median(seconds)
    print(row("first answer about 10,000 trials, median of 3", found, "s", "< 1", found < 1))


def status(database: str, trials: int) -> None:
    """What a page asks for all the time."""
    campaign = told(database, "status", trials // 3)
    with service(database) as (address, _):
        line, seconds = Line(address), []
        where = path(campaign, "status?fresh=false")
        start = time.perf_counter()
        line.send("GET", where)
        first = time.perf_counter() - start
        for _ in range(10):
            line.send("POST", path(campaign, "ask"), {"contexts": [0.1, 0.2]})
            start = time.perf_counter()
            line.send("GET", where)
            seconds.append(1000 * (time.perf_counter() - start))
    print(row(f"first status of {trials} trials", first, "s", "", True))
    found = median(seconds)
    print(row(f"status of {trials} trials, median of 10", found, "ms", "< 50", found < 50))


def page(database: str, trials: int) -> None:
    """What the live page asks for, each time after the log grew."""
    campaign = told(database, "page", trials // 3)
    here = path(campaign, "").replace("/v1/", "/page/")
    asked = {
        "status": ("GET", f"{here}status", None),
        "series": ("GET", f"{here}series", None),
        "list of campaigns": ("GET", "/page/campaigns", None),
        "newest 50 trials": ("GET", f"{here}trials", None),
        "trials with a text that none has": ("GET", f"{here}trials?text=zzz", None),
        "belief along a column": ("POST", f"{here}along", {"column": "column 0"}),
    }
    with service(database) as (address, _):
        line, seconds = Line(address), {name: [] for name in asked}
        start = time.perf_counter()
        line.send("GET", f"{here}status")
        print(
            row(
                f"page: first status of {trials} trials", time.perf_counter() - start, "s", "", True
            )
        )
        line.send("POST", path(campaign, "ask"), {"contexts": [0.1, 0.2]})  # opens the campaign
        for _ in range(20):
            trial = line.send("POST", path(campaign, "ask"), {"contexts": [0.1, 0.2]})["trial"]
            line.send("POST", path(campaign, "tell"), {"trial": trial["id"], "reward": 0.0})
            for name, request in asked.items():
                start = time.perf_counter()
                line.send(*request)
                seconds[name].append(1000 * (time.perf_counter() - start))
    for name, each in seconds.items():
        found, target = median(each), "< 50" if name in ("status", "series") else ""
        print(row(f"page: {name}, median of 20", found, "ms", target, not target or found < 50))


def memory(database: str, times: int) -> None:
    """Memory of the server over many requests of all kinds."""
    campaign = told(database, "memory")
    campaign.freeze("policy")
    with service(database) as (address, process):
        line, sizes = Line(address), []
        for number in range(times):
            context = {"contexts": [0.3, -0.2]}
            if number % 50 == 0:
                trial = line.send("POST", path(campaign, "ask"), context)["trial"]
                line.send("POST", path(campaign, f"trials/{trial['id']}/cancel"), {})
            elif number % 50 == 1:
                line.send("GET", path(campaign, "status?fresh=false"))
            else:
                line.send("POST", path(campaign, "policies/policy/recommend"), context)
            if number in (times // 5, times - 1):
                sizes.append(resident(process))
    early, late = sizes
    print(row(f"memory after {times // 5} requests", early, "MB", "", True))
    grown = late - early
    print(row(f"  growth until {times} requests", grown, "MB", "< 5", grown < 5))


def resident(process: int) -> float:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1000
    raise RuntimeError("cannot tell the memory of a process here")


if __name__ == "__main__":
    main()
