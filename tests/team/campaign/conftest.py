"""Campaigns are tested on a SQLite file and on a PostgreSQL server of the test's own."""

import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import contextgap as cg
from contextgap.team.campaign import values
from contextgap.team.campaign.database import Database

ARMS = ("hull", "panel", "boom")
_names = itertools.count()


class Place(NamedTuple):
    """Where a test's campaign is."""

    database: str
    name: str

    def create(self, arms=ARMS, **settings) -> cg.Campaign:
        settings = {"kernel": cg.Gaussian(0.5), "seed": 0} | settings
        return cg.Campaign.create(self.database, self.name, arms, **settings)

    def open(self) -> cg.Campaign:
        return cg.Campaign.open(self.database, self.name)


def program(name: str) -> str:
    """A program of PostgreSQL's, which Debian keeps out of the path."""
    found = shutil.which(name) or next(
        map(str, sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)), None
    )
    if found is None:
        pytest.skip(f"there is no {name}: PostgreSQL is not installed")
    return found


@contextmanager
def running_server() -> Iterator[str]:
    """Run a private PostgreSQL server, reached by a socket in its own folder; yield its URL."""
    initdb, control = program("initdb"), program("pg_ctl")
    who = {}
    folder = Path(tempfile.mkdtemp(prefix="contextgap-postgresql-"))
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        try:
            user = pwd.getpwnam("postgres")
        except KeyError:
            pytest.skip("PostgreSQL refuses to run as root, and there is no user postgres")
        os.chown(folder, user.pw_uid, user.pw_gid)
        who = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}

    def run(*command: str) -> None:
        with open(folder / "log", "a") as log:
            subprocess.run(command, check=True, stdout=log, stderr=log, cwd=folder, **who)

    data = str(folder / "data")
    options = f"-k {folder} -c listen_addresses='' -c fsync=off -c max_connections=50"
    try:
        run(initdb, "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync")
        run(control, "-D", data, "-w", "-o", options, "start")
        try:
            yield f"postgresql://postgres@/postgres?host={folder}"
        finally:
            run(control, "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The URL of a private PostgreSQL server."""
    with running_server() as url:
        yield url


@pytest.fixture
def local(tmp_path) -> Place:
    """A place for a campaign in a SQLite file."""
    return Place(f"sqlite:///{tmp_path / 'bench.db'}?synchronous=normal", "sensors")


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request) -> Place:
    """A place for a campaign, in either kind of database."""
    if request.param == "sqlite":
        return request.getfixturevalue("local")
    return Place(request.getfixturevalue("server"), f"campaign {next(_names)}")


@pytest.fixture
def contexts(rng):
    return rng.uniform(-1, 1, size=(200, 2))


def set_clock(monkeypatch, now: str) -> None:
    """Have the clocks of this machine and of the database stand still."""
    monkeypatch.setattr(values, "now", lambda: now)
    monkeypatch.setattr(Database, "now", lambda *_: now)


def reward(context, arm) -> float:
    """What a bench would measure."""
    turn = 2.0 * np.pi * ARMS.index(arm) / len(ARMS)
    return float(np.cos(turn) * context[0] + np.sin(turn) * context[1])


def tell_some(campaign, contexts, *, keep_open=()) -> list[cg.campaign.Trial]:
    """Ask and tell at contexts, but for those to be kept open."""
    trials = []
    for place, context in enumerate(contexts):
        trials.append(campaign.ask(context))
        if place not in keep_open:
            campaign.tell(trials[-1], reward(context, trials[-1].arm))
    return trials
