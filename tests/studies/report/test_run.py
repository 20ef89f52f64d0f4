"""The figures and tables of a run's report."""

from __future__ import annotations

import numpy as np

from contextgap.methods.method import read_method
from contextgap.studies.report import figures
from contextgap.studies.report.studies import _worst, ranked, regret_figure

from .conftest import make_records
from .test_curves import bands, lines

DEFAULT = read_method("auto").name


def make(*methods):
    return make_records([*methods, "full information", "best single arm"])


def test_yardsticks_are_plainly_different_lines():
    records = make(DEFAULT, "uniform")
    ax = regret_figure(records).axes[0]
    drawn = lines(ax)
    assert list(drawn) == [DEFAULT, "uniform", "full information"]
    assert len(bands(ax)) == 2  # of the methods alone
    assert drawn["full information"].get_linewidth() < drawn["uniform"].get_linewidth()
    (level,) = [line for line in ax.lines if line.get_gid() == "best single arm"]
    single = records[records["method"] == "best single arm"]["average_regret"].mean()
    np.testing.assert_allclose(level.get_ydata(), single)
    assert drawn["full information"].get_color() == level.get_color()
    named = {text.get_text() for text in ax.texts}
    assert {DEFAULT, "uniform", "full information", "best single arm"} <= named


def test_a_run_without_yardsticks_can_be_drawn():
    ax = regret_figure(make_records(["uniform"]), "worst_regret").axes[0]
    assert list(lines(ax)) == ["uniform"]


def test_the_default_method_looks_as_it_does_elsewhere():
    name = f"{DEFAULT} (default)"
    assert figures.line_styles([name])[name] == figures.line_styles([DEFAULT])[DEFAULT]


def test_the_table_is_for_people():
    records = make(DEFAULT, "uniform").rename(columns={"seed": "repetition"})
    table = ranked(records)
    assert list(table.columns) == ["method", "average regret", "± error", "worst", "× uniform"]
    assert f"{DEFAULT} (default)" in set(table["method"])
    assert table["average regret"].is_monotonic_increasing
    one = ranked(records[(records.repetition == 0) & (records.method == DEFAULT)])
    assert list(one.columns) == ["method", "average regret", "worst"]


def test_the_worst_regret_is_left_out_where_it_is_always_the_same():
    records = make(DEFAULT, "uniform")
    (section,) = _worst(records)
    assert section.title == "Worst regret"
    assert _worst(records.assign(worst_regret=1.0)) == []
