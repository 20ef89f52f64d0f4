"""How fast a frozen policy decides, against scikit-learn and against the triangular solve alone.

Three arms of 1000 points. The widths of all arms at m contexts take a triangular solve with m right
sides for each arm, which is where the time of a straightforward implementation goes. ``recommend``
computes widths only where bounds leave the decision open, so how long it takes depends on the
problem: two
are timed, with one dimension and with 27.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dtrsm, dtrsv
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from threadpoolctl import threadpool_limits
from timing import medians, row

import contextgap as cg
from learner import BANDWIDTH, RIDGE, logged

ARMS, POINTS, BATCH = 3, 1000, 1000
RULES = (cg.SmallestGap(), cg.HighestMean())


@dataclass(frozen=True)
class Problem:
    """Logged trials, contexts to decide at, and settings."""

    name: str
    contexts: np.ndarray
    arms: np.ndarray
    rewards: np.ndarray
    queries: np.ndarray
    kernel: cg.Gaussian
    ridge: float

    def policy(self, rule: cg.Recommender) -> cg.Policy:
        method = cg.Method(explorer=cg.explorers.Uniform(), recommender=rule)
        settings = {"kernel": self.kernel, "ridge": self.ridge, "method": method}
        learner = cg.Learner(ARMS, points=None, seed=0, **settings)  # shortcuts of exact models
        return learner.fit(self.contexts, self.arms, self.rewards).freeze()

    def regressors(self) -> list[GaussianProcessRegressor]:
        made = []
        for arm in range(ARMS):
            own = self.arms == arm
            model = GaussianProcessRegressor(
                RBF(np.asarray(self.kernel.bandwidth)), alpha=self.ridge, optimizer=None
            )
            made.append(model.fit(self.contexts[own], self.rewards[own]))
        return made


def sinusoids() -> Problem:
    contexts, arms, rewards = logged(ARMS, POINTS)
    rng = np.random.default_rng(3)
    noisy = rewards + 0.1 * rng.standard_normal(len(rewards))
    queries = rng.uniform(0, 2 * np.pi, (BATCH, 1))
    kernel = cg.Gaussian(BANDWIDTH)
    return Problem("1 dimension", contexts, arms, noisy, queries, kernel, RIDGE)


def spacecraft() -> Problem:
    explored = ARMS * POINTS
    flight = cg.problems.Spacecraft().sample(explored + BATCH, seed=0)
    contexts, queries = flight.contexts[:explored], flight.contexts[explored:]
    # Each sensor equally often, in random order.
    arms = np.random.default_rng(3).permutation(np.repeat(np.arange(ARMS), POINTS))
    rewards = flight.observations[np.arange(explored), arms]
    kernel = cg.Gaussian.from_contexts(contexts, 1.0)
    return Problem("spacecraft, 27 dimensions", contexts, arms, rewards, queries, kernel, 0.05)


def triangular_solves(problem: Problem) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return BLAS's solves for the batch and for one context, kernel values being there already."""
    factors, values = [], []
    for arm in range(ARMS):
        x = problem.contexts[problem.arms == arm]
        gram = problem.kernel(x, x) + problem.ridge * np.eye(len(x))
        factors.append(np.asfortranarray(np.linalg.cholesky(gram)))
        values.append(np.asfortranarray(problem.kernel(x, problem.queries)))
    room = np.empty_like(values[0])

    def batch() -> None:
        for factor, right in zip(factors, values, strict=True):
            np.copyto(room, right)  # since the solve overwrites it; a few per cent of its time
            dtrsm(1.0, factor, room, lower=1, overwrite_b=1)

    def single() -> None:
        for factor, right in zip(factors, values, strict=True):
            dtrsv(factor, right[:, 0], lower=1)

    return batch, single


def check_same(policy: cg.Policy, regressors: list[GaussianProcessRegressor], at: np.ndarray):
    """Both compute the same, so that comparing times means something."""
    ours = policy.chooser.evidence(at).belief
    for arm, model in enumerate(regressors):
        mean, std = model.predict(at, return_std=True)
        np.testing.assert_allclose(ours.mean[:, arm], mean, atol=1e-8)
        np.testing.assert_allclose(ours.std[:, arm], std, atol=1e-6)


def time_problem(problem: Problem, rounds: int) -> None:
    batch, some = problem.queries, problem.queries[::20]
    regressors = problem.regressors()
    solves, solve = triangular_solves(problem)

    def predict(contexts: np.ndarray) -> list[object]:
        return [model.predict(contexts, return_std=True) for model in regressors]

    for rule in RULES:
        policy = problem.policy(rule)
        check_same(policy, regressors, batch)
        times = medians(
            rounds,
            ours=lambda policy=policy: policy.recommend(batch),
            theirs=lambda: predict(batch),
            solves=solves,
            certificate=lambda policy=policy: policy.certificate(batch),
        )
        few = medians(
            rounds,
            ours=lambda policy=policy: [policy.recommend(x) for x in some],
            theirs=lambda: [predict(x[None]) for x in some],
            solves=lambda: [solve() for _ in some],
            certificate=lambda policy=policy: [policy.certificate(x) for x in some],
        )
        one = {name: seconds / len(some) for name, seconds in few.items()}
        print(f"{problem.name}, {ARMS} arms x {POINTS} points, {type(rule).__name__}")
        _, certain = rule.clear(policy.chooser.evidence(batch))
        print(f"  undecided by bounds on widths: {(~certain).sum()}")
        report(f"  {BATCH} contexts", times, with_targets=True)
        report(f"  1 context, {len(some)} times", one, with_targets=False)


def report(what: str, times: dict[str, float], with_targets: bool) -> None:
    print(
        f"{what}: recommend {1e3 * times['ours']:.3g} ms, "
        f"certificate {1e3 * times['certificate']:.3g} ms,\n    scikit-learn "
        f"{1e3 * times['theirs']:.3g} ms, triangular solves {1e3 * times['solves']:.3g} ms"
    )
    faster, slower = times["theirs"] / times["ours"], times["ours"] / times["solves"]
    whole = times["certificate"] / times["solves"]
    if with_targets:
        print(row("    times faster than scikit-learn", faster, "x", ">= 5", faster >= 5))
        print(row("    time of the triangular solves", slower, "x", "<= 2", slower <= 2))
        print(row("    the same for certificates", whole, "x", "<= 2", whole <= 2))
    else:
        print(f"    {faster:.3g} x faster than scikit-learn, {slower:.3g} x the triangular solves")


if __name__ == "__main__":
    # One BLAS thread for all contestants: ratios then do not depend on how idle other cores are.
    with threadpool_limits(1):
        for make in (sinusoids, spacecraft):
            time_problem(make(), rounds=4)
