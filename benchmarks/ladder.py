"""When does choosing what to try pay? The spacecraft without one source of error after the other.

``python benchmarks/ladder.py`` flies ten missions by the paper's protocol, half width scale * std:
1000 rows to explore and 1000 to deploy on are held out for tuning, then 3000 rows are explored and
950 deployed on, in time order and again with all rows of a mission shuffled. Bandwidth and ridge
are tuned for every mission on its own held-out rows, and once for all, as the setting with the
lowest mean regret on the ten held-out parts. The grid is six by six, of the library's ten
bandwidths and ten ridges, both ends kept. Printed is the regret of Contextual-Gap and of Kernel-
UCB-Mod over that of uniform exploration, with standard errors of the paired differences.
``--figure`` draws Contextual-Gap's.

Finished parts are kept in ``--out``, and the same command goes on from there. On one core it takes
some 15 minutes.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from contextgap.beliefs import PosteriorWidth
from contextgap.studies.experiments import Grid
from contextgap.studies.experiments.compare import read_methods, run_once, tune_all
from contextgap.studies.experiments.paper import thinned
from contextgap.studies.experiments.run import Store, Task, execute
from contextgap.studies.problems import Maker, Problem, Spacecraft
from contextgap.studies.problems.spacecraft import CHANNELS

HOLD_OUT, EVALUATE, GRID = (1000, 1000), (3000, 950), 6
STEPS = (500, 1000, 2000, 3000)
METHODS = read_methods(["uniform", "contextual-gap", "kernel-ucb-mod"])
NO_FIELD = [channel.name for channel in CHANNELS if not channel.name.startswith("field")]
RUNGS: Mapping[str, Maker] = {
    "as flown": Spacecraft(),
    "no white noise, no rotor": Spacecraft(noise=0, rotor=0),
    "also no gain errors, no field channels": Spacecraft(
        noise=0, rotor=0, gain=0, telemetry=NO_FIELD
    ),
    "also no drift, currents alone": Spacecraft(
        noise=0, rotor=0, gain=0, drift=0, telemetry="currents"
    ),
}
ORDERS = ("time order", "random order")
TUNED = ("once for all", "per mission")


def parts_of(flown: Problem, order: str, seed: int) -> tuple[Problem, ...]:
    """Return the four parts of a mission."""
    if order == "random order":
        flown = flown.take(np.random.default_rng(seed).permutation(len(flown)))
    return flown.split(*HOLD_OUT, *EVALUATE)


def regrets(
    missions: Mapping[int, Problem], order: str, store: Store
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield each way of tuning with regrets by method, mission and number of steps."""
    parts = [parts_of(flown, order, seed) for seed, flown in missions.items()]
    grids = [thinned(Grid.of(part[0].contexts), GRID) for part in parts]
    held = [
        tune_all((part[0], part[1]), METHODS, grid, PosteriorWidth(1.0), 0, store=store)
        for part, grid in zip(parts, grids, strict=True)
    ]
    for tuned in TUNED:
        tasks = []
        for label, method in METHODS.items():
            tables = np.array([tunings[label].regret for tunings in held])
            common = np.broadcast_to(tables.mean(axis=0), tables.shape)
            for seed, table in enumerate(common if tuned == "once for all" else tables):
                row, column = np.unravel_index(table.argmin(), table.shape)
                settings = {
                    "kernel": grids[seed].kernels[row],
                    "ridge": grids[seed].ridges[column],
                    "method": method,
                    "scale": 1.0,
                    "checkpoints": list(STEPS),
                    "seed": seed,
                }
                pair = {"explore": parts[seed][2], "exploit": parts[seed][3]}
                tasks.append(Task(run_once, {**pair, **settings}))
        curves = [
            [reached["average_regret"] for reached in found["reached"]]
            for found in execute(tasks, store=store)
        ]
        yield tuned, np.reshape(curves, (len(METHODS), len(parts), len(STEPS)))


def ratios(regret: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each other method's mean regret over uniform's, and its error, by steps."""
    uniform, others = regret[0], regret[1:]
    level = uniform.mean(axis=0)
    error = (others - uniform).std(axis=1, ddof=1) / np.sqrt(len(uniform)) / level
    return others.mean(axis=1) / level, error


def draw(found: Mapping[tuple[str, str, str], np.ndarray]) -> Figure:
    """Draw Contextual-Gap over uniform exploration, a panel per order and way of tuning."""
    figure = Figure(figsize=(9, 6.4), layout="constrained")
    axes = figure.subplots(len(TUNED), len(ORDERS), sharex=True, sharey=True)
    for (rung, order, tuned), regret in found.items():
        ax = axes[TUNED.index(tuned), ORDERS.index(order)]
        place = list(RUNGS).index(rung)
        mean, error = (part[0] for part in ratios(regret))
        at = np.array(STEPS) * 1.03 ** (place - 1.5)  # apart, so that error bars do not overlap
        ax.errorbar(at, mean, error, marker="osD^v"[place], capsize=2, lw=1.5, label=rung)
        ax.set_title(f"{order}, tuned {tuned}", fontsize=10)
    for ax in axes.flat:
        ax.axhline(1, color="black", lw=0.8)
        ax.set_xscale("log")
        ax.set_xticks(STEPS, [str(step) for step in STEPS])
        ax.minorticks_off()
        ax.spines[["top", "right"]].set_visible(False)
    axes[0, 0].legend(frameon=False, fontsize=9)
    figure.supxlabel("exploration steps")
    figure.supylabel("regret of Contextual-Gap over that of uniform exploration")
    return figure


def main(asked: Any) -> None:
    seeds = range(asked.first_seed, asked.first_seed + asked.seeds)
    store, found = Store(asked.out), {}
    print(f"missions {seeds[0]} to {seeds[-1]}; regret over uniform's after {STEPS} steps")
    for rung, maker in RUNGS.items():
        rows = sum(HOLD_OUT) + sum(EVALUATE)
        missions = {seed: maker.sample(rows, seed=seed) for seed in seeds}
        for order in ORDERS:
            for tuned, regret in regrets(missions, order, store):
                found[rung, order, tuned] = regret
                uniform = " ".join(f"{value:.4f}" for value in regret[0].mean(axis=0))
                print(f"{rung}, {order}, tuned {tuned}: uniform {uniform}")
                for label, *row in zip(list(METHODS)[1:], *ratios(regret), strict=True):
                    cells = " | ".join(f"{m:.2f} ± {e:.2f}" for m, e in zip(*row, strict=True))
                    print(f"    {label:15} | {cells}", flush=True)
    for order in ORDERS:
        each = [ratios(regret) for (_, other, _), regret in found.items() if other == order]
        apart = np.array([((1 - mean[0]) / error[0]) for mean, error in each]).ravel()
        print(
            f"{order}: of {apart.size} ratios of contextual-gap {(apart > 2).sum()} are below 1 by "
            f"more than two standard errors, {(apart < -2).sum()} above"
        )
    if asked.figure is not None:
        draw(found).savefig(asked.figure, dpi=110)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("out/ladder"))
    parser.add_argument("--figure", type=Path)
    main(parser.parse_args())
