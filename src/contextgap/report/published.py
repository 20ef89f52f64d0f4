"""The paper's results, for comparison with ours.

Read off figure "Avg. Simple Regret Evaluation on Synthetic Dataset" of "Simple Regret Minimization
for Contextual Bandits", section 6, to about ±5 %: average simple regret of the exploitation phase
by exploration steps, at scale 1.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from contextgap.problems.extras import study_import
from contextgap.report.summary import check_columns

if TYPE_CHECKING:
    from pandas import DataFrame

SYNTHETIC_STEPS = (500, 1000, 1500, 1950)
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
# The paper's name for the study, and the name of the problem here.
_SYNTHETIC_NAMES = ("synthetic", "sinusoids")
_PUBLISHED_SCALE = 1.0


def published(study: str) -> DataFrame | None:
    """Return the paper's values for a study, or None where it has none.

    Parameters
    ----------
    study
        The name in the records, such as ``"sinusoids"``.

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
    if study not in _SYNTHETIC_NAMES:
        return None
    columns = ["method", "exploration_steps", "average_simple_regret"]
    rows = [
        (method, steps, value)
        for method, values in SYNTHETIC.items()
        for steps, value in zip(SYNTHETIC_STEPS, values, strict=True)
    ]
    table: DataFrame = study_import("pandas").DataFrame(rows, columns=columns)
    return table


def beside(records: DataFrame, study: str) -> DataFrame:
    """Return our results at scale 1 beside the paper's, wherever both exist.

    Parameters
    ----------
    records
        From ``experiments.compare``.
    study
        The name in the records, such as ``"sinusoids"``.

    Returns
    -------
    table
        Columns method, steps, ours (mean over repetitions), std, published, and ratio of ours to
        published; no rows where the paper has no values.
    """
    check_columns("records", records, ("method", "checkpoint", "average_regret"))
    pandas = study_import("pandas")
    columns = ["method", "steps", "ours", "std", "published", "ratio"]
    theirs = published(study)
    if theirs is None:
        return pandas.DataFrame(columns=columns)
    for column, value in (("study", study), ("scale", _PUBLISHED_SCALE)):
        if column in records.columns:
            records = records[records[column] == value]
    ours = records.groupby(["method", "checkpoint"])["average_regret"].agg(["mean", "std"])
    names = {
        "exploration_steps": "steps",
        "mean": "ours",
        "average_simple_regret": "published",
    }
    keys = ["method", "exploration_steps"]
    both = theirs.merge(ours, left_on=keys, right_on=["method", "checkpoint"]).rename(columns=names)
    both["ratio"] = both["ours"] / both["published"]
    return both[columns]
