"""Kills a service again and again while clients use it, then compares its log with what was said.

Half way a backup is restored under the running service: what was acknowledged since it was made is
gone, by intent, and all else must be there.

    python benchmarks/kill.py --kills 50                                  # a SQLite file
    python benchmarks/kill.py --kills 50 --database postgresql://...      # a server

Kills come after some tens of answers, so that a fast machine has as long a log to check as a slow
one. Clients ask, tell, cancel, retract and correct, and repeat what was not answered with its key.
At the end every request that was acknowledged must be in the log once, with the answer that was
given; nothing else may be there; and the learner must be, byte for byte, one that was fed the log
in order.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the oracle of the tests

from sqlalchemy.engine import make_url
from tests.team.campaign.oracle import check, events

import contextgap as cg
from contextgap.team import client

ARMS = ["hull", "panel", "boom"]
_PATIENCE = 300.0  # seconds for which clients repeat a request


@dataclass
class Report:
    """What came of it."""

    kills: int = 0
    undone: int = 0  # by the restore
    acknowledged: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    doubled: int = 0
    different: int = 0
    uninvited: int = 0

    @property
    def sound(self) -> bool:
        """Whether nothing was lost, doubled, changed or made up."""
        return not (self.lost or self.doubled or self.different or self.uninvited)


class Server:
    """A service at one port that can be killed and begun again."""

    def __init__(self, database: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._database = database
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Begin to listen; return when it does."""
        command = [sys.executable, "-m", "contextgap", "serve", "--database", self._database]
        self._process = subprocess.Popen(
            [*command, "--port", str(self.port), "--no-tokens"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            raise RuntimeError("the service does not start")

    def stop(self, number: int) -> None:
        """Send a signal, and wait for the end."""
        assert self._process is not None
        self._process.send_signal(number)
        self._process.wait(timeout=60)
        assert self._process.stdout is not None
        self._process.stdout.close()


class Gate:
    """Lets clients work, and has them wait between two steps while it is shut."""

    def __init__(self) -> None:
        self._changed, self._inside, self._shut = threading.Condition(), 0, False

    @contextmanager
    def open(self) -> Iterator[None]:
        """Wait until the gate is open, and keep it from being shut meanwhile."""
        with self._changed:
            self._changed.wait_for(lambda: not self._shut)
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    @contextmanager
    def shut(self) -> Iterator[None]:
        """Keep all clients out."""
        with self._changed:
            self._shut = True
            self._changed.wait_for(lambda: not self._inside)
        try:
            yield
        finally:
            with self._changed:
                self._shut = False
                self._changed.notify_all()


class Client(threading.Thread):
    """One bench that works until told to stop, and remembers what was acknowledged."""

    def __init__(self, url: str, name: str, who: int, stop: threading.Event, gate: Gate) -> None:
        super().__init__()
        self._gate = gate
        self._campaign = client.Campaign.open(url, name, patience=_PATIENCE)
        self._random, self._who, self._stop_asked = random.Random(who), who, stop
        self._count = 0
        self.acknowledged: dict[str, tuple[str, Any]] = {}
        self.failure: BaseException | None = None

    def run(self) -> None:
        """Work."""
        try:
            while not self._stop_asked.is_set():
                with self._gate.open():
                    self._step()
        except BaseException as error:
            self.failure = error
        finally:
            self._campaign.close()

    def _step(self) -> None:
        context = [self._random.uniform(-1, 1), self._random.uniform(-1, 1)]
        trial = self._do("ask", context)
        self._note("ask", (trial.id, trial.arm, context))
        if self._random.random() < 0.1:
            self._do("cancel", trial.id)
            self._note("cancel", trial.id)
            return
        reward = context[0] * (trial.arm == "hull") + self._random.gauss(0, 0.1)
        self._do("tell", trial.id, reward)
        self._note("tell", (trial.id, reward))
        if self._random.random() < 0.05:
            self._do("retract", trial.id, "the bench was unplugged")
            self._note("retract", trial.id)
            if self._random.random() < 0.5:
                self._do("correct", trial.id, -reward, "it was not")
                self._note("correct", (trial.id, -reward))

    def _do(self, method: str, *arguments: Any) -> Any:
        self._count += 1
        return getattr(self._campaign, method)(*arguments, key=self._key)

    @property
    def _key(self) -> str:
        return f"client {self._who}, request {self._count}"

    def _note(self, kind: str, answer: Any) -> None:
        self.acknowledged[self._key] = kind, answer


def besiege(database: str, kills: int, clients: int, answers: int) -> Report:
    """Kill a service so many times under load; return what its log says of it.

    ``answers`` is how many it gives between kills, on average.
    """
    name, dice = f"kill {time.time_ns()}", random.Random(0)
    cg.Campaign.create(database, name, ARMS, kernel=cg.Gaussian(0.5), seed=0).close()
    server, stop, report, gate = Server(database), threading.Event(), Report(), Gate()
    server.start()
    workers = [Client(server.url, name, who, stop, gate) for who in range(clients)]
    for worker in workers:
        worker.start()
    for kill in range(kills):
        if kill == kills // 2:
            report.undone = go_back(database, workers, gate, answers)
        await_answers(workers, dice.randint(answers // 2, 3 * answers // 2))
        time.sleep(dice.uniform(0, 0.02))  # so that it may be doing anything
        server.stop(signal.SIGKILL)
        report.kills += 1
        server.start()
    await_answers(workers, answers)
    stop.set()
    for worker in workers:
        worker.join()
    server.stop(signal.SIGTERM)
    for worker in workers:
        if worker.failure is not None:
            raise worker.failure
    with cg.Campaign.open(database, name) as campaign:
        compare(campaign, workers, report)
        check(campaign)
    return report


def await_answers(workers: list[Client], count: int) -> None:
    """Wait until so many more requests were acknowledged, or a client failed."""
    start = sum(len(worker.acknowledged) for worker in workers)
    while sum(len(worker.acknowledged) for worker in workers) < start + count:
        if any(worker.failure for worker in workers):
            return
        time.sleep(0.002)


def go_back(database: str, workers: list[Client], gate: Gate, answers: int) -> int:
    """Back up, go on for a while, and restore under the running service; return what that undid."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        with gate.shut():
            transfer(database, copy)
            before = [dict(worker.acknowledged) for worker in workers]
        await_answers(workers, answers)
        with gate.shut():
            undone = sum(len(worker.acknowledged) for worker in workers)
            transfer(database, copy, back=True)
            for worker, acknowledged in zip(workers, before, strict=True):
                worker.acknowledged = acknowledged
    return undone - sum(map(len, before))


def transfer(database: str, copy: Path, *, back: bool = False) -> None:
    """Copy a database to a file, or back, by means of its own, whoever uses it meanwhile."""
    if database.startswith("postgresql"):
        dump = ["pg_dump", "--clean", "--if-exists", "-f", str(copy), database]
        load = ["psql", "-q", "-o", os.devnull, "-v", "ON_ERROR_STOP=1", "-f", str(copy), database]
        subprocess.run(load if back else dump, check=True)
        return
    path = str(make_url(database).database) if "://" in database else database
    with closing(sqlite3.connect(path)) as here, closing(sqlite3.connect(copy)) as there:
        there.backup(here) if back else here.backup(there)


def compare(campaign: cg.Campaign, workers: list[Client], report: Report) -> None:
    """Count what the log has lost, doubled or made up."""
    log = [event for event in events(campaign) if event.key is not None]
    keys = Counter(event.key for event in log)
    report.doubled = sum(count - 1 for count in keys.values())
    told = Counter(event.request["trial"] for event in log if event.kind == "tell")
    report.doubled += sum(count - 1 for count in told.values())
    found = {event.key: said(event) for event in log}
    acknowledged = {key: said for worker in workers for key, said in worker.acknowledged.items()}
    report.acknowledged = Counter(kind for kind, _ in acknowledged.values())
    report.lost = len(acknowledged.keys() - found.keys())
    report.uninvited = len(found.keys() - acknowledged.keys())
    both = acknowledged.keys() & found.keys()
    report.different = sum(found[key] != acknowledged[key] for key in both)


def said(event: Any) -> tuple[str, Any]:
    """What the answer to a request must have been, by its event."""
    request, result = event.request, event.result
    if event.kind == "ask":
        return "ask", (result["trials"][0], result["arms"][0], request["contexts"]["row"])
    if event.kind in ("tell", "correct"):
        return event.kind, (request["trial"], request["reward"])
    return event.kind, request["trial"]


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--database")
    options.add_argument("--kills", type=int, default=50)
    options.add_argument("--clients", type=int, default=8)
    options.add_argument("--answers", type=int, default=60)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        database = chosen.database or f"sqlite:///{Path(folder) / 'bench.db'}"
        report = besiege(database, chosen.kills, chosen.clients, chosen.answers)
    counted = ", ".join(f"{count} {kind}" for kind, count in sorted(report.acknowledged.items()))
    print(f"{report.kills} kills, {chosen.clients} clients; acknowledged: {counted}")
    print(f"a backup was restored half way, which undid {report.undone} acknowledged requests")
    print(f"lost {report.lost}, doubled {report.doubled}, different {report.different}, ", end="")
    print(f"in the log without being acknowledged {report.uninvited}")
    print("the learner is that of the log fed in order")
    raise SystemExit(0 if report.sound else 1)


if __name__ == "__main__":
    main()
