"""Everything that a learner takes works in a campaign, and comes back as it was."""

import enum
import math
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import contextgap as cg
from contextgap.tables.table import Levels, read_json
from contextgap.team.campaign import values
from contextgap.team.campaign.values import as_json, decode_contexts, encode_contexts, json

from .oracle import to_bytes


class Colour(enum.Enum):
    RED = 1


def back(contexts):
    return decode_contexts(json.loads(as_json(encode_contexts(contexts))))


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_numbers_come_back_as_they_were(numbers):
    assert np.array(back(np.array(numbers))).tobytes() == np.array(numbers).tobytes()


def test_cells_come_back_as_they_were():
    moment = datetime(2024, 5, 1, 12, 30, 0, 123456)
    row = {"b": "x", "a": 1, "c": True, "d": date(2024, 5, 1), "e": moment, "f": -0.0}
    assert back(row) == row
    assert list(back(row)) == list(row)  # the order of columns says which bandwidth is whose
    assert back(pd.Series({"a": 1.5, "b": 2.5})) == {"a": 1.5, "b": 2.5}
    assert back(pd.Series([1.5, 2.5])) == [1.5, 2.5]
    assert back(0.5) == [0.5]
    assert back([Decimal("0.1"), np.float32(0.5), np.int64(3)]) == [0.1, 0.5, 3]
    assert back({"a": Colour.RED}) == {"a": "1"}
    assert back({"a": np.datetime64(moment)}) == {"a": moment}
    assert back({"a": pd.Timestamp(moment)}) == {"a": moment}
    for gap in (None, math.nan, pd.NA, pd.NaT):
        assert math.isnan(back({"a": gap})["a"])


def test_tables_come_back_as_they_were():
    table = pd.DataFrame({"b": [1.0, None], "a": ["x", "y"], "c": pd.Categorical([1, 2])})
    again = back(table)
    assert again.names == ["b", "a", "c"]
    assert isinstance(again["c"], Levels)
    assert back(pl.DataFrame({"a": [1, 2]}))["a"] == [1, 2]
    assert list(back(np.eye(2))) == [[1.0, 0.0], [0.0, 1.0]]


def mixed(rng, rows):
    return pd.DataFrame(
        {
            "speed": rng.normal(size=rows),
            "mode": rng.choice(["eco", "sport"], size=rows),
            "when": pd.date_range("2024-01-01", periods=rows, freq="D"),
        }
    )


def cost(row, arm):
    return abs(row["speed"]) + (row["mode"] == arm)


@pytest.mark.parametrize("batches", [True, False])
def test_typed_tables_costs_features_and_eligible_arms(local, rng, batches):
    how = {
        "reward": "minimize",
        "features": {"eco": [0.0, "a"], "sport": [1.0, "b"], "off": [None, "b"]},
        "columns": {"speed": "number", "mode": "category", "when": cg.Date(cycles="week")},
        "seed": 1,
    }
    arms = ["eco", "sport", "off"]
    campaign = cg.Campaign.create(local.database, "mixed", arms, **how)
    learner = cg.Learner(arms, **how)
    table = mixed(rng, 24)
    some = np.ones((24, 3), dtype=bool)
    some[::2, 2] = False
    if batches:
        for first in range(0, 24, 8):
            part, mask = table[first : first + 8], some[first : first + 8]
            trials = campaign.ask(part, arms=mask)
            assert [each.arm for each in trials] == learner.ask(part, arms=mask).tolist()
            for (_, row), trial in zip(part.iterrows(), trials, strict=True):
                campaign.tell(trial, cost(row, trial.arm))
                learner.tell(row, trial.arm, cost(row, trial.arm), eligible=trial.eligible)
    else:
        for (_, row), mask in zip(table.iterrows(), some, strict=True):
            trial = campaign.ask(dict(row), arms=mask)
            assert trial.arm == learner.ask(row, arms=mask)
            assert trial.eligible == tuple(np.array(arms)[mask])
            campaign.tell(trial, cost(row, trial.arm))
            learner.tell(row, trial.arm, cost(row, trial.arm))
    assert to_bytes(campaign.learner()) == to_bytes(learner)
    again = cg.Campaign.open(local.database, "mixed")
    assert to_bytes(again.learner()) == to_bytes(learner)
    assert again.recommend(table).tolist() == learner.recommend(table).tolist()
    shown = campaign.trials()
    assert shown["mode"].tolist() == table["mode"].tolist()
    assert shown["speed"].to_numpy() == pytest.approx(table["speed"].to_numpy(), abs=0)


def test_outside_tables_are_told_at_once_and_rows_can_be_retracted(local, rng):
    campaign = cg.Campaign.create(local.database, "log", ["eco", "sport"], seed=0)
    table = mixed(rng, 20)
    arms = rng.choice(["eco", "sport"], size=20)
    rewards = [cost(row, arm) for (_, row), arm in zip(table.iterrows(), arms, strict=True)]
    trials = campaign.tell(contexts=table, arms=arms, reward=rewards, eligible=["eco", "sport"])
    learner = cg.Learner(["eco", "sport"], seed=0)
    learner.fit(table, arms, rewards, eligible=["eco", "sport"])
    assert to_bytes(campaign.learner()) == to_bytes(learner)
    campaign.retract(trials[3], "typo")
    campaign.correct(trials[5], 7.0, "typo")
    kept, rewards[5] = np.arange(20) != 3, 7.0
    without = cg.Learner(["eco", "sport"], seed=0)
    without.add_pending(table, arms)  # what a retracted row says about columns stays
    without.drop_pending()
    left = np.array(rewards)[kept]
    without.fit(table[kept], arms[kept], left, eligible=["eco", "sport"])
    assert to_bytes(campaign.learner()) == to_bytes(without)
    assert to_bytes(cg.Campaign.open(local.database, "log").learner()) == to_bytes(without)


def test_a_context_chosen_from_a_pool(local, rng):
    campaign = local.create(kernel=None)
    learner = cg.Learner(("hull", "panel", "boom"), seed=0)
    table = mixed(rng, 30)
    for step in range(14):
        trial = campaign.ask(pool=table, key=f"pool {step}")
        row, arm = learner.ask(pool=table)
        assert (trial.context["speed"], trial.arm) == (row["speed"], arm)
        assert campaign.ask(pool=table, key=f"pool {step}") == trial
        campaign.tell(trial, cost(row, arm))
        learner.tell(row, arm, cost(row, arm))
    assert to_bytes(campaign.learner()) == to_bytes(learner)
    assert to_bytes(local.open().learner()) == to_bytes(learner)
    with campaign._session.store.reading() as connection:
        asks = campaign._session.store.events_of(connection, "ask")
    assert ["pool" in ask.result for ask in asks] == [True] + [False] * 13


def test_reference_contexts_say_what_columns_are(local, rng):
    goal = cg.StoppingRule(0.5, reference=mixed(rng, 10))
    campaign = cg.Campaign.create(local.database, "goal", 2, goal=goal, seed=0)
    with pytest.raises(ValueError, match="lack the column 'mode'"):
        campaign.ask({"speed": 1.0})
    again = cg.Campaign.open(local.database, "goal")
    for _, row in mixed(rng, 12).iterrows():
        again.tell(again.ask(row), 1.0)
    assert campaign.status().settled == pytest.approx(campaign.learner().settled(campaign.goal))


def test_a_numeric_reference_keeps_its_names(local, rng):
    table = pd.DataFrame(rng.normal(size=(9, 2)), columns=["b", "a"])
    goal = cg.StoppingRule(0.5, reference=table)
    campaign = cg.Campaign.create(local.database, "goal", 2, goal=goal, seed=0)
    assert campaign.ask({"a": 1.0, "b": 2.0}).context == {"a": 1.0, "b": 2.0}
    assert campaign.learner().columns.keys() == {"b", "a"}


GAPS = cg.Columns(t=cg.Number(missing=True), v="number")


def test_gaps_before_the_first_number_stay_what_they_were(local, monkeypatch):
    campaign = local.create(("x", "y"), columns=GAPS, kernel=cg.Gaussian(1.0), ridge=0.1)
    for _ in range(5):
        campaign.tell(contexts={"t": None, "v": 1.0}, arms="x", reward=5.0)
    campaign.ask({"t": None, "v": 1.0}, lease=1)
    campaign.tell(contexts={"t": 1000.0, "v": 1.0}, arms="y", reward=1.0)
    assert campaign.recommend({"t": None, "v": 1.0}) == "x"
    later = values.after(2)
    monkeypatch.setattr(values, "now", lambda: later)
    assert campaign.status().trials["expired"] == 1
    assert campaign.learner().pending == 0
    assert local.open().status().trials["expired"] == 1


def test_truth_values_stay_what_they_were_when_other_levels_come(local):
    campaign = local.create(("x", "y"), kernel=None)
    campaign.ask({"vip": True, "v": 1.0})
    one = campaign.ask({"vip": 1, "v": 2.0})
    campaign.ask({"vip": "unknown", "v": 3.0})
    campaign.cancel(one)
    assert campaign.learner().pending == 2


def test_a_reward_that_a_tuning_rested_on_may_be_retracted(local, contexts):
    campaign = local.create(kernel=None)
    for place in range(2):
        campaign.tell(campaign.ask(contexts[place]), float(place))
    campaign.tune()
    for place in range(2, 9):
        campaign.tell(campaign.ask(contexts[place]), float(place % 3))
    campaign.retract(1, "wrong")
    assert sum(local.open().learner().counts.values()) == 8


def test_a_file_that_was_removed_is_not_written_to(tmp_path):
    path = tmp_path / "gone.db"
    campaign = cg.Campaign.create(path, "c", ["x", "y"], seed=0)
    trial = campaign.ask([0.0])
    path.unlink()
    for call in (campaign.status, lambda: campaign.tell(trial, 1.0)):
        with pytest.raises(OSError, match="was removed or replaced while it was in use"):
            call()
    with pytest.raises(IsADirectoryError, match="it is a folder"):
        cg.Campaign.create(tmp_path, "c", ["x", "y"])


def test_contexts_that_no_reward_could_be_told_at_are_not_asked_for(local):
    campaign = local.create(("x", "y"))
    with pytest.raises(ValueError, match="contexts must be at most 1e"):
        campaign.ask([1e300, 1.0])
    with pytest.raises(ValueError, match="must be a name"):
        cg.Campaign.create(local.database, "..", ["x", "y"])


def test_columns_may_be_called_time_and_hold_numbers():
    rows = [{"time": 3.5}, {"time": 4.5}]
    assert list(read_json(rows)) == rows
    assert read_json([{"time": "2024-05-01T10:00"}, 1.0]) == [
        datetime(2024, 5, 1, 10),
        1.0,
    ]
