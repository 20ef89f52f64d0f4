"""What arms that share gain, and what it costs where they have nothing in common.

The default learner beside the same with ``sharing=0``, on the leaderboard's problems. Rows are
paired: both learners explore and deploy on the same ones.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from contextgap.experiments.untouched import explore_once
from contextgap.methods import read_method
from contextgap.problems import Problem
from leaderboard.places import ASLIB, places, settings_of

STEPS = {"doses": 300, "sinusoids-0": 2000}
USUAL = "doses,sinusoids-0,spacecraft,digits"


def regret(explore: Problem, deploy: Problem, steps: int, seed: int, **settings: object) -> float:
    done = explore_once(
        explore=explore,
        exploit=deploy,
        method=read_method("auto"),
        checkpoints=[steps],
        seed=seed,
        settings=settings,
    )
    return float(done["reached"][-1]["average_regret"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", default=USUAL, help="comma-separated")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--aslib", type=Path, default=ASLIB)
    options = parser.parse_args()
    known = places(options.aslib)
    print(f"average regret of the default, mean of {options.seeds}; paired ratio ± its error")
    print(f"{'problem':14} {'steps':>5} {'sharing':>9} {'alone':>9} {'ratio':>15}")
    for name in options.problems.split(","):
        found = []
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            explore, deploy = known[name].pair(STEPS.get(name, 1000), seed)
            steps = min(len(explore), STEPS.get(name, 1000))
            shared = regret(explore, deploy, steps, seed, **settings_of(explore))
            found.append([shared, regret(explore, deploy, steps, seed, sharing=0)])
        together, alone = np.array(found).T
        ratio = together.mean() / alone.mean()
        error = (together - ratio * alone).std(ddof=1) / np.sqrt(len(found)) / alone.mean()
        print(
            f"{name:14} {steps:5} {together.mean():9.2e} {alone.mean():9.2e} "
            f"{ratio:7.3f} ± {error:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
