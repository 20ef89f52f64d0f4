"""The paper's results, for comparison with ours.

Read off the figures of "Simple Regret Minimization for Contextual Bandits", section 6 and the
experimental appendix, to about ±5 %: average simple regret of the exploitation phase by exploration
steps. The synthetic study has one scale, and means of ten runs; the laboratory study four, each
curve a single run. Uniform exploration, which knows no scale, ends at 0.0445, 0.0355, 0.039 and
0.065 in its four figures: so much do single runs differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from contextgap.base.names import study_import
from contextgap.studies.experiments.reproduce import AUTHORS, PAPER
from contextgap.studies.report.summary import check_columns

if TYPE_CHECKING:
    from pandas import DataFrame

SYNTHETIC_STEPS = (500, 1000, 1500, 1950)
LABORATORY_STEPS = (500, 1000, 2000, 2950)
SYNTHETIC = MappingProxyType(
    {
        "contextual-gap": (0.053, 0.0122, 0.0048, 0.00215),
        "kernel-ucb-mod": (0.057, 0.0155, 0.0074, 0.0053),
        "kernel-ucb": (0.345, 0.065, 0.026, 0.0235),
        "uniform": (0.148, 0.093, 0.064, 0.037),
        "epsilon-greedy": (0.16, 0.102, 0.099, 0.098),
        "kernel-ts": (0.325, 0.086, 0.056, 0.043),
    }
)
LABORATORY = MappingProxyType(
    {
        0.1: {
            "contextual-gap": (0.137, 0.068, 0.0365, 0.0193),
            "kernel-ucb": (1.62, 0.96, 0.83, 0.63),
            "kernel-ucb-mod": (1.62, 0.96, 0.83, 0.63),
            "uniform": (0.545, 0.28, 0.094, 0.0445),
            "epsilon-greedy": (0.56, 0.385, 0.182, 0.125),
            "kernel-ts": (3.55, 1.56, 1.22, 1.2),
        },
        0.5: {
            "contextual-gap": (0.137, 0.068, 0.0365, 0.0193),
            "kernel-ucb": (1.6, 0.92, 0.82, 0.63),
            "kernel-ucb-mod": (1.58, 0.93, 0.82, 0.64),
            "uniform": (0.525, 0.178, 0.061, 0.0355),
            "epsilon-greedy": (0.53, 0.38, 0.215, 0.18),
            "kernel-ts": (3.25, 1.64, 1.26, 1.19),
        },
        1.0: {
            "contextual-gap": (0.178, 0.091, 0.033, 0.02),
            "uniform": (0.53, 0.215, 0.088, 0.039),
            "epsilon-greedy": (0.46, 0.38, 0.255, 0.18),
            "kernel-ts": (2.15, 1.37, 0.92, 0.485),
            "kernel-ucb": (1.6, 0.92, 0.85, 0.63),
        },
        2.0: {
            "contextual-gap": (0.13, 0.08, 0.0287, 0.0231),
            "kernel-ucb": (1.68, 0.91, 0.78, 0.48),
            "kernel-ucb-mod": (1.58, 0.93, 0.78, 0.47),
            "uniform": (1.18, 0.187, 0.0705, 0.065),
            "epsilon-greedy": (0.515, 0.243, 0.165, 0.083),
            "kernel-ts": (1.75, 1.4, 1.21, 0.58),
        },
    }
)
_Values = Mapping[float, Mapping[str, tuple[float, ...]]]
# By the paper's name for the study and by the name of the problem here.
_SYNTHETIC: tuple[tuple[int, ...], _Values] = (SYNTHETIC_STEPS, {1.0: SYNTHETIC})
_LABORATORY: tuple[tuple[int, ...], _Values] = (LABORATORY_STEPS, LABORATORY)
_STUDIES = {
    "synthetic": _SYNTHETIC,
    "sinusoids": _SYNTHETIC,
    "spacecraft-lab": _LABORATORY,
    "bench": _LABORATORY,
}


def published(study: str, scale: float = 1.0, protocol: str = PAPER) -> DataFrame | None:
    """Return the paper's values for a study, or None where it has none.

    Parameters
    ----------
    study
        The name in the records, such as ``"sinusoids"``.
    scale
        The scale of the intervals.
    protocol
        "paper" has the last point where the figure has it, after 1950 or 2950 steps; "authors"
        after 2000 or 3000, when the authors' code evaluates it.

    Returns
    -------
    table
        Columns method, exploration_steps, average_simple_regret.

    Examples
    --------
    >>> published("sinusoids")["average_simple_regret"].head(4).tolist()
    [0.053, 0.0122, 0.0048, 0.00215]
    >>> published("wine") is None
    True
    """
    steps, by_scale = _STUDIES.get(study, ((), {}))
    if scale not in by_scale:
        return None
    if protocol == AUTHORS:
        steps = (*steps[:-1], steps[-1] + 50)
    columns = ["method", "exploration_steps", "average_simple_regret"]
    rows = [
        (method, step, value)
        for method, values in by_scale[scale].items()
        for step, value in zip(steps, values, strict=True)
    ]
    table: DataFrame = study_import("pandas").DataFrame(rows, columns=columns)
    return table


def beside(records: DataFrame, study: str, protocol: str = PAPER) -> DataFrame:
    """Return our results beside the paper's, wherever both exist.

    Parameters
    ----------
    records
        From ``experiments.compare``; without a column ``scale``, of scale 1.
    study
        The name in the records, such as ``"sinusoids"``.
    protocol
        As of ``published``.

    Returns
    -------
    table
        Columns method, scale, steps, ours (mean over repetitions), std, published, and ratio of
        ours to published; no rows where the paper has no values.
    """
    check_columns("records", records, ("method", "checkpoint", "average_regret"))
    pandas = study_import("pandas")
    columns = ["method", "scale", "steps", "ours", "std", "published", "ratio"]
    if "study" in records.columns:
        records = records[records["study"] == study]
    if "scale" not in records.columns:
        records = records.assign(scale=1.0)
    keys = ["method", "scale", "checkpoint"]
    ours = records.groupby(keys)["average_regret"].agg(["mean", "std"])
    found = [
        theirs.assign(scale=scale)
        for scale in records["scale"].unique()
        if (theirs := published(study, scale, protocol)) is not None
    ]
    if not found:
        return pandas.DataFrame(columns=columns)
    names = {"checkpoint": "steps", "mean": "ours", "average_simple_regret": "published"}
    theirs = pandas.concat(found).rename(columns={"exploration_steps": "checkpoint"})
    both = theirs.merge(ours, on=keys).rename(columns=names)
    both["ratio"] = both["ours"] / both["published"]
    return both[columns]
