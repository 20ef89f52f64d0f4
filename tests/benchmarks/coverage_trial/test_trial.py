"""The coverage experiment in small: the promises hold, and the experiment can tell when not."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import contextgap as cg
from contextgap.beliefs import TheoremWidth
from coverage_trial.cells import (
    KERNELS,
    CoverageCell,
    coverage_cells,
    draw_contexts,
    draw_functions,
    random_source,
    theorem_widths,
)
from coverage_trial.trial import binomial_limits, coverage, coverage_run, coverage_table

SMALL = {"steps": 60, "evaluated": 30, "checkpoints": 30}


@pytest.mark.slow
def test_values_leave_their_intervals_no_more_often_than_promised():
    table = coverage_table(coverage(coverage_cells(**SMALL), runs=5), by=["width"])
    assert len(table) == 4
    assert (table["runs"] == 5 * len(KERNELS) * 4).all()
    # 60 runs refute the promise if even the lower limit is above it.
    assert (table["outside_low"] <= table["failure_probability"]).all()
    assert (table["understated_low"] <= table["failure_probability"]).all()
    assert (table["certificate"] >= table["regret"]).all()
    wide, narrow = table["certificate"].iloc[:2]
    assert narrow < wide


@pytest.mark.parametrize(
    "width",
    [cg.PosteriorWidth(0.2), TheoremWidth(0.01, 0.1, 0.1)],
    ids=["no promise", "told a tenth of noise and norm"],
)
def test_a_width_that_is_too_narrow_is_found_out(width):
    cells = coverage_cells([width], kernels=KERNELS[:1], **SMALL)
    row = coverage_table(coverage(cells, runs=15), by=["width"]).iloc[0]
    assert row["runs"] == 60
    assert row["outside_low"] > 0.1
    assert row["understated_low"] > 0.1


def test_functions_have_the_norm_they_should(rng):
    for kernel in (*KERNELS, cg.Linear()):
        points = rng.uniform(size=(40, 2))
        values = draw_functions(kernel, points, 3, 1.7, rng)
        assert values.shape == (40, 3)
        # The norm of the interpolant is at most the function's, and near it for many points.
        gram = kernel(points, points) + 1e-9 * np.eye(40)
        squared = np.einsum("ia,ia->a", values, np.linalg.solve(gram, values))
        assert (squared <= 1.7**2 * 1.001).all()
        assert (squared >= 1.7**2 * 0.8).all()


def test_drifting_contexts_drift_and_the_evaluated_do_not(rng):
    cell = CoverageCell(
        kernel=KERNELS[0], width=theorem_widths()[0], order="drifting", steps=400, evaluated=400
    )
    points = draw_contexts(cell, rng)
    assert points.shape == (800, 2)
    assert points[:100].mean() < 0.3
    assert points[300:400].mean() > 0.7
    assert points[400:].mean() == pytest.approx(0.5, abs=0.05)
    assert ((points >= 0) & (points <= 1)).all()


def test_runs_repeat_and_run_anywhere():
    cells = coverage_cells(kernels=KERNELS[:1], orders=["iid"], **SMALL)[:2]
    here = coverage(cells, runs=2)
    with ThreadPoolExecutor(2) as executor:
        there = coverage(cells, runs=2, executor=executor)
    assert here.equals(there)
    assert here["step"].unique().tolist() == [30, 60]
    again = coverage_run(cells[0], 1)
    first = here[(here["seed"] == 1) & (here["width"] == str(cells[0].width))]
    assert again["certificate"] == first["certificate"].tolist()


def test_widths_share_problems_and_kinds_of_problems_do_not():
    cells = coverage_cells(noise_kinds=["gaussian"], **SMALL)
    records = coverage(cells, runs=1)
    last = records[records["step"] == 60]
    # At one width, no two kinds of problem may give the same number.
    for _, group in last.groupby("width"):
        assert group["certificate"].nunique() == len(KERNELS) * 2
    same = random_source(cells[0], 3).random(), random_source(cells[1], 3).random()
    assert same[0] == same[1]
    assert same[0] != random_source(cells[-1], 3).random()


def test_limits_are_clopper_and_pearsons():
    assert binomial_limits(0, 60) == pytest.approx((0.0, 1 - 0.025 ** (1 / 60)))
    low, high = binomial_limits(6, 60)
    assert low < 0.1 < high


def test_bad_settings_are_named():
    good = {"kernel": KERNELS[0], "width": cg.PosteriorWidth(1.0)}
    with pytest.raises(ValueError, match="noise_kind must be one of"):
        CoverageCell(**good, noise_kind="pink")
    with pytest.raises(ValueError, match="order must be one of"):
        CoverageCell(**good, order="sorted")
    with pytest.raises(ValueError, match="ridge must be positive"):
        CoverageCell(**good, ridge=0.0)
    with pytest.raises(TypeError, match="width must be a Width"):
        CoverageCell(kernel=KERNELS[0], width=1.0)
    with pytest.raises(ValueError, match="runs must be at least 1"):
        coverage(runs=0)
    with pytest.raises(ValueError, match="cells must hold at least one"):
        coverage([])
