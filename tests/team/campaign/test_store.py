"""The store: statements compiled once do what SQLAlchemy does with them, errors included."""

import pytest
from sqlalchemy import select
from sqlalchemy.exc import DBAPIError, IntegrityError

from contextgap.team.campaign import store as module
from contextgap.team.campaign.database import Database
from contextgap.team.campaign.store import EVENTS, TRIALS

from .conftest import tell_some


@pytest.fixture
def campaign(place, contexts):
    made = place.create()
    tell_some(made, contexts[:7], keep_open=[2, 5])
    return made


def rows_of(connection, table, campaign):
    columns = [column for column in table.c if column.name != "campaign"]
    statement = select(*columns).where(table.c.campaign == campaign).order_by(columns[0])
    return [dict(row) for row in connection.execute(statement).mappings()]


def test_what_is_read_is_what_sqlalchemy_reads(campaign, monkeypatch):
    monkeypatch.setattr(module, "_PAGE", 4)
    store = module.Store(campaign._session.store.database, campaign._session.store.campaign)
    with store.reading() as connection:
        events = rows_of(connection, EVENTS, store.campaign)
        for event in events:
            assert event.pop("previous") == (event["number"] - 1 or None)
            event["before"] = event["before"] or ""
            event |= {f"{part}_text": event.pop(part) for part in ("request", "result")}
        assert [vars(event) for event in store.events(connection)] == events
        assert [event.number for event in store.events(connection, 3, 9)] == list(range(4, 10))
        for row in rows_of(connection, TRIALS, store.campaign):
            found = store.trial(connection, row["id"])
            assert found.pop("campaign") == store.campaign
            assert found == row
        assert store.last_trial(connection) == 7
        assert store.due(connection, "9999") == [3, 6]
        assert store.due(connection, "1999") == []
        assert store.event_of_key(connection, "none") is None


def test_errors_are_those_of_sqlalchemy(campaign):
    store = campaign._session.store

    def append_again():
        with store.locked() as connection:
            (first,) = store.events(connection, 0, 1)
            store.append(connection, [first])

    with pytest.raises(IntegrityError, match="INSERT INTO contextgap_events"):
        append_again()


def test_what_one_transaction_reads_is_as_of_one_moment(campaign, place):
    store, other = campaign._session.store, place.open()
    with store.reading() as connection:
        before = list(store.events(connection))
        other.ask([0.0, 0.0])
        assert list(store.events(connection)) == before
    with store.reading() as connection:
        assert len(list(store.events(connection))) == len(before) + 1


def test_a_connection_that_is_lost_is_given_up(server):
    database = Database(server)
    store = module.Store(database, 1)

    def lose():
        with store.reading() as connection:
            own = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()
            with database.writing() as another:
                another.exec_driver_sql(f"SELECT pg_terminate_backend({own})")
            store.last_trial(connection)

    with pytest.raises(DBAPIError) as caught:
        lose()
    assert caught.value.connection_invalidated
    with store.reading() as connection:  # a new one
        assert connection.exec_driver_sql("SELECT 1").scalar() == 1
