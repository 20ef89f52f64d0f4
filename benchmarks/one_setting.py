"""What one setting does: the default learner beside the same learner with it.

    python benchmarks/one_setting.py sharing=0         # arms that have nothing in common
    python benchmarks/one_setting.py retune=doubling   # hyperparameters learnt less often
    python benchmarks/one_setting.py method=contextual-gap method=knowledge-gradient --problems all

All explore and deploy on the same rows of the leaderboard's problems, of the magnetometer bench and
of data sets with a fifth of the rewards flipped, so that ratios are paired.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # processes must not fight for the cores

import argparse
import json
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from contextgap.studies.experiments.compare import Pair, explore_once
from contextgap.studies.problems import MagnetometerBench
from leaderboard.places import DEPLOYED, classification, places, settings_of

SETS = ("wine", "iris", "digits")
STEPS = {"doses": [300], "sinusoids-0": [2000], "sinusoids-0.5": [2000]}
STEPS |= {f"{name}{flips}": [300] for name in SETS for flips in ("", "-flipped")}
USUAL = "doses,sinusoids-0,spacecraft,digits"
ALL = ",".join(["sinusoids-0", "sinusoids-0.5", "bench", "spacecraft", "doses", *list(STEPS)[3:]])
FLIPPED = 0.2  # of the rewards, 0 to 1 and 1 to 0


def bench(steps: int, seed: int) -> Pair:
    explore, deploy = MagnetometerBench().sample(steps + DEPLOYED, seed=seed).split(steps, DEPLOYED)
    return explore, deploy


def flipped(name: str, steps: int, seed: int) -> Pair:
    explore, deploy = classification(name, steps, seed)
    wrong = np.random.default_rng([seed, 6]).random(explore.rewards.shape) < FLIPPED
    return replace(
        explore, observations=np.where(wrong, 1.0 - explore.rewards, explore.rewards)
    ), deploy


def pair_of(name: str) -> Callable[[int, int], Pair]:
    """Return what makes the rows of a problem to explore and to deploy on."""
    if name == "bench":
        return bench
    if name.endswith("-flipped"):
        return partial(flipped, name.removesuffix("-flipped"))
    return places()[name].pair


def read_setting(text: str) -> dict[str, Any]:
    """Return a setting from NAME=VALUE; a value that is not JSON is a string."""
    name, _, value = text.partition("=")
    try:
        return {name: json.loads(value)}
    except json.JSONDecodeError:
        return {name: value}


def regrets(
    name: str, steps: list[int], settings: list[dict[str, Any]], seed: int
) -> list[list[tuple[float, float]]]:
    """Return, after each number of steps, regrets and times of the default and each setting.

    Times are milliseconds of the processor per step of the whole run.
    """
    explore, deploy = pair_of(name)(max(steps), seed)
    reached = [step for step in steps if step <= len(explore)] or [len(explore)]
    usual = settings_of(explore)
    runs = []
    for setting in ({}, *settings):
        # Arms that have nothing in common have no use for features.
        given = dict(setting) if setting.get("sharing") == 0 else {**usual, **setting}
        method = given.pop("method", "auto")
        began = time.process_time()
        run = explore_once(explore, deploy, method, reached, seed, given)["reached"]
        took = 1e3 * (time.process_time() - began) / len(explore)
        runs.append([(at["average_regret"], took) for at in run])
    return [list(run) for run in zip(*runs, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("settings", nargs="+", type=read_setting, help="NAME=VALUE: sharing=0")
    parser.add_argument("--problems", default=USUAL, help='comma-separated, or "all"')
    parser.add_argument("--steps", help="comma-separated; by default as the problem needs")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--processes", type=int, help="by default one for each core")
    options = parser.parse_args()
    print(f"average regret, mean of {options.seeds}; the default's over it, paired ± its error")
    print(f"{'problem':15} {'steps':>5}  {'setting':26} {'regret':>9} {'ratio':>15} {'ms/step':>8}")
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    names = ["default", *(str(*setting.values()) for setting in options.settings)]
    problems = ALL if options.problems == "all" else options.problems
    with ProcessPoolExecutor(options.processes) as workers:
        for name in problems.split(","):
            steps = STEPS.get(name, [1000])
            if options.steps:
                steps = [int(step) for step in options.steps.split(",")]
            found = workers.map(partial(regrets, name, steps, options.settings), seeds)
            for step, runs in zip(steps, zip(*found, strict=True), strict=False):
                show(f"{name:15} {step:5}", names, np.array(runs))


def show(title: str, names: list[str], runs: np.ndarray) -> None:
    """Print a line for the default and for each setting; ``runs`` is seeds by settings by two."""
    usual = runs[:, 0, 0]
    for place, name in enumerate(names):
        other, took = runs[:, place].T
        ratio = usual.mean() / other.mean()
        error = (usual - ratio * other).std(ddof=1) / np.sqrt(len(runs)) / other.mean()
        against = f"{ratio:7.3f} ± {error:.3f}" if place else ""
        regret = f"{other.mean():9.2e} {against:>15} {np.median(took):8.2f}"
        print(f"{title}  {name:26} {regret}", flush=True)


if __name__ == "__main__":
    main()
