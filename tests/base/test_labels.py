"""Labels never get another meaning where they are written as text."""

import math

import pytest

import contextgap as cg
from contextgap.base import files
from contextgap.base.checks import Written
from contextgap.team.campaign.values import context_cells
from tests.cli.test_policies import call


@pytest.mark.parametrize("pair", [(1, "1"), (True, "True"), (("a", 1), "('a', 1)"), (None, "None")])
def test_labels_that_are_written_alike_are_refused(pair):
    with pytest.raises(ValueError, match=r"arms must be written differently, got .* rename one"):
        cg.Learner(list(pair))
    learner = cg.Learner([pair[0], "other"])
    with pytest.raises(ValueError, match="arms must be written differently"):
        learner.add_arm(pair[1])
    assert learner.arms == (pair[0], "other")


@pytest.mark.parametrize("label", [math.inf, -math.inf, ("a", math.inf)])
def test_infinity_is_no_label(label, tmp_path):
    with pytest.raises(ValueError, match="arms must be finite if they are numbers, got"):
        cg.Learner([label, "a"])
    with pytest.raises(ValueError, match="arms must be finite"):
        cg.Learner(["b", "a"]).add_arm(label)
    with cg.Campaign.create(tmp_path / "c.db", "c", ["b", "a"]) as campaign:
        with pytest.raises(ValueError, match="arms must be finite"):
            campaign.add_arm(label)
        with pytest.raises(ValueError, match="arms must be written differently"):
            campaign.add_arm(1) or campaign.add_arm("1")
        assert campaign.arms == ("b", "a", 1)


def test_files_with_such_labels_load_and_commands_refuse_them(tmp_path):
    """Earlier versions took them."""
    learner = cg.Learner([1, 2], kernel=cg.Gaussian(1.0), ridge=0.1, seed=0)
    learner.fit([{"x": 0.0}, {"x": 1.0}], [1, 2], [1, 0])
    for kind, saved in (("policy", learner.freeze()), ("learner", learner)):
        path = tmp_path / f"{kind}.cgap"
        saved.save(path)
        header, arrays = files.read(path, kind)
        files.write(path, kind, {**header, "arms": [1, "1"]}, arrays, header["version"])
    policy = cg.Policy.load(tmp_path / "policy.cgap")
    assert policy.arms == (1, "1")
    (tmp_path / "new.csv").write_text("x\n0\n")
    said = call("recommend", tmp_path / "policy.cgap", tmp_path / "new.csv", code=2).stderr
    assert "arms must be written differently" in said
    with pytest.raises(ValueError, match="arms must be written differently"):
        policy.to_c(tmp_path / "c")
    again = cg.Learner.load(tmp_path / "learner.cgap")
    again.add_arm("new")
    assert again.arms == (1, "1", "new")


def test_numbers_are_found_however_they_are_written():
    known = Written([5.0, 10, "5.00", 2**60 + 1])
    assert known.read("5") == known.read("5.0") == known.read("5e0") == 5.0
    assert known.read("5.00") == "5.00"
    assert known.read("10.0") == 10
    assert known.read(str(2**60)) is None
    assert known.read("x", "nothing") == "nothing"


def test_a_column_named_as_another_is_when_prefixed_keeps_its_cells(tmp_path):
    context = {"arm": 1.0, "context.arm": 2.0, "x": 3.0}
    with cg.Campaign.create(tmp_path / "c.db", "c", ["a", "b"]) as campaign:
        trial = campaign.ask(context)
        frame = campaign.trials()
    cells = context_cells(trial)
    assert cells == {"context.context.arm": 1.0, "context.arm": 2.0, "x": 3.0}
    assert frame.loc[1, "arm"] == trial.arm
    assert frame.loc[1, list(cells)].tolist() == [1.0, 2.0, 3.0]
