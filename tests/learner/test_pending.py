"""Picks made elsewhere, picks that are cancelled, and learners that go on from files with them."""

import io

import numpy as np
import pytest

import contextgap as cg


def saved(learner):
    file = io.BytesIO()
    learner.save(file)
    return file.getvalue()


def loaded(learner):
    return cg.Learner.load(io.BytesIO(saved(learner)))


@pytest.fixture
def learner(rng):
    learner = cg.Learner(["a", "b"], kernel=cg.Gaussian(0.5), seed=0)
    for context in rng.normal(size=(6, 2)):
        learner.tell(context, learner.ask(context), float(context[0]))
    return learner


@pytest.mark.parametrize("arms", [None, ["b"]])
def test_expecting_a_pick_is_having_made_it(learner, rng, arms):
    other, batch = loaded(learner), rng.normal(size=(4, 2))
    other.add_pending(batch, learner.ask(batch, arms=arms), eligible=arms)
    other.add_pending(batch[0], learner.ask(batch[0], arms=arms), eligible=arms)
    assert other.pending == 5
    assert saved(other) == saved(learner)
    assert other.decide(batch[1]).std.tolist() == learner.decide(batch[1]).std.tolist()


def test_cancelling_undoes_an_expectation(learner, rng):
    before, context = saved(learner), rng.normal(size=2)
    learner.add_pending(context, "b")
    learner.cancel(context, "b")
    assert saved(learner) == before


def test_the_name_before_is_deprecated(learner, rng):
    other, context = loaded(learner), rng.normal(size=2)
    learner.add_pending(context, "b")
    with pytest.warns(DeprecationWarning, match="expect is now called add_pending"):
        other.expect(context, "b")
    assert saved(other) == saved(learner)


def test_wrong_picks_change_nothing(learner):
    before = saved(learner)
    for call, message in [
        (lambda: learner.add_pending([0.0, 0.0], "c"), "arms must be among"),
        (lambda: learner.add_pending([0.0], "a"), "must have 2 numbers"),
        (lambda: learner.add_pending([[0.0, 0.0]], ["a", "b"]), "arms"),
        (
            lambda: learner.add_pending([0.0, 0.0], "a", eligible=["b"]),
            "eligible must hold the arm",
        ),
        (lambda: learner.cancel([0.0, 0.0], "a"), "no pending pick of the arm 'a'"),
        (lambda: learner.cancel([[0.0, 0.0]], "a"), "cancel takes one context"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
    assert saved(learner) == before


@pytest.mark.parametrize("sharing", [0.0, 0.5])
def test_a_learner_from_a_file_goes_on_bit_for_bit_with_picks_pending(rng, sharing):
    learner = cg.Learner(2, kernel=cg.Gaussian(0.5), sharing=sharing, seed=0)
    # So many that the last rows of a factor are solved in a product with others.
    learner.fit(rng.normal(size=(560, 2)), np.arange(560) % 2, rng.normal(size=560))
    other = loaded(learner)
    for step, context in enumerate(rng.normal(size=(30, 2))):
        arm = learner.ask(context)
        assert other.ask(context) == arm
        if step % 7:
            other = loaded(other)  # it knows the pick, and not what led to it
            learner.tell(context, arm, float(context[0]))
            other.tell(context, arm, float(context[0]))
    assert saved(other) == saved(learner)


@pytest.mark.parametrize(
    ("kind", "how"),
    [("exact", {"points": None}), ("bounded", {}), ("joint", {"sharing": 0.5})],
)
def test_what_a_learner_was_asked_leaves_no_trace_in_what_it_learns(rng, kind, how):
    asked = cg.Learner(2, kernel=cg.Gaussian(0.5), seed=0, **how)
    asked.fit(rng.uniform(-1, 1, size=(600, 2)), np.arange(600) % 2, rng.normal(size=600))
    assert asked.state.model.kind == kind
    told, waiting = loaded(asked), []
    for context in rng.uniform(-1, 1, size=(150, 2)):
        waiting.append((context, asked.ask(context)))
        told.add_pending(*waiting[-1])
        for late in (-1, 0) if len(waiting) > 6 else ():  # the last one and the oldest
            trial = waiting.pop(late)
            for each in (asked, told):
                each.tell(*trial, float(context[0]))
    assert saved(told) == saved(asked)


def test_the_order_of_pending_picks_survives_a_file():
    learner = cg.Learner(2, kernel=cg.Gaussian(0.5), sharing=0.5, seed=0)
    learner.tell([0.5], 0, 1.0)
    learner.add_pending([0.0], 1)
    learner.add_pending([1.0], 0)
    learner.cancel([0.0], 1)
    other = loaded(learner)
    for each in (learner, other):
        each.add_pending([2.0], 1)
    assert saved(other) == saved(learner)
    assert other.decide([1.5]).std.tolist() == learner.decide([1.5]).std.tolist()


def test_files_may_be_open_and_have_no_times_in_them(learner, tmp_path, monkeypatch):
    learner.save(tmp_path / "learner.cgap")
    monkeypatch.setattr("time.localtime", lambda *_: (2030, 1, 1, 0, 0, 0, 0, 0, 0))
    assert (tmp_path / "learner.cgap").read_bytes() == saved(learner)
    policy, file = learner.freeze(), io.BytesIO()
    policy.save(file)
    contexts = np.zeros((1, 2))
    again = cg.Policy.load(file)
    assert again.recommend(contexts).tolist() == policy.recommend(contexts).tolist()
    with pytest.raises(cg.FileFormatError, match="holds a policy, not a learner"):
        cg.Learner.load(file)
    with pytest.raises(cg.FileFormatError, match="not a contextgap file"):
        cg.Learner.load(io.BytesIO(b"nothing"))
