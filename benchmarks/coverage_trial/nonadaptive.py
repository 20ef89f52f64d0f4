"""Trial of the width for picks that do not depend on rewards: whether it holds, how tight it is.

``python benchmarks/coverage_trial/nonadaptive.py [runs] [steps]``, 40 and 150 by default.

The problems are those of ``trial.py``, so many runs of each of the 12 kinds. Arms are picked by
rules that look at no reward, and after the last step intervals and certificates at 60 contexts are
compared with the truth, for every width, at the ridge that suits ``TheoremWidth`` and at noise².
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.beliefs import Belief, NonadaptiveWidth, PosteriorWidth, TheoremWidth, Width
from contextgap.methods.explorers import (
    Explorer,
    MaxVariance,
    Moment,
    PlannedSampling,
    Uniform,
    explore,
)
from contextgap.models import Posterior, TrackedModel

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

EXPLORERS: dict[str, Explorer] = {
    "uniform": Uniform(),
    "max-variance": MaxVariance(),
    "planned-sampling": PlannedSampling(),
}
NOISE, NORM, FAILURE = 0.1, 1.0, 0.1
RIDGES = (0.2, NOISE**2)
_PLANNED = 60  # contexts to plan on
_ROUNDING = 1e-9


def widths(contexts: int) -> dict[str, Width]:
    """Return the widths on trial."""
    given = NOISE, NORM, FAILURE
    return {
        "theorem": TheoremWidth(*given),
        "theorem, tight": TheoremWidth(*given, tight=True),
        "nonadaptive": NonadaptiveWidth(*given, contexts),
        "nonadaptive, tight": NonadaptiveWidth(*given, contexts, tight=True),
    }


class Outcome(NamedTuple):
    """What a width says after the last step; the certificate and the regret are means."""

    outside: bool
    half_width: float
    certificate: float
    understated: bool
    regret: float


def explored(cell: CoverageCell, explorer: Explorer, seed: int) -> tuple[Posterior, FloatArray]:
    """Return the posterior at the evaluated contexts after the last step, and the truth there."""
    rng = random_source(cell, seed)
    points = draw_contexts(cell, rng)
    truth = draw_functions(cell.kernel, points, cell.n_arms, cell.norm, rng)
    observed = truth[: cell.steps] + draw_noise(cell, rng)
    known = rng.uniform(size=(_PLANNED, points.shape[1]))
    gram, diagonal = cell.kernel(points[: cell.steps], points), cell.kernel.diagonal(points)
    model = TrackedModel(gram, diagonal, cell.ridge, cell.n_arms)
    for step in range(cell.steps):
        together = np.vstack([known, points[step]])
        moment = Moment(
            lambda: Belief(model.posterior_now(), PosteriorWidth()),
            model.pulls.tolist(),
            step + 1,
            rng,
            ridge=cell.ridge,
            kernel_at=lambda _, together=together: cell.kernel(together, together),
        )
        arm = explore(moment, explorer, burn_in=1).arm
        model.observe(arm, float(observed[step, arm]))
    return model.posterior_from(cell.steps), truth[cell.steps :]


def outcome(posterior: Posterior, truth: FloatArray, width: Width) -> Outcome:
    """Compare intervals and certificates with the truth."""
    belief = Belief(posterior, width)
    certificate = np.maximum(belief.gap.min(axis=-1), 0.0)
    regret = truth.max(axis=-1) - truth[np.arange(len(truth)), belief.leader]
    return Outcome(
        bool((np.abs(truth - belief.mean) > belief.half_width + _ROUNDING).any()),
        float(belief.half_width.mean()),
        float(certificate.mean()),
        bool((regret > certificate + _ROUNDING).any()),
        float(regret.mean()),
    )


def rows(runs: int, steps: int) -> Iterator[tuple[str, float, str, list[Outcome]]]:
    """Yield the outcomes of every explorer, ridge and width, one for each run."""
    cells = coverage_cells([PosteriorWidth()], noise=NOISE, norm=NORM, steps=steps)
    tried = widths(cells[0].evaluated)
    for name, explorer in EXPLORERS.items():
        for ridge in RIDGES:
            found: dict[str, list[Outcome]] = {each: [] for each in tried}
            for cell in cells:
                for seed in range(2000, 2000 + runs):
                    posterior, truth = explored(replace(cell, ridge=ridge), explorer, seed)
                    for each, width in tried.items():
                        found[each].append(outcome(posterior, truth, width))
            for each, outcomes in found.items():
                yield name, ridge, each, outcomes


def main(runs: int, steps: int) -> None:
    print(f"{steps} steps, δ = {FAILURE}; a run fails if any of its intervals does")
    print("| picks | ridge | width | runs | failed | at most | half width | certificate | regret |")
    print("|---|---:|---|---:|---:|---:|---:|---:|---:|")
    for explorer, ridge, width, outcomes in rows(runs, steps):
        failed, count = sum(each.outside for each in outcomes), len(outcomes)
        if any(each.understated for each in outcomes):
            print("certificates failed", sum(each.understated for each in outcomes))
        half, bound, regret = (
            np.median([getattr(each, name) for each in outcomes])
            for name in ("half_width", "certificate", "regret")
        )
        high = binomial_limits(failed, count)[1]
        numbers = f"{failed} | {high:.2g} | {half:.3f} | {bound:.3f} | {regret:.4f} |"
        print(f"| {explorer} | {ridge:g} | {width} | {count} | {numbers}", flush=True)


if __name__ == "__main__":
    given = [int(text) for text in sys.argv[1:]]
    main(*given, *(40, 150)[len(given) :])
