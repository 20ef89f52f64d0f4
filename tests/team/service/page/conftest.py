"""Campaigns for the page, in both kinds of databases."""

import pytest

import contextgap as cg
from contextgap.team.campaign.database import Database
from contextgap.team.service.page.standing import Standings
from tests.team.campaign.conftest import contexts, local, place, server

__all__ = ["contexts", "local", "place", "server"]

COLUMNS = {"temperature": "number", "hour": cg.Cyclic(24), "mode": cg.Category(missing=True)}


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
