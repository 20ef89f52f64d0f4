from __future__ import annotations

import numpy as np
import pytest

from contextgap.studies.experiments import PAPER_BANDWIDTHS, PAPER_RIDGES, Grid, GridSearch
from contextgap.studies.report import tuning_heat_map


def make_tuning(best=(2, 5), value=0.002, shape=(10, 10)):
    grid = Grid.of(np.zeros((2, 1)), PAPER_BANDWIDTHS[: shape[0]], PAPER_RIDGES[: shape[1]])
    regret = np.random.default_rng(3).uniform(0.01, 1, shape)
    regret[best] = value
    return GridSearch(grid.kernels[best[0]], grid.ridges[best[1]], regret, grid)


def best_mark(ax):
    (mark,) = [line for line in ax.lines if line.get_gid() == "best setting"]
    return int(mark.get_ydata()[0]), int(mark.get_xdata()[0])


def test_panels_show_the_regrets_and_mark_the_best():
    tunings = {"uniform": make_tuning(), "$kernel": make_tuning((9, 0))}
    figure = tuning_heat_map(tunings)
    for ax, tuning in zip(figure.axes, tunings.values(), strict=False):
        np.testing.assert_allclose(ax.images[0].get_array(), tuning.regret)
        assert best_mark(ax) == np.unravel_index(tuning.regret.argmin(), tuning.regret.shape)
    notes = [ax.texts[0].get_text() for ax in figure.axes[:2]]
    assert notes == ["best 0.002", "best 0.002, on the edge"]


def test_a_cross_marks_what_was_chosen_on_other_rows():
    here, elsewhere = make_tuning((2, 5)), make_tuning((7, 1))
    ax = tuning_heat_map({"uniform": here}, chosen={"uniform": elsewhere}).axes[0]
    (cross,) = [line for line in ax.lines if line.get_gid() == "chosen"]
    assert (int(cross.get_ydata()[0]), int(cross.get_xdata()[0])) == (7, 1)
    assert best_mark(ax) == (2, 5)
    assert ax.texts[0].get_text() == f"best 0.002, tuned {here.regret[7, 1]:.2g}"


def test_ticks_are_the_grids_numbers():
    figure = tuning_heat_map({"uniform": make_tuning()})
    ax = figure.axes[0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0.071", "0.48", "3.3", "22"]
    assert [label.get_text() for label in ax.get_xticklabels()] == [
        "$10^{-4}$", "0.01", "1", "100"
    ]  # fmt: skip


@pytest.mark.parametrize("shape", [(1, 1), (2, 5), (10, 1)])
def test_small_grids_and_zero_regret_can_be_drawn(shape):
    zero = make_tuning((0, 0), 0.0, shape)
    figure = tuning_heat_map({"a": zero, "b": make_tuning()})
    assert [best_mark(ax) for ax in figure.axes[:2]] == [(0, 0), (2, 5)]
    assert best_mark(tuning_heat_map({"a": zero}).axes[0]) == (0, 0)


def test_something_must_have_been_tuned():
    with pytest.raises(ValueError, match="empty"):
        tuning_heat_map({})
