"""What an explorer must do."""

from __future__ import annotations

from typing import Any

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.beliefs.widths import PosteriorWidth
from contextgap.kernels import Gaussian
from contextgap.learner import Learner
from contextgap.learner.view import Pending, View
from contextgap.methods.explorers import Explorer
from contextgap.methods.method import Method
from contextgap.methods.recommenders import HighestMean
from contextgap.models import new_model
from contextgap.studies.experiments import run
from contextgap.studies.problems import Problem
from contextgap.testing.common import (
    check_description,
    check_kind,
    doing,
    expect,
    payoff,
    points,
    scratch,
)

_ARMS = (1, 2, 5)
_STATE = "draw from moment.rng only, and keep nothing between calls"


def check_explorer(explorer: Explorer, *, dimension: int = 2) -> None:
    """Check that an explorer can be used wherever the library takes one.

    It must pick one of 1, 2 and 5 arms at any time: before any reward, with and without a burn-in,
    in batches, from pools, with rewards late, arms added and removed, and at one context over and
    over. It must do the same with the same seed, in a learner that was saved and loaded, and in
    ``experiments.run``. It must leave what it is shown unchanged. Propensities, where it has any,
    must be probabilities of all arms that add up to 1.

    Parameters
    ----------
    explorer
        The explorer.
    dimension
        Numbers per context.
    """
    name = check_kind(explorer, Explorer, "Uniform()")
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
    settings = {"kernel": Gaussian(1.0), "ridge": 0.1, "seed": 3, **settings}
    return Learner(n_arms, method=method, **settings)


def _check_views(name: str, explorer: Explorer, n_arms: int, dimension: int) -> None:
    """Call the explorer itself: a learner would take a row of −1 for the last one."""
    contexts = points(3 * n_arms, dimension)
    model = new_model(Gaussian(1.0), 0.1, n_arms, 0.0)
    rewards = payoff(contexts, n_arms)
    for step, context in enumerate(contexts):
        model.observe(context, step % n_arms, float(rewards[step, step % n_arms]))
    arms = tuple(range(n_arms))
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
    contexts = points(40, dimension, seed=4)
    problem = Problem(name="check", contexts=contexts, rewards=payoff(contexts, 3))
    explore, exploit = problem.split(30, 10)
    how: dict[str, Any] = {"kernel": Gaussian(1.0), "ridge": 0.1, "seed": 3}
    with doing(f"experiments.run with {name}"):
        trace = run(explore, exploit, method=explorer, **how)
    picks = _explore(_learner(explorer, 3), explore.contexts, explore.rewards)
    expect(
        trace.arms.tolist() == picks,
        f"{name} picks {trace.arms.tolist()} in experiments.run and {picks} in a learner that is "
        f"shown the same: {_STATE}",
    )


def _explore(learner: Learner, contexts: FloatArray, rewards: FloatArray) -> list[Any]:
    picks = []
    for context, row in zip(contexts, rewards, strict=False):
        picks.append(learner.ask(context))
        learner.tell(context, picks[-1], float(row[picks[-1]]))
    return picks
