"""Is the spacecraft a fair problem? Shares, predictability and simple baselines for ten seeds.

Run with ``python benchmarks/spacecraft.py [number of seeds]``. Every sensor should be best in at
least 15 % of frames, and a kernel ridge regression on all readings should explain at least 85 % of
the variance of each sensor's error, where a linear one explains clearly less for two of them.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score

from contextgap.studies.problems.problem import standardised
from contextgap.studies.problems.spacecraft import Flight, Spacecraft

BANDWIDTH, RIDGE = 6.0, 0.01  # in standard deviations of a channel; rewards have unit spread
TRAINING = 4000


def explained(flight: Flight) -> tuple[np.ndarray, np.ndarray]:
    """Share of each sensor's variance that kernel ridge and linear regression explain."""
    order = np.random.default_rng(0).permutation(len(flight))
    train, test = order[:TRAINING], order[TRAINING:]
    contexts, rewards = standardised(flight.contexts), standardised(flight.observations)
    kernel = KernelRidge(kernel="rbf", gamma=1 / (2 * BANDWIDTH**2), alpha=RIDGE)
    return tuple(
        r2_score(
            rewards[test],
            model.fit(contexts[train], rewards[train]).predict(contexts[test]),
            multioutput="raw_values",
        )
        for model in (kernel, LinearRegression())
    )


def numbers(values: np.ndarray, form: str) -> str:
    return " ".join(f"{value:{form}}" for value in values)


def main(seeds: int) -> None:
    print(f"{'':5}{'best in % of frames':^18}{'median error / nT':^20}", end="")
    print(f"{'kernel ridge R²':^20}{'linear R²':^20}{'regret':^24}")
    sensors = "top bott boom"
    print(f"seed  {sensors}     {sensors}      {sensors}     {sensors}      single random oracle")
    taken, met = [], True
    for seed in range(seeds):
        start = time.perf_counter()
        flight = Spacecraft().sample(seed=seed)
        taken.append(time.perf_counter() - start)
        share = np.bincount(flight.rewards.argmax(axis=1), minlength=3) / len(flight)
        error = -100 * np.median(flight.rewards, axis=0)
        kernel, linear = explained(flight)
        regret = flight.regret_table.mean(axis=0)
        met &= share.min() >= 0.15 and kernel.min() >= 0.85 and (kernel - linear > 0.1).sum() >= 2
        print(
            f"{seed:4}  {numbers(100 * share, '4.0f')}    {numbers(error, '4.0f')}     "
            f"{numbers(kernel, '5.3f')}   {numbers(linear, '5.3f')}   "
            f"{regret.min():6.3f} {regret.mean():6.3f} {0:6.3f}"
        )
    print(f"{'all as wanted' if met else 'MISSED'}; 6000 steps take {np.median(taken):.2f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
