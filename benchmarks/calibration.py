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


LONG = 30_000  # rows, three arms, logged with probabilities that depend on the context


def expected_rewards(contexts: np.ndarray) -> np.ndarray:
    x, y, z = contexts.T
    return np.column_stack([np.sin(3 * x), 0.3 + 0.5 * y, 0.2 + 0.2 * np.cos(4 * z)])


def long_log(seed: int) -> list[list[float]]:
    """Which intervals of a long log's cards hold the truth, and errors of the best single arm.

    Of these errors one is the card's, and one that of self-normalised weights on all rows. One card
    leaves out all rows, and one 2000 of them.
    """
    rng = np.random.default_rng(seed)
    contexts = rng.uniform(-1, 1, (LONG, 3))
    chances = np.where(contexts[:, 1:2] > 0, [0.7, 0.2, 0.1], [0.1, 0.2, 0.7])
    arms = (rng.random((LONG, 1)) > chances.cumsum(axis=1)[:, :2]).sum(axis=1)
    propensities = chances[np.arange(LONG), arms]
    rewards = expected_rewards(contexts)[np.arange(LONG), arms] + 0.5 * rng.normal(size=LONG)
    learner = cg.Learner(3, kernel=cg.Gaussian(0.8), ridge=0.25, prior_mean="auto", seed=0)
    learner.fit(contexts, arms, rewards)
    grid = np.stack(np.meshgrid(*[(np.arange(60) + 0.5) / 30 - 1] * 3), axis=-1).reshape(-1, 3)
    truth, picks = expected_rewards(grid), learner.recommend(grid).astype(int)
    value, answers = truth[np.arange(len(grid)), picks].mean(), []
    for rows in (None, 2000):
        card = learner.score(propensities, rows=rows)
        single = truth[:, card.best_single_arm].mean()
        pairs = [(card.value, value), (card.best_single, single), (card.gain, value - single)]
        pairs += [(card.direct, value), (card.weighted, value)]
        weights = (arms == card.best_single_arm) / propensities
        away = rewards - weights @ rewards / weights.sum()
        by_hand = np.sqrt((weights**2) @ away**2) / weights.sum()
        held = [x.interval[0] <= right <= x.interval[1] for x, right in pairs]
        answers.append([*held, card.best_single.error, by_hand])
    return answers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--long-logs", type=int, default=200)
    parser.add_argument("--first-seed", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.logs)
    print(f"share of {options.logs} logs whose 95 % interval holds the truth")
    for cell in CELLS if options.logs else ():
        with ProcessPoolExecutor(options.workers) as pool:
            found = np.array(list(pool.map(held, [(cell, seed) for seed in seeds])))
        for number, estimator in enumerate(("direct", "doubly robust")):
            value, single, gain = found[:, number].mean(axis=0)
            name = (
                f"{cell.kind} {cell.noise:g}, d = {cell.dimension}, {cell.rows} rows, {estimator}"
            )
            print(row(name, value, "", ">= 0.9", value >= 0.9))
            print(f"  best single arm {single:.3f}, gain {gain:.3f}", flush=True)
    seeds = range(options.first_seed, options.first_seed + options.long_logs)
    with ProcessPoolExecutor(options.workers) as pool:
        both = np.array(list(pool.map(long_log, seeds)))
    for found, name in ((both[:, 0], "all rows"), (both[:, 1], "2000 rows")):
        value, single, gain, direct, weighted = found[:, :5].mean(axis=0)
        mine, by_hand = found[:, 5:].mean(axis=0)
        name = f"{options.long_logs} logs of {LONG} rows, {name} left out, doubly robust"
        print(row(name, value, "", ">= 0.9", value >= 0.9))
        print(f"  best single arm {single:.3f}, gain {gain:.3f}", end="")
        print(f"; value by predictions alone {direct:.3f}, by weights alone {weighted:.3f}")
        print(f"  error of the best single arm {mine:.4f}", end="")
        print(f"; by self-normalised weights on all rows {by_hand:.4f}", flush=True)


if __name__ == "__main__":
    main()
