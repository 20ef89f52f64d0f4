"""Files that earlier releases wrote load and answer as they did then."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import contextgap as cg
from tests.base.release_files import learner_answers, policy_answers, write

DATA = Path(__file__).parent / "data" / "version_1"
ANSWERS = json.loads((DATA / "release_0_1_answers.json").read_text())
NEW = np.array(ANSWERS["contexts"])


def header_of(path):
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("header.json"))


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


RELEASES = [DATA.parent / "release_0_2", DATA.parent / "release_0_3"]
FILES = [
    pytest.param(folder / f"{name}.cgap", answers, id=f"{folder.name}-{name}")
    for folder in RELEASES
    for name, answers in json.loads((folder / "answers.json").read_text())["files"].items()
]


def close(said, expected):
    """Whether both are the same, numbers but for rounding."""
    if isinstance(expected, dict):
        return said.keys() == expected.keys() and all(close(said[k], expected[k]) for k in expected)
    if isinstance(expected, list):
        return len(said) == len(expected) and all(map(close, said, expected))
    if isinstance(expected, float):
        return said == pytest.approx(expected, rel=1e-7, abs=1e-9)
    return said == expected


@pytest.mark.parametrize(("file", "answers"), FILES)
def test_files_of_later_releases_answer_as_before(file, answers, tmp_path):
    contexts, expected = answers["contexts"], {k: answers[k] for k in answers if k != "contexts"}
    kind, say = (
        (cg.Policy, policy_answers) if "policy" in file.name else (cg.Learner, learner_answers)
    )
    kind.load(file).save(tmp_path / "again.cgap")
    for path in (file, tmp_path / "again.cgap"):
        said = json.loads(json.dumps(say(kind.load(path), contexts)))
        assert said.keys() == expected.keys()
        if kind is cg.Learner:  # its card is computed anew, and warns in today's words
            said["card"]["warnings"] = said["card"]["warnings"] and expected["card"]["warnings"]
        for key in expected:
            assert close(said[key], expected[key]), key


def test_the_files_cover_what_is_new(tmp_path):
    write(tmp_path / "now")
    wanted = {path.name for path in (tmp_path / "now").iterdir()}
    assert wanted <= {path.name for path in RELEASES[-1].iterdir()}
    headers = [header_of(path) for path in sorted(RELEASES[-1].glob("*.cgap"))]
    kinds = {header["model"]["kind"] for header in headers}
    assert kinds == {"ageing", "bounded", "exact", "joint"}


DENSE = DATA.parent / "dense"


@pytest.mark.parametrize("name", ["policy_dense", "policy_dense_history", "learner_dense"])
def test_files_with_a_dense_model_load_with_the_exact_one(name, tmp_path):
    expected = json.loads((DENSE / "answers.json").read_text())[name]
    kind = cg.Policy if name.startswith("policy") else cg.Learner
    kind.load(DENSE / f"{name}.cgap").save(tmp_path / "again.cgap")
    for path in (DENSE / f"{name}.cgap", tmp_path / "again.cgap"):
        found = kind.load(path)
        policy = found if kind is cg.Policy else found.freeze()
        assert policy.recommend(expected["contexts"]).tolist() == expected["arms"]
        certificate = policy.certificate(expected["contexts"])
        np.testing.assert_allclose(certificate.bound, expected["bound"], rtol=1e-9)
        assert certificate.probability == expected["probability"]
        assert {str(arm): count for arm, count in policy.counts.items()} == expected["counts"]
        decision = policy.decide(expected["contexts"][0])
        np.testing.assert_allclose(decision.mean, expected["mean"], rtol=1e-9)
        np.testing.assert_allclose(decision.std, expected["std"], rtol=1e-9)
    assert header_of(tmp_path / "again.cgap")["model"]["kind"] == "exact"
