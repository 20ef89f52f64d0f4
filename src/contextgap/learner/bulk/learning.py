"""Learns from a log of any length: hyperparameters from a sample, the rest from sums over rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.labels import Label, Written
from contextgap.beliefs.widths import Width
from contextgap.kernels import Kernel
from contextgap.learner import Learner
from contextgap.learner.arguments import read_points
from contextgap.learner.bulk import passes
from contextgap.learner.bulk.partitions import Partition, Progress, map_and_sum, partitions_of
from contextgap.learner.bulk.passes import Add, Summarise, Summary, Totals
from contextgap.learner.state import LearnerState
from contextgap.methods.method import Method, read_method
from contextgap.models import POINTS, Dictionary, Observations, dictionary_of, summed_model
from contextgap.models.tuning import Tuning
from contextgap.policy import Policy
from contextgap.policy.scoring import AllRows
from contextgap.tables.columns import Columns, Number, read_kind
from contextgap.tables.contexts import ContextSchema
from contextgap.tables.files import Sheet, check_missing, read_names
from contextgap.tables.schema import Coding, TableSchema
from contextgap.tables.trials import Trials, eligible_arms, labels_of

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
    """Return what a learner is told about columns: nothing, unless the user said something."""
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
    work = Summarise(trials, passes.SAMPLE, of_an_arm)
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
    policy = _summed(learner, log, partitions, safe, card_rows, executor, watch)
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

    def _kept(self, what: str, column: str) -> FloatArray:
        if not self.whole:
            raise ValueError(
                f"{what} are for logs of which every row can be kept; this one has "
                f"{self.summary.rows:,} rows, of which {len(self.sheet):,} are: learn from fewer"
            )
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
    if not log.whole:
        raise ValueError(
            "features are for logs of which every row can be kept; this one has "
            f"{log.summary.rows:,} rows, of which {len(log.sheet):,} are: learn from fewer rows, "
            "or without features"
        )
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
    """Return the safe arm, and when it is answered, as ``freeze`` takes them."""
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


def _summed(
    learner: Learner,
    log: _Log,
    partitions: Sequence[Partition],
    safe: Mapping[str, Any],
    card_rows: int | None,
    executor: Any,
    watch: Watch,
) -> Policy:
    """Return the policy of all rows, with the learner's hyperparameters from the sample."""
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
    return _policy_of(state, log, dictionary, totals, safe, card_rows)


def _policy_of(
    state: LearnerState,
    log: _Log,
    dictionary: Dictionary,
    totals: Totals,
    safe: Mapping[str, Any],
    card_rows: int | None,
) -> Policy:
    """Return the policy of sums over all rows; its card leaves out a uniform sample of them."""
    kept, sums = log.summary.sample.uniform(), totals.sums
    outermost = totals.outermost.beyond(state.model.observed.contexts[kept])
    part = _part(state.model.observed, kept)
    counts = [sums[arm].count if arm in sums else 0 for arm in range(part.n_arms)]
    part.stands_for(counts)
    points = cast(int, state.points)
    model = summed_model(state.model, part, dictionary, sums, totals.reward_sum, points)
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
