"""The report of the coverage experiment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from contextgap.base.components import study_import
from contextgap.studies.report import figures as style
from contextgap.studies.report.figures import end_labels
from contextgap.studies.report.page import Report, Section
from coverage_trial.trial import coverage_table

if TYPE_CHECKING:
    from pandas import DataFrame


def certificate_curves(records: DataFrame) -> Figure:
    """Draw the median certificate of every width and the worst true regret, by steps."""
    figure = Figure(figsize=(style.WIDTH * 1.15, 4.6), layout="constrained")
    ax = figure.add_subplot()
    widths = list(dict.fromkeys(records["width"]))
    names = {width: short_width(width) for width in widths}
    looks = style.line_styles(names.values())
    ends: dict[str, tuple[float, float]] = {}
    for width in widths:
        rows = records[records["width"] == width]
        curve = rows.groupby("step")["certificate"].median()
        look = looks[names[width]]
        ax.plot(curve.index, curve, color=look.colour, ls=look.line, marker=look.marker, lw=2.2)
        ends[names[width]] = (float(curve.index[-1]), float(curve.iloc[-1]))
    worst = records.groupby("step")["worst_regret"].median()
    ax.plot(worst.index, worst, color=style.INK, ls=":", lw=1.6)
    ax.annotate(
        "worst true regret (median run)",
        (float(worst.index[-1]), float(worst.iloc[-1])),
        (0, 6),
        textcoords="offset points",
        ha="right",
        size=style.SMALL,
    )
    style.dress(ax)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("exploration steps")
    ax.set_ylabel("median certificate")
    ax.grid(axis="y", color=style.FAINT, lw=0.8)
    end_labels(ax, ends)
    return figure


def short_width(width: str) -> str:
    """Return a width's name for a figure."""
    if not width.startswith("TheoremWidth"):
        return "scale · std, scale 1" if width == "PosteriorWidth(scale=1.0)" else width
    kind = "tight" if "tight=True" in width else "theorem"
    failure = width.partition("failure_probability=")[2].partition(",")[0].rstrip(")")
    return f"{kind}, δ = {failure}"


def coverage_report(records: DataFrame, stops: DataFrame, promised: float, budget: int) -> Report:
    """Return the report; ``promised`` and ``budget`` are those of the stopping trial."""
    pooled = coverage_table(records, by=("width",))
    saved = 1 - stops["steps"].mean() / budget
    facts = {
        "runs": len(stops),
        "stopped before the budget": stops["stopped"].mean(),
        "promise kept at all certified contexts": stops["kept"].mean(),
        "promised": 1 - promised,
        "contexts within the tolerance": stops["within"].mean(),
        "median steps": stops["steps"].median(),
        "exploration saved": saved,
    }
    pandas = study_import("pandas")
    table = pandas.DataFrame({"": list(facts), "value": list(facts.values())})
    return Report(
        title="Do the intervals hold?",
        summary=(
            "Random problems that meet Theorem 4.1's assumptions exactly, arms picked adaptively "
            "by Contextual-Gap. A run fails if any true value ever leaves its interval, at any "
            "step and any context; a certificate fails if it is ever below the true regret."
        ),
        sections=[
            Section(
                "Coverage",
                "Shares of runs that failed, with 95 % Clopper–Pearson limits, beside what was "
                "promised; all kernels, kinds of noise and orders of contexts pooled.",
                tables=[("By width.", pooled), ("Every cell.", coverage_table(records))],
            ),
            Section(
                "How conservative",
                "Median certificate over contexts and runs, against the true regret.",
                [("Certificates by exploration steps.", certificate_curves(records))],
            ),
            Section(
                "Stopping",
                "Explorations stopped once 95 % of reference contexts were certified, with the "
                "tighter width.",
                tables=[("What stopping early gave.", table)],
            ),
        ],
    )
