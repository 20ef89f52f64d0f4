"""The service is tested as it is run: a process that listens on this machine."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

import contextgap as cg
from contextgap.team.campaign.database import Database
from contextgap.team.service import Settings, create_app
from contextgap.team.service.access import create_token
from contextgap.team.service.page import Standings
from tests.team.campaign.conftest import contexts, local, place, server

__all__ = ["contexts", "local", "place", "server"]

ARMS = ["hull", "panel", "boom"]
PROGRAM = """
import time
from contextgap.team.campaign.campaign import Campaign
from contextgap.cli import main
for name in {}:
    setattr(Campaign, name, lambda *_, **how: time.sleep(600))
main()
"""
COLUMNS = {"temperature": "number", "hour": cg.Cyclic(24), "mode": cg.Category(missing=True)}
KERNEL = {"type": "Gaussian", "bandwidth": 0.5}


class Running:
    """A service that runs."""

    def __init__(self, process, url, database, log):
        self.process, self.url, self.database, self.log = process, url, database, log
        self.http = httpx.Client(base_url=url, timeout=60)

    def token(self, name, *scopes, campaign=None, days=None) -> dict[str, str]:
        """Make a token; return the headers that carry it."""
        secret = create_token(Database(self.database), name, scopes, campaign, days)
        return {"Authorization": f"Bearer {secret}"}

    def create(self, name="sensors", **settings):
        settings = {"kernel": cg.Gaussian(0.5), "seed": 0} | settings
        return cg.Campaign.create(self.database, name, ARMS, **settings)


@contextmanager
def serving(database, log, *options, tokens=False, slow=()) -> Iterator[Running]:
    """Run a service while the block runs; it must stop in good order, unless the block kills it.

    ``slow`` are methods of campaigns that take ten minutes in this service.
    """
    command = [sys.executable, "-c", PROGRAM.format(slow), "serve", "--port", "0"]
    command += [] if tokens else ["--no-tokens"]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    with open(log, "w") as stream:
        process = subprocess.Popen(
            [*command, "--database", str(database), *options],
            stdout=subprocess.PIPE,
            stderr=stream,
            text=True,
            env=environment,
        )
    try:
        words = process.stdout.readline().split()
        assert "at" in words, Path(log).read_text()
        running = Running(process, words[words.index("at") + 1].rstrip(";"), database, log)
        with running.http:
            yield running
    finally:
        killed = process.poll() == -signal.SIGKILL
        process.terminate()
        process.stdout.close()
        assert process.wait(timeout=60) == (-signal.SIGKILL if killed else 0)


def in_process(database, *requests, **settings):
    """Answers of a service in this process, without tokens, to requests: method, path and body."""

    async def send():
        app = create_app(database, Settings(tokens="none", **settings))
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
            found = [await http.request(how, path, json=body) for how, path, body in requests]
        app.state.service.close()
        return found

    return asyncio.run(send())


@pytest.fixture(scope="module")
def service(tmp_path_factory) -> Iterator[Running]:
    """A service without tokens, for all tests of a file."""
    folder = tmp_path_factory.mktemp("service")
    with serving(folder / "bench.db", folder / "log") as running:
        yield running


@pytest.fixture(scope="module")
def closed(tmp_path_factory) -> Iterator[Running]:
    """A service that requires tokens, for all tests of a file."""
    folder = tmp_path_factory.mktemp("closed")
    with serving(folder / "bench.db", folder / "log", tokens=True) as running:
        yield running


@pytest.fixture
def standings():
    """Returns how the campaigns of a database stand; closes all connections afterwards."""
    opened = []

    def of(where) -> Standings:
        opened.append(Database(where))
        return Standings(opened[-1])

    yield of
    for database in opened:
        database.close()


def draw(rng) -> dict:
    """A context."""
    mode = rng.choice(["eco", "boost", None])
    return {
        "temperature": float(rng.normal()),
        "hour": float(rng.uniform(0, 24)),
        "mode": None if mode is None else str(mode),
    }


def earned(context, arm) -> float:
    """What a bench would measure."""
    slope = {"hull": 1.0, "panel": 0.0, "boom": -1.0}.get(arm, 0.3)
    return slope * context["temperature"] + 0.1 * (context["mode"] == "eco")


def explore(campaign, rng, times: int) -> None:
    for _ in range(times):
        context = draw(rng)
        trial = campaign.ask(context)
        campaign.tell(trial, earned(context, trial.arm))
