"""Rewards measured in deployment: what the policy is worth, and whether rewards have changed."""

from __future__ import annotations

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.labels import Label
from contextgap.insight.betting import Wealth, confidence_sequence, exact_p_value, uniforms
from contextgap.insight.watch_report import Alarm, Interval, short

RANDOM = 0.5
"""The share of audits that are drawn from all rows alike: no weight exceeds 1 over it."""
_EARLY = 20.0  # audits after which a change counts as late


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
