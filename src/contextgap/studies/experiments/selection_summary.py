"""Summaries of algorithm selection: the closed gap, and regret against uniform exploration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.base.names import study_import

if TYPE_CHECKING:
    from pandas import DataFrame

YARDSTICK = "uniform"

_BY = ["scenario", "budget", "method", "choose"]
_PAIRED = ["fold", "seed"]


def summarise_selection(table: DataFrame) -> DataFrame:
    """Return a row per scenario, budget and method: means over all tested instances and seeds.

    The closed gap is that of the mean performances. Averaging it over folds instead would let a
    fold in which single and virtual best solver are nearly equal decide. ``regret_change`` is the
    regret over that of uniform exploration, on the same folds with the same seeds, less one; not a
    number where uniform exploration was not among the methods or missed nothing.

    Both are ratios of means; their standard errors, ``..._error``, are those of a ratio of paired
    values, over folds and seeds. Folds share training instances and seeds share folds, so these
    are too small rather than too large.

    Parameters
    ----------
    table
        What ``select_algorithms`` returned, or several such tables joined by ``pandas.concat``.
    """
    pandas = study_import("pandas")
    rows = [
        {**dict(zip(_BY, keys, strict=True)), **_summary(part, _yardstick(table, part))}
        for keys, part in table.groupby(_BY, sort=False)
    ]
    return pandas.DataFrame(rows)


def _yardstick(table: DataFrame, part: DataFrame) -> FloatArray | None:
    """Return the regret of uniform exploration where and when ``part`` was measured."""
    same = (table["scenario"] == part["scenario"].iloc[0]) & (
        table["budget"] == part["budget"].iloc[0]
    )
    uniform = table[same & (table["method"] == YARDSTICK) & ~table["choose"].astype(bool)]
    if not len(uniform):
        return None
    regret = uniform.set_index(_PAIRED)["average_regret"]
    found: FloatArray = regret.reindex(part.set_index(_PAIRED).index).to_numpy(dtype=float)
    return found


def _summary(part: DataFrame, uniform: FloatArray | None) -> dict[str, float]:
    means = ["average_regret", "single_best_regret", "selected", "single_best", "virtual_best"]
    means += ["expected_regret", "bound_held"]
    weights = part["instances"].to_numpy(dtype=float)
    values = {name: part[name].to_numpy(dtype=float) for name in means}
    row = {name: float(np.average(column, weights=weights)) for name, column in values.items()}
    regret = values["average_regret"]
    yardstick = np.full(len(part), np.nan) if uniform is None else uniform
    change = ratio(regret - yardstick, yardstick, weights)
    gap = values["single_best"] - values["virtual_best"]
    closed = ratio(values["single_best"] - values["selected"], gap, weights)
    paid, whole = part["runs_paid"], part["runs_in_table"]
    return {
        **row,
        "regret_change": change[0],
        "regret_change_error": change[1],
        "closed_gap": closed[0],
        "closed_gap_error": closed[1],
        "runs_paid": float(paid.mean()),
        "runs_in_table": float(whole.mean()),
        "share_of_runs": float(paid.sum() / whole.sum()),
        "folds": int(part["fold"].nunique()),
        "seeds": int(part["seed"].nunique()),
        "seconds": float(part["seconds"].mean()),
    }


def ratio(above: FloatArray, below: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Return the ratio of the weighted means of paired values, and its standard error.

    The error is the ratio estimator's: that of the mean of ``above − ratio · below``, over the mean
    of ``below``.

    Examples
    --------
    >>> ones = np.ones(2)
    >>> ratio(np.array([1.0, 3.0]), np.array([2.0, 6.0]), ones)  # always half
    (0.5, 0.0)
    """
    total = float((weights * below).sum())
    if not total or not np.isfinite(total):
        return float("nan"), float("nan")
    quotient = float((weights * above).sum()) / total
    count = len(above)
    if count < 2:
        return quotient, float("nan")
    spread = ((weights * (above - quotient * below)) ** 2).sum() * count / (count - 1)
    return quotient, float(np.sqrt(spread) / abs(total))
