"""Choosing the context from a pool: by gap, by gain, or at random."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import contextgap as cg
from contextgap.methods.explorers import KnowledgeGradient
from tests.methods.explorers import dense

KERNEL, RIDGE = cg.Gaussian(0.4), 0.02


def taught(method="contextual-gap", steps=24, **settings):
    learner = cg.Learner(3, kernel=KERNEL, ridge=RIDGE, method=method, seed=0, **settings)
    for x in np.random.default_rng(1).uniform(-1, 1, (steps, 1)):
        arm = learner.ask(x)
        learner.tell(x, arm, float(np.sin((arm + 1) * 3 * x[0])))
    return learner


def told(learner):
    model = learner.state.model
    return list(
        zip(
            model.observed.contexts,
            model.observed.arms.tolist(),
            model.observed.rewards.tolist(),
            strict=True,
        )
    )


POOL = np.linspace(-1.3, 1.3, 41)[:, None]


@pytest.mark.parametrize("method", ["contextual-gap", "elimination", "contextual-gap-history"])
def test_gap_based_rules_choose_the_context_whose_leader_may_miss_most(method):
    learner = taught(method)
    gaps = [learner.decide(x).gap.min() for x in POOL]
    context, arm = learner.ask(pool=POOL)
    assert context == POOL[int(np.argmax(gaps))]
    assert arm == taught(method).ask(context)
    assert learner.pending == 1


def gain_by_quadrature(mean, move):
    """E[highest mean after trying an arm] − highest mean now, averaged over the rows."""
    z = np.linspace(-9, 9, 4001)
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi) * (z[1] - z[0])
    gains = np.empty(mean.shape)
    for arm in range(mean.shape[1]):
        others = np.delete(mean, arm, axis=1).max(axis=1)
        after = np.maximum(mean[:, [arm]] + move[:, [arm]] * z, others[:, None])
        gains[:, arm] = after @ density - mean.max(axis=1)
    return gains.mean(axis=0)


@pytest.mark.parametrize(
    "explorer",
    [
        KnowledgeGradient(),
        KnowledgeGradient(local=True),
        KnowledgeGradient(references=((0.3,), (-0.9,))),
        KnowledgeGradient(most=10),
    ],
    ids=str,
)
@pytest.mark.parametrize("waiting", [0, 3])
def test_the_knowledge_gradient_chooses_the_highest_gain_by_the_dense_model(explorer, waiting):
    method = cg.Method(explorer=explorer, recommender=cg.HighestMean())
    learner = taught(method)
    late = np.random.default_rng(5).uniform(-1, 1, (waiting, 1))
    pending = list(zip(late, learner.ask(late), strict=True)) if waiting else []
    if explorer.local:
        reference = np.empty((0, 1))
    elif explorer.references is not None:
        reference = np.array(explorer.references)
    else:
        reference = POOL if explorer.most > len(POOL) else POOL[::8]
    gains = []
    for x in POOL:
        ahead = dense.look_ahead(KERNEL, RIDGE, 0.0, told(learner), pending, 3, x, reference)
        kept = slice(None) if explorer.local else slice(0, -1)
        gains.append(gain_by_quadrature(ahead.mean[kept], ahead.move[kept]).max())
    context, _ = learner.ask(pool=POOL)
    assert context == POOL[int(np.argmax(gains))]


@pytest.mark.parametrize("method", ["uniform", "kernel-ucb", "max-variance", "top-two-ts"])
def test_other_rules_choose_at_random_and_repeatably(method):
    def choices():
        learner = taught(method, steps=6)
        return [float(learner.ask(pool=POOL)[0][0]) for _ in range(30)]

    first = choices()
    assert first == choices()
    assert len(set(first)) > 15


def test_the_burn_in_pulls_every_arm_at_contexts_of_the_pool():
    learner = cg.Learner(3, kernel=KERNEL, ridge=RIDGE, burn_in=2, seed=0)
    picks = [learner.ask(pool=POOL) for _ in range(6)]
    assert sorted(arm for _, arm in picks) == [0, 0, 1, 1, 2, 2]
    assert all(context in POOL for context, _ in picks)


def test_pending_choices_are_not_chosen_over_and_over():
    learner = taught()
    first, _ = learner.ask(pool=POOL)
    chosen = [learner.ask(pool=POOL)[0] for _ in range(9)]
    assert sum(context == first for context in chosen) < 5


def test_rows_come_back_as_they_were_given():
    names = {"a": [0.0, 1.0], "b": [2.0, 3.0]}
    learner = cg.Learner(2, kernel=KERNEL, seed=0)
    row, arm = learner.ask(pool=pd.DataFrame(names, index=["first", "second"]))
    assert row.name in ("first", "second")
    learner.tell(row, arm, 1.0)
    row, arm = learner.ask(pool=pl.DataFrame(names))
    assert set(row) == {"a", "b"}
    learner.tell(row, arm, 1.0)
    row, arm = learner.ask(pool=[[0.0, 1.0]])
    assert row == [0.0, 1.0]
    learner.tell(row, arm, 1.0)
    assert learner.pending == 0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, TypeError, "contexts must be numbers, got None; or give pool="),
        ({"contexts": [0.0], "pool": POOL}, TypeError, "contexts must be left out where pool="),
        ({"pool": [0.0]}, ValueError, "pool must be a table of contexts"),
        ({"pool": np.empty((0, 1))}, ValueError, "pool must be a table of contexts"),
        ({"pool": [[np.nan]]}, ValueError, "pool must be finite"),
        ({"pool": [[0.0, 1.0]]}, ValueError, "pool must have 1 numbers each"),
    ],
)
def test_what_is_no_pool_is_refused_and_changes_nothing(arguments, error, message):
    learner = taught(steps=5)
    with pytest.raises(error, match=message):
        learner.ask(**arguments)
    assert learner.pending == 0


@pytest.mark.parametrize("method", ["auto", "contextual-gap", "knowledge-gradient", "uniform"])
def test_no_context_is_chosen_again_before_half_of_the_pool_was(method):
    # A linear kernel sends every rule to the two ends of the pool, again and again.
    learner = cg.Learner(2, kernel=cg.Linear(), ridge=1.0, method=method, seed=0)
    chosen = []
    for number in range(60):
        row, arm = learner.ask(pool=POOL, index=True)
        chosen.append(row)
        if number % 2:  # half of the rewards never arrive: pending trials count as visits
            learner.tell(POOL[row], arm, float(arm))
    half = -(-len(POOL) // 2)
    assert len(set(chosen[:half])) == half
    assert len(set(chosen)) < len(POOL)  # from then on, any context


def test_a_pool_that_was_visited_otherwise_is_open_at_once():
    learner = taught()
    learner.tell(POOL[::2], [0] * 21, [0.0] * 21)
    gaps = [learner.decide(x).gap.min() for x in POOL]
    row, _ = learner.ask(pool=POOL, index=True)
    assert row == int(np.argmax(gaps))


def test_visits_are_counted_among_contexts_where_something_is_left_to_try():
    learner = cg.Learner(2, kernel=KERNEL, ridge=RIDGE, method="contextual-gap", seed=0)
    pairs = [learner.ask(pool=POOL[:4], once=True, index=True) for _ in range(8)]
    assert len(set(pairs)) == 8
    assert len({row for row, _ in pairs[:2]}) == 2
