"""Do intervals hold with support points? ``python benchmarks/coverage_trial/bounded.py [runs]``.

The problems, the picks and what counts as a failure are those of ``trial.py``; beliefs are those of
the bounded model with few points, and of the exact one for comparison. Nothing is promised, so this
counts how often it holds all the same.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from contextgap.beliefs import Belief, TheoremWidth
from contextgap.methods.explorers import Moment, explore
from contextgap.methods.method import METHODS
from contextgap.models import BoundedModel, ExactModel, Model

sys.path.insert(0, str(Path(__file__).parents[1]))
from coverage_trial.cells import (
    CoverageCell,
    coverage_cells,
    draw_contexts,
    draw_functions,
    draw_noise,
    random_source,
)
from coverage_trial.trial import binomial_limits

POINTS = (5, 15, 60)
_EVERY = 5  # steps after which all intervals are looked at
_ROUNDING = 1e-9


def fails(cell: CoverageCell, model: Model, seed: int) -> bool:
    """Return whether a true value was ever outside its interval."""
    rng = random_source(cell, seed)
    points = draw_contexts(cell, rng)
    truth = draw_functions(cell.kernel, points, cell.n_arms, cell.norm, rng)
    observed = truth[: cell.steps] + draw_noise(cell, rng)
    arms, pulls = range(cell.n_arms), [0] * cell.n_arms
    for step in range(cell.steps + 1):
        if step % _EVERY == 0:
            belief = Belief(model.posterior(points[step:], arms), cell.width)
            error = np.abs(truth[step:] - belief.mean)
            if (error > belief.half_width + _ROUNDING).any():
                return True
        if step < cell.steps:
            here = Belief(model.posterior(points[step], arms), cell.width)
            moment = Moment(lambda here=here: here, pulls, step + 1, rng)
            arm = explore(moment, METHODS["contextual-gap"].explorer, burn_in=1)[0]
            model.observe(points[step], arm, float(observed[step, arm]))
            pulls[arm] += 1
    return False


def main(runs: int) -> None:
    for tight in (False, True):
        cells = coverage_cells([TheoremWidth(0.1, 1.0, 0.1, tight)])
        for points in (None, *POINTS):
            failed = 0
            for cell in cells:
                for seed in range(1000, 1000 + runs):
                    settings = cell.kernel, cell.ridge, cell.n_arms, 0.0
                    model: Model = ExactModel(*settings)
                    if points is not None:
                        model = BoundedModel(*settings, points=points)
                    failed += fails(cell, model, seed)
            count = runs * len(cells)
            high = binomial_limits(failed, count)[1]
            called = "exact" if points is None else f"{points} points"
            print(
                f"{'tight' if tight else 'theorem':8} {called:10} {failed} of {count} runs failed, "
                f"at most {high:.3f}; 0.1 is what the exact model promises",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
