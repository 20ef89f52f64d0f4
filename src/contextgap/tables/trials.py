"""Logs of trials: which columns say what was tried, where, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from math import isfinite
from operator import itemgetter
from typing import Any

from contextgap.base.labels import NUMBER, Written
from contextgap.tables.cells import COMMA
from contextgap.tables.columns import Kind
from contextgap.tables.files import Sheet

_NONE = object()


@dataclass(frozen=True)
class Trials:
    """The columns of a log."""

    arm: str  # that was tried
    reward: str  # that it gave
    context: tuple[str, ...] | None = None  # what was known before; all other columns if None
    exclude: tuple[str, ...] = ()  # from the context
    propensity: str | None = None  # the probability with which the arm was chosen
    eligible: tuple[str, ...] = ()  # the arms that could have been chosen, such as a|b
    kinds: Mapping[str, Kind] = field(default_factory=dict)  # where they are not what they seem
    missing: tuple[str, ...] = ()  # which may lack values later, though the log has them all
    censored: str | None = None  # whether the reward is at most, a cost at least, what is logged
    cost: str | None = None  # what the trial cost

    def columns(self, sheet: Sheet) -> list[str]:
        """Return the columns that are context; says nothing of a saved index that is left out."""
        named = self.arm, self.reward, self.propensity, self.censored, self.cost
        outcome = [name for name in named if name is not None]
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
        check_columns([*self.kinds, *self.missing], columns)
        return columns

    def rewarded(self, sheet: Sheet) -> Sheet:
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


def labels_of(arms: Iterable[str], *, decimal_comma: bool = False) -> dict[str, Any]:
    """Return labels of arms by their texts, in order: ints or floats if all are, else texts."""
    texts = {arm: _with_point(arm) if decimal_comma else arm for arm in sorted(set(arms))}
    if not all(map(NUMBER.fullmatch, texts.values())):
        return {text: text for text in texts}
    exact = {arm: Decimal(text) for arm, text in texts.items()}
    whole = all(text.lstrip("-").isdecimal() for text in texts.values())
    labels: dict[str, Any] = {
        arm: int(number) if whole else float(number)
        for arm, number in sorted(exact.items(), key=itemgetter(1))
    }
    precise = len(set(labels.values())) == len(set(exact.values()))
    if precise and all(map(isfinite, labels.values())):
        return labels
    return {text: text for text in texts}


def _with_point(text: str) -> str:
    return text.replace(",", ".") if COMMA.fullmatch(text) else text


def check_columns(named: Iterable[str], columns: Iterable[str]) -> None:
    """Raise unless the columns that the user named are context."""
    for name in named:
        if name not in columns:
            raise ValueError(f"there is no context column {name!r}; there are {list(columns)}")


def eligible_arms(
    sheet: Sheet, columns: Sequence[str], arms: Sequence[Any], unknown: set[str] | None = None
) -> list[list[Any]]:
    """Return the arms in the cells, such as a|b, of each row; others go into ``unknown``."""
    written, found = Written(arms), list[list[Any]]()
    point = _with_point if sheet.decimal_comma else str
    rows = zip(*map(sheet.cells_of, columns), strict=True)
    for place, cells in zip(sheet.places, rows, strict=True):
        texts = [str(cell) for cell in cells if cell is not None]
        listed = list(dict.fromkeys(each.strip() for text in texts for each in text.split("|")))
        read = {each: written.read(each, written.read(point(each), _NONE)) for each in listed}
        if unknown is not None:
            unknown.update(each for each, label in read.items() if label is _NONE)
        found.append([label for label in dict.fromkeys(read.values()) if label is not _NONE])
        if not found[-1]:
            raise ValueError(
                f"{sheet.path}, {place}, column {', '.join(map(repr, columns))}: none of the arms "
                f"{list(written)} is eligible, got {'|'.join(texts)!r}"
            )
    return found
