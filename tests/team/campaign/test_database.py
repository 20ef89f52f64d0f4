"""What operators do to a database, and what goes wrong with it: restores, alterations, upgrades."""

import gzip
import sqlite3
import subprocess
import warnings
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import create_engine, event, text
from sqlalchemy.exc import IntegrityError, InternalError, OperationalError

import contextgap as cg
from contextgap.team.campaign import AlteredError, UnavailableError, database, values
from contextgap.team.campaign import campaign as campaign_module
from contextgap.team.campaign.database import Database
from contextgap.team.campaign.store import (
    backup,
    check_database,
    database_status,
    prepare,
    restore,
    summaries,
    verify,
)
from contextgap.team.service.access import create_token, hash_of, read_tokens

from .conftest import Place, program, set_clock, tell_some
from .oracle import check, events, to_bytes
from .test_processes import check_picks

DATA = Path(__file__).parent / "data"


def database_of(campaign) -> Database:
    return campaign._session.store.database


def execute(campaign, statement, **values):
    with database_of(campaign).writing() as connection:
        connection.execute(text(statement), values)


@pytest.fixture
def own_server(server):
    """A database of the test's own on the server."""
    name = f"own{np.random.default_rng().integers(2**32)}"
    engine = create_engine(Database(server).url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    yield server.replace("/postgres?", f"/{name}?")
    with engine.connect() as connection:
        connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    engine.dispose()


@pytest.fixture(params=["sqlite", "postgresql"])
def alone(request, tmp_path) -> Place:
    """A place in a database that no other test uses."""
    if request.param == "sqlite":
        return Place(str(tmp_path / "alone.db"), "sensors")
    return Place(request.getfixturevalue("own_server"), "sensors")


def copy_of(place, path):
    """Back a database up by the means of the database itself."""
    if "postgresql" in place.database:
        dump = [program("pg_dump"), "--clean", "--if-exists", "-f", str(path), place.database]
        subprocess.run(dump, check=True)
    else:
        with (
            closing(sqlite3.connect(place.database)) as source,
            closing(sqlite3.connect(path)) as copy,
        ):
            source.backup(copy)


def put_back(place, path):
    """Restore under running processes, by the means of the database itself."""
    if "postgresql" in place.database:
        quiet = [program("psql"), "-q", "-o", "/dev/null", "-v", "ON_ERROR_STOP=1"]
        subprocess.run([*quiet, "-f", str(path), place.database], check=True)
    else:
        with (
            closing(sqlite3.connect(path)) as copy,
            closing(sqlite3.connect(place.database)) as target,
        ):
            copy.backup(target)


def test_a_backup_restored_under_a_running_campaign_is_noticed(alone, contexts, tmp_path):
    campaign = alone.create()
    tell_some(campaign, contexts[:5], keep_open=[4])
    copy_of(alone, tmp_path / "copy")
    tell_some(campaign, contexts[5:10])
    put_back(alone, tmp_path / "copy")
    campaign.tell(5, 0.5)
    trial = campaign.ask(contexts[5])
    assert trial.id == 6
    assert [event.number for event in events(campaign)] == list(range(1, len(events(campaign)) + 1))
    check(campaign)
    check(alone.open())
    assert not list(verify(Database(alone.database)))


def test_a_log_with_as_many_events_but_others_is_noticed(alone, contexts, tmp_path):
    campaign = alone.create()
    tell_some(campaign, contexts[:2])
    copy_of(alone, tmp_path / "copy")
    tell_some(campaign, contexts[2:4])
    put_back(alone, tmp_path / "copy")
    tell_some(alone.open(), contexts[4:6])  # the same numbers
    tell_some(campaign, contexts[6:8])
    check(campaign)


def test_the_database_refuses_an_event_whose_predecessor_is_not_the_last(place):
    campaign = place.create()
    for row in range(3):
        campaign.ask([0.1 * row, 0.0])
    store, log = campaign._session.store, events(campaign)

    def append(event):
        with store.locked() as connection:
            store.append(connection, [event])

    for number, before in [(42, log[-1].hash), (5, log[1].hash), (5, "0" * 64), (4, log[2].hash)]:
        wrong = type(log[0]).following(before, (number, values.now(), "progress", None, "{}", "{}"))
        with pytest.raises(IntegrityError):
            append(wrong)
    assert events(campaign) == log


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (
            "UPDATE contextgap_events SET request = replace(request, '0.', '1.') "
            "WHERE campaign = 1 AND number = 3",
            "event 3 was altered",
        ),
        (
            "DELETE FROM contextgap_events WHERE campaign = 1 AND number = "
            "(SELECT max(number) FROM contextgap_events WHERE campaign = 1)",
            "is not as in the log",
        ),
        (
            "UPDATE contextgap_trials SET reward = 7 WHERE campaign = 1 AND id = 2",
            "reward is 7.0, not",
        ),
        (
            "UPDATE contextgap_trials SET sha256 = '0' WHERE campaign = 1 AND id = 2",
            "the hash of trial 2",
        ),
        ("DELETE FROM contextgap_trials WHERE campaign = 1 AND id = 2", "trial 2 is missing"),
        (
            "UPDATE contextgap_files SET bytes = CAST(bytes || x'00' AS BLOB) "
            "WHERE campaign = 1 AND kind = 'snapshot'",
            "snapshot",
        ),
        (
            "UPDATE contextgap_files SET bytes = (SELECT bytes FROM contextgap_files "
            "WHERE campaign = 2) WHERE campaign = 1 AND kind = 'policy'",
            "the policy of event",
        ),
        ("DELETE FROM contextgap_files WHERE kind = 'policy' AND campaign = 1", "is missing"),
    ],
)
def test_verify_finds_what_was_altered(local, contexts, statement, said):
    campaign = local.create()
    other = cg.Campaign.create(local.database, "other", 2, kernel=cg.Gaussian(0.5), seed=1)
    other.tell(contexts=contexts[:3], arms=[0, 1, 0], reward=[1.0, 2.0, 3.0])
    other.freeze("first")
    tell_some(campaign, contexts[:4], keep_open=[3])
    campaign.freeze("first")
    campaign.retract(1, "typo")  # leaves a snapshot
    campaign.cancel(4)
    assert not list(verify(Database(local.database)))
    execute(campaign, statement)
    problems = list(verify(Database(local.database)))
    assert problems
    assert all("campaign 'sensors'" in each for each in problems)
    assert any(said in each for each in problems)


def test_opening_checks_what_it_uses(place, contexts):
    campaign = place.create()
    tell_some(campaign, contexts[:6], keep_open=[5])
    policy = campaign.freeze("first")
    campaign._session.write_snapshot()
    wanted = to_bytes(campaign.learner())
    mine = {"mine": campaign._session.store.campaign}
    where = "WHERE campaign = :mine AND "
    execute(
        campaign, f"UPDATE contextgap_trials SET arm = '\"hull\"', reward = 9 {where}id = 2", **mine
    )
    with pytest.raises(AlteredError, match="trial 2 was altered"):
        campaign.trial(2)
    with pytest.raises(AlteredError, match="trial 2 was altered"):
        campaign.retract(2, "typo")
    half = "substr(bytes, 1, 100)" if database_of(campaign).is_file else "substring(bytes, 1, 100)"
    execute(campaign, f"UPDATE contextgap_files SET bytes = {half} {where}kind = 'policy'", **mine)
    with pytest.raises(AlteredError, match=r"the policy of event 1. was altered"):
        campaign.policy("first")
    assert campaign.rebuild("first").card == policy.card
    execute(
        campaign, f"UPDATE contextgap_files SET bytes = {half} {where}kind = 'snapshot'", **mine
    )
    with pytest.warns(RuntimeWarning, match="the snapshot of event 1. was altered.*; the log is"):
        again = place.open()
    assert to_bytes(again.learner()) == wanted


def test_opening_checks_events_that_it_uses_and_verify_those_that_a_snapshot_covers(
    local, contexts
):
    campaign = local.create()
    trial = campaign.ask(contexts[0], key="first")
    tell_some(campaign, contexts[1:6])
    campaign._session.write_snapshot()
    taken, wanted = campaign._session.replay.number, to_bytes(campaign.learner())
    change = "UPDATE contextgap_events SET at = :at WHERE number = :number"
    tell_some(campaign, contexts[6:8])
    log = events(campaign)
    for each in (log[0], log[taken - 1], log[taken], log[-1]):
        execute(campaign, change, at="2024", number=each.number)
        with pytest.raises(AlteredError, match=rf"event {each.number} .* altered"):
            opened(local)
        execute(campaign, change, at=each.at, number=each.number)
    execute(campaign, change, at="2024", number=2)
    again = local.open()
    assert to_bytes(again.learner()) == to_bytes(campaign.learner()) != wanted
    with pytest.raises(AlteredError, match=r"event 2 .* altered"):
        again.ask(contexts[0], key="first")
    assert again.trial(trial.id) == trial
    assert any("event 2 was altered" in each for each in verify(Database(local.database)))


def opened(place):
    """Open a campaign, whatever it warns of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return place.open()


def test_others_may_write_while_a_call_computes(local, contexts, monkeypatch):
    monkeypatch.setattr(database, "WAIT", 0.2)  # for which a writer would wait
    campaign = local.create()
    other = cg.Campaign.create(local.database, "other", 2, kernel=cg.Gaussian(0.5), seed=1)
    pick = campaign_module._pick

    def slow(*given):
        monkeypatch.setattr(campaign_module, "_pick", pick)
        other.ask([0.5])
        return pick(*given)

    monkeypatch.setattr(campaign_module, "_pick", slow)
    campaign.ask(contexts[0])
    assert len(other.find_trials()) == 1
    check(campaign)
    check(other)


def test_a_pick_is_made_again_if_the_log_moved_on(place, contexts, monkeypatch):
    campaign, other = place.create(), place.open()
    tell_some(campaign, contexts[:8])
    pick, tries = campaign_module._pick, []

    def slow(learner, *given):
        found = pick(learner, *given)
        tries.append(found["arms"])
        if len(tries) == 1:
            monkeypatch.setattr(campaign_module, "_pick", pick)
            tell_some(other, contexts[8:10])
            monkeypatch.setattr(campaign_module, "_pick", slow)
        return found

    monkeypatch.setattr(campaign_module, "_pick", slow)
    campaign.ask(contexts[20])
    assert len(tries) == 2
    check_picks(campaign, cg.Gaussian(0.5))
    check(campaign)
    check(other)


def test_who_holds_a_lock_and_stops_does_not_stop_others(server, monkeypatch):
    place = Place(server, "locks")
    peer = place.create()
    monkeypatch.setattr(database, "LOCKED", 0.2)
    campaign = place.open()
    with peer._session.store.locked():
        with pytest.raises(UnavailableError, match="another process held a lock"):
            campaign.ask([0.0, 0.0])
        assert campaign.status().trials["open"] == 0  # who only reads need not wait
    assert campaign.ask([0.0, 0.0]).id == 1
    check(campaign)


def test_who_stops_with_a_lock_loses_it(server, monkeypatch):
    place = Place(server, "idle")
    place.create()
    monkeypatch.setattr("contextgap.team.campaign.store.IDLE", 0.3)
    peer, campaign = place.open(), place.open()

    def stopped():
        with peer._session.store.locked() as connection:
            campaign.ask([0.0, 0.0])  # waits until the server ends the peer's transaction
            connection.execute(text("SELECT 1"))

    with pytest.raises((UnavailableError, OperationalError, InternalError)):
        stopped()
    assert len(campaign.find_trials()) == 1
    peer.tell(1, 0.5)  # on a new connection
    check(campaign)


def test_statements_that_take_too_long_are_given_up(server, monkeypatch):
    monkeypatch.setattr(database, "RUNNING", 0.2)
    slow = Database(server)

    def wait():
        with slow.reading() as connection:
            connection.execute(text("SELECT pg_sleep(5)"))

    with pytest.raises(UnavailableError, match=r"the server took longer than"):
        wait()


def test_a_clock_that_jumps_does_not_end_leases(local, contexts, monkeypatch):
    campaign = local.create()
    trial = campaign.ask(contexts[0])
    with monkeypatch.context() as patch:
        set_clock(patch, values.after(30 * 86_400))
        with pytest.warns(RuntimeWarning, match="more than a day after the last event"):
            assert campaign.status().trials["open"] == 1
    assert campaign.status().trials["open"] == 1
    set_clock(monkeypatch, values.after(30 * 86_400))  # now it is right, and somebody works
    with pytest.warns(RuntimeWarning, match="it will after the next ask or tell"):
        campaign.tell(contexts=contexts[1], arms="hull", reward=1.0)
    assert campaign.trial(trial.id).state == "expired"
    assert campaign.tell(trial, 0.5).state == "told"  # a late reward revives its trial
    check(campaign)


def test_leases_go_by_the_clock_of_the_server(server, contexts, monkeypatch):
    campaign = Place(server, "clocks").create()
    trial = campaign.ask(contexts[0], lease=3600)
    monkeypatch.setattr(values, "now", lambda: "2099-01-01T00:00:00.000000+00:00")
    assert Place(server, "clocks").open().status().trials["open"] == 1
    assert campaign.ask(contexts[1], lease=3600).until.year < 2099
    where = database_of(campaign)
    asked, time = where._server_time
    where._server_time = asked, time + timedelta(hours=2)
    assert campaign.trial(trial.id).state == "expired"


def load(place, version=1):
    """Fill a database with what release 0.2 wrote."""
    kind = "postgresql" if "postgresql" in place.database else "sqlite"
    stored = gzip.decompress((DATA / f"schema-{version}.{kind}.sql.gz").read_bytes()).decode()
    if kind == "sqlite":
        with closing(sqlite3.connect(place.database)) as made:
            made.executescript(stored)
    else:
        quiet = [program("psql"), "-q", "-o", "/dev/null", "-v", "ON_ERROR_STOP=1"]
        subprocess.run([*quiet, place.database], input=stored.encode(), check=True)


def test_a_database_of_the_release_before_is_upgraded(alone):
    load(alone)
    where = Database(alone.database)
    status = database_status(where)
    assert (status["version"], status["events"]) == (1, 70)
    assert status["ready"].startswith("no: the database is of an earlier release")
    campaign = alone.open()
    assert database_status(where)["ready"] == "yes"
    assert not list(verify(where))
    assert [token.name for token in read_tokens(where).values()] == ["bench-3"]
    counts = campaign.status().trials
    assert counts == {"open": 3, "told": 19, "cancelled": 1, "expired": 0, "retracted": 1}
    again, then = campaign.rebuild("first"), campaign.policy("first")
    assert again.card.log == then.card.log
    trial = campaign.tell(8, 0.5)
    assert trial.by is not None
    campaign.retract(9, "typo")
    new = cg.Campaign.create(where, "third", 2, seed=0)
    assert new._session.store.campaign == 3
    listed = {each["name"]: each for each in summaries(where)}
    assert [listed["sensors"][name] for name in ("trials", "open")] == [24, 2]
    assert listed["given"]["wanted"] == 0.95
    assert not list(verify(where))


def test_newer_and_altered_tables_are_refused(alone, contexts):
    campaign = alone.create()
    execute(campaign, "UPDATE contextgap_schema SET version = 99")
    for call in (alone.open, lambda: check_database(Database(alone.database))):
        with pytest.raises(ValueError, match="schema version 99, and this release knows 2"):
            call()
    with pytest.raises(ValueError, match="schema version 99"):
        cg.Campaign.create(alone.database, "other", 2)
    execute(campaign, "UPDATE contextgap_schema SET version = 2")
    check_database(Database(alone.database))
    execute(campaign, "ALTER TABLE contextgap_trials DROP COLUMN why")
    for call in (alone.open, lambda: check_database(Database(alone.database))):
        with pytest.raises(ValueError, match=r"contextgap_trials of the database lacks \['why'\]"):
            call()


def test_a_database_that_takes_no_writes_is_not_ready(local, server, monkeypatch):
    campaign = local.create()
    check_database(database_of(campaign))
    (pages,) = _pragma(campaign, "page_count")
    _pragma(campaign, f"max_page_count={pages}")  # as if the disk were full
    with pytest.raises(UnavailableError, match="the disk is full"):
        execute(campaign, "CREATE TABLE filler AS SELECT zeroblob(100000)")
    for writable in (False, True):
        where = Database(server)
        prepare(where)
        with where.writing() as connection:
            connection.execute(text("SET TRANSACTION READ WRITE"))
            how = "RESET" if writable else "SET"
            to = "" if writable else "= on"
            statement = f"ALTER ROLE postgres {how} default_transaction_read_only {to}"
            connection.execute(text(statement))
        where.close()
        if writable:
            check_database(where)
        else:
            with pytest.raises(UnavailableError, match="the server takes no writes"):
                check_database(where)
        where.close()


def _pragma(campaign, what):
    with database_of(campaign).reading() as connection:
        return connection.exec_driver_sql(f"PRAGMA {what}").first()


def test_backup_and_restore_of_either_kind(alone, contexts, tmp_path):
    campaign = alone.create()
    tell_some(campaign, contexts[:5], keep_open=[4])
    campaign.freeze("first")
    token = create_token(database_of(campaign), "bench-3", ["read"])
    wanted, log = to_bytes(campaign.learner()), events(campaign)
    copy, where = tmp_path / "copy.db", Database(alone.database)
    backup(where, copy)
    with pytest.raises(FileExistsError, match="such a file already"):
        backup(where, copy)
    tell_some(campaign, contexts[5:9])
    with pytest.raises(UnavailableError, match="others are connected"):
        restore(where, copy)
    campaign.close()
    restore(where, copy)
    again = alone.open()
    assert events(again) == log
    assert to_bytes(again.learner()) == wanted
    assert hash_of(token) in read_tokens(database_of(again))
    assert again.ask(contexts[5]).id == 6
    assert cg.Campaign.create(database_of(again), "new", 2)._session.store.campaign == 2
    check(again)
    elsewhere = tmp_path / "elsewhere.db"
    restore(Database(elsewhere), copy)  # a backup of a server, in a file
    assert not list(verify(Database(elsewhere)))
    assert to_bytes(cg.Campaign.open(elsewhere, "sensors").learner()) == wanted


def test_old_backups_are_restored_and_other_files_refused(tmp_path):
    old = Place(str(tmp_path / "old.db"), "sensors")
    load(old)
    copy = tmp_path / "copy.db"
    backup(Database(old.database), copy)  # before the upgrade, as is wise
    restore(Database(tmp_path / "new.db"), copy)
    assert not list(verify(Database(tmp_path / "new.db")))
    with closing(sqlite3.connect(copy)) as made:
        assert made.execute("SELECT max(format) FROM contextgap_campaigns").fetchone() == (1,)
    (tmp_path / "text").write_text("no database at all")
    with pytest.raises(ValueError, match="is not a database"):
        restore(Database(tmp_path / "new.db"), tmp_path / "text")
    with closing(sqlite3.connect(tmp_path / "empty.db")) as made:
        made.execute("CREATE TABLE other (x)")
    with pytest.raises(ValueError, match="no backup"):
        restore(Database(tmp_path / "new.db"), tmp_path / "empty.db")
    load(Place(str(tmp_path / "another.db"), "sensors"))
    cg.Campaign.create(tmp_path / "another.db", "new", 2)  # upgrades it, too
    names = [each["name"] for each in summaries(Database(tmp_path / "another.db"))]
    assert names == ["sensors", "given", "new"]
    with pytest.raises(FileNotFoundError, match="there is no file"):
        restore(Database(tmp_path / "new.db"), tmp_path / "none.db")
    assert database_status(Database(tmp_path / "nothing.db"))["ready"] == "there is no file yet"


def test_a_list_of_campaigns_reads_a_row_of_each(local, contexts):
    goal = cg.StoppingRule(0.1, share=0.5, reference=contexts[:20])
    campaign = local.create(goal=goal)
    for name in "abc":
        cg.Campaign.create(local.database, name, 2, seed=0)
    tell_some(campaign, contexts[:30], keep_open=[7])
    where, seen = database_of(campaign), []
    event.listen(where._engine, "before_cursor_execute", lambda *given: seen.append(given[2]))
    (mine,) = [each for each in summaries(where) if each["name"] == "sensors"]
    assert len([each for each in seen if each.startswith("SELECT")]) == 1
    status = campaign.status()
    assert (mine["trials"], mine["open"]) == (30, 1)
    assert (mine["event"], mine["wanted"]) == (status.events, 0.5)
    last = [event for event in events(campaign) if event.kind == "progress"][-1].result
    assert mine["settled"] == last["settled"]


def test_numbers_have_64_bits_and_others_are_refused(place):
    campaign = place.create()
    campaign.ask([0.0, 0.0])
    for number in (2**31, 9_000_000_000, 2**63 - 1, 2**63, 10**30):
        with pytest.raises(cg.campaign.NotFoundError, match=f"there is no trial {number}"):
            campaign.trial(number)
        with pytest.raises(cg.campaign.NotFoundError, match=f"there is no trial {number}"):
            campaign.tell(number, 0.5)
        assert campaign.find_trials(after=number) == []
        assert len(campaign.find_trials(most=number)) == 1
    for number in (-1, -(10**30)):
        with pytest.raises(ValueError, match="after must be"):
            campaign.find_trials(after=number)
    big = {"mine": campaign._session.store.campaign, "id": 3_000_000_000}
    with database_of(campaign).writing() as connection:
        store = campaign._session.store
        row = {**store.trial(connection, 1), "id": big["id"]}
        store.add_trials(connection, [row])
    assert campaign.trial(big["id"]).id == big["id"]


def test_arms_and_columns_are_bounded(local):
    for arms in (10_001, 10**9, [*range(10_001)]):
        with pytest.raises(ValueError, match="arms must be at most 10000"):
            cg.Campaign.create(local.database, "many", arms)
    wide = np.zeros((2, 4097))
    with pytest.raises(ValueError, match="reference must have at most 4096 columns, got 4097"):
        cg.Campaign.create(local.database, "wide", 2, goal=cg.StoppingRule(0.1, reference=wide))
    campaign = local.create()
    with pytest.raises(ValueError, match="contexts must have at most 4096 columns"):
        campaign.ask(wide[0])
