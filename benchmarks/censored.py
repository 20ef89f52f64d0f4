"""What censored rewards cost: a log of costs cut off at its median, learnt from in four ways.

Costs of four arms are smooth functions of two numbers, with noise. All above the median are cut
off there. The policy's regret at new contexts is printed for the complete costs, for censored ones,
and for the limit, or twice as much, in the place of what was cut off; then the error of predicted
costs, and the CPU time of ``tell`` with and without censored rewards.

    python benchmarks/censored.py [--seeds 40] [--rows 300]
"""

import argparse
import time

import numpy as np

import contextgap as cg

ARMS, NOISE = 4, 0.2


def problem(rng):
    """Return the expected costs of all arms as a function of contexts."""
    angles, phases = rng.normal(size=(ARMS, 2)), rng.uniform(0, 2 * np.pi, ARMS)
    return lambda x: 3 + np.sin(1.5 * x @ angles.T + phases)


def learnt(rng, rows):
    """Return regrets and errors of the four ways, for one log."""
    expected = problem(rng)
    x, arms = rng.uniform(-1, 1, (rows, 2)), rng.integers(ARMS, size=rows)
    costs = expected(x)[np.arange(rows), arms] + NOISE * rng.normal(size=rows)
    limit = np.median(costs)
    cut, told = costs > limit, np.minimum(costs, limit)
    ways = [
        {"rewards": costs},
        {"rewards": told, "censored": cut},
        {"rewards": told},
        {"rewards": np.where(cut, 2 * limit, told)},
    ]
    new = rng.uniform(-1, 1, (1000, 2))
    truth = expected(new)
    found = []
    for way in ways:
        policy = cg.Learner(ARMS, seed=0, reward="minimize").fit(x, arms, **way).freeze()
        picks = np.array(policy.recommend(new), dtype=int)
        predicted = -policy.state.model.posterior(new, range(ARMS)).mean
        regret = truth[np.arange(1000), picks] - truth.min(axis=1)
        found.append((regret.mean(), np.sqrt(np.square(predicted - truth).mean())))
    return found


def seconds(rng, rows, share):
    """Return the CPU time per tell, of costs of which a share is censored."""
    expected = problem(rng)
    learner = cg.Learner(ARMS, seed=0, reward="minimize")
    start = time.process_time()
    for row in range(rows):
        x, arm = rng.uniform(-1, 1, 2), row % ARMS
        cost = expected(x[None])[0, arm] + NOISE * rng.normal()
        learner.tell(x, arm, cost, censored=bool(rng.uniform() < share))
    return (time.process_time() - start) / rows


def main():
    """Print a row for each way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--rows", type=int, default=300)
    given = parser.parse_args()
    found = np.array(
        [learnt(np.random.default_rng(100 + seed), given.rows) for seed in range(given.seeds)]
    )
    means, errors = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(given.seeds)
    print(f"{given.seeds} logs of {given.rows} costs, {ARMS} arms, cut off at the median")
    print("| costs | regret | error of predicted costs |\n|---|---:|---:|")
    names = ("complete", "censored", "the limit in their place", "twice the limit")
    for name, mean, error in zip(names, means, errors, strict=True):
        pairs = [f"{m:.4f} ± {e:.4f}" for m, e in zip(mean, error, strict=True)]
        print(f"| {name} | {pairs[0]} | {pairs[1]} |")
    times = [seconds(np.random.default_rng(0), given.rows, share) for share in (0.0, 0.5)]
    print(f"CPU time per tell: {1e3 * times[0]:.2f} ms; half of them censored: ", end="")
    print(f"{1e3 * times[1]:.2f} ms")


if __name__ == "__main__":
    main()
