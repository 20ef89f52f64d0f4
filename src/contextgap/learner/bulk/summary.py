"""The first pass: what columns hold, which arms were tried how often, and a sample of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from contextgap.learner.bulk.sample import Sample, draws_for
from contextgap.tables.cells import Holds, Level, level
from contextgap.tables.columns import Category, Cyclic, Kind, Number
from contextgap.tables.files import Sheet, check_alike
from contextgap.tables.schema import MOST_LEVELS, Coding
from contextgap.tables.trials import Trials

_MOST_COUNTED = 200 * MOST_LEVELS  # levels of a column; of more, the frequent ones are counted on

_NOTHING_WRONG = Holds(number=True), Holds(blank=True)


@dataclass(frozen=True, eq=False)
class Summary:
    """What some rows of a log are like.

    Parameters
    ----------
    header
        A table with the columns of the log and no rows.
    columns
        Those that are context.
    counts
        How often every arm was tried, by its text.
    truths
        Whether all rewards are truth values.
    holds
        What the columns of contexts hold.
    levels
        How often every level of a column of text occurs.
    sample
        Some of the rows.
    missing
        How many further rows have no reward; they are in nothing else.
    first_missing
        Where the first of these is.
    """

    header: Sheet
    columns: list[str]
    counts: Counter[str]
    truths: bool
    holds: Mapping[str, Holds]
    levels: Mapping[str, Counter[Level]]
    sample: Sample
    missing: int
    first_missing: str

    def __add__(self, other: Summary) -> Summary:
        check_alike(self.header, other.header)
        return Summary(
            self.header,
            self.columns,
            self.counts + other.counts,
            self.truths and other.truths,
            {name: self.holds[name] | other.holds[name] for name in self.columns},
            {name: _frequent(self.levels[name] + other.levels[name]) for name in self.columns},
            self.sample + other.sample,
            self.missing + other.missing,
            self.first_missing or other.first_missing,
        )

    @property
    def rows(self) -> int:
        """How many rows have a reward."""
        return self.counts.total()

    def codings(self, kinds: Mapping[str, Kind]) -> tuple[Coding, ...]:
        """Return how columns become numbers, given what the sample's seem to hold."""
        return tuple(self._coding(name, kinds[name]) for name in self.columns)

    def _coding(self, name: str, kind: Kind) -> Coding:
        holds = self.holds[name]
        gap = holds.blank or (holds.na and isinstance(kind, Number | Cyclic))
        kind = replace(kind, missing=True) if gap else kind
        if not isinstance(kind, Category):
            return Coding(name, kind)
        frequent = self.levels[name].most_common(MOST_LEVELS)  # as they come, where they tie
        return Coding(name, kind, tuple(each for each, _ in frequent))


@dataclass(frozen=True)
class Summarise:
    """Makes the summary of a partition; ``Sample`` says what the last two mean."""

    trials: Trials
    most: int
    of_an_arm: int | None

    def __call__(self, partition: Any) -> Summary | None:
        """Return the summary of a partition; None if it has no rows."""
        total, first = None, partition.first
        for sheet in partition.blocks():
            found = self._of(sheet, partition.number, first)
            total = found if total is None else total + found
            first += len(sheet)
        return None if total is None else replace(total, sample=total.sample.thinned())

    def _of(self, sheet: Sheet, number: int, first: int) -> Summary:
        trials = self.trials
        sheet.cells_of(trials.arm)  # said first if there is none
        draws, missing = draws_for(number, first, len(sheet)), sheet.without([trials.reward])
        first_missing = f"{sheet.path}, {sheet.places[missing[0]]}" if missing else ""
        if missing:
            draws, sheet = np.delete(draws, missing), sheet.drop(missing)
        columns, arms = trials.columns(sheet), trials.arms(sheet)
        truths = not len(sheet) or sheet.are_truths(trials.reward)
        holds = {name: sheet.holds(name) for name in columns}
        # What is wrong in this block alone is said now, before long work begins.
        if not truths:
            trials.rewards(sheet, truths)
        doubtful = [name for name in columns if holds[name] not in _NOTHING_WRONG]
        sheet.table(doubtful if len(sheet) else [], trials.kinds)
        levels = {name: self._levels(sheet, name, holds[name]) for name in columns}
        sample = Sample((sheet,), draws, tuple(arms), self.most, self.of_an_arm)
        found = sheet.take([]), columns, Counter(arms), truths, holds, levels, sample
        return Summary(*found, len(missing), first_missing)

    def _levels(self, sheet: Sheet, name: str, holds: Holds) -> Counter[Level]:
        kind = self.trials.kinds.get(name)
        text = kind is None and not holds.number and not holds.date
        if not text and not isinstance(kind, Category):
            return Counter()
        counted: Counter[Level] = Counter()
        try:
            for word, times in Counter(sheet.words(name)).items():
                counted[level(word)] += times
        except TypeError:  # no text, and no levels: times, or what is refused later
            return Counter()
        return _frequent(counted)


def _frequent(levels: Counter[Level]) -> Counter[Level]:
    return (
        levels
        if len(levels) <= _MOST_COUNTED
        else Counter(dict(levels.most_common(_MOST_COUNTED // 2)))
    )
