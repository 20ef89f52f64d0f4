from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from compression_figure import compression_curve, readable_bytes
from contextgap.export.compression import CompressionReport, CurveRow

CURVE = (
    CurveRow(4, 900, 0.55),
    CurveRow(32, 4296, 0.76),
    CurveRow(256, 29384, 0.982),
    CurveRow(578, 65448, 0.991),
    CurveRow(3000, 6_375_136, 1.0),
)
REPORT = CompressionReport(
    agreement=0.982,
    agreement_fitted=0.99,
    added_regret=1e-4,
    added_regret_bound=1e-3,
    points=(100, 100, 56),
    points_before=(1000, 1000, 1000),
    bytes=29384,
    bytes_before=6_375_136,
    recommender="HighestMean",
    fitted="mean",
    curve=CURVE,
)


def test_the_curve_and_the_chosen_size_are_drawn_and_the_original_is_not():
    figure = compression_curve(REPORT, bytes=65536, agreement=0.97)
    (ax,) = figure.axes
    curve, chosen, size, share = ax.lines
    np.testing.assert_array_equal(curve.get_xdata(), [row.bytes for row in CURVE[:-1]])
    np.testing.assert_array_equal(curve.get_ydata(), [row.agreement for row in CURVE[:-1]])
    assert (chosen.get_xdata()[0], chosen.get_ydata()[0]) == (29384, 0.982)
    assert set(size.get_xdata()) == {65536}
    assert set(share.get_ydata()) == {0.97}
    assert [text.get_text() for text in ax.texts] == ["64 kB", "97 %"]
    assert ax.get_xscale() == "log"
    assert ax.get_xlim()[1] < 6_375_136
    assert ax.get_xlabel().endswith("6.08 MB")


def test_nothing_is_marked_unless_wanted():
    (ax,) = compression_curve(REPORT).axes
    assert len(ax.lines) == 2
    assert not ax.texts


def test_several_policies_are_drawn_alike():
    other = replace(REPORT, bytes_before=7_000_000)
    (ax,) = compression_curve([REPORT, other]).axes
    assert len({line.get_color() for line in ax.lines[::2]}) == 1
    assert ax.get_xlabel().endswith("6.08 MB to 6.68 MB")


def test_ticks_are_whole_powers_of_two_that_do_not_overlap():
    figure = compression_curve(REPORT, bytes=65536)
    (ax,) = figure.axes
    labels = [label for label in ax.get_xticklabels() if label.get_text()]
    assert [label.get_text() for label in labels] == [
        "1 kB", "2 kB", "4 kB", "8 kB", "16 kB", "32 kB", "64 kB",
    ]  # fmt: skip
    boxes = [label.get_window_extent() for label in labels]
    assert all(a.x1 <= b.x0 for a, b in pairwise(boxes))


@pytest.mark.parametrize("reports", [[], [replace(REPORT, curve=CURVE[-1:])]])
def test_without_a_curve_there_is_nothing_to_draw(reports):
    with pytest.raises(ValueError, match="reports must be of compressed policies"):
        compression_curve(reports)


@pytest.mark.parametrize(
    ("size", "text"),
    [(512, "512 B"), (1024, "1 kB"), (65536, "64 kB"), (6_375_136, "6.08 MB"), (3e10, "27.9 GB")],
)
def test_bytes_are_readable(size, text):
    assert readable_bytes(size) == text
