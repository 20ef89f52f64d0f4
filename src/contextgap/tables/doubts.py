"""What is doubtful in what a learner is told: columns, values far away, arms.

A single number may predict everything that one arm gives where there is no noise. But arms differ,
and a context does not know which one will be tried. So a column seems to reveal the reward, as an
outcome that is written down afterwards does, only if it orders the rewards of all arms together.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.labels import Label
from contextgap.tables.cells import is_blank, is_date, is_missing
from contextgap.tables.columns import Category, Number, all_numbers, guess_kind
from contextgap.tables.contexts import ContextSchema, Encoded
from contextgap.tables.table import Table

_FEWEST = 30  # rows, below which nothing is concluded
_NEARLY = 0.9  # of the rows
_NUMBER = re.compile(r"[-+]?\d*[.,]?\d+")
_OTHER_DATE = re.compile(r"\s*\d{1,4}([/.])\d{1,2}\1\d{1,4}\b")
_LEAVE = "leave it out if it is not context"
_RARE = 10  # times as many rows that an arm has whose label another one may have meant
_MOST = 4096  # contexts by which it is judged what is usual
# Names of propensities, and names that other probabilities have too.
_PROPENSITY = re.compile(r"propensit(y|ies)|p_?scores?|(action|arm|logging)_?prob\w*")
_PERHAPS = re.compile(r"p|probs?|probabilit(y|ies)|chances?|scores?|weights?")
_LIKE_INVERSES = 0.15  # relative difference between the number of arms and the average of 1/p
# Interquartile ranges beyond which a value is no usual one. So far out are placeholders and lost
# decimal points; tails of log-normal columns with deviation 2 are not.
_REACH = 50.0
_PERFECT = 1 - 1e-12
_IN_ORDER = 0.995  # of the pairs of rows, by a category or flag
_IN_ORDER_NUMBERS = 0.999  # by a number: arms that hardly differ come close to that
_COMPARED = 600  # rows
_OTHERS = 5  # rows that must differ from the most frequent value: fewer may do so by chance


def warn_of_doubts(
    contexts: Any,
    wanted: Sequence[str] | None,
    rewards: FloatArray,
    arms: Sequence[int] | IntArray,
    *,
    guessed: bool = True,
    numbers: FloatArray | None = None,
) -> None:
    """Warn of columns that look like ids, never change, copy the arm, or give the reward away.

    And of propensities, of placeholders and, if it was ``guessed`` what columns hold, of numbers
    that are text. Of columns without names, given as ``numbers``, values far away alone are named.
    """
    if len(rewards) < _FEWEST or isinstance(contexts, Encoded):
        return
    if wanted is None:
        if numbers is not None and (limits := far_beyond(numbers)) is not None:
            _warn_of_far(numbers, limits, ContextSchema(numbers.shape[1]))
        return
    table = Table.of(contexts)
    if table.single or table.names is None:
        return
    for name, column in zip(wanted, table.picked(wanted), strict=True):
        if _is_propensity(name, column, np.asarray(arms)):
            doubts: Iterable[str] = [_AS_PROPENSITY]
        else:
            found = _doubts(column, rewards, np.asarray(arms))
            doubts = (f"{doubt}; {_LEAVE}" for doubt in found)
        for doubt in (*doubts, *_misread(column, guessed)):
            _warn(f"the column {name!r} {doubt}")


def warn_of_arms(labels: Sequence[Label], counts: IntArray) -> None:
    """Warn of a log with one arm only, and of labels that differ by case or spaces alone."""
    rows = int(counts.sum())
    tried = [place for place, count in enumerate(counts.tolist()) if count]
    if len(tried) == 1 and len(labels) > 1 and rows >= _FEWEST:
        _warn(
            f"all {rows} rows tried the arm {labels[tried[0]]!r}: nothing is known of other arms; "
            "tell rows of these too, or check which arms the rows name"
        )
    by_text: dict[str, list[int]] = {}
    for place in tried:
        if isinstance(text := labels[place], str):
            by_text.setdefault("".join(text.casefold().split()), []).append(place)
    for alike in by_text.values():
        often = max(alike, key=lambda place: counts[place])
        for place in alike:
            if counts[place] * _RARE <= counts[often]:
                times = "once" if counts[place] == 1 else f"{counts[place]} times"
                _warn(
                    f"the arm {labels[place]!r} was tried {times}, and {labels[often]!r} "
                    f"{counts[often]} times: write both the same if they are one arm, since they "
                    "differ by case or spaces alone"
                )


class Usual:
    """The range of usual contexts, computed anew when they have doubled, to check new ones by."""

    def __init__(self) -> None:
        self._after = 0
        self._limits: tuple[FloatArray, FloatArray] | None = None

    def check(self, rows: FloatArray, seen: FloatArray, schema: ContextSchema) -> None:
        """Warn of numbers of new contexts that are far beyond those of all contexts ``seen``."""
        if len(seen) < _FEWEST:
            return
        if len(seen) >= 2 * self._after:
            # The first contexts, told one by one, were too few to be judged when they came.
            rows = np.vstack([seen, rows]) if len(seen) == _FEWEST else rows
            every = -(-len(seen) // _MOST)
            self._limits = _usual_range(seen[::every], len(seen))
            self._after = len(seen)
        if self._limits is not None:
            low, high = self._limits
            if ((rows < low) | (rows > high)).any():
                _warn_of_far(rows, self._limits, schema)


def _warn_of_far(
    rows: FloatArray, limits: tuple[FloatArray, FloatArray], schema: ContextSchema
) -> None:
    """Name the numbers of contexts that lie outside limits; codes and dates are no numbers."""
    kinds = schema.kinds
    for name, places in schema.parts().items():
        if kinds is not None and not isinstance(kinds[name], Number):
            continue
        column = rows[:, places[0]]
        far = column[(column < limits[0][places[0]]) | (column > limits[1][places[0]])]
        if len(far):
            named = name if schema.columns is None else f"the column {name!r}"
            _warn(f"{named} {_beyond(far, missing=schema.columns is not None)}")


def _beyond(far: FloatArray, *, missing: bool) -> str:
    what = "make them missing (NaN)" if missing else "leave out their rows"
    return (
        f"has values far beyond all others, {len(far)} of them, such as {far[0]:g}; {what} if they "
        "stand for missing ones"
    )


_AS_PROPENSITY = (
    "seems to hold the probabilities with which arms were chosen, which are not known beforehand; "
    "leave it out of contexts, and give it as propensities (score(propensities=...), --propensity)"
)


def _is_propensity(name: str, column: Sequence[Any], arms: IntArray) -> bool:
    """Whether a column is a propensity, by its name and as 1/p averages the number of arms."""
    text = name.strip().casefold().replace(" ", "_").replace("-", "_")
    surely = _PROPENSITY.search(text) is not None
    if not surely and _PERHAPS.fullmatch(text) is None:
        return False
    if not all_numbers(column):
        return False
    numbers = np.asarray(column, dtype=np.float64)
    if not ((numbers > 0) & (numbers <= 1)).all() or np.ptp(numbers) == 0:
        return False
    tried = len(np.unique(arms))
    return surely or abs(float((1 / numbers).mean()) / tried - 1) <= _LIKE_INVERSES


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=level_of_user())


def _misread(column: Sequence[Any], guessed: bool) -> Iterator[str]:
    """Say what a column probably holds that it is not taken for, and what to do."""
    if all(isinstance(each, str) for each in column):
        numbers_as_text = [each for each in column if _NUMBER.fullmatch(each.strip())]
        if guessed and len(numbers_as_text) > _NEARLY * len(column):
            yield (
                "holds numbers as text, and every one counts as a level of its own; "
                "make them numbers, or categories by columns=Columns(...)"
            )
        elif guessed and (found := _other_than_dates(column)) is not None:
            yield (
                f"holds dates as text, but also {found!r}, so that every date counts as a level of "
                "its own; write all as 2024-05-31, and None for a missing value"
            )
    elif all_numbers(column):
        numbers = np.asarray(column, dtype=np.float64)
        limits = far_beyond(numbers[:, None])
        if limits is not None:
            yield _beyond(numbers[(numbers < limits[0]) | (numbers > limits[1])], missing=True)


def _other_than_dates(column: Sequence[str]) -> str | None:
    """Return the first text of a column that is no date as ISO writes it, if most look like one."""
    dates = [is_date(each) or _OTHER_DATE.match(each) is not None for each in column]
    if sum(dates) <= _NEARLY * len(column):
        return None
    return next((each for each in column if not (is_date(each) or is_blank(each))), None)


def level_of_user() -> int:
    """Return how far up the stack the user's own code is, for a warning to point at."""
    frame, level = sys._getframe(1), 1
    while frame.f_back and str(frame.f_globals.get("__name__")).startswith("contextgap."):
        frame, level = frame.f_back, level + 1
    return level


def _doubts(column: Sequence[Any], rewards: FloatArray, arms: IntArray) -> Iterator[str]:
    numbers = np.asarray(column, dtype=np.float64) if all_numbers(column) else None
    cells = [repr(each) for each in column] if numbers is None else numbers
    _, levels = np.unique(cells, return_inverse=True)
    count = int(levels.max()) + 1
    if count == 1 or (numbers is not None and np.ptp(numbers) == 0):
        yield "has the same value in every row"
        return
    many = count > _NEARLY * len(column)
    if many and numbers is None and isinstance(guess_kind("", column), Category):
        yield "has another value in nearly every row, as an id has"
    elif numbers is not None and np.array_equal(np.diff(numbers), np.ones(len(numbers) - 1)):
        yield "numbers the rows"
    if _copies_arm(levels, arms):
        yield "is the same wherever an arm was tried, as a copy of the arm is"
        return
    revealed = _reveals(levels, count, numbers, rewards, arms)
    if revealed is None and numbers is None:
        missing = np.array([is_missing(each) for each in column], dtype=np.intp)
        revealed = None if _all_alike(missing) else _reveals(missing, 2, None, rewards, arms)
        revealed = revealed and f"has missing values, and where they are {revealed}"
    if revealed is not None:
        yield f"{revealed}, as an outcome does that is not known beforehand"


def far_beyond(columns: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Return the limits of usual values, if a column has others that are far beyond them.

    Usual is what is not too far from the middle half of a column's different values.
    """
    limits = np.full((2, columns.shape[1]), [[-np.inf], [np.inf]])
    deviations, (lower, upper) = columns.std(axis=0), np.quantile(columns, (0.25, 0.75), axis=0)
    for place in np.flatnonzero(deviations > _REACH * (upper - lower)):
        # Where a missing value was filled, or a flag is rare, one value may be most of the column.
        low, high = np.quantile(np.unique(columns[:, place]), (0.25, 0.75))
        reach = _REACH * (high - low)
        if deviations[place] > reach > 0:
            limits[:, place] = low - reach, high + reach
    return (limits[0], limits[1]) if np.isfinite(limits).any() else None


def _usual_range(columns: FloatArray, count: int) -> tuple[FloatArray, FloatArray]:
    """Return the limits of usual values, given a sample of ``count`` contexts."""
    # A single value beyond them makes the deviation exceed what ``far_beyond`` allows.
    limits = np.full((2, columns.shape[1]), [[-np.inf], [np.inf]])
    for place, column in enumerate(columns.T):
        low, high = np.quantile(np.unique(column), (0.25, 0.75))
        reach = _REACH * (high - low) * np.sqrt(count)
        if reach > 0:
            limits[:, place] = low - reach, high + reach
    return limits[0], limits[1]


def _reveals(
    levels: IntArray, count: int, numbers: FloatArray | None, rewards: FloatArray, arms: IntArray
) -> str | None:
    """Return how far a column reveals the reward, in words; None where that is not suspicious."""
    if rewards.min() == rewards.max():
        return None
    if _linear_or_constant(levels, count, numbers, rewards):
        return "predicts the reward perfectly"
    share = _share_in_order(levels, count, numbers, rewards, arms)
    if share is None:
        return None
    return f"orders {100 * share:.4g} % of pairs of rows as the reward of all arms does"


def _copies_arm(levels: IntArray, arms: IntArray) -> bool:
    """Whether a column is the same wherever an arm was tried, each of them several times."""
    tried, counts = np.unique(arms, return_counts=True)
    if len(tried) < 2 or counts.min() < _OTHERS:
        return False
    return len(np.unique(arms * (levels.max() + 1) + levels)) == len(tried)


def _linear_or_constant(
    levels: IntArray, count: int, numbers: FloatArray | None, rewards: FloatArray
) -> bool:
    """Whether rewards are a linear function of a column, or the same wherever a level is."""
    if numbers is not None and abs(np.corrcoef(numbers, rewards)[0, 1]) > _PERFECT:
        return True
    if count > len(rewards) / 10:
        return False
    high, low = np.full(count, -np.inf), np.full(count, np.inf)
    np.maximum.at(high, levels, rewards)
    np.minimum.at(low, levels, rewards)
    return bool((high == low).all())


def _share_in_order(
    levels: IntArray, count: int, numbers: FloatArray | None, rewards: FloatArray, arms: IntArray
) -> float | None:
    """Return the share of pairs of rows that a column orders as rewards do, if suspicious."""
    few = count <= len(rewards) / 10
    if len(np.unique(arms)) < 2 or _all_alike(levels) or _all_alike(rewards):
        return None
    if numbers is None and not few:
        return None
    means = np.bincount(levels, rewards) / np.bincount(levels)
    order = means[levels] if numbers is None else numbers
    rows = np.unique(np.linspace(0, len(rewards) - 1, _COMPARED).astype(np.intp))
    share = _concordance(order[rows], rewards[rows])
    if share < (_IN_ORDER if few else _IN_ORDER_NUMBERS):
        return None
    return None if few and _stands_apart(levels, means, rewards) else share


def _all_alike(values: Any) -> bool:
    """Whether nearly all values are the same."""
    return bool(len(values) - np.unique(values, return_counts=True)[1].max() < _OTHERS)


def _concordance(first: FloatArray, second: FloatArray) -> float:
    """Return the share of pairs that differ in one of both and that the other orders, either way.

    Of the two, it is the one in which fewer pairs differ. Pairs equal in the other count half.
    """
    one, other = (np.sign(each[:, None] - each) for each in (first, second))
    fewer = min(np.count_nonzero(one), np.count_nonzero(other))
    return float(0.5 + 0.5 * abs((one * other).sum()) / fewer) if fewer else 0.0


def _stands_apart(levels: IntArray, means: FloatArray, rewards: FloatArray) -> bool:
    """Whether most levels have rewards far from those of all others, as contexts that matter have.

    A verdict cuts rewards in two wherever its threshold is, without a space between them.
    """
    usual = max(20 * rewards.std() / len(rewards), 1.01 * np.median(np.diff(np.unique(rewards))))
    high, low = np.full(len(means), -np.inf), np.full(len(means), np.inf)
    np.maximum.at(high, levels, rewards)
    np.minimum.at(low, levels, rewards)
    ranked = np.argsort(means)
    return bool(np.median(low[ranked[1:]] - high[ranked[:-1]]) > usual)
