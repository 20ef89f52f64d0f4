"""What features of arms are worth, on problems that are unlike each other.

    python benchmarks/arm_features.py

Regret of the default learner told the features, over that of the same learner not told them; and
how the highest mean would do, with the same picks, over the default, which deploys the smallest
gap where arms share what they learn by their features.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # processes must not fight for the cores

import argparse
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np

import contextgap as cg

DEPLOYED = 500
BY_MEAN = replace(cg.METHODS["gain-or-gap"], recommender=cg.HighestMean())
Rows = tuple[np.ndarray, np.ndarray, np.ndarray]  # contexts, expected rewards, features of the arms


def line(count: int) -> np.ndarray:
    return np.linspace(0, 1, count)[:, None]


def peak_on_a_line(rng: np.random.Generator, rows: int) -> Rows:
    contexts, features = rng.normal(size=(rows, 3)), line(20)
    best = 1 / (1 + np.exp(-contexts @ rng.normal(size=3)))
    return contexts, np.exp(-0.5 * ((features[:, 0] - best[:, None]) / 0.15) ** 2), features


def peak_in_a_plane(rng: np.random.Generator, rows: int) -> Rows:
    axis = np.linspace(0, 1, 5)
    features = np.array([(x, y) for x in axis for y in axis])
    contexts = rng.uniform(-1, 1, (rows, 2))
    best = 1 / (1 + np.exp(-2 * contexts @ rng.normal(size=(2, 2))))
    return contexts, -2 * ((features - best[:, None]) ** 2).sum(axis=2), features


def waves(rng: np.random.Generator, rows: int) -> Rows:
    """A draw from a Gaussian process over contexts and features."""
    contexts, features = rng.uniform(0, 1, (rows, 2)), line(15)
    frequencies = rng.normal(size=(3, 80)) / np.array([[0.4], [0.4], [0.3]])
    phases, heights = rng.uniform(0, 2 * np.pi, 80), rng.normal(size=80) / np.sqrt(40)
    by_arm = [
        np.cos(np.column_stack([contexts, np.full(rows, x)]) @ frequencies + phases) @ heights
        for x in features[:, 0]
    ]
    return contexts, np.column_stack(by_arm), features


def products(rng: np.random.Generator, rows: int) -> Rows:
    """Expected rewards are linear in the features, with slopes linear in the context."""
    contexts, features = rng.normal(size=(rows, 3)), rng.normal(size=(12, 3))
    slopes = contexts @ rng.normal(size=(3, 3)) + rng.normal(size=3)
    return contexts, slopes @ features.T, features


def prices(rng: np.random.Generator, rows: int) -> Rows:
    """What a price earns: it is paid, or nothing is."""
    contexts, features = rng.normal(size=(rows, 3)), np.linspace(0.1, 2, 12)[:, None]
    most = np.exp(0.5 * contexts @ rng.normal(size=3))
    return contexts, features[:, 0] * bought(features[:, 0], most), features


def bought(prices: np.ndarray, most: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(3 * (prices - most[:, None])))


def meaningless(rng: np.random.Generator, rows: int) -> Rows:
    """Features that say nothing about the arms."""
    contexts, features = rng.uniform(-1, 1, (rows, 3)), rng.normal(size=(8, 2))
    return contexts, np.sin(2 * contexts @ rng.normal(size=(3, 8))), features


PROBLEMS: dict[str, Callable[[np.random.Generator, int], Rows]] = {
    "a peak on a line": peak_on_a_line,
    "a peak in a plane": peak_in_a_plane,
    "waves": waves,
    "products": products,
    "prices, paid or not": prices,
    "meaningless features": meaningless,
}


def regrets(name: str, steps: int, noise: float, seed: int) -> list[float]:
    """Return what is missed by the default, by its highest mean, and without features."""
    rng = np.random.default_rng([seed, 7])
    contexts, expected, features = PROBLEMS[name](rng, steps + DEPLOYED)
    if PROBLEMS[name] is prices:
        paid = rng.random(expected.shape) < expected / features[:, 0]
        heard = np.where(paid, features[:, 0], 0.0)
    else:
        heard = expected + noise * expected.std() * rng.normal(size=expected.shape)
    missed = []
    for settings in ({"features": features}, {"features": features, "method": BY_MEAN}, {}):
        learner = cg.Learner(len(features), seed=seed, **settings)
        for context, rewards in zip(contexts[:steps], heard, strict=False):
            arm = learner.ask(context)
            learner.tell(context, arm, rewards[arm])
        arms = learner.recommend(contexts[steps:]).astype(int)
        judged = expected[steps:]
        missed.append(float((judged.max(axis=1) - judged[range(DEPLOYED), arms]).mean()))
    return missed


def ratio(over: np.ndarray, under: np.ndarray) -> str:
    found = over.mean() / under.mean()
    error = (over - found * under).std(ddof=1) / np.sqrt(len(over)) / under.mean()
    return f"{found:.3f} ± {error:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--noise", type=float, default=0.5, help="in units of the rewards' spread")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=100)
    options = parser.parse_args()
    print(f"{options.steps} steps, mean of {options.seeds} seeds; paired ratios ± their errors")
    columns = ("problem", "default", "over no features", "highest mean over it")
    print("{:22} {:>8} {:>18} {:>21}".format(*columns))
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    with ProcessPoolExecutor() as workers:
        for name in PROBLEMS:
            found = workers.map(partial(regrets, name, options.steps, options.noise), seeds)
            default, means, alone = np.array(list(found)).T
            told = f"{ratio(default, alone):>18} {ratio(means, default):>21}"
            print(f"{name:22} {default.mean():8.4f} {told}", flush=True)


if __name__ == "__main__":
    main()
