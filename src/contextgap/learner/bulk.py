"""Learns from a log of any length: hyperparameters from a sample, the rest from sums over rows.

There are two passes over partitions of the log: a summary with a sample of rows, then sums for
every arm. Both are one map and one sum: here, in processes, or on a Dask cluster. Sums are made in
the order of the partitions, eight at a time and those again eight at a time, so that the result
does not depend on who finishes first, nor on where the work is done.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain, islice
from operator import add
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.checks import Label, Written
from contextgap.base.components import study_import
from contextgap.beliefs import Width
from contextgap.kernels import Kernel
from contextgap.learner import Learner
from contextgap.learner.arguments import check_sizes, read_points
from contextgap.methods.method import Method, read_method
from contextgap.models import (
    POINTS,
    Dictionary,
    Observations,
    Statistics,
    dictionary_of,
    summed_model,
    sums_by_arm,
)
from contextgap.models.tuning import Tuning
from contextgap.policy import Policy
from contextgap.policy.answers import AllRows, read_propensities
from contextgap.tables.columns import (
    MOST_LEVELS,
    Category,
    Coding,
    Columns,
    Cyclic,
    Kind,
    Number,
    TableSchema,
    read_kind,
)
from contextgap.tables.contexts import ContextSchema
from contextgap.tables.files import (
    BLOCK,
    Part,
    Sheet,
    Trials,
    check_alike,
    check_missing,
    count_rows,
    eligible_arms,
    files_named,
    joined,
    labels_of,
    parts_of,
    read_names,
    sheet_of,
)
from contextgap.tables.table import Holds, Level, level

T = TypeVar("T")
Work: TypeAlias = Callable[[Any], T | None]  # None where there is nothing to add
Progress: TypeAlias = Callable[[int, int], None]

_AT_ONCE = 8  # summands of a sum


@dataclass(frozen=True)
class Partition:
    rows: Any  # part of a file, or partition of a Dask DataFrame, perhaps still to be computed
    number: int  # the number of its file, or of the partition, among all
    first: int = 0  # how many rows of the file come before
    size: int = 1  # about how many rows there are; unknown for a Dask DataFrame

    def blocks(self) -> Iterator[Sheet]:
        if isinstance(self.rows, Part):
            yield from self.rows.blocks()
            return
        name = Path(f"partition {self.number}")
        for first in range(0, len(self.rows), BLOCK):
            yield sheet_of(self.rows.iloc[first : first + BLOCK], name, first)


def partitions_of(source: Any, separator: str | None = None) -> list[Partition]:
    if hasattr(source, "to_delayed"):
        return [Partition(rows, number) for number, rows in enumerate(source.to_delayed())]
    if isinstance(source, str | os.PathLike):
        source = [source]
    if hasattr(source, "columns"):
        raise TypeError(
            "source must be files or a Dask DataFrame, got a table in memory; Learner(arms).fit "
            "learns from one"
        )
    if not isinstance(source, Iterable):
        raise TypeError(f"source must be files or a Dask DataFrame, got {source!r}")
    found = []
    for number, path in enumerate(files_named(source)):
        parts = parts_of(path, separator)
        ends = [*(part.first for part in parts[1:]), count_rows(path)]
        found += [
            Partition(part, number, part.first, end - part.first)
            for part, end in zip(parts, ends, strict=True)
        ]
    if not found:
        raise ValueError("source must name at least one file, got none")
    return found


def map_and_sum(
    work: Work[T],
    partitions: Sequence[Partition],
    executor: Any = None,
    progress: Progress | None = None,
) -> T:
    """Return the sum of what ``work`` makes of each partition; the workers of a Dask client sum."""
    done, size = 0, sum(each.size for each in partitions)

    def ticks(rows: int) -> None:
        nonlocal done
        done += rows
        if progress is not None:
            progress(done, max(size, done))

    if executor is None:
        total = _summed(work(_Watched(each, ticks)) for each in partitions)
    elif hasattr(executor, "get_executor"):  # a Dask client
        total = _on_cluster(work, partitions, executor, ticks)
    elif isinstance(executor, Executor):
        total = _summed(_in_order(work, partitions, executor, ticks))
    else:
        raise TypeError(f"executor must be a Dask client or an Executor, got {executor!r}")
    if total is None:
        raise ValueError("the log has no rows")
    return total


class _Watched:
    """A partition whose rows are counted while they are read."""

    def __init__(self, partition: Partition, ticks: Callable[[int], None]) -> None:
        self._ticks, self.number, self.first = ticks, partition.number, partition.first
        if hasattr(partition.rows, "compute"):
            partition = replace(partition, rows=partition.rows.compute(scheduler="synchronous"))
        self._partition = partition

    def blocks(self) -> Iterator[Sheet]:
        for sheet in self._partition.blocks():
            yield sheet
            self._ticks(len(sheet))


def _in_order(
    work: Work[T], partitions: Sequence[Partition], executor: Executor, ticks: Callable[[int], None]
) -> Iterator[T | None]:
    for partition in partitions:
        if hasattr(partition.rows, "compute"):
            raise TypeError("a Dask DataFrame needs a Dask client as executor, or none")
    results = executor.map(work, partitions)
    for partition, result in zip(partitions, results, strict=True):
        ticks(partition.size)
        yield result


def _summed(results: Iterable[T | None]) -> T | None:
    """Return the sum of results in order, keeping at most eight for each level of sums."""
    rest = iter(results)
    first = list(islice(rest, _AT_ONCE))
    if len(first) < _AT_ONCE:
        return _sum(first)
    everything = chain(first, rest)
    eights: Iterator[list[T | None]] = iter(lambda: list(islice(everything, _AT_ONCE)), [])
    return _summed(_sum(each) for each in eights)


def _on_cluster(
    work: Work[T], partitions: Sequence[Partition], client: Any, ticks: Callable[[int], None]
) -> T | None:
    # Submitted, not scattered: what a killed worker held can then be made again.
    shared = client.submit(_same, work, pure=False)
    leaves, sizes = [], {}
    for partition in partitions:
        rows = partition.rows
        rows = client.compute(rows) if hasattr(rows, "compute") else rows
        future = client.submit(_work_on, shared, replace(partition, rows=None), rows, pure=False)
        leaves.append(future)
        sizes[future.key] = partition.size
    level = leaves
    while len(level) > 1:
        groups = [level[first : first + _AT_ONCE] for first in range(0, len(level), _AT_ONCE)]
        level = [client.submit(_sum, group, pure=False) for group in groups]
    finished = study_import("distributed", "dask").as_completed(leaves)
    (total,) = level
    del leaves, level, rows, future  # what is summed need not be kept
    for each in finished:
        if each.status == "error":
            each.result()  # raises what went wrong there
        ticks(sizes[each.key])
        del each
    result: T | None = total.result()
    return result


def _same(value: T) -> T:
    return value


def _work_on(work: Work[T], partition: Partition, rows: Any) -> T | None:
    return work(replace(partition, rows=rows))


def _sum(results: Sequence[T | None]) -> T | None:
    something = [result for result in results if result is not None]
    return reduce(add, something) if something else None


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
        low, high = contexts.min(axis=0), contexts.max(axis=0)
        outside = ((self.contexts < low) | (self.contexts > high)).any(axis=1)
        rows = np.column_stack([self.contexts, self.arms, self.rewards])[outside]
        rows = np.unique(rows, axis=0)
        return Outermost(rows[:, :-2], rows[:, -2].astype(np.intp), rows[:, -1])


@dataclass(frozen=True, eq=False)
class Totals:
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


Watch: TypeAlias = Callable[[str], Progress]
Settings: TypeAlias = Callable[[Any], Mapping[str, Any]]  # a learner's, given the sample's table


class Learnt(NamedTuple):
    r"""What was learnt from a log.

    .. versionadded:: 0.2

    Parameters
    ----------
    policy
        The rule to deploy, with its score card.
    tuning
        How hyperparameters were learnt; None if they were given.
    rows
        How many trials the log has.

    See Also
    --------
    learn_from : Returns one.

    Examples
    --------
    >>> with open("log.csv", "w") as file:
    ...     _ = file.write("x,arm,hours\n0.0,van,3\n0.2,rail,2\n0.4,van,4\n0.6,rail,1\n")
    >>> learnt = cg.learn_from("log.csv", arm="arm", reward="hours", minimize=True)
    >>> learnt.rows
    4
    """

    policy: Policy
    tuning: Tuning | None
    rows: int


def learn_from(
    source: Any,
    *,
    arm: str,
    reward: str,
    context: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    columns: Mapping[str, Any] | None = None,
    propensity: str | None = None,
    censored: str | None = None,
    cost: str | None = None,
    eligible: str | Sequence[str] | None = None,
    separator: str | None = None,
    skip_missing: bool = False,
    minimize: bool = False,
    kernel: Kernel | None = None,
    ridge: float | None = None,
    method: str | Method = "auto",
    width: Width | None = None,
    points: int = POINTS,
    seed: int | None = None,
    features: Mapping[Label, Any] | None = None,
    fallback: Label | None = None,
    tolerance: float | None = None,
    card_rows: int | None = None,
    executor: Any = None,
    progress: Watch | None = None,
) -> Learnt:
    r"""Return a policy learnt from a log in files, or in a Dask DataFrame, however long.

    Rows are read twice and never kept: first for what columns hold and a sample of some hundred
    thousand rows, from which hyperparameters and inducing points are learnt; then for sums over all
    rows. A log that is no longer than the sample is learnt from as ``Learner.fit`` does.

    .. versionadded:: 0.2

    Parameters
    ----------
    source
        A file, a pattern such as ``"logs/*.parquet"``, a list of them, or a Dask DataFrame.
    arm
        The column with the arm tried.
    reward
        The column with the reward it gave.
    context
        The columns known before; all others by default.
    exclude
        Columns that are no context.
    columns
        What columns of contexts hold that are not what they seem, as ``Columns`` takes it.
    propensity
        The column with the probability with which the logged arm was chosen.
    censored
        The column that says, by 0 or 1, or false or true, whether the reward is censored, as for
        ``Learner.tell``; only for a log that is no longer than the sample.
    cost
        The column with what each trial cost; only for a log that is no longer than the sample.
    eligible
        The column with the arms that could have been chosen, such as ``a|b``; of several, all arms.
    separator
        What separates the cells of text files; inferred from the header if None.
    skip_missing
        Whether to leave out rows without a reward, which are an error otherwise.
    minimize
        Whether the reward is a cost, to be kept low.
    kernel, ridge, method, width, points, seed
        As for ``Learner``.
    features
        Features by arm, as for ``Learner``; only for a log that is no longer than the sample.
    fallback, tolerance
        As for ``Learner.freeze``.
    card_rows
        How many rewards to predict leave-one-out for the score card, as ``rows`` of
        ``Learner.score``.
    executor
        Where the work is done: None here, in this process; a Dask client, or any
        ``concurrent.futures.Executor``. Files must have the same path for all workers.
    progress
        Called with the name of every stage; what it returns is called with the numbers of rows that
        are done and of all. ``cg.ProgressBar`` shows a bar for each.

    Returns
    -------
    learnt
        The policy, how hyperparameters were learnt, and the number of rows.

    See Also
    --------
    Learner.fit : Learn from arrays in memory.

    Examples
    --------
    >>> with open("log.csv", "w") as file:
    ...     _ = file.write("x,arm,hours\n0.0,van,3\n0.2,rail,2\n0.4,van,4\n0.6,rail,1\n")
    >>> learnt = cg.learn_from("log.csv", arm="arm", reward="hours", minimize=True)
    >>> learnt.policy.arms
    ('rail', 'van')
    """
    trials = Trials(
        arm=arm,
        reward=reward,
        context=None if context is None else read_names("context", context),
        exclude=read_names("exclude", exclude) if len(exclude) else (),
        propensity=propensity,
        censored=censored,
        cost=cost,
        eligible=(eligible,) if isinstance(eligible, str) else tuple(eligible or ()),
        kinds={name: read_kind(name, kind) for name, kind in (columns or {}).items()},
    )
    given = {
        "kernel": kernel,
        "ridge": ridge,
        "width": width,
        "points": points,
        "seed": seed,
        "reward": "minimize" if minimize else "maximize",
    }
    return learn_trials(
        partitions_of(source, separator),
        trials,
        method,
        lambda table: given | columns_for(table, trials),
        points=points,
        skip_missing=skip_missing,
        features=features,
        fallback=fallback,
        tolerance=tolerance,
        card_rows=card_rows,
        executor=executor,
        progress=progress,
    )


def columns_for(table: Any, trials: Trials) -> dict[str, Any]:
    if not trials.kinds and not trials.missing:
        return {}
    return {"columns": _kinds(table, trials)}


def _kinds(table: Any, trials: Trials) -> Columns:
    return Columns.from_table(table, **trials.kinds).with_missing(trials.missing)


def learn_trials(
    partitions: Sequence[Partition],
    trials: Trials,
    method: str | Method,
    settings: Settings,
    *,
    points: int | None = POINTS,
    skip_missing: bool = False,
    features: Mapping[Any, Any] | None = None,
    fallback: Label | None = None,
    tolerance: float | None = None,
    card_rows: int | None = None,
    executor: Any = None,
    progress: Watch | None = None,
    prefix: str = "",
) -> Learnt:
    """Do as ``learn_from``, given settings; arms may be text, and errors have a ``prefix``."""
    watch: Watch = progress or (lambda _: lambda _done, _total: None)
    most = read_points(points, read_method(method).recommender)
    of_an_arm = None if most is None else 2 * most
    work = Summarise(trials, SAMPLE, of_an_arm)
    summary = map_and_sum(work, partitions, executor, watch("reading"))
    place = f"{summary.first_missing}, column {trials.reward!r}"
    check_missing(place, summary.missing, summary.rows + summary.missing, skip_missing)
    log = _Log(trials, summary)
    if len(log.labels) == 1:
        warnings.warn(
            f"all {summary.rows} rows tried one arm, {log.labels[0]!r}, so there is nothing to "
            f"choose; check the column {trials.arm!r}, or log trials of other arms too",
            stacklevel=2,
        )
    safe = _safe_arm(fallback, tolerance, Written(log.labels), prefix)
    known = _features(features, log)
    try:
        learner = Learner(log.labels, method=method, **settings(log.table), **known)
        if not log.whole:
            learner = _reading(learner, summary.codings(_kinds(log.table, trials)))
        learning = watch("learning hyperparameters")
        learning(0, len(log.sheet))
        about = {"eligible": log.eligible, "censored": log.censored, "costs": log.costs}
        learner.fit(log.table, log.arms, log.rewards, **about)
        learning(len(log.sheet), len(log.sheet))
        if log.whole:
            enough = len(log.arms) > 1
            card = learner.score(log.chances, **safe, rows=card_rows) if enough else None
            policy = learner.freeze(card, **safe)
            return Learnt(policy, learner.tuning, summary.rows)
    except (TypeError, ValueError) as error:
        raise ValueError(log.sheet.located(error)) from None
    policy = _policy_of_all(learner, log, partitions, safe, card_rows, executor, watch)
    return Learnt(policy, learner.tuning, summary.rows)


class _Log:
    """The sample of a log, read: all rows of one that is short."""

    def __init__(self, trials: Trials, summary: Summary) -> None:
        self.trials, self.summary = trials, summary
        self.sheet: Sheet = summary.sample.sheet()
        self.whole = len(self.sheet) == summary.rows
        if "" in summary.header.columns and "" not in summary.columns and not trials.context:
            summary.header.warn_of_index()
        decimal_comma = summary.header.decimal_comma
        self.by_text = labels_of(summary.counts, decimal_comma=decimal_comma)
        self.labels = tuple(dict.fromkeys(self.by_text.values()))
        self.arms = [self.by_text[text] for text in summary.sample.arms]
        self.rewards = self.sheet.rewards(trials.reward, summary.truths)
        holds = None if self.whole else summary.holds
        self.table = self.sheet.table(summary.columns, trials.kinds, holds)
        self.eligible = (
            None if not trials.eligible else eligible_arms(self.sheet, trials.eligible, self.labels)
        )
        self.costs = None if trials.cost is None else self._kept("costs", trials.cost)
        self.censored = None if trials.censored is None else self._truths(trials.censored)
        self.chances = (
            None if trials.propensity is None else self.sheet.numbers([trials.propensity])[:, 0]
        )

    def check_whole(self, what: str) -> None:
        if not self.whole:
            raise ValueError(
                f"{what} are for logs of which every row can be kept; this one has "
                f"{self.summary.rows:,} rows, of which {len(self.sheet):,} are: learn from fewer "
                f"rows, or without {what}"
            )

    def _kept(self, what: str, column: str) -> FloatArray:
        self.check_whole(what)
        return self.sheet.rewards(column, self.sheet.are_truths(column))

    def _truths(self, column: str) -> list[bool]:
        values = self._kept("censored rewards", column)
        for value, place in zip(values, self.sheet.places, strict=True):
            if value not in (0.0, 1.0):
                where = f"{self.sheet.path}, {place}, column {column!r}"
                raise ValueError(f"{where}: 0 or 1, or false or true, is needed, got {value:g}")
        return [bool(value) for value in values]


def _features(features: Mapping[Any, Any] | None, log: _Log) -> dict[str, Any]:
    if features is None:
        return {}
    log.check_whole("features")
    written, missing = Written(log.labels), object()
    found = {written.read(str(arm), missing): row for arm, row in features.items()}
    if others := [str(arm) for arm in features if written.read(str(arm), missing) is missing]:
        warnings.warn(
            f"the features of {', '.join(others)} are not used: the log has no such arm",
            stacklevel=3,
        )
    for arm in log.labels:
        if arm not in found:
            raise ValueError(f"features must have a row for every arm of the log; {arm!r} has none")
    return {"features": {arm: found[arm] for arm in log.labels}}


def _safe_arm(
    fallback: Any, tolerance: float | None, labels: Written, prefix: str
) -> dict[str, Any]:
    if fallback is None:
        if tolerance is not None:
            raise ValueError(
                f"{prefix}tolerance says when {prefix}fallback is answered; give that too"
            )
        return {}
    missing = object()
    if (safe := labels.read(str(fallback), missing)) is missing:
        raise ValueError(f"{prefix}fallback must be one of {list(labels)}, got {fallback!r}")
    return {"fallback": safe, "tolerance": tolerance}


def _policy_of_all(
    learner: Learner,
    log: _Log,
    partitions: Sequence[Partition],
    safe: Mapping[str, Any],
    card_rows: int | None,
    executor: Any,
    watch: Watch,
) -> Policy:
    """Return the policy of sums over all rows; its card leaves out a uniform sample of them."""
    summary, state = log.summary, learner.state
    if (table := state.schema.table) is not None:
        state = replace(state, schema=ContextSchema.of(table.all_told()))
    if state.points is None:
        raise ValueError("exact beliefs rest on every row; sums need inducing points")
    dictionary = dictionary_of(state.model, state.points)
    add = Add(
        trials=log.trials,
        columns=summary.columns,
        holds=summary.holds,
        truths=summary.truths,
        schema=state.schema,
        places={text: log.labels.index(label) for text, label in log.by_text.items()},
        sign=state.rules.sign,
        kernel=learner.kernel,
        ridge=learner.ridge,
        dictionary=dictionary,
    )
    totals: Totals = map_and_sum(add, partitions, executor, watch("adding up"))
    kept, sums = summary.sample.uniform(), totals.sums
    outermost = totals.outermost.beyond(state.model.observed.contexts[kept])
    part = _part(state.model.observed, kept)
    counts = [sums[arm].count if arm in sums else 0 for arm in range(part.n_arms)]
    part.stands_for(counts)
    model = summed_model(state.model, part, dictionary, sums, totals.reward_sum, state.points)
    policy = Policy(replace(state, model=model).policy())
    if "fallback" in safe:
        seen = np.concatenate([part.contexts, outermost.contexts])
        policy = Policy(policy.state.with_fallback(safe["fallback"], safe["tolerance"], seen))
    chances = None if log.chances is None else np.asarray(log.chances)[kept]
    direct, robust = model.averages(policy.state.active, sums)
    average = totals.reward_sum / sum(counts)
    known = AllRows(sum(counts), average, direct, None if chances is None else robust)
    card = policy.scored(chances, card_rows, known)
    part.extend(outermost.contexts, outermost.arms, outermost.rewards)
    part.stands_for(counts)
    return Policy(replace(policy.state, card=card).made_now())


def _reading(learner: Learner, codings: Sequence[Coding]) -> Learner:
    """Return a new learner that reads contexts in this way; plain numbers need nothing."""
    plain = all(each.kind == Number() for each in codings)
    if plain and learner.state.schema.table is None:
        return learner
    schema = ContextSchema.of(TableSchema(tuple(codings)))
    return Learner.from_state(replace(learner.state, schema=schema))


def _part(log: Observations, places: IntArray) -> Observations:
    part = Observations(log.n_arms)
    part.extend(log.contexts[places], log.arms[places], log.rewards[places])
    if log.has_eligible:
        eligible = log.eligible(places)
        part.note_eligible(0, [tuple(np.flatnonzero(row).tolist()) for row in eligible])
    return part
