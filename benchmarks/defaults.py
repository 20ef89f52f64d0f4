"""A Learner without any setting against one tuned on held-out data, in the data's own units.

Tuning takes most of the time; ``--defaults-only`` leaves it out. Two versions are compared in pairs
by

    PYTHONPATH=OTHER_CHECKOUT/src python benchmarks/defaults.py --defaults-only --keep other.json
    python benchmarks/defaults.py --defaults-only --beside other.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from timing import row

import contextgap as cg
from contextgap.beliefs import PosteriorWidth
from contextgap.studies.experiments import run
from contextgap.studies.experiments.compare import Grid, tune_all
from contextgap.studies.experiments.paper import thinned
from contextgap.studies.problems import Classification, Problem, Sinusoids, Spacecraft

STEPS, EVALUATE = 1000, 500
METHOD = "contextual-gap"
Parts = tuple[Problem, Problem, Problem, Problem]


def simulated(maker: object, seed: int) -> Parts:
    rows = maker.sample(2 * (STEPS + EVALUATE), seed=seed)
    return rows.split(STEPS, EVALUATE, STEPS, EVALUATE)


def fixed(name: str, seed: int) -> Parts:
    """Quarters of a data set as it is, unscaled; rows to explore are visited with replacement."""
    rng = np.random.default_rng(seed)
    parts = Classification(name, scale=False).sample(seed=0).split(*[0.25] * 4, seed=seed)
    held, held_rest, explore, exploit = parts
    visits = (rng.integers(len(part), size=STEPS) for part in (held, explore))
    return held.take(next(visits)), held_rest, explore.take(next(visits)), exploit


PROBLEMS = {
    "sinusoids": lambda seed: simulated(Sinusoids(), seed),
    "spacecraft": lambda seed: simulated(Spacecraft(), seed),
    "digits": lambda seed: fixed("digits", seed),
    "wine": lambda seed: fixed("wine", seed),
    "breast_cancer": lambda seed: fixed("breast_cancer", seed),
    "iris": lambda seed: fixed("iris", seed),
}


def without_settings(explore: Problem, exploit: Problem, seed: int) -> float:
    learner = cg.Learner(explore.n_arms, seed=seed)
    for context, heard in zip(explore.contexts, explore.observations, strict=True):
        arm = learner.ask(context)
        learner.tell(context, arm, heard[arm])
    picks = learner.freeze().recommend(exploit.contexts).astype(np.intp)
    return float(exploit.regret(picks).mean())


def tuned(held: Problem, rest: Problem, explore: Problem, exploit: Problem, seed: int) -> float:
    methods = {METHOD: cg.METHODS[METHOD]}
    grid = thinned(Grid.of(held.contexts), 6)
    best = tune_all((held, rest), methods, grid, PosteriorWidth(1.0), seed)[METHOD]
    trace = run(
        explore,
        exploit,
        method=METHOD,
        kernel=best.kernel,
        ridge=best.ridge,
        checkpoints=[len(explore)],
        seed=seed,
    )
    return float(trace.average_regret[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--problems", default=",".join(PROBLEMS), help="comma-separated")
    parser.add_argument("--defaults-only", action="store_true", help="without settings only")
    parser.add_argument("--keep", type=Path, help="file for the regrets without settings, by seed")
    parser.add_argument("--beside", type=Path, help="such a file, to compare with in pairs")
    options = parser.parse_args()
    other = json.loads(options.beside.read_text()) if options.beside else {}
    kept: dict[str, list[float]] = {}
    print(f"average regret after {STEPS} steps, mean of {options.seeds} ± its error; the default")
    print(f"without settings, {METHOD} with those that are best on held-out data")
    print(f"{'problem':14} {'no setting':>18} {'tuned on held-out':>20}")
    for name in options.problems.split(","):
        parts_of = PROBLEMS[name]
        ends = []
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            parts = parts_of(seed)
            best = np.nan if options.defaults_only else tuned(*parts, seed)
            ends.append([without_settings(*parts[2:], seed), best])
        means = np.mean(ends, axis=0)
        errors = np.std(ends, axis=0, ddof=1) / np.sqrt(len(ends))
        cells = [f"{mean:.4f} ± {error:.4f}" for mean, error in zip(means, errors, strict=True)]
        print(f"{name:14} {cells[0]:>18} {cells[1]:>20}", flush=True)
        kept[name] = [default for default, _ in ends]
        if name in other:
            apart = np.subtract(kept[name], other[name])
            error = apart.std(ddof=1) / np.sqrt(len(apart))
            shown = f"{apart.mean():+.4f} ± {error:.4f}"
            print(f"  minus {np.mean(other[name]):.4f} of the other: {shown}")
        if not options.defaults_only:
            ratio = means[0] / means[1]
            print(row("  regret over that of the tuned one", ratio, "x", "<= 1.5", ratio <= 1.5))
    if options.keep:
        options.keep.write_text(json.dumps(kept))


if __name__ == "__main__":
    main()
