"""The report of a run: learners without settings, beside their yardsticks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from contextgap.base.names import study_import
from contextgap.insight import plot
from contextgap.policy import Card, Policy
from contextgap.studies.experiments import Results
from contextgap.studies.experiments.study import Pair
from contextgap.studies.experiments.untouched import (
    FULL,
    SINGLE,
    marked,
    same_rows,
    summarise_untouched,
)
from contextgap.studies.report.curves import ONE_ERROR, regret_curves
from contextgap.studies.report.page import Report, Section
from contextgap.studies.report.picks import pick_histogram
from contextgap.studies.report.studies import TRIED, reading

if TYPE_CHECKING:
    from pandas import DataFrame

_YARDSTICKS = (
    "The thin grey lines are yardsticks. Full information is the same learner, told the rewards of "
    "all arms at every context. The best single arm is known in hindsight only."
)
_CAPTION = (
    "After the last step, best first. The error is one standard error of the average regret, and "
    "× uniform its ratio to that of uniform exploration."
)
_SEED = {"repetition": "seed"}  # as figures of other studies call it
_HEADINGS = {
    "average_regret": "average regret",
    "error": "± error",
    "worst_regret": "worst",
    "ratio_to_uniform": "× uniform",
}


def run_report(
    rounds: Sequence[Pair],
    results: Results,
    policy: Policy,
    card: Card | None,
    *,
    settings: Mapping[str, Any],
    seeds: Sequence[int],
) -> Report:
    """Return the report of a run; the policy is the first method's after the first round."""
    explore, exploit = rounds[0]
    records = results.records.rename(columns=_SEED).assign(
        method=results.records["method"].map(marked)
    )
    picks = pick_histogram(results.picks.rename(columns=_SEED))
    table = ranked(results.records)
    sections = [
        Section(
            "Average regret",
            f"{_reading(rounds, records)}\n\n{_YARDSTICKS}",
            [("Average simple regret.", regret_figure(records))],
            [(_CAPTION, table)],
        ),
        *_worst(records),
        Section(
            "What was tried",
            TRIED,
            [("Share of exploration steps by rank of the arm tried.", picks)],
        ),
        _policy_section(policy, card, exploit.inputs[0]),
    ]
    return Report(
        title=f"What you get: {explore.name}",
        summary=_summary(table, len(explore), len(exploit), settings),
        sections=sections,
        settings={
            "problem": repr(explore),
            "explored, then deployed on": f"{len(explore)} rows, {len(exploit)} rows",
            "repetitions": len(rounds),
            "learner": dict(settings) or "no settings",
        },
        seeds=seeds,
        timings=results.timings,
    )


def _worst(records: DataFrame) -> list[Section]:
    """Return the section on the worst regret; none where it is always the same, as of classes."""
    if records["worst_regret"].nunique() == 1:
        return []
    text = "The highest simple regret over all contexts deployed on."
    figure = regret_figure(records, "worst_regret")
    return [Section("Worst regret", text, [("Worst simple regret.", figure)])]


def regret_figure(records: DataFrame, statistic: str = "average_regret") -> Figure:
    """Draw regret by steps with bands of one standard error, and the best single arm's level.

    Parameters
    ----------
    records
        From ``experiments.untouched``, with the repetition in a column ``seed``.
    statistic
        ``"average_regret"`` or ``"worst_regret"``.
    """
    single = records["method"] == SINGLE
    level = float(records.loc[single, statistic].mean()) if single.any() else None
    return regret_curves(records[~single], statistic, single_arm=level, band=ONE_ERROR)


def ranked(records: DataFrame) -> DataFrame:
    """Return the regret after the last step, best first, with names and headings for people."""
    table = summarise_untouched(records)
    table["method"] = table["method"].map(marked)
    return table.dropna(axis="columns", how="all").rename(columns=_HEADINGS)


def _reading(rounds: Sequence[Pair], records: DataFrame) -> str:
    text = reading(records, ONE_ERROR)
    if not same_rows(rounds):
        return text
    return (
        f"{text} The rows are in time order and the same in every repetition, so the bands show "
        "the methods' own randomness only."
    )


def _summary(table: DataFrame, explored: int, deployed: int, settings: Mapping[str, Any]) -> str:
    how = "the settings below" if settings else "nothing set and all scales learnt from the rewards"
    regret = dict(zip(table["method"], table["average regret"], strict=True))
    best = next(name for name in regret if name not in (FULL, SINGLE))
    beside = "; ".join(f"{name} {regret[name]:.3g}" for name in (FULL, SINGLE) if name in regret)
    return (
        f"Every method explored {explored} contexts, with {how}, and was then deployed on "
        f"{deployed} others without feedback. Lowest average regret: {best}, {regret[best]:.3g}"
        + (f" ({beside})." if beside else ".")
    )


def _policy_section(policy: Policy, card: Card | None, context: Any) -> Section:
    drawing = Figure(figsize=(5.6, 3.6), layout="constrained")
    plot.decision(policy.decide(context), drawing.add_subplot())
    believed = (
        "What it believes about every arm at the first context to deploy on; the shaded arm is "
        "deployed."
    )
    text = [
        f"The file policy.cgap holds what {marked(policy.method.name)} learnt in the first "
        "exploration."
    ]
    tables = []
    if card is not None:
        text += [f"Warning: {warning}." for warning in card.warnings]
        rows = study_import("pandas").DataFrame(card.rows(), columns=["quantity", "estimate"])
        tables.append((f"Its score card: {card.basis}.", rows))
    return Section("The policy", "\n\n".join(text), [(believed, drawing)], tables)
