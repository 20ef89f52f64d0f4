"""What a watch has to say: averages over time, what audits show, alarms, and a report."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contextgap.base import display
from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.checks import Label, encode_label
from contextgap.insight.betting import Wealth, confidence_sequence, exact_p_value, uniforms

RANDOM = 0.5
"""The share of audits that are drawn from all rows alike: no weight exceeds 1 over it."""
_EARLY = 20.0  # audits after which a change counts as late
_FINE = 16  # how many times older than long spans of time are


class Interval(NamedTuple):
    """An estimate and the interval that contains the truth.

    .. versionadded:: 0.3

    Parameters
    ----------
    estimate
        The estimate.
    low, high
        The ends of the interval.

    Examples
    --------
    >>> watch = policy.watch(seed=1)
    >>> audit = watch.audit(contexts, k=8)
    >>> rewards = [measure(contexts[i], arm) for i, arm in zip(audit.places, audit.arms)]
    >>> watch.tell(contexts[audit.places], audit.arms, rewards, weights=audit.weights)
    >>> value = watch.report().value
    >>> value.low <= value.estimate <= value.high
    True
    """

    estimate: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.estimate:.4g} [{self.low:.4g}, {self.high:.4g}]"


@dataclass(frozen=True)
class Alarm:
    """A detected change; print it.

    .. versionadded:: 0.3

    Parameters
    ----------
    row
        After how many rows, or audits, the alarm was given.
    since
        The row after which the change seems to have begun.
    sign
        What shows it: one of ``STATISTICS``, a column, or the arm whose rewards changed.
    advice
        What changed and what to do, in words.

    Examples
    --------
    >>> watch = policy.watch()
    >>> _ = watch.see(contexts + 3.0)
    >>> watch.alarm.row, watch.alarm.sign
    (15, 'lead')
    """

    row: int
    since: int
    sign: Label
    advice: str

    def __str__(self) -> str:
        return self.advice


@dataclass(frozen=True)
class Moved:
    """How a column moved.

    .. versionadded:: 0.3

    Parameters
    ----------
    column
        Its name.
    by
        The difference of its averages, in standard deviations of the log.
    outside
        The share of rows in which it lies outside what was seen.

    Examples
    --------
    >>> watch = policy.watch()
    >>> _ = watch.see(contexts + [0.0, 3.0])
    >>> watch.report().moved[0].column
    'y'
    """

    column: str
    by: float
    outside: float


@dataclass(frozen=True)
class WatchReport:
    """The report of a watch; print it.

    Averages and shares are those since the change, if there was an alarm; else since the start.
    Pairs hold the number now, and that of the log.

    .. versionadded:: 0.3

    Parameters
    ----------
    rows
        How many rows were seen.
    since
        The row after which averages and shares begin.
    alarm
        What changed in contexts; None if nothing is known to have changed.
    evidence
        The wealth of the bets: the alarm is given at 1 / failure probability.
    expected_regret, certificate
        Averages at some rows.
    fallback, outside
        Shares of rows that the safe arm answered, and that lie outside what was seen.
    decisions
        By arm, the share of rows.
    moved
        Columns, those that moved most first.
    audits
        How many rewards were told.
    value
        The average reward of the policy, or cost, at the contexts that audits were drawn from; None
        without audits, and after rewards beyond the log's if no range was given.
    gain
        How much better that is than the log's best single arm; None unless that arm was audited.
    drift
        What changed in rewards; None if nothing is known to have changed.
    drift_evidence
        The wealth of the bets on audits.
    over_time
        Columns of the same numbers over time: ``row`` (the last one), ``expected_regret``,
        ``certificate``, ``outside``, ``evidence``.

    Examples
    --------
    >>> watch = policy.watch()
    >>> _ = watch.see(contexts)
    >>> report = watch.report()
    >>> sorted(report.decisions)
    ['left', 'right']
    """

    rows: int
    since: int
    alarm: Alarm | None
    evidence: float
    expected_regret: tuple[float, float]
    certificate: tuple[float, float]
    fallback: tuple[float, float]
    outside: tuple[float, float]
    decisions: Mapping[Label, tuple[float, float]]
    moved: tuple[Moved, ...]
    audits: int
    value: Interval | None
    gain: Interval | None
    drift: Alarm | None
    drift_evidence: float
    over_time: Mapping[str, FloatArray] = field(repr=False)

    def describe(self) -> dict[str, Any]:
        """Return the report as plain values; what is not known is None.

        Examples
        --------
        >>> watch = policy.watch()
        >>> _ = watch.see(contexts)
        >>> watch.report().describe()["rows"]
        40
        """

        def known(value: Any) -> Any:
            if isinstance(value, float):
                return value if math.isfinite(value) else None
            if isinstance(value, tuple):
                return [known(each) for each in value]
            return value

        names = ("rows", "since", "evidence", "expected_regret", "certificate", "fallback")
        found = {name: known(getattr(self, name)) for name in (*names, "outside", "audits")}
        for name in ("alarm", "drift"):
            alarm = getattr(self, name)
            found[name] = alarm and {**vars(alarm), "sign": encode_label(alarm.sign)}
        arms = [encode_label(arm) for arm in self.decisions]
        shares = [known(pair) for pair in self.decisions.values()]
        found["decisions"] = [list(each) for each in zip(arms, shares, strict=True)]
        found["moved"] = [vars(each) for each in self.moved]
        for name in ("value", "gain"):
            found[name] = known(getattr(self, name))
        found["drift_evidence"] = known(self.drift_evidence)
        found["over_time"] = {
            name: [known(each) for each in column.tolist()]
            for name, column in self.over_time.items()
        }
        return found

    def lines(self) -> list[tuple[str, str, str]]:
        """Return the report for people: a name, what it is now, what it was in the log.

        Examples
        --------
        >>> watch = policy.watch()
        >>> _ = watch.see(contexts)
        >>> watch.report().lines()[0][0]
        'expected regret'
        """
        found = [
            (name.replace("_", " "), _number(now), _number(then))
            for name, (now, then) in (
                ("expected_regret", self.expected_regret),
                ("certificate", self.certificate),
            )
        ]
        shares = {"answered by the safe arm": self.fallback, "outside what was seen": self.outside}
        shares |= {f"arm {short(arm)}": pair for arm, pair in self.decisions.items()}
        found += [(name, _percent(now), _percent(then)) for name, (now, then) in shares.items()]
        found += [
            (f"{short(each.column)} moved by", f"{deviations(each.by)} std", "")
            for each in self.moved[:5]
        ]
        return found

    def __str__(self) -> str:
        head = f"{self.rows:,} rows seen, evidence of a shift {self.evidence:.3g}"
        said = [str(self.alarm)] if self.alarm else ["no alarm: contexts are like the log's"]
        if self.audits:
            value = self.value or "unknown: rewards are beyond the log's; pass reward_range"
            said.append(f"{self.audits} audits: value {value}")
            if self.gain is not None:
                said.append(f"  gain over the best single arm {self.gain}")
            said.append(str(self.drift) if self.drift else "  no alarm: rewards are like the log's")
        since = f"since row {self.since:,}" if self.since else "now"
        table = [("", since, "in the log"), *self.lines()]
        size = max(len(name) for name, _, _ in table)
        rows = [f"  {name:{size}}  {now:>14}  {then:>12}".rstrip() for name, now, then in table]
        return "\n".join([head, *_wrapped(said), *rows])

    def _repr_html_(self) -> str:
        title = f"{self.rows:,} rows seen; " + (str(self.alarm) if self.alarm else "no alarm")
        return display.table(title, ["", "now", "in the log"], self.lines())


class Spans:
    """Sums over spans of time, each at most a sixteenth as long as it is old."""

    def __init__(self, columns: int) -> None:
        self.ends = np.zeros(0, dtype=np.intp)  # how many rows there were at the end of each
        self.sums = np.zeros((0, columns))
        self.evidence = np.zeros(0)  # the most of it in every span

    @property
    def rows(self) -> int:
        """How many rows there were."""
        return int(self.ends[-1]) if len(self.ends) else 0

    def add(self, noted: FloatArray, evidence: FloatArray) -> None:
        """Take in new rows."""
        ends = np.append(self.ends, self.rows + np.arange(1, len(noted) + 1))
        # Where a span ends does not depend on when rows came together.
        unit = np.left_shift(1, np.log2(np.maximum(1, (ends[-1] - ends) / _FINE)).astype(np.intp))
        last = np.flatnonzero(ends & (unit - 1) == 0)
        firsts = np.append(0, last[:-1] + 1)
        self.ends = ends[last]
        self.sums = np.add.reduceat(np.concatenate([self.sums, noted]), firsts)
        self.evidence = np.maximum.reduceat(np.append(self.evidence, evidence), firsts)

    def of(self, row: NDArray[np.intp] | int) -> NDArray[np.intp]:
        """Return the places of the spans that rows are in."""
        return np.searchsorted(self.ends, row, side="right")

    @property
    def lengths(self) -> IntArray:
        """How many rows each has."""
        return np.diff(self.ends, prepend=0)


class AuditedRewards:
    """What is known from audits, each of a reward at a context met in deployment."""

    def __init__(
        self,
        errors: dict[Label, FloatArray],
        reward_range: tuple[float, float],
        sign: float,
        failure_probability: float,
        salt: int,
    ) -> None:
        self.errors = errors  # standardised, of each arm: those of the log, then those of audits
        self.range = reward_range
        self.count = 0
        self.terms: list[float] = []  # of the value
        self.gains: list[float] = []
        self.beyond = False  # whether a reward was beyond the range
        self.unpaired = False  # whether the best single arm was not measured somewhere
        self.tests = {arm: Wealth(1, _EARLY) for arm in errors}
        self.drift: tuple[int, Label] | None = None
        self._sign = sign  # −1 where rewards are costs
        self._failure_probability = failure_probability
        self._salt = salt

    def note_value(
        self, rows: FloatArray, arms: IntArray, answered: IntArray, single: int, terms: FloatArray
    ) -> None:
        """Note terms of the policy's value, and of its gain where both arms were measured.

        ``single`` is the log's best single arm.
        """
        for i, (arm, best) in enumerate(zip(arms.tolist(), answered.tolist(), strict=True)):
            if arm != best:
                continue
            self.terms.append(float(terms[i]))
            paired = i + 1 < len(rows) and (rows[i] == rows[i + 1]).all()
            if best == single:
                self.gains.append(0.0)
            elif paired and arms[i + 1] == single:
                self.gains.append(self._sign * float(terms[i] - terms[i + 1]))
            else:
                self.unpaired = True

    def note_error(self, arm: Label, error: float) -> None:
        """Bet on the rank of one more standardised error among those of its arm."""
        if arm not in self.tests:
            return
        test, before = self.tests[arm], self.errors[arm]
        tie = float(uniforms(self._salt ^ self.count, test.rows, 1, 1)[0, 0])
        test.bet(np.array([[exact_p_value(-error, -before, tie)]]))
        self.errors[arm] = np.append(before, error)
        if self.drift is None and self.evidence >= 1 / self._failure_probability:
            self.drift = self.count, max(self.tests, key=lambda each: self.tests[each].total)

    @property
    def evidence(self) -> float:
        """The wealth of all tests, which is the average of theirs."""
        totals = [test.total for test in self.tests.values()]
        return float(np.mean(totals)) if totals else 1.0

    def suspicion(self, arm: Label) -> float:
        """Return the evidence that an arm's rewards have changed, up to that of an alarm."""
        test = self.tests.get(arm)
        return 1.0 if test is None else min(test.total, 1 / self._failure_probability)

    def alarm(self) -> Alarm | None:
        """Return what changed in rewards, in words; None if nothing is known to have changed."""
        if self.drift is None:
            return None
        row, arm = self.drift
        test = self.tests[arm]
        since = int(test.since.flat[test.won.argmax()])
        errors = self.errors[arm][since - test.rows :]
        middle = float(np.median(errors))
        by = f"{abs(middle):.1f} standard deviations {'worse' if middle < 0 else 'better'}"
        about = (
            f"rewards of {short(arm)!r} have changed: its last {len(errors)} audits are {by} than"
        )
        return Alarm(row, since, arm, f"{about} expected (median); explore it again")

    def values(self) -> tuple[Interval | None, Interval | None]:
        """Return the policy's value and its gain, with intervals that hold at any time."""
        if not self.terms or self.beyond:
            return None, None
        low, high = self.range
        middle, length = (low + high) / 2, (high - low) / RANDOM
        ends = confidence_sequence(self.terms, length, self._failure_probability)
        mean = middle + float(np.mean(self.terms))
        value = Interval(mean, max(low, middle + ends[0]), min(high, middle + ends[1]))
        if self.unpaired:
            return value, None
        ends = confidence_sequence(self.gains, 2 * length, self._failure_probability)
        least = max(low - high, ends[0]), min(high - low, ends[1])
        return value, Interval(float(np.mean(self.gains)), *least)


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.4g}"


def _percent(share: float) -> str:
    return "–" if math.isnan(share) else f"{100 * share:.3g} %"


def short(label: Any) -> str:
    """Return a label or a name that fits into a column."""
    text = str(label)
    if len(text) <= 24:
        return text
    return f"{text[:11]}…{text[-12:]}"  # names often differ at their ends


def deviations(by: float) -> str:
    """Return a number of standard deviations in words."""
    return f"{by:+.2f}" if abs(by) < 1e4 else f"{by:+.1e}"


def _wrapped(lines: list[str]) -> list[str]:
    return [part for line in lines for part in textwrap.wrap(line, 80, subsequent_indent="  ")]
