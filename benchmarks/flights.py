"""What untouched exploring gains on the spacecraft: ``python benchmarks/flights.py``.

On every flight the learner without settings explores in time order by its default method and, once
more, uniformly. Printed is what the rows after it miss, of the first over the second, and what the
same model misses that was told the rewards of all sensors at every row: no way to explore can be
expected to do better. Then the same for a phased flight, in which windows with and without feedback
alternate and all windows without feedback but those of the first two orbits count.
``--first-seed`` and ``--seeds`` choose flights.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np

from contextgap.experiments import fly
from contextgap.experiments.untouched import explore_once, full_information
from contextgap.methods import read_method
from contextgap.problems import Spacecraft

METHODS = ("auto", "uniform")
STEPS = (1000, 2000)
DEPLOYED = 1000
PHASED, SKIPPED = 3600, 2  # rows of 10 s, about six orbits; orbits that do not count


def after(steps: int, seed: int) -> list[float]:
    """Return the regret of both methods, and of full information, on the rows after."""
    explore, deploy = Spacecraft().sample(steps + DEPLOYED, seed=seed).split(steps, DEPLOYED)
    runs = [explore_once(explore, deploy, read_method(name), [steps], seed) for name in METHODS]
    runs.append(full_information(explore, deploy, [steps], seed))
    return [run["reached"][0]["average_regret"] for run in runs]


def phased(seed: int) -> list[float]:
    """Return the regret of both methods in the windows without feedback."""
    flight = Spacecraft().sample(PHASED, seed=seed)
    counted = ~flight.known & (flight.orbit_number >= flight.orbit_number.min() + SKIPPED)
    return [float(fly(flight, name, seed=seed).regret[counted].mean()) for name in METHODS]


def show(name: str, regrets: list[list[float]]) -> None:
    """Print means, and ratios to uniform exploration with standard errors of the differences."""
    default, uniform, *full = np.array(regrets).T
    line = f"{name:14}{uniform.mean():9.4f}"
    for each in (default, *full):
        error = (each - uniform).std(ddof=1) / np.sqrt(len(each)) / uniform.mean()
        line += f"{each.mean():9.4f}{each.mean() / uniform.mean():8.3f} ± {error:.3f}"
    print(line, flush=True)


def main(first: int, count: int) -> None:
    seeds = range(first, first + count)
    print(f"seeds {first} to {first + count - 1}; default: {read_method('auto').name}")
    print(f"{'':14}{'uniform':>9}{'default':>9}{'ratio':>16}{'all told':>9}{'ratio':>16}")
    with ProcessPoolExecutor() as workers:
        for steps in STEPS:
            show(f"{steps} steps", list(workers.map(partial(after, steps), seeds)))
        show("phased flight", list(workers.map(phased, seeds)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first-seed", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=10)
    asked = parser.parse_args()
    main(asked.first_seed, asked.seeds)
