"""How fast ask + tell and recommend are, as ratios within one run, and how much memory it takes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import numpy as np
from rivals import ExplicitInverse, RefitRegressors
from threadpoolctl import threadpool_limits
from timing import medians, row

import contextgap as cg

BANDWIDTH, RIDGE = 0.3, 0.01


def logged(
    n_arms: int, points: int, dimension: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    contexts = rng.uniform(0, 2 * np.pi, (n_arms * points, dimension))
    arms = np.tile(np.arange(n_arms), points)
    return contexts, arms, np.sin((arms + 1) * contexts[:, 0])


def learner(n_arms: int, points: int) -> cg.Learner:
    # Exact for ever: in one dimension few support points would soon take over.
    ours = cg.Learner(n_arms, kernel=cg.Gaussian(BANDWIDTH), ridge=RIDGE, points=None, seed=0)
    return ours.fit(*logged(n_arms, points))


def step_of(contestant: cg.Learner | ExplicitInverse) -> object:
    contexts: Iterator[np.ndarray] = iter(np.random.default_rng(1).uniform(0, 6, (100_000, 1)))

    def step() -> None:
        context = next(contexts)
        arm = contestant.ask(context)
        contestant.tell(context, arm, float(np.sin((arm + 1) * context[0])))

    return step


def against_explicit_inverse(n_arms: int, points: int, rounds: int, target: float) -> None:
    theirs = ExplicitInverse(n_arms, BANDWIDTH, RIDGE)
    theirs.load(*logged(n_arms, points))
    times = medians(rounds, ours=step_of(learner(n_arms, points)), theirs=step_of(theirs))
    ratio = times["theirs"] / times["ours"]
    print(f"ask + tell, {n_arms} arms x {points} points: {times['ours'] * 1e3:.3f} ms")
    print(
        row(
            "  times faster than an explicit inverse", ratio, "x", f">= {target:g}", ratio >= target
        )
    )


def against_refits(rounds: int) -> None:
    theirs = RefitRegressors(BANDWIDTH, RIDGE)
    theirs.load(*logged(3, 1000))
    context = np.array([1.0])
    ours = learner(3, 1000)
    times = medians(rounds, ours=step_of(ours), theirs=lambda: theirs.ask(context))
    ratio = times["theirs"] / times["ours"]
    what = "  times faster than refitting scikit-learn, 3 x 1000"
    print(row(what, ratio, "x", ">= 100", ratio >= 100))


def against_a_memory_read(rounds: int) -> None:
    ours = learner(3, 2000)
    factors = [arm.factor.packed() for arm in ours.state.model._arms]
    times = medians(rounds, ours=step_of(ours), read=lambda: [f.sum() for f in factors])
    ratio = times["ours"] / times["read"]
    print(f"ask + tell, 3 arms x 2000 points: {times['ours'] * 1e3:.3f} ms")
    print(row("  time of one read of the factors (numpy's sum)", ratio, "x", "<= 2", ratio <= 2))


def arms_that_share(rounds: int, observations: int) -> None:
    """Print the time of a step over that of reading L once, its triangle of n²/2 numbers."""
    ours = cg.Learner(3, kernel=cg.Gaussian(BANDWIDTH), ridge=RIDGE, sharing=0.5, seed=0)
    ours.fit(*logged(3, observations // 3))
    triangle = np.ones(observations * (observations + 1) // 2)
    times = medians(rounds, ours=step_of(ours), read=triangle.sum)
    ratio = times["ours"] / times["read"]
    print(f"ask + tell, 3 arms that share, {observations} points: {times['ours'] * 1e3:.2f} ms")
    print(row("  time of one read of the factor (numpy's sum)", ratio, "x", "<= 6", ratio <= 6))


def look_back(rounds: int) -> None:
    rng = np.random.default_rng(2)
    policies = {}
    for method in ("contextual-gap", "contextual-gap-history"):
        ours = cg.Learner(20, kernel=cg.Gaussian(0.0707), ridge=1e-4, method=method, seed=0)
        for context in rng.uniform(0, 2 * np.pi, (2000, 1)):
            arm = ours.ask(context)
            ours.tell(context, arm, float(np.sin((arm + 1) * context[0])))
        policies[method] = ours.freeze()
    contexts = rng.uniform(0, 2 * np.pi, (1000, 1))
    times = medians(
        rounds,
        last=lambda: policies["contextual-gap"].recommend(contexts),
        history=lambda: policies["contextual-gap-history"].recommend(contexts),
    )
    ratio = times["history"] / times["last"]
    print(f"recommend, 1000 contexts, 20 arms, 2000 steps: {times['last'] * 1e3:.1f} ms")
    print(row("  times longer with the whole history", ratio, "x", "<= 4", ratio <= 4))


def peak_memory() -> None:
    code = (
        "import resource, numpy as np, contextgap as cg\n"
        "rng = np.random.default_rng(0)\n"
        "ours = cg.Learner(3, kernel=cg.Gaussian(0.3), ridge=0.01, method='uniform', points=None,"
        " seed=0)\n"
        "for context in rng.uniform(0, 6, (15000, 4)):\n"
        "    ours.tell(context, ours.ask(context), float(context[0]))\n"
        "ours.freeze().recommend(rng.uniform(0, 6, (2000, 4)))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    peak = float(done.stdout)
    what = "peak memory, 3 x 5000 points told, frozen, deployed"
    print(row(what, peak, "MB", "< 450", peak < 450))


if __name__ == "__main__":
    # One BLAS thread for all contestants: ratios then do not depend on how idle other cores are.
    with threadpool_limits(1):
        against_explicit_inverse(20, 100, rounds=30, target=20)
        against_explicit_inverse(3, 1000, rounds=40, target=10)
        against_refits(rounds=3)
        against_a_memory_read(rounds=20)
        arms_that_share(rounds=20, observations=2000)
        arms_that_share(rounds=20, observations=4000)
        look_back(rounds=6)
    peak_memory()
