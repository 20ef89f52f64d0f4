"""Files that earlier releases wrote load and answer as they did then."""

import json
from pathlib import Path

import numpy as np
import pytest

import contextgap as cg

DATA = Path(__file__).parent / "data" / "version_1"
ANSWERS = json.loads((DATA / "release_0_1_answers.json").read_text())
NEW = np.array(ANSWERS["contexts"])


def check(policy, expected):
    assert [str(arm) for arm in policy.recommend(NEW)] == expected["arms"]
    certificate = policy.certificate(NEW)
    np.testing.assert_allclose(certificate.bound, expected["bound"], rtol=1e-9)
    assert certificate.probability == expected["probability"]
    assert {str(arm): count for arm, count in policy.counts.items()} == expected["counts"]
    np.testing.assert_allclose(policy.decide(NEW[0]).mean, expected["mean"], rtol=1e-9)


@pytest.mark.parametrize("name", ["policy_history", "policy_theorem"])
def test_policies_answer_as_before(name, tmp_path):
    policy = cg.Policy.load(DATA / f"release_0_1_{name}.cgap")
    check(policy, ANSWERS[name])
    policy.save(tmp_path / "again.cgap")
    check(cg.Policy.load(tmp_path / "again.cgap"), ANSWERS[name])


def test_learners_go_on_as_before():
    learner = cg.Learner.load(DATA / "release_0_1_learner.cgap")
    assert learner.pending == 3
    check(learner.freeze(), ANSWERS["learner"])
    assert learner.ask(NEW).tolist() == ANSWERS["learner_next"]
    learner.tell(NEW[0], 1, 0.3)
    # Its ridge is 1e-7, which magnifies rounding: other linear algebra moves the eighth digit.
    np.testing.assert_allclose(learner.decide(NEW[1]).mean, ANSWERS["learner_after"], rtol=1e-7)
