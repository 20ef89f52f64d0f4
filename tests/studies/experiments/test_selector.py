"""A selector learnt on all instances, against its parts."""

import json

import numpy as np
import pandas as pd
import pytest

from contextgap.base.files import FileFormatError
from contextgap.methods.method import METHODS, RECOMMENDED
from contextgap.studies.experiments import Selector, learn_selector
from contextgap.studies.experiments.selection import explore
from contextgap.studies.problems import AlgorithmSelection, Scenario
from tests.studies.problems.algorithm_selection.writing import write_larger


@pytest.fixture(scope="module")
def scenario(tmp_path_factory):
    return AlgorithmSelection(write_larger(tmp_path_factory.mktemp("toy"))).load()


@pytest.fixture(scope="module")
def selector(scenario):
    return learn_selector(scenario, budget=2)


@pytest.fixture
def new(tmp_path):
    path = tmp_path / "new.csv"
    frame = pd.DataFrame({"instance_id": ["small", "large", "gap"], "big": [-0.9, 0.9, None]})
    frame.to_csv(path, index=False)
    return path


def test_all_instances_by_the_learner_of_the_study(scenario, selector):
    ((policy, runs),) = explore(scenario, METHODS[RECOMMENDED], [2.0], 0, False)
    assert sum(selector.policy.counts.values()) == runs
    assert selector.policy.arms == scenario.arms == ("a", "b", "c")
    x = scenario.contexts
    np.testing.assert_array_equal(selector.policy.recommend(x), policy.recommend(x))
    mine, theirs = (each.certificate(x).bound for each in (selector.policy, policy))
    np.testing.assert_array_equal(mine, theirs)


def test_it_selects_by_raw_features(selector, new):
    instances, policy = selector.read(new), selector.policy
    found = selector.select(instances)
    assert [each.instance for each in found] == ["small", "large", "gap"]
    assert [each.solver for each in found[:2]] == ["a", "b"]
    x = instances.contexts
    assert [each.solver for each in found] == policy.recommend(x).tolist()
    assert [each.bound for each in found] == policy.certificate(x).bound.tolist()
    assert [each.expected_loss for each in found] == policy.expected_regret(x).tolist()


def test_raw_features_are_not_taken_for_prepared_ones(selector):
    assert selector.policy.columns == ("prepared big",)
    with pytest.raises(ValueError, match="lack the column 'prepared big'"):
        selector.policy.recommend(pd.DataFrame({"big": [0.5]}))


@pytest.mark.parametrize("choose", [False, True])
def test_settings_reach_the_learner(scenario, choose):
    seen = []
    found = learn_selector(
        scenario,
        method="epsilon-greedy",
        budget=0.5,
        seed=3,
        choose=choose,
        progress=lambda done, total: seen.append((done, total)),
    )
    ((policy, _),) = explore(scenario, METHODS["epsilon-greedy"], [0.5], 3, choose)
    assert found.policy.method == METHODS["epsilon-greedy"]
    assert seen == [(done, 18) for done in range(1, 19)]
    x = scenario.contexts
    np.testing.assert_array_equal(found.policy.recommend(x), policy.recommend(x))


def test_through_files_and_back(selector, new, tmp_path):
    selector.save(tmp_path / "made" / "here")
    again = Selector.load(tmp_path / "made" / "here")
    assert (again.scenario, again.runtime) == ("TOY", True)
    assert again.preparation == selector.preparation
    assert again.select(again.read(new)) == selector.select(selector.read(new))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda described: described.clear(), "is damaged: KeyError"),
        (lambda described: described.update(version=2), "version 2 is unknown"),
        (lambda described: described["preparation"].pop("unit"), "is damaged: KeyError"),
        (
            lambda described: described["preparation"]["features"][0].update(name="small"),
            "does not describe the columns of selector.cgap",
        ),
    ],
)
def test_damaged_files_are_named(selector, tmp_path, damage, message):
    selector.save(tmp_path)
    path = tmp_path / "selector.json"
    described = json.loads(path.read_text())
    damage(described)
    path.write_text(json.dumps(described))
    with pytest.raises(FileFormatError, match=message) as raised:
        Selector.load(tmp_path)
    assert str(path) in str(raised.value)
    path.write_bytes(b"\xff{")
    with pytest.raises(FileFormatError, match="is damaged"):
        Selector.load(tmp_path)


def test_what_cannot_be_learnt_from(scenario):
    with pytest.raises(ValueError, match="budget must be positive, got 0"):
        learn_selector(scenario, budget=0)
    bare = Scenario(
        name="bare",
        contexts=scenario.contexts,
        rewards=scenario.rewards,
        performance=scenario.performance,
        cutoff=9,
        folds=scenario.folds,
        instances=scenario.instances,
    )
    with pytest.raises(ValueError, match="scenario must know how its raw features were prepared"):
        learn_selector(bare)
