from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.collections import PolyCollection

from contextgap.studies.report import (
    figures,
    history_comparison,
    published,
    regret_curves,
    scale_panels,
)
from contextgap.studies.report.figures import apart

from .conftest import make_records


def lines(ax):
    return {
        line.get_gid().removeprefix("mean of "): line
        for line in ax.lines
        if (line.get_gid() or "").startswith("mean of")
    }


def bands(ax):
    return [c for c in ax.collections if isinstance(c, PolyCollection)]


def test_lines_are_means_and_bands_half_a_standard_deviation(records):
    ax = regret_curves(records).axes[0]
    for (method, line), band in zip(lines(ax).items(), bands(ax), strict=True):
        table = records[records.method == method].pivot(
            index="checkpoint", columns="seed", values="average_regret"
        )
        values = table.to_numpy()
        mean = values.sum(axis=1) / 3
        half = np.sqrt(((values - mean[:, None]) ** 2).sum(axis=1) / 2) / 2
        assert line.get_xdata().tolist() == table.index.tolist()
        np.testing.assert_allclose(line.get_ydata(), mean)
        corners = band.get_paths()[0].vertices
        for x, low, high in zip(table.index, mean - half, mean + half, strict=True):
            found = corners[corners[:, 0] == x][:, 1]
            np.testing.assert_allclose([found.min(), found.max()], [low, high])


def test_methods_keep_their_colours_in_every_figure(records):
    few = records[records.method.isin(["uniform", "kernel-ts"])]
    for figure in (regret_curves(records), regret_curves(few, "worst_regret"), scale_panels(few)):
        for method, line in lines(figure.axes[0]).items():
            assert line.get_color() == figures.line_styles([method])[method].colour
            assert figure.axes[0].get_yscale() == "log"


def test_worst_regret_is_drawn_when_asked_for(records):
    ax = regret_curves(records, "worst_regret", title="$worst").axes[0]
    assert min(line.get_ydata().min() for line in lines(ax).values()) >= 1
    assert ax.get_ylabel() == "worst simple regret"
    assert ax.get_title(loc="left") == "$worst"


def test_published_points_are_hollow_and_in_the_methods_colour(records):
    ax = regret_curves(records, published=published("sinusoids")).axes[0]
    hollow = [line for line in ax.lines if line.get_markerfacecolor() == "none"]
    expected = published("sinusoids").groupby("method", sort=False)
    assert len(hollow) == 6
    for line, (method, rows) in zip(hollow, expected, strict=True):
        assert line.get_markeredgecolor() == figures.line_styles([method])[method].colour
        np.testing.assert_allclose(line.get_ydata(), rows.average_simple_regret)
        assert not line.get_clip_on()  # the last one may lie on the border
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["published"]


def test_published_points_beyond_the_records_are_left_out():
    short = make_records(methods=["uniform"], stops=(500, 1000))
    ax = regret_curves(short, published=published("sinusoids")).axes[0]
    (hollow,) = [line for line in ax.lines if line.get_markerfacecolor() == "none"]
    assert hollow.get_xdata().tolist() == [500, 1000]


def test_zero_regret_has_a_place_below_all_else(records):
    records.loc[(records.method == "uniform") & (records.checkpoint > 600), "average_regret"] = 0
    figure = regret_curves(records)
    ax = figure.axes[0]
    zero = lines(ax)["uniform"].get_ydata()[-1]
    assert ax.get_ylim()[0] < zero < records.average_regret[records.average_regret > 0].min()
    names = {label.get_text(): label.get_position()[1] for label in ax.get_yticklabels()}
    assert names["0"] == pytest.approx(zero)
    assert max(ax.get_yticks()) <= ax.get_ylim()[1]


def test_nothing_but_zeros_can_be_drawn(records):
    records["average_regret"] = 0.0
    for draw in (regret_curves, scale_panels, history_comparison):
        assert lines(draw(records).axes[0])


def test_one_seed_has_no_band_and_one_method_is_enough():
    figure = regret_curves(make_records(methods=["uniform"], seeds=1))
    assert not bands(figure.axes[0])
    assert list(lines(figure.axes[0])) == ["uniform"]


def test_one_checkpoint_and_equal_values_can_be_drawn():
    records = make_records(stops=(500,)).assign(average_regret=0.1)
    assert lines(regret_curves(records).axes[0])


def test_names_at_line_ends_neither_overlap_nor_leave_the_figure():
    labels = [*figures.line_styles(["a$b", "_hidden", "<script>", "x" * 60]), *figures._FIXED]
    figure = regret_curves(make_records(methods=labels))
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    assert len(boxes) == len(labels)
    assert all(box.x1 <= figure.bbox.x1 and box.y0 >= 0 for box in boxes)
    boxes.sort(key=lambda box: box.y0)
    assert all(low.y1 <= high.y0 for low, high in pairwise(boxes))


def test_names_stay_where_they_are_when_there_is_room():
    wanted = np.array([0.9, 0.1, 0.5])
    np.testing.assert_allclose(apart(wanted, 0.1), wanted)


def test_crowded_names_keep_order_and_gap():
    wanted = np.random.default_rng(0).uniform(0, 0.2, 8)
    placed = apart(wanted, 0.1)
    assert np.argsort(placed).tolist() == np.argsort(wanted).tolist()
    assert np.diff(np.sort(placed)).min() >= 0.1 - 1e-12
    assert placed.min() >= 0
    assert np.ptp(apart(wanted, 0.5)) == pytest.approx(3.5)


@pytest.mark.parametrize("scales", [(1.0,), (0.5, 1.0, 2.0), (0.1, 0.5, 1, 2), (1, 2, 3, 4, 5)])
def test_one_panel_per_scale_with_shared_axes_and_one_legend(scales):
    records = make_records(scales=scales)
    figure = scale_panels(records)
    shown = [ax for ax in figure.axes if ax.axison]
    assert [ax.get_title() for ax in shown] == [f"scale {scale:g}" for scale in scales]
    assert len({(ax.get_xlim(), ax.get_ylim()) for ax in shown}) == 1
    assert len(figure.legends) == 1
    for ax, scale in zip(shown, scales, strict=True):
        rows = records[(records.scale == scale) & (records.method == "uniform")]
        expected = rows.groupby("checkpoint").average_regret.mean()
        np.testing.assert_allclose(lines(ax)["uniform"].get_ydata(), expected)


def test_history_curves_that_coincide_are_all_visible():
    labels = ["last step", "last 25 steps", "all steps"]
    figure = history_comparison(make_records(methods=labels))
    ax = figure.axes[0]
    widths = [line.get_linewidth() for line in lines(ax).values()]
    assert widths == sorted(set(widths), reverse=True)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == labels


def test_unlike_runs_are_not_averaged():
    with pytest.raises(ValueError, match=r"one scale, got \[1.0, 2.0\]"):
        regret_curves(make_records(scales=(1.0, 2.0)))


def test_missing_columns_and_rows_are_named(records):
    with pytest.raises(ValueError, match="'best_regret'"):
        regret_curves(records, "best_regret")
    with pytest.raises(ValueError, match="empty"):
        regret_curves(records[:0])
    with pytest.raises(ValueError, match="'scale'"):
        scale_panels(records.drop(columns="scale"))


def test_bands_may_be_one_standard_error(records):
    ax = regret_curves(records, band="one standard error").axes[0]
    for method, band in zip(lines(ax), bands(ax), strict=True):
        table = records[records.method == method].pivot(
            index="checkpoint", columns="seed", values="average_regret"
        )
        values = table.to_numpy()
        mean, error = values.mean(axis=1), values.std(axis=1, ddof=1) / np.sqrt(3)
        corners = band.get_paths()[0].vertices
        for x, low, high in zip(table.index, mean - error, mean + error, strict=True):
            found = corners[corners[:, 0] == x][:, 1]
            np.testing.assert_allclose([found.min(), found.max()], [low, high])
    with pytest.raises(ValueError, match="band must be one of"):
        regret_curves(records, band="two")
