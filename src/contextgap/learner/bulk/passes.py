"""The two passes over a log's rows: a summary with a sample of rows, then sums for every arm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.kernels import Kernel
from contextgap.learner.arguments import check_sizes
from contextgap.models import Dictionary, Statistics, sums_by_arm
from contextgap.policy.scoring import read_propensities
from contextgap.tables.cells import Holds, Level, level
from contextgap.tables.columns import Category, Cyclic, Kind, Number
from contextgap.tables.contexts import ContextSchema
from contextgap.tables.files import Sheet, check_alike, joined
from contextgap.tables.schema import MOST_LEVELS, Coding
from contextgap.tables.trials import Trials

SAMPLE = 2**17
"""Rows of a log that are read one by one; a log of no more is learnt from as a whole."""

# Rows that were simulated with the seed of a small number must not go with our random numbers.
_UNLIKE = 0x5EED_0F_5A3B1E
_MOST_COUNTED = 200 * MOST_LEVELS  # levels of a column; of more, the frequent ones are counted on

_NOTHING_WRONG = Holds(number=True), Holds(blank=True)


@dataclass(frozen=True, eq=False)
class Sample:
    """The rows with the lowest of random numbers, which depend on their places in files alone."""

    sheets: tuple[Sheet, ...]  # the rows, in the order of the log
    draws: FloatArray  # a random number for each row
    arms: tuple[str, ...]  # the text of the arm of each row
    most: int  # so many rows are kept of all
    of_an_arm: int | None  # so many rows are kept of every arm, if there are so many; None for all

    def __len__(self) -> int:
        return len(self.draws)

    def __add__(self, other: Sample) -> Sample:
        both = self.sheets + other.sheets
        draws = np.concatenate([self.draws, other.draws])
        together = Sample(both, draws, self.arms + other.arms, self.most, self.of_an_arm)
        return together.thinned() if len(together) > 2 * self.most else together

    def thinned(self) -> Sample:
        """Return the rows that are kept for good."""
        if self.of_an_arm is None or len(self) <= self.most:
            return self
        codes = np.unique(self.arms, return_inverse=True)[1]
        order = np.lexsort((self.draws, codes))  # by arm, then by draw
        first = np.searchsorted(codes[order], codes[order])
        rank = np.empty(len(self), dtype=np.intp)
        rank[order] = np.arange(len(self)) - first
        kept = rank < self.of_an_arm
        kept[self.uniform()] = True
        places, before, sheets = np.flatnonzero(kept), 0, list[Sheet]()
        for sheet in self.sheets:
            own = places[(places >= before) & (places < before + len(sheet))] - before
            before += len(sheet)
            if len(own):
                sheets.append(sheet.take(own.tolist()))
        arms = tuple(self.arms[place] for place in places.tolist())
        return Sample(tuple(sheets), self.draws[places], arms, self.most, self.of_an_arm)

    def uniform(self) -> IntArray:
        """Return the places of a uniform sample of all rows, in order."""
        return np.sort(np.argsort(self.draws, kind="stable")[: self.most])

    def sheet(self) -> Sheet:
        return joined(self.sheets)


def draws_for(number: int, first: int, rows: int) -> FloatArray:
    """Return the random numbers of some rows of a file, the same however it is read."""
    source = np.random.PCG64(np.random.SeedSequence([number, _UNLIKE]))
    source.advance(first)
    return np.random.Generator(source).random(rows)


@dataclass(frozen=True, eq=False)
class Summary:
    """What some rows of a log are like."""

    header: Sheet  # a table with the columns of the log and no rows
    columns: list[str]  # those that are context
    counts: Counter[str]  # how often every arm was tried, by its text
    truths: bool  # whether all rewards are truth values
    holds: Mapping[str, Holds]  # what the columns of contexts hold
    levels: Mapping[str, Counter[Level]]  # how often every level of a column of text occurs
    sample: Sample  # some of the rows
    missing: int  # how many further rows have no reward; they are in nothing else
    first_missing: str  # where the first of these is

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
        return self.counts.total()

    def codings(self, kinds: Mapping[str, Kind]) -> tuple[Coding, ...]:
        """Return how columns become numbers, given what the sample's seem to hold."""
        return tuple(self._coding(name, kinds[name]) for name in self.columns)

    def _coding(self, name: str, kind: Kind) -> Coding:
        holds = self.holds[name]
        missing = holds.blank or (holds.na and isinstance(kind, Number | Cyclic))
        kind = replace(kind, missing=True) if missing else kind
        if not isinstance(kind, Category):
            return Coding(name, kind)
        frequent = self.levels[name].most_common(MOST_LEVELS)  # by first occurrence, where they tie
        return Coding(name, kind, tuple(each for each, _ in frequent))


@dataclass(frozen=True)
class Summarise:
    """Makes the summary of a partition; ``Sample`` says what the last two mean."""

    trials: Trials
    most: int
    of_an_arm: int | None

    def __call__(self, partition: Any) -> Summary | None:
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
            sheet.rewards(trials.reward, truths)
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
    if len(levels) <= _MOST_COUNTED:
        return levels
    return Counter(dict(levels.most_common(_MOST_COUNTED // 2)))


@dataclass(frozen=True, eq=False)
class Outermost:
    """The rows with the lowest and the highest of each number of a context."""

    contexts: FloatArray
    arms: IntArray
    rewards: FloatArray

    def __add__(self, other: Outermost) -> Outermost:
        return Outermost(
            np.concatenate([self.contexts, other.contexts]),
            np.concatenate([self.arms, other.arms]),
            np.concatenate([self.rewards, other.rewards]),
        ).thinned()

    def thinned(self) -> Outermost:
        lowest, highest = self.contexts.argmin(axis=0), self.contexts.argmax(axis=0)
        kept = np.unique(np.concatenate([lowest, highest]))
        return Outermost(self.contexts[kept], self.arms[kept], self.rewards[kept])

    def beyond(self, contexts: FloatArray) -> Outermost:
        """Return the rows that lie outside the range of some contexts, each once."""
        low, high = contexts.min(axis=0), contexts.max(axis=0)
        outside = ((self.contexts < low) | (self.contexts > high)).any(axis=1)
        rows = np.column_stack([self.contexts, self.arms, self.rewards])[outside]
        rows = np.unique(rows, axis=0)
        return Outermost(rows[:, :-2], rows[:, -2].astype(np.intp), rows[:, -1])


@dataclass(frozen=True, eq=False)
class Totals:
    """Sums over rows: all that a model of any number of them needs."""

    sums: Mapping[int, Statistics]  # the statistics of every arm that was tried
    reward_sum: float  # the sum of all rewards
    outermost: Outermost  # the rows that say how far contexts reach

    def __add__(self, other: Totals) -> Totals:
        sums = dict(self.sums)
        for arm, found in other.sums.items():
            sums[arm] = sums[arm] + found if arm in sums else found
        outermost = self.outermost + other.outermost
        return Totals(sums, self.reward_sum + other.reward_sum, outermost)


@dataclass(frozen=True, eq=False)
class Add:
    """Makes the totals of a partition."""

    trials: Trials
    columns: list[str]
    holds: Mapping[str, Holds]
    truths: bool
    schema: ContextSchema
    places: Mapping[str, int]  # the index of every arm, by its text
    sign: float  # what rewards are multiplied by: −1 for costs
    kernel: Kernel
    ridge: float
    dictionary: Dictionary

    def __call__(self, partition: Any) -> Totals | None:
        total = None
        for sheet in map(self.trials.rewarded, partition.blocks()):
            if len(sheet):
                found = self._of(sheet)
                total = found if total is None else total + found
        return total

    def _of(self, sheet: Sheet) -> Totals:
        arms = np.array([self.places[arm] for arm in self.trials.arms(sheet)], dtype=np.intp)
        rewards = self.sign * sheet.rewards(self.trials.reward, self.truths)
        contexts = self._contexts(sheet)
        check_sizes(self.kernel, contexts, rewards)
        chances = self._chances(sheet)
        told = contexts, arms, rewards, None if chances is None else 1.0 / chances
        sums = sums_by_arm(self.dictionary, self.kernel, self.ridge, *told)
        outermost = Outermost(contexts, arms, rewards).thinned()
        return Totals(sums, float(rewards.sum()), outermost)

    def _chances(self, sheet: Sheet) -> FloatArray | None:
        if self.trials.propensity is None:
            return None
        found = sheet.numbers([self.trials.propensity])[:, 0]
        try:
            return read_propensities(found, len(found))
        except ValueError as error:
            raise ValueError(sheet.located(error)) from None

    def _contexts(self, sheet: Sheet) -> FloatArray:
        table = sheet.table(self.columns, self.trials.kinds, self.holds)
        try:
            return self.schema.read(table).rows
        except (TypeError, ValueError) as error:
            raise ValueError(sheet.located(error)) from None
