"""How often score cards' 95 % intervals hold the true value of the policy, on logs of all kinds."""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # processes must not fight for the cores

import argparse
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from noisy_logs import Cell
from timing import row

import contextgap as cg

CELLS = [
    Cell("dense", 0.1, 2, 100),
    Cell("dense", 1.0, 2, 150),
    Cell("dense", 2.0, 8, 200),
    Cell("groups", 2.0, 14, 300),
    Cell("clicks", 3.0, 15, 500),
    Cell("money", 3.0, 15, 500),
]


def held(task: tuple[Cell, int]) -> list[list[bool]]:
    """Whether value, best single arm and gain lie in their intervals, direct and doubly robust."""
    cell, seed = task
    log = cell.log(seed)
    learner = cg.Learner(log.n_arms, seed=0).fit(log.contexts, log.arms, log.rewards)
    picks = learner.recommend(log.new)
    value = log.expected[np.arange(len(picks)), picks].mean()
    answers = []
    for propensities in (None, np.full(len(log.arms), 1 / log.n_arms)):
        card = learner.score(propensities)
        single = log.expected[:, card.best_single_arm].mean()
        pairs = ((card.value, value), (card.best_single, single), (card.gain, value - single))
        answers.append([x.interval[0] <= truth <= x.interval[1] for x, truth in pairs])
    return answers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--first-seed", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.logs)
    print(f"share of {options.logs} logs whose 95 % interval holds the truth")
    for cell in CELLS:
        with ProcessPoolExecutor(options.workers) as pool:
            found = np.array(list(pool.map(held, [(cell, seed) for seed in seeds])))
        for number, estimator in enumerate(("direct", "doubly robust")):
            value, single, gain = found[:, number].mean(axis=0)
            name = (
                f"{cell.kind} {cell.noise:g}, d = {cell.dimension}, {cell.rows} rows, {estimator}"
            )
            print(row(name, value, "", ">= 0.9", value >= 0.9))
            print(f"  best single arm {single:.3f}, gain {gain:.3f}", flush=True)


if __name__ == "__main__":
    main()
