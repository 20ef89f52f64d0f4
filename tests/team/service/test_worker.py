"""A campaign's thread: requests that wait share a commit, and each has its own outcome."""

import asyncio
import threading

import pytest

import contextgap as cg
from contextgap.team.campaign import ConflictError
from contextgap.team.service.hosting import Worker


@pytest.fixture
def worker(tmp_path):
    database = f"sqlite:///{tmp_path / 'bench.db'}?synchronous=normal"
    cg.Campaign.create(database, "sensors", ["hull", "panel"], kernel=cg.Gaussian(0.5), seed=0)
    made = Worker(lambda: cg.Campaign.open(database, "sensors"), waiting=20)
    yield made
    made.stop()
    made.join(10)


def ask(key):
    return lambda campaign: campaign.ask([0.0, 0.5], key=key)


async def held(worker, calls):
    """Submit calls while another one is busy, so that they wait and share a commit."""
    go = threading.Event()
    first = worker.submit(lambda _: go.wait(10))
    waiting = [worker.submit(call, brief=True) for call in calls]
    go.set()
    assert await first
    return await asyncio.gather(*waiting, return_exceptions=True)


def kinds(campaign):
    with campaign._session.reading() as connection:
        return [event.kind for event in campaign._session.store.events(connection)]


def test_one_bad_request_among_good_ones(worker):
    def tell_twice(campaign):
        return campaign.tell([1, 99], [0.5, 0.5])

    async def run():
        found = await held(worker, [ask("a"), ask("b"), tell_twice, ask("a"), ask("c")])
        return found, await worker.submit(kinds)

    (one, two, bad, again, three), log = asyncio.run(run())
    assert isinstance(bad, cg.campaign.NotFoundError)
    assert [one.id, two.id, again.id, three.id] == [1, 2, 1, 3]
    assert log == ["create", "ask", "ask", "ask"]


def test_nothing_is_answered_if_the_commit_fails(worker):
    async def run():
        def break_commit(campaign):
            campaign._session.store.summarize = refuse  # the last thing before the commit
            return campaign

        def refuse(*_):
            raise OSError("the disk is full")

        campaign = await worker.submit(break_commit)
        failed = await held(worker, [ask("a"), ask("b")])
        del campaign._session.store.summarize
        return failed, await worker.submit(ask("a")), await worker.submit(kinds)

    failed, asked, log = asyncio.run(run())
    assert [str(error) for error in failed] == ["the disk is full"] * 2
    assert asked.id == 1
    assert log == ["create", "ask"]


def test_who_went_away_before_its_turn_changes_nothing(worker):
    async def run():
        go = threading.Event()
        first = worker.submit(lambda _: go.wait(10))
        gone, stays = worker.submit(ask("a"), brief=True), worker.submit(ask("b"), brief=True)
        gone.cancel()
        go.set()
        await first
        return await stays, await worker.submit(kinds)

    stays, log = asyncio.run(run())
    assert stays.id == 1
    assert log == ["create", "ask"]


def test_a_conflict_is_the_callers_own(worker):
    async def run():
        return await held(worker, [ask("a"), lambda c: c.ask([1.0, 1.0], key="a"), ask("b")])

    one, conflict, two = asyncio.run(run())
    assert isinstance(conflict, ConflictError)
    assert (one.id, two.id) == (1, 2)
