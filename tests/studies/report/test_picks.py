from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.colors import to_hex

from contextgap.studies.report import figures, pick_histogram, pick_shares

from .conftest import make_picks


def test_shares_are_means_over_seeds_of_each_runs_share(picks):
    shares = pick_shares(picks)
    for method, rows in shares.groupby("method"):
        own = picks[picks.method == method].pivot(index="seed", columns="rank", values="count")
        share = (own.T / own.sum(axis=1)).T.to_numpy()
        pooled = np.column_stack([share[:, :3], share[:, 3:].sum(axis=1)])
        np.testing.assert_allclose(rows["share"], pooled.mean(axis=0))
        np.testing.assert_allclose(rows["std"], pooled.std(axis=0, ddof=1))
        assert rows["rank"].tolist() == ["best", "2nd", "3rd", "other 17"]


@pytest.mark.parametrize(
    ("arms", "names"),
    [
        (2, ["best", "2nd"]),
        (3, ["best", "2nd", "3rd"]),
        (4, ["best", "2nd", "3rd", "4th"]),
        (5, ["best", "2nd", "3rd", "other 2"]),
    ],
)
def test_only_several_arms_are_pooled(arms, names):
    assert pick_shares(make_picks(["uniform"], arms=arms))["rank"].tolist() == names


def test_bars_show_the_shares_in_the_methods_colours(picks):
    figure = pick_histogram(picks)
    shares = pick_shares(picks).groupby("method", sort=False)
    for ax, (method, rows) in zip(figure.axes, shares, strict=True):
        assert ax.get_title() == method
        np.testing.assert_allclose([bar.get_height() for bar in ax.patches], rows["share"])
        colour = figures.line_styles([method])[method].colour
        assert to_hex(ax.patches[0].get_facecolor()).upper() == colour


def test_one_seed_and_one_method_are_enough():
    figure = pick_histogram(make_picks(["uniform"], seeds=1, arms=3))
    assert len(figure.axes) == 1


def test_names_of_ranks_do_not_overlap(picks):
    figure = pick_histogram(picks, ranks=5)
    boxes = [label.get_window_extent() for label in figure.axes[0].get_xticklabels()]
    assert all(left.x1 <= right.x0 for left, right in pairwise(boxes))


def test_ranks_are_checked(picks):
    with pytest.raises(ValueError, match="1 to 10, got 0"):
        pick_histogram(picks, ranks=0)
