from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from contextgap.studies.report.figures import cpu_figure, selection_figure
from contextgap.studies.report.page import svg_text, write_report
from contextgap.studies.report.studies import selection_report

CHOICES = [("uniform", False), ("contextual-gap", False), ("contextual-gap", True), ("$x$", False)]


def make_summary(scenarios=("A", "B"), budgets=(1.0,)):
    rng = np.random.default_rng(3)
    rows = [
        {
            "scenario": scenario,
            "budget": budget,
            "method": method,
            "choose": choose,
            "average_regret": 0.2,
            "selected": 90.0,
            "single_best": 100.0,
            "virtual_best": 50.0,
            "regret_change": 0.0 if method == "uniform" else rng.uniform(-0.4, 0.1),
            "regret_change_error": 0.0 if method == "uniform" else 0.03,
            "closed_gap": rng.uniform(-0.2, 0.9),
            "closed_gap_error": 0.05,
            "runs_paid": 100.0 * budget,
            "runs_in_table": 800.0,
            "share_of_runs": budget / 8,
        }
        for scenario in scenarios
        for budget in budgets
        for method, choose in CHOICES
    ]
    return pd.DataFrame(rows)


def points(ax):
    """The points with error bars, in the order they were drawn."""
    return [container.lines[0].get_xydata() for container in ax.containers]


def test_one_budget_gives_a_line_per_method():
    summary = make_summary()
    figure = selection_figure(summary)
    assert len(figure.axes) == 2 * 2
    for number, scenario in enumerate("AB"):
        change, gap = figure.axes[2 * number : 2 * number + 2]
        rows = summary[summary["scenario"] == scenario]
        others = rows[rows["method"] != "uniform"]  # uniform's own change is the line at 0
        x = np.concatenate(points(change))[:, 0]
        np.testing.assert_allclose(x, 100 * others["regret_change"])
        np.testing.assert_allclose(np.concatenate(points(gap))[:, 0], rows["closed_gap"])
        names = [text.get_text() for text in change.get_yticklabels()]
        assert names == ["uniform", "contextual-gap", "contextual-gap, choosing", "$x$"]


def test_several_budgets_give_curves_over_the_share_of_runs():
    summary = make_summary(budgets=(4.0, 0.25, 1.0))
    figure = selection_figure(summary)
    gap = figure.axes[1]
    rows = summary[summary["scenario"] == "A"]
    for (method, choose), curve in zip(CHOICES, points(gap), strict=True):
        mine = rows[(rows["method"] == method) & (rows["choose"] == choose)]
        mine = mine.sort_values("budget")
        np.testing.assert_allclose(curve, mine[["share_of_runs", "closed_gap"]])
    low, high = gap.get_ylim()
    assert low < (rows["closed_gap"] - 0.1).min()  # bars of two standard errors
    assert high > (rows["closed_gap"] + 0.1).max()
    assert gap.get_xlim()[1] > 0.5


@pytest.mark.parametrize("budgets", [(1.0,), (1.0, 2.0)])
def test_errors_that_are_not_known_are_left_out(budgets):
    summary = make_summary(("A",), budgets).assign(closed_gap_error=np.nan, regret_change=np.nan)
    assert "<svg" in svg_text(selection_figure(summary))


def test_what_is_no_summary_is_refused():
    with pytest.raises(ValueError, match="summary must have the column 'share_of_runs'"):
        selection_figure(make_summary().drop(columns="share_of_runs"))


def test_the_report_has_a_table_per_scenario(tmp_path):
    summary = make_summary()
    records = pd.DataFrame(
        {"method": ["uniform"], "choose": [False], "seed": [7], "seconds": [1.5]}
    )
    page = write_report(selection_report(summary, records), tmp_path / "report.html").read_text()
    assert page.count("virtual best solver") >= 2
    for name in ("A.", "B.", "contextual-gap, choosing", "$x$"):
        assert name in page


def test_cpu_time_has_a_panel_for_each_statistic():
    drawn = {"regret": "regret", "par10": "PAR10, s", "closed_gap": "closed gap"}
    rows = [
        {"scenario": "A", "method": method, "cpu": cpu, "spent": cpu, **values, **errors}
        for method in ("race for PAR10", "extra-trees")
        for cpu in (0.02, 0.05)
        for values in [{name: (1 + place) * cpu for place, name in enumerate(drawn)}]
        for errors in [{f"{name}_error": 0.001 for name in drawn}]
    ]
    axes = cpu_figure(pd.DataFrame(rows)).axes
    assert [ax.get_ylabel() for ax in axes] == list(drawn.values())
    for place, ax in enumerate(axes):
        drawn_at = ax.get_lines()[0].get_ydata(orig=False)
        np.testing.assert_allclose(drawn_at, [(1 + place) * cpu for cpu in (0.02, 0.05)])
