"""What an explorer and a recommender must do."""

from __future__ import annotations

from typing import Any

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.beliefs.widths import PosteriorWidth
from contextgap.kernels import Gaussian
from contextgap.learner import Learner
from contextgap.learner.view import Pending, View
from contextgap.methods.explorers import Explorer, Uniform
from contextgap.methods.method import Method
from contextgap.methods.recommenders import HighestMean, Recommender
from contextgap.methods.recommenders.history import Choice
from contextgap.methods.recommenders.rules import ModelEvidence
from contextgap.models import Model, new_model
from contextgap.studies.experiments import run
from contextgap.studies.problems import Problem
from contextgap.testing.components import (
    check_description,
    check_files,
    check_kind,
    doing,
    expect,
    payoff,
    points,
    scratch,
    taught,
)

_ARMS = (1, 2, 5)
_STATE = "draw from moment.rng only, and keep nothing between calls"
_FUNCTION = "a recommendation must be a function of its context, the belief there and the seed"
_SETTINGS: dict[str, Any] = {"kernel": Gaussian(1.0), "ridge": 0.1, "seed": 3}


def check_explorer(explorer: Explorer, *, dimension: int = 2) -> None:
    """Check that an explorer can be used wherever the library takes one.

    It must pick one of 1, 2 and 5 arms at any time: before any reward, with and without a burn-in,
    in batches, from pools, with rewards late, arms added and removed, and at one context over and
    over. It must do the same with the same seed, in a learner that was saved and loaded, and in
    ``experiments.run``. It must leave what it is shown unchanged. Propensities, where it has any,
    must be probabilities of all arms that add up to 1.

    .. versionadded:: 0.2

    Parameters
    ----------
    explorer
        The explorer.
    dimension
        Numbers per context.

    Examples
    --------
    >>> cg.testing.check_explorer(cg.explorers.Uniform())
    """
    name = check_kind(explorer, Explorer, "explorers", "Uniform()")
    check_description(explorer)
    for n_arms in _ARMS:
        _check_views(name, explorer, n_arms, dimension)
        for burn_in in (0, 1):
            first, again = (_session(name, explorer, n_arms, dimension, burn_in) for _ in range(2))
            expect(
                first == again,
                f"{name} picked {first}, then {again}, from the same seed and rewards: {_STATE}",
            )
    _check_hardly_any_ridge(name, explorer, dimension)
    _check_files(name, explorer, dimension)
    _check_runs(name, explorer, dimension)


def _learner(explorer: Explorer, n_arms: int, **settings: Any) -> Learner:
    method = Method(explorer=explorer, recommender=HighestMean())
    return Learner(n_arms, method=method, **{**_SETTINGS, **settings})


def _check_views(name: str, explorer: Explorer, n_arms: int, dimension: int) -> None:
    """Call the explorer itself: a learner would take a row of −1 for the last one."""
    contexts = points(3 * n_arms, dimension)
    model, arms = _observed(n_arms, contexts), tuple(range(n_arms))
    rng = np.random.default_rng(0)
    view = View(model, Pending(), arms, PosteriorWidth(), rng, model.follow)
    moment, pool = view.moment(contexts[0] + 0.1), view.pool(contexts)
    before = _copies(moment.belief), list(moment.pulls)
    with doing(f"{name}.pick with {n_arms} arms"):
        explorer.pick(moment)
        chances: Any = explorer.propensities(moment)
    expect(
        chances is None
        or (np.shape(chances) == (n_arms,) and min(chances) >= 0 and abs(sum(chances) - 1) < 1e-9),
        f"{name}.propensities must be None or one probability for each of {n_arms} arms, which add "
        f"up to 1, got {chances!r}",
    )
    expect(
        _equal(before[0], _copies(moment.belief)) and before[1] == moment.pulls,
        f"{name}.pick changed the belief or the pulls that it was shown: work on copies",
    )
    before = _copies(pool.belief), []
    with doing(f"{name}.choose from a pool of {len(pool)} contexts"):
        row: Any = explorer.choose(pool)
    expect(
        isinstance(row, int | np.integer) and 0 <= row < len(pool),
        f"{name}.choose must return the row of a context, 0 to {len(pool) - 1}, got {row!r}",
    )
    expect(
        _equal(before[0], _copies(pool.belief)) and np.array_equal(pool.contexts, contexts),
        f"{name}.choose changed the pool that it was shown: work on copies",
    )


def _copies(belief: Any) -> list[FloatArray]:
    return [np.copy(getattr(belief, field)) for field in ("mean", "std", "half_width", "gap")]


def _equal(left: list[FloatArray], right: list[FloatArray]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(left, right, strict=True))


def _session(name: str, explorer: Explorer, n_arms: int, dimension: int, burn_in: int) -> list[Any]:
    """Return all that an explorer picked in a session of every kind of asking."""
    learner = _learner(explorer, n_arms, burn_in=burn_in)
    contexts = points(16, dimension, seed=1)
    rewards = payoff(contexts, n_arms + 1)
    picks: list[Any] = []
    where = f"with {n_arms} arms and burn_in={burn_in}"
    with doing(f"{name}, asked for a batch before any reward {where},"):
        early = learner.ask(contexts[:4]).tolist()
    for row, context in enumerate(contexts):
        with doing(f"{name}, asked after {row} rewards {where},"):
            expected, arm = learner.decide(context).arm, learner.ask(context)
        expect(
            expected == arm,
            f"{name} picked {arm} where learner.decide foretold {expected}: {_STATE}",
        )
        picks.append(arm)
        learner.tell(context, arm, float(rewards[row, arm]))
    learner.tell(contexts[:4][::-1], early[::-1], rewards[range(4), early][::-1])
    with doing(f"{name}, asked to choose from a pool {where},"):
        chosen, arm = learner.ask(pool=contexts)
    picks += [*early, chosen.tolist(), arm]
    learner.drop_pending()
    learner.add_arm(n_arms)
    with doing(f"{name}, asked after an arm was added to {n_arms},"):
        picks += learner.ask(contexts[:3]).tolist()
    learner.remove_arm(0)
    with doing(f"{name}, asked after the first of {n_arms + 1} arms was removed,"):
        picks += learner.ask(contexts[:3]).tolist()
    return picks


def _check_hardly_any_ridge(name: str, explorer: Explorer, dimension: int) -> None:
    learner = _learner(explorer, 3, ridge=1e-10, burn_in=0)
    context = np.ones(dimension)
    with doing(f"{name}, asked at the same context over and over with a ridge of 1e-10,"):
        for _ in range(30):
            arm = learner.ask(context)
            learner.tell(context, arm, float(arm))


def _check_files(name: str, explorer: Explorer, dimension: int) -> None:
    contexts = points(24, dimension, seed=2)
    rewards = payoff(contexts, 3)
    learner = _learner(explorer, 3)
    _explore(learner, contexts[:12], rewards)
    with scratch("learner.cgap") as path, doing(f"saving and loading a learner with {name}"):
        learner.save(path)
        loaded = Learner.load(path)
    picks = [_explore(each, contexts[12:], rewards[12:]) for each in (learner, loaded)]
    expect(
        picks[0] == picks[1],
        f"a learner with {name} goes on otherwise once saved and loaded: {_STATE}",
    )


def _check_runs(name: str, explorer: Explorer, dimension: int) -> None:
    explore, exploit = _problem(dimension)
    with doing(f"experiments.run with {name}"):
        trace = run(explore, exploit, method=explorer, **_SETTINGS)
    picks = _explore(_learner(explorer, 3), explore.contexts, explore.rewards)
    expect(
        trace.arms.tolist() == picks,
        f"{name} picks {trace.arms.tolist()} in experiments.run and {picks} in a learner that is "
        f"shown the same: {_STATE}",
    )


def _observed(n_arms: int, contexts: FloatArray) -> Model:
    """Return a model of rewards of all arms, one after the other."""
    model = new_model(Gaussian(1.0), 0.1, n_arms, 0.0)
    for step, rewards in enumerate(payoff(contexts, n_arms)):
        model.observe(contexts[step], step % n_arms, float(rewards[step % n_arms]))
    return model


def _problem(dimension: int) -> tuple[Problem, ...]:
    """Return a problem to explore and one to evaluate on."""
    contexts = points(40, dimension, seed=4)
    return Problem(name="check", contexts=contexts, rewards=payoff(contexts, 3)).split(30, 10)


def _explore(learner: Learner, contexts: FloatArray, rewards: FloatArray) -> list[Any]:
    picks = []
    for context, row in zip(contexts, rewards, strict=False):
        picks.append(learner.ask(context))
        learner.tell(context, picks[-1], float(row[picks[-1]]))
    return picks


def check_recommender(recommender: Recommender, *, dimension: int = 2) -> None:
    """Check that a recommender can be used wherever the library takes one.

    It must choose one of 1, 2 and 5 arms at every context, with the gap of each; the same in any
    order of the contexts, for a context alone, when asked twice, in a policy that was saved and
    loaded, and in ``experiments.run``.

    .. versionadded:: 0.2

    Parameters
    ----------
    recommender
        The recommender.
    dimension
        Numbers per context.

    Examples
    --------
    >>> cg.testing.check_recommender(cg.HighestMean())
    """
    name = check_kind(recommender, Recommender, "recommenders", "SmallestGap()")
    check_description(recommender)
    contexts = points(12, dimension, seed=5)
    for n_arms in (1, 2, 5):
        for rows in (0, 4 * n_arms):
            _check_choices(name, recommender, n_arms, rows, contexts)
        _check_policy(name, recommender, n_arms, dimension, contexts)
    _check_deployment(name, recommender, dimension)


def _check_choices(
    name: str, recommender: Recommender, n_arms: int, rows: int, contexts: FloatArray
) -> None:
    """Call the recommender itself: a policy would take an arm of −1 for the last one."""
    predictor = _observed(n_arms, points(rows, contexts.shape[1])).predictor(range(n_arms))

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


def _check_deployment(name: str, recommender: Recommender, dimension: int) -> None:
    explore, exploit = _problem(dimension)
    method = _method(recommender)
    with doing(f"experiments.run with {name}"):
        trace = run(explore, exploit, method=method, checkpoints=[30], **_SETTINGS)
    learner = Learner(3, method=method, **_SETTINGS)
    _explore(learner, explore.contexts, explore.rewards)
    expected = exploit.regret(learner.recommend(exploit.contexts).astype(int)).mean()
    expect(
        np.isclose(trace.average_regret[-1], expected),
        f"{name} recommends otherwise in experiments.run than in a learner that was told the same: "
        f"{_FUNCTION}",
    )
