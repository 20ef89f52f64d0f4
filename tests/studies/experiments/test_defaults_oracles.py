"""Learners without settings: loops written by hand, and yardsticks by brute force."""

import importlib
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

import contextgap as cg
from contextgap.methods.explorers import Explorer
from contextgap.studies.experiments.compare import FULL, SINGLE, evaluate_defaults
from contextgap.studies.experiments.run import Store
from contextgap.studies.problems import Sinusoids

compare = importlib.import_module("contextgap.studies.experiments.compare")
CHECKPOINTS = (25, 40)


def pair(seed):
    explore, exploit = Sinusoids(n_arms=3, noise=0.1).sample(90, seed=seed).split(40, 50)
    return explore, exploit


GIVEN = {"kernel": cg.Gaussian(1.0), "ridge": 0.1}  # spares the time that learning them takes


def regret_of(exploit, picks):
    missed = [row.max() - row[pick] for row, pick in zip(exploit.rewards, picks, strict=True)]
    return np.mean(missed), np.max(missed)


def at(table, method, repetition, checkpoint):
    chosen = table[(table["method"] == method) & (table["repetition"] == repetition)]
    (row,) = chosen[chosen["checkpoint"] == checkpoint].itertuples()
    return row.average_regret, row.worst_regret


@pytest.fixture(scope="module")
def rounds():
    return [pair(3), pair(4)]


@pytest.fixture(scope="module")
def table(rounds):
    return evaluate_defaults(
        rounds, methods=["auto", "contextual-gap"], checkpoints=CHECKPOINTS, seeds=[3, 4]
    ).records


def test_there_is_a_row_per_entry_repetition_and_checkpoint(table):
    keys = ["method", "repetition", "checkpoint"]
    assert table.groupby(keys).size().eq(1).all()
    assert len(table) == 4 * 2 * 2
    assert list(table["method"].unique()) == ["auto", "contextual-gap", FULL, SINGLE]
    assert (table["seconds"] > 0).all()


@pytest.mark.parametrize("method", ["auto", "contextual-gap"])
@pytest.mark.parametrize("repetition", [0, 1])
def test_a_run_is_asking_telling_and_recommending(table, rounds, method, repetition):
    explore, exploit = rounds[repetition]
    learner = cg.Learner(3, method=method, seed=3 + repetition)
    for step in range(40):
        arm = learner.ask(explore.contexts[step])
        learner.tell(explore.contexts[step], arm, explore.observations[step, arm])
        if step + 1 in CHECKPOINTS:
            expected = regret_of(exploit, learner.recommend(exploit.contexts))
            assert at(table, method, repetition, step + 1) == pytest.approx(expected)


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
def test_full_information_is_told_every_arm_at_every_context(table, rounds, checkpoint):
    for repetition, (explore, exploit) in enumerate(rounds):
        told = [
            (explore.contexts[row], arm, explore.observations[row, arm])
            for row in range(checkpoint)
            for arm in range(3)
        ]
        contexts, arms, rewards = map(np.array, zip(*told, strict=True))
        learner = cg.Learner(3, method="uniform", seed=3 + repetition).fit(contexts, arms, rewards)
        expected = regret_of(exploit, learner.recommend(exploit.contexts))
        assert at(table, FULL, repetition, checkpoint) == pytest.approx(expected)


def test_the_best_single_arm_is_the_best_of_all(table, rounds):
    for repetition, (_, exploit) in enumerate(rounds):
        expected = min(regret_of(exploit, [arm] * len(exploit)) for arm in range(3))
        for checkpoint in CHECKPOINTS:
            assert at(table, SINGLE, repetition, checkpoint) == pytest.approx(expected)


def test_yardsticks_can_be_left_out(rounds):
    found = evaluate_defaults(
        rounds[:1], methods=["uniform"], checkpoints=[30], yardsticks=[SINGLE]
    ).records
    assert found["method"].tolist() == ["uniform", SINGLE]


def test_seeds_count_from_nought(rounds):
    how = {"methods": ["kernel-ts"], "checkpoints": [40], "yardsticks": [], "settings": GIVEN}
    found = evaluate_defaults(rounds, **how).records
    same = evaluate_defaults(rounds, **how, seeds=[0, 1]).records
    other = evaluate_defaults(rounds, **how, seeds=[5, 6]).records
    pd.testing.assert_frame_equal(found.drop(columns="seconds"), same.drop(columns="seconds"))
    assert not found["average_regret"].equals(other["average_regret"])


def test_what_is_stored_is_not_done_again(rounds, tmp_path, monkeypatch):
    how = {"checkpoints": [30], "yardsticks": [SINGLE], "store": Store(tmp_path)}
    how["settings"] = GIVEN
    first = evaluate_defaults(rounds[:1], methods=["uniform"], **how).records
    runs = []
    original = compare.Learner
    monkeypatch.setattr(compare, "Learner", lambda *a, **k: runs.append(k) or original(*a, **k))
    again = evaluate_defaults(rounds[:1], methods=["uniform"], **how).records
    pd.testing.assert_frame_equal(first, again)
    assert not runs
    more = evaluate_defaults(rounds, methods=["uniform", "max-variance"], **how).records
    assert len(runs) == 3  # the second repetition, and both of the other method
    known = more[(more["method"] == "uniform") & (more["repetition"] == 0)]
    pd.testing.assert_frame_equal(known, first[:1])


@dataclass(frozen=True)
class AlwaysTheLast(Explorer):
    """Explores one arm only, after the first few that scales need."""

    reason = "last"

    def pick(self, moment):
        return len(moment.pulls) - 1


def test_own_methods_by_name_and_by_label(rounds):
    name = f"{__name__}:AlwaysTheLast"
    how = {"checkpoints": [40], "yardsticks": [], "settings": GIVEN}
    named = evaluate_defaults(rounds, methods=[name, "uniform"], **how).records
    labelled = evaluate_defaults(rounds, methods={"mine": AlwaysTheLast()}, **how).records
    assert list(named["method"].unique()) == [name, "uniform"]
    ours = named[named["method"] == name]["average_regret"].tolist()
    assert labelled["average_regret"].tolist() == ours
    assert ours != named[named["method"] == "uniform"]["average_regret"].tolist()
