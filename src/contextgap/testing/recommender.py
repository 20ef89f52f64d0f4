"""What a recommender must do."""

from __future__ import annotations

from typing import Any

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.beliefs.widths import PosteriorWidth
from contextgap.kernels import Gaussian
from contextgap.learner import Learner
from contextgap.methods.explorers import Uniform
from contextgap.methods.method import Method
from contextgap.methods.recommenders import Recommender
from contextgap.methods.recommenders.history import Choice
from contextgap.methods.recommenders.rules import ModelEvidence
from contextgap.models import new_model
from contextgap.studies.experiments import run
from contextgap.studies.problems import Problem
from contextgap.testing.common import (
    check_description,
    check_files,
    check_kind,
    doing,
    expect,
    payoff,
    points,
    taught,
)

_FUNCTION = "a recommendation must be a function of its context, the belief there and the seed"


def check_recommender(recommender: Recommender, *, dimension: int = 2) -> None:
    """Check that a recommender can be used wherever the library takes one.

    It must choose one of 1, 2 and 5 arms at every context, with the gap of each; the same in any
    order of the contexts, for a context alone, when asked twice, in a policy that was saved and
    loaded, and in ``experiments.run``.

    Parameters
    ----------
    recommender
        The recommender.
    dimension
        Numbers per context.
    """
    name = check_kind(recommender, Recommender, "SmallestGap()")
    check_description(recommender)
    contexts = points(12, dimension, seed=5)
    for n_arms in (1, 2, 5):
        for rows in (0, 4 * n_arms):
            _check_choices(name, recommender, n_arms, rows, contexts)
        _check_policy(name, recommender, n_arms, dimension, contexts)
    _check_runs(name, recommender, dimension)


def _check_choices(
    name: str, recommender: Recommender, n_arms: int, rows: int, contexts: FloatArray
) -> None:
    """Call the recommender itself: a policy would take an arm of −1 for the last one."""
    model = new_model(Gaussian(1.0), 0.1, n_arms, 0.0)
    seen = points(rows, contexts.shape[1])
    for step, reward in enumerate(payoff(seen, n_arms)):
        model.observe(seen[step], step % n_arms, float(reward[step % n_arms]))

    predictor = model.predictor(range(n_arms))

    def choose(where: FloatArray) -> Choice:
        return recommender.choose(
            ModelEvidence(predictor, where, PosteriorWidth(), min(rows, n_arms), seed=0)
        )

    with doing(f"{name}.choose at {len(contexts)} contexts with {n_arms} arms"):
        choice: Any = choose(contexts)
    expect(
        isinstance(choice, Choice),
        f"{name}.choose must return a Choice(arm, gap), got {type(choice).__name__}",
    )
    arm, gap = np.asarray(choice.arm), np.asarray(choice.gap)
    expect(
        arm.shape == (len(contexts),) and arm.dtype.kind in "iu",
        f"{name}.choose must return one whole number per context as arm, shape "
        f"({len(contexts)},), got {arm.dtype} of shape {arm.shape}",
    )
    expect(
        (arm >= 0).all() and (arm < n_arms).all(),
        f"{name}.choose must return positions of arms, 0 to {n_arms - 1}, got {arm.tolist()}",
    )
    expect(
        gap.shape == arm.shape and np.isfinite(gap).all(),
        f"{name}.choose must return one finite gap per context, got {gap}",
    )
    order = np.random.default_rng(0).permutation(len(contexts))
    expect(
        np.array_equal(choose(contexts[order]).arm, arm[order]),
        f"{name} chooses otherwise when contexts come in another order: {_FUNCTION}",
    )
    alone = [int(choose(context[None]).arm[0]) for context in contexts]
    expect(
        alone == arm.tolist(),
        f"{name} chooses {alone} for contexts one by one and {arm.tolist()} for all at once: "
        f"{_FUNCTION}",
    )


def _method(recommender: Recommender) -> Method:
    return Method(explorer=Uniform(), recommender=recommender)


def _check_policy(
    name: str, recommender: Recommender, n_arms: int, dimension: int, contexts: FloatArray
) -> None:
    # Enough rewards of two arms that rules which can do so decide from bounds on the widths.
    rows = 560 if n_arms == 2 else 4 * n_arms
    learner = taught(n_arms, dimension, rows, method=_method(recommender))
    policy = check_files(name, learner, contexts)
    once, twice = policy.recommend(contexts), policy.recommend(contexts)
    expect(np.array_equal(once, twice), f"{name} chooses otherwise when asked twice: {_FUNCTION}")
    exact = [policy.decide(context).arm for context in contexts]
    expect(
        exact == once.tolist(),
        f"Policy.recommend gives {once.tolist()} where {name}.choose gives {exact}: choose and "
        "choose_arms must choose alike",
    )


def _check_runs(name: str, recommender: Recommender, dimension: int) -> None:
    contexts = points(40, dimension, seed=4)
    problem = Problem(name="check", contexts=contexts, rewards=payoff(contexts, 3))
    explore, exploit = problem.split(30, 10)
    how: dict[str, Any] = {"kernel": Gaussian(1.0), "ridge": 0.1, "seed": 3}
    method = _method(recommender)
    with doing(f"experiments.run with {name}"):
        trace = run(explore, exploit, method=method, checkpoints=[30], **how)
    learner = Learner(3, method=method, **how)
    for context, rewards in zip(explore.contexts, explore.rewards, strict=True):
        arm = learner.ask(context)
        learner.tell(context, arm, float(rewards[arm]))
    expected = exploit.regret(learner.recommend(exploit.contexts).astype(int)).mean()
    expect(
        np.isclose(trace.average_regret[-1], expected),
        f"{name} recommends otherwise in experiments.run than in a learner that was told the same: "
        f"{_FUNCTION}",
    )
