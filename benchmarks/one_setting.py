"""What one setting does: the default learner beside the same learner with it.

    python benchmarks/one_setting.py sharing=0         # arms that have nothing in common
    python benchmarks/one_setting.py retune=doubling   # scales learnt less often

Both explore and deploy on the same rows of the leaderboard's problems, so that ratios are paired.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # processes must not fight for the cores

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from contextgap.studies.experiments.defaults import explore_once
from leaderboard.places import places, settings_of

STEPS = {"doses": [300], "sinusoids-0": [2000]}
USUAL = "doses,sinusoids-0,spacecraft,digits"


def read_setting(text: str) -> dict[str, Any]:
    """Return a setting from NAME=VALUE; a value that is not JSON is a string."""
    name, _, value = text.partition("=")
    try:
        return {name: json.loads(value)}
    except json.JSONDecodeError:
        return {name: value}


def regrets(name: str, steps: list[int], setting: dict[str, Any], seed: int) -> list[list[float]]:
    """Return, after each number of steps, the regret of the default and with the setting."""
    explore, deploy = places()[name].pair(max(steps), seed)
    reached = [step for step in steps if step <= len(explore)] or [len(explore)]
    usual = settings_of(explore)
    # Arms that have nothing in common have no use for features.
    other = setting if setting.get("sharing") == 0 else {**usual, **setting}
    runs = [
        explore_once(explore, deploy, "auto", reached, seed, settings)["reached"]
        for settings in (usual, other)
    ]
    return [[run[place]["average_regret"] for run in runs] for place in range(len(reached))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("setting", type=read_setting, help="NAME=VALUE, such as sharing=0")
    parser.add_argument("--problems", default=USUAL, help="comma-separated")
    parser.add_argument("--steps", help="comma-separated; by default as the problem needs")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=100)
    options = parser.parse_args()
    (told,) = options.setting.items()
    print(f"average regret, mean of {options.seeds}; paired ratio ± its error")
    print(f"{'problem':14} {'steps':>5} {'default':>9} {'={}'.format(*told[1:]):>9} {'ratio':>15}")
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    with ProcessPoolExecutor() as workers:
        for name in options.problems.split(","):
            steps = STEPS.get(name, [1000])
            if options.steps:
                steps = [int(step) for step in options.steps.split(",")]
            found = workers.map(partial(regrets, name, steps, options.setting), seeds)
            for step, pairs in zip(steps, zip(*found, strict=True), strict=False):
                show(name, step, np.array(pairs))


def show(name: str, step: int, pairs: np.ndarray) -> None:
    usual, other = pairs.T
    ratio = usual.mean() / other.mean()
    error = (usual - ratio * other).std(ddof=1) / np.sqrt(len(pairs)) / other.mean()
    means = f"{usual.mean():9.2e} {other.mean():9.2e}"
    print(f"{name:14} {step:5} {means} {ratio:7.3f} ± {error:.3f}", flush=True)


if __name__ == "__main__":
    main()
