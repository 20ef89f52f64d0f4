"""Logs of trials: which columns say what was tried, where, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.base.columns import Kind
from contextgap.problems.sheet import Sheet


@dataclass(frozen=True)
class Trials:
    """The columns of a log.

    Parameters
    ----------
    arm
        The arm tried.
    reward
        The reward it gave.
    context
        What was known before; all other columns if None.
    exclude
        Columns that are no context.
    propensity
        The probability with which the arm was chosen.
    eligible
        Columns with the arms that could have been chosen, such as a|b.
    kinds
        What columns of contexts hold that are not what they seem.
    gaps
        Columns of contexts that may have gaps later, though the log has none.
    """

    arm: str
    reward: str
    context: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    propensity: str | None = None
    eligible: tuple[str, ...] = ()
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    gaps: tuple[str, ...] = ()

    def columns(self, sheet: Sheet) -> list[str]:
        """Return the columns that are context; says nothing of a saved index that is left out."""
        outcome = [name for name in (self.arm, self.reward, self.propensity) if name is not None]
        left_out = [*self.exclude, *self.eligible]
        for name in left_out:
            sheet.cells_of(name)  # a name that is mistyped excludes nothing
        columns = [
            name
            for name in self.context or sheet.others(outcome, quiet=True)
            if name not in left_out
        ]
        both = [name for name in columns if name in outcome]
        if both:
            raise ValueError(f"column {both[0]!r} cannot be context and outcome at once")
        if not columns:
            raise ValueError(
                f"{sheet.path}: no column is left as context beside {', '.join(map(repr, outcome))}"
            )
        check_columns([*self.kinds, *self.gaps], columns)
        return columns

    def rewarded(self, sheet: Sheet) -> Sheet:
        """Return the rows that have a reward."""
        missing = sheet.without([self.reward])
        return sheet.drop(missing) if missing else sheet

    def arms(self, sheet: Sheet) -> list[str]:
        """Return the text of the arm tried in every row."""
        arms = [str(cell).strip() for cell in sheet.cells_of(self.arm)]
        if not {"", "None", "NaN", "nan"}.isdisjoint(arms):
            row = next(i for i, arm in enumerate(arms) if arm in ("", "None", "NaN", "nan"))
            place = f"{sheet.path}, {sheet.places[row]}, column {self.arm!r}"
            raise ValueError(f"{place}: the arm tried is missing")
        return arms

    def rewards(self, sheet: Sheet, truths: bool) -> FloatArray:
        """Return the rewards of all rows; ``truths`` says whether the log's are truth values."""
        if truths:
            return sheet.rewards(self.reward)
        return np.asarray(sheet.numbers([self.reward])[:, 0])


def labels_of(arms: Iterable[str]) -> dict[str, Any]:
    """Return the labels of arms by their texts, in order: ints if all of them are, as written."""
    texts = set(arms)
    if all(arm.lstrip("-").isdecimal() and str(int(arm)) == arm for arm in texts):
        return {str(label): label for label in sorted(map(int, texts))}
    return {text: text for text in sorted(texts)}


def check_columns(named: Iterable[str], columns: Iterable[str]) -> None:
    """Raise unless the columns that the user named are context."""
    for name in named:
        if name not in columns:
            raise ValueError(f"there is no context column {name!r}; there are {list(columns)}")


def eligible_arms(
    sheet: Sheet, columns: Sequence[str], arms: Sequence[Any], unknown: set[str] | None = None
) -> list[list[Any]]:
    """Return the arms eligible in each row of a table: those in any of the cells, such as a|b.

    Other arms, which a log may never have tried, are passed over, and put into ``unknown``.
    """
    by_text, found = {str(arm): arm for arm in arms}, []
    rows = zip(*map(sheet.cells_of, columns), strict=True)
    for place, cells in zip(sheet.places, rows, strict=True):
        texts = [str(cell) for cell in cells if cell is not None]
        listed = list(dict.fromkeys(each.strip() for text in texts for each in text.split("|")))
        if unknown is not None:
            unknown.update(each for each in listed if each not in by_text)
        found.append([by_text[each] for each in listed if each in by_text])
        if not found[-1]:
            raise ValueError(
                f"{sheet.path}, {place}, column {', '.join(map(repr, columns))}: none of the arms "
                f"{list(by_text)} is eligible, got {'|'.join(texts)!r}"
            )
    return found
