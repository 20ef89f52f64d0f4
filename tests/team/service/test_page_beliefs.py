"""What the page says is believed, beside what policies say."""

import asyncio
import json
from datetime import date

import numpy as np
import pytest

import contextgap as cg
from contextgap.insight.learnt import along
from contextgap.team.campaign.database import Database
from contextgap.team.service import page
from contextgap.team.service.access import Settings
from contextgap.team.service.hosting import Hosting
from contextgap.team.service.page import Beliefs, Standings
from tests.team.campaign.conftest import Place

from .conftest import COLUMNS, draw, explore


def looked_at(place, *, times=1, between=lambda: None):
    """Looks at a campaign, each after something else was done."""

    async def look():
        hosting = Hosting(Database(place.database), Settings())
        try:
            known = Beliefs(hosting, Standings(hosting.database))
            found = [await known.of(place.name)]
            for _ in range(times - 1):
                await asyncio.to_thread(between)
                found.append(await known.of(place.name))
            return found
        finally:
            hosting.close(10)

    return asyncio.run(look())


@pytest.fixture(scope="module")
def explored(tmp_path_factory):
    """A campaign with rewards, for all tests of this file."""
    place = Place(f"sqlite:///{tmp_path_factory.mktemp('explored') / 'bench.db'}", "sensors")
    campaign = place.create(columns=COLUMNS, kernel=None)
    explore(campaign, np.random.default_rng(0), 40)
    yield place, campaign
    campaign.close()


def test_courses_are_those_of_the_policy(explored, rng):
    place, campaign = explored
    (look,) = looked_at(place)
    policy, at = campaign.learner().freeze(), draw(rng)
    for column in COLUMNS:
        found, expected = look.course(column, at), along(policy, column, at)
        np.testing.assert_allclose(found["mean"], expected.mean)
        np.testing.assert_allclose(found["upper"], expected.upper)
        assert found["values"] == list(expected.values)
        assert [json.loads(key) for key in found["best"]] == list(expected.best)
        json.dumps(found, allow_nan=False)
    with pytest.raises(ValueError, match="there is no column 'height'"):
        look.course("height", None)


def test_reasons_are_those_of_the_policy(explored, rng):
    place, campaign = explored
    (look,) = looked_at(place)
    policy, context = campaign.learner().freeze(), draw(rng)
    found, ranking = look.why(context, None), policy.rank(context)
    assert [each["arm"]["label"] for each in found["ranking"]] == [each.arm for each in ranking]
    assert [each["bound"] for each in found["ranking"]] == [each.bound for each in ranking]
    expected = policy.explain(context)
    explanation = found["explanation"]
    assert explanation["difference"] == expected.difference
    parts = sum(each["part"] for each in explanation["trials"]) + explanation["rest"]
    assert parts == pytest.approx(expected.difference)
    against = look.why(context, ranking[-1].arm)["explanation"]["against"]
    assert against["label"] == ranking[-1].arm
    json.dumps(found, allow_nan=False)


def test_the_score_card_is_the_policys_in_words(explored):
    place, campaign = explored
    (look,) = looked_at(place)
    found = look.score()
    assert found["rows"] == campaign.learner().freeze().card.rows()
    assert found["rewards"] == sum(campaign.learner().counts.values())


def test_columns_say_what_contexts_look_like(explored):
    place, campaign = explored
    (look,) = looked_at(place)
    found = look.columns()
    kinds = [(each["name"], each["kind"], each["gaps"]) for each in found["columns"]]
    assert kinds == [
        ("temperature", "number", False),
        ("hour", "cyclic", False),
        ("mode", "category", True),
    ]
    assert set(found["columns"][2]["levels"]) == {"eco", "boost"}
    trials = campaign.find_trials()
    seen = [trial.context["temperature"] for trial in trials]
    assert found["columns"][0]["low"] == pytest.approx(min(seen))
    assert found["columns"][0]["high"] == pytest.approx(max(seen))
    assert any(
        found["typical"]["temperature"] == pytest.approx(trial.context["temperature"])
        for trial in trials
    )
    # What is offered can be sent back.
    look.why(found["typical"], None)


def test_dates_gaps_and_columns_without_names(local):
    campaign = local.create(kernel=None, columns={"day": "date", "dose": cg.Number(missing=True)})
    for day in range(1, 9):
        context = {"day": date(2024, 5, day), "dose": None if day % 2 else float(day)}
        campaign.tell(contexts=context, arms="hull", reward=day / 10)
    (look,) = looked_at(local)
    found = look.columns()
    json.dumps(found, allow_nan=False)
    assert found["columns"][0]["low"].startswith("2024-05-01")
    assert look.course("day", found["typical"])["values"][0].startswith("2024-05-01")
    look.why({"day": "2024-05-03", "dose": None}, None)
    campaign.close()


def test_contexts_that_are_lists(local, contexts):
    campaign = local.create(("only",))
    campaign.tell(contexts=contexts[:4], arms=4 * ["only"], reward=np.arange(4.0))
    (look,) = looked_at(local)
    found = look.columns()
    assert not found["named"]
    assert len(found["typical"]) == 2
    assert look.course("column 1", found["typical"])["column"] == "column 1"
    assert look.why(found["typical"], None)["explanation"] is None  # there is one arm
    campaign.close()


def test_before_the_first_reward_there_is_nothing_to_see(local):
    local.create().close()
    (look,) = looked_at(local)
    assert look.columns()["columns"] == []
    assert look.score()["rows"] == []
    with pytest.raises(ValueError, match="before the first reward"):
        look.why([0.0, 0.0], None)
    with pytest.raises(ValueError, match="before the first reward"):
        look.course("column 0", None)


def test_a_look_is_used_again_until_the_log_grows(explored, rng):
    place, campaign = explored
    first, second = looked_at(place, times=2)
    assert second is first
    last, newer = looked_at(place, times=2, between=lambda: explore(campaign, rng, 3))
    assert newer.event > last.event


def test_a_look_that_took_long_is_used_longer(explored, rng, monkeypatch):
    place, campaign = explored
    monkeypatch.setattr(page, "_QUICK", 0.0)
    monkeypatch.setattr(page, "_SHARE", 1e-9)
    first, second = looked_at(place, times=2, between=lambda: explore(campaign, rng, 1))
    assert second is first
