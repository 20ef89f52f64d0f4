"""Watches a deployed policy: whether contexts and rewards are still like those learnt from.

Contexts alone show a shift of contexts: a test by betting on numbers of every row says
when. That rewards are no longer what they were shows in audits only: rewards measured now
and then, of rows drawn at random with known probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from threading import RLock
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from contextgap.base import checks, files
from contextgap.base.arrays import FloatArray, IntArray, evenly
from contextgap.base.checks import (
    Label,
    Mask,
    decode_label,
    encode_label,
    label_array,
    read_eligible,
)
from contextgap.base.components import synchronized
from contextgap.insight.betting import Ranks, Wealth, uniforms
from contextgap.insight.watch_baseline import (
    FEWEST,
    STATISTICS,
    Answered,
    LeftOut,
    Scores,
    finite,
)
from contextgap.insight.watch_report import (
    RANDOM,
    Alarm,
    AuditedRewards,
    Moved,
    Spans,
    WatchReport,
    deviations,
    short,
)
from contextgap.policy import Policy, Status
from contextgap.policy.answers import expected_regret, own_std
from contextgap.policy.state import Fallback, read_truth
from contextgap.tables.contexts import Encoded

_TOGETHER = 6000  # rows that are scored at once, unless somebody reads before
_POINTS = 64  # of the log, which distances are measured to
_STRIDE = 16  # expected regrets and certificates take long: of one row of so many, or of more
_EARLY = 1000.0  # rows after which a change counts as late
_CANDIDATES = 1000  # rows that audits are drawn from, at most
_PLAIN = ("outside", "fallback", "scored", "regret", "bound")  # sums of one column each


class Audit(NamedTuple):
    """Rows to measure.

    .. versionadded:: 0.3

    Parameters
    ----------
    places
        The rows, by position in the contexts given. A row that comes twice is measured twice.
    arms
        The arm to measure at each.
    weights
        The inverse of each row's relative probability of being drawn, for ``tell``.

    See Also
    --------
    insight.Watch.audit : Draws one.

    Examples
    --------
    >>> audit = policy.watch().audit(contexts, k=3)
    >>> len(audit.places), len(audit.arms)
    (3, 3)
    """

    places: IntArray
    arms: Any
    weights: FloatArray


class Watch:
    """A watch over a deployed policy, which detects changes; made by ``Policy.watch``.

    ``see`` may be called in place of ``policy.recommend``, and ``report`` at any time.

    .. versionadded:: 0.3

    Parameters
    ----------
    policy
        The policy.
    failure_probability
        The probability of a false alarm, ever, that is accepted; of audits, once more.
    block
        How many consecutive rows make up one unit, where contexts come in time order.
    baseline
        Contexts that the policy is known to be good for; by default those it was learnt from.
    reward_range
        The lowest and the highest reward that there can be, which intervals need; by default
        those of the log, until a reward beyond them is told.
    seed
        Of audits, and of the numbers that break ties.

    See Also
    --------
    Policy.watch : Makes one.

    Examples
    --------
    >>> import numpy as np, contextgap as cg
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(size=(300, 1))
    >>> arms = rng.integers(2, size=300)
    >>> learner = cg.Learner(2, kernel=cg.Gaussian(0.3), ridge=0.1)
    >>> policy = learner.fit(x, arms, arms * (x[:, 0] - 0.5)).freeze()
    >>> watch = policy.watch()
    >>> watch.see(rng.uniform(size=(1000, 1)))[:3]
    array([1, 1, 1])
    >>> watch.alarm is None
    True
    >>> _ = watch.see(rng.uniform(0.8, 1.4, size=(200, 1)))
    >>> print(watch.alarm)
    column 0 is outside what was seen in 33 % of rows since row 914; explore there
    """

    def __init__(
        self,
        policy: Policy,
        failure_probability: float = 0.05,
        *,
        block: int = 1,
        baseline: Any = None,
        reward_range: tuple[float, float] | None = None,
        seed: int = 0,
    ) -> None:
        checks.instance("policy", policy, Policy, "learner.freeze()")
        self.policy = policy
        self.failure_probability = checks.fraction("failure_probability", failure_probability)
        self.block = checks.whole("block", block, least=1)
        self._seed = checks.whole("seed", seed, least=0)
        self._rng = np.random.default_rng(self._seed)
        # Of the numbers that break ties; policies should not share their luck.
        self.salt = int(self._rng.integers(2**63)) ^ int(str(policy.provenance.data)[:15], 16)
        self._lock = RLock()
        np.empty(2**21)  # once this is freed, glibc keeps the memory of batches
        state = policy.state
        log = state.model.observed
        card = state.card
        if card is not None and card.rewards > len(log):
            raise ValueError(
                f"this compressed policy keeps {len(log)} of {card.rewards} rows, chosen to decide "
                "like it: watch the policy that it was made from"
            )
        if not len(log):
            raise ValueError("a watch needs a log to compare with, and there are no rewards")
        self._range = _read_range(reward_range, policy)
        self._declared = reward_range is not None or state.reward_range is not None
        self._codes = 0 if state.schema.layout is None else state.schema.layout.categories
        arms = policy.arms
        seen = policy.fallback or Fallback.of(arms[0], None, arms, log.contexts, self._codes)
        self._limits = np.array([seen.low, seen.high])
        left = LeftOut.of(policy)
        if baseline is None:
            rows, found, mask = left.contexts, left.answered, left.eligible
            regret, bound = left.doubts(policy)
            self._baseline = np.empty((0, rows.shape[1]))
        else:
            self._baseline, mask = state.read(baseline)[0], None
            rows = self._baseline
            found = self.answer(rows, mask)
            some = evenly(np.arange(len(rows)), 200)
            regret, bound = self._doubts(rows[some], None)
        self._start(rows, found, mask)
        deviation = rows.std(axis=0)
        self._centre, self._unit = rows.mean(axis=0), np.where(deviation > 0, deviation, 1.0)
        self._log = {
            "expected_regret": float(regret.mean()),
            "certificate": float(bound.mean()),
            "fallback": float(_falls_back(found.status).mean()),
            "outside": float(self._outside(rows).any(axis=1).mean()),
        }
        self._shares = np.bincount(found.arm, minlength=len(arms)) / len(rows)
        self._best_single = _best_single(policy)
        sizes = np.asarray(state.model.support_sizes(state.active), dtype=np.float64)
        ratio = np.square(sizes).sum() / max(1.0, sizes.sum() * (log.contexts.shape[1] + 16))
        self._stride = max(_STRIDE, math.ceil(ratio))
        numbers = rows.shape[1]
        self._parts = np.cumsum([len(_PLAIN), len(arms), numbers])  # arms, outside and moved follow
        self._spans = Spans(len(_PLAIN) + len(arms) + 2 * numbers)
        self.rows = 0
        self._held: list[tuple[FloatArray, Answered, Mask | None]] = []
        self._waiting = np.empty((0, self.scores.size))
        # Rows, one of each span, whose regret is computed when somebody asks.
        self._unscored = np.empty(0, dtype=np.intp), rows[:0], np.empty((0, len(arms)), dtype=bool)
        self._audited = AuditedRewards(
            left.residuals(policy),
            self._range,
            state.rules.sign,
            self.failure_probability,
            self.salt,
        )

    def _start(self, rows: FloatArray, found: Answered, mask: Mask | None) -> None:
        """Divide a baseline: points to measure distances to, scores for bins, scores to rank."""
        count = len(rows)
        chosen = evenly(np.arange(count), min(_POINTS, count // 4))
        rest = np.delete(np.arange(count), chosen)
        units = len(rest) // self.block
        if units < FEWEST:
            what = "contexts" if self.block == 1 else f"blocks of {self.block} rows"
            raise ValueError(
                f"a watch compares with at least {FEWEST} different {what}, got {units}; "
                "pass more as baseline"
            )
        often = np.bincount(found.arm[chosen], minlength=len(self.policy.arms))
        self.scores = Scores.of(self.policy, rows[chosen], often)
        among = None if mask is None else mask[rest]
        scores = self.scores.at(self.policy, rows[rest], found.mean[rest], found.arm[rest], among)
        whole = scores[: units * self.block].reshape(units, self.block, -1).mean(axis=1)
        third = np.arange(units) % 3 == 0
        self.ranks = Ranks.of(whole[third], whole[~third])
        self.wealth = Wealth(self.scores.size, _EARLY, 1 / self.failure_probability)

    @synchronized
    def see(self, contexts: Any, *, decisions: Any = None, eligible: Any = None) -> Any:
        """Take in contexts from deployment; return the arms that the policy recommends.

        Parameters
        ----------
        contexts
            One context or many, as for ``Policy.recommend``.
        decisions
            The arms that were deployed there, if not those that the policy answers.
        eligible
            The eligible arms, all by default, as for ``Policy.recommend``.

        Returns
        -------
        arm
            What ``policy.recommend`` returns, or the decisions given.

        Examples
        --------
        >>> policy.watch().see([[0.5, 0.0], [-0.5, 0.0]])
        array(['right', 'left'], dtype=object)
        """
        rows, single = self.policy.state.read(contexts)
        arms = self.policy.arms
        among = read_eligible(eligible, arms, len(rows), single=single, called="eligible")
        found = self.answer(rows, among)
        if decisions is not None:
            given = [decisions] if single else decisions
            arm = _read_arms("decisions", given, arms, len(rows))
            if among is not None and not among[np.arange(len(rows)), arm].all():
                raise ValueError("decisions must be eligible arms where arms are restricted")
            found = found._replace(arm=arm)
        self._held.append((rows, found, among))
        self.rows += len(rows)
        if self.rows - self._spans.rows >= _TOGETHER:
            self._take_held()
        return arms[int(found.arm[0])] if single else label_array(arms, found.arm)

    def _take_held(self) -> None:
        """Score rows that were held back: many at once."""
        held = self._held
        if not held:
            return
        rows = np.concatenate([each for each, _, _ in held])
        found = Answered(*map(np.concatenate, zip(*(each for _, each, _ in held), strict=True)))
        among = None
        if any(mask is not None for _, _, mask in held):
            every = np.ones(len(self.policy.arms), dtype=bool)
            masks = [np.tile(every, (len(x), 1)) if mask is None else mask for x, _, mask in held]
            among = np.concatenate(masks)
        parts = []
        for first in range(0, len(rows), _TOGETHER):
            part = slice(first, first + _TOGETHER)
            answered = Answered(found.arm[part], found.mean[part], found.status[part])
            parts.append((rows[part], answered, None if among is None else among[part]))
        while parts:  # what fails stays held
            self._held = parts
            self._take(*parts[0])
            parts = parts[1:]
        self._held = []

    def _take(self, rows: FloatArray, found: Answered, among: Mask | None) -> None:
        spans, arms, before = self._spans, len(self.policy.arms), self._spans.rows
        evidence = self._bet(self.scores.at(self.policy, rows, found.mean, found.arm, among))
        beyond = self._outside(rows)
        noted = np.zeros((len(rows), spans.sums.shape[1]))
        noted[:, 0], noted[:, 1] = beyond.any(axis=1), _falls_back(found.status)
        noted[np.arange(len(rows)), len(_PLAIN) + found.arm] = 1.0
        noted[:, self._parts[1] : self._parts[2]] = beyond
        with np.errstate(over="ignore"):
            moved = (rows - self._centre) / self._unit
        noted[:, self._parts[2] :] = np.clip(moved, -1e300, 1e300)  # their sums are finite
        spans.add(noted, evidence)
        some = np.arange(-before % self._stride, len(rows), self._stride)
        mask = np.ones((len(some), arms), dtype=bool) if among is None else among[some]
        new = before + some, rows[some], mask
        unscored = [np.concatenate(pair) for pair in zip(self._unscored, new, strict=True)]
        at = spans.of(unscored[0])
        first = np.flatnonzero(np.append(True, at[1:] > at[:-1]) & (spans.sums[at, 2] == 0))
        self._unscored = unscored[0][first], unscored[1][first], unscored[2][first]

    def _score(self) -> None:
        """Compute expected regrets and certificates that nobody has asked for before."""
        places, rows, among = self._unscored
        if len(places):
            doubts = self._doubts(rows, None if among.all() else among)
            sums = self._spans.sums[:, 2:5]
            sums[self._spans.of(places)] += np.stack([np.ones(len(places)), *doubts], axis=1)
            self._unscored = places[:0], rows[:0], among[:0]

    def _bet(self, scores: FloatArray) -> FloatArray:
        """Bet on the scores of whole blocks, and return wealth after each row; the rest waits."""
        if self.block == 1:
            return self._bet_on(scores)
        waiting = np.concatenate([self._waiting, scores])
        count = len(waiting) // self.block
        ends = (len(self._waiting) + np.arange(1, len(scores) + 1)) // self.block
        whole, self._waiting = np.split(waiting, [count * self.block])
        units = whole.reshape(count, self.block, self.scores.size).mean(axis=1)
        before = self.wealth.total
        return np.append(before, self._bet_on(units))[ends]

    def _bet_on(self, units: FloatArray) -> FloatArray:
        ties = uniforms(self.salt, self.wealth.rows, *units.shape)
        return self.wealth.bet(self.ranks.p_values(units, ties))

    def answer(self, rows: FloatArray, among: Mask | None = None) -> Answered:
        """Return what the policy answers at encoded contexts, and means of all arms.

        Examples
        --------
        >>> policy.watch().answer(contexts[:3]).arm.shape
        (3,)
        """
        policy = self.policy
        arm, status = np.zeros((2, len(rows)), dtype=np.intp)
        mean = np.full((len(rows), len(policy.arms)), -np.inf)
        if policy.fallback is not None:
            for where, found, evidence in policy.answers(rows, among):
                columns = np.array(evidence.columns)
                arm[where], status[where] = columns[found.arm], found.status
                mean[where[:, None], columns] = evidence.belief.mean
            return Answered(arm, mean, status)
        everywhere = np.arange(len(rows))
        for places, chooser in policy.chooser.groups(among):
            where, columns = everywhere[places], np.array(chooser.columns)
            for block in chooser.blocks(len(where)):
                evidence = chooser.evidence(rows[where[block]], among=len(where))
                picks = chooser.rules.method.recommender.choose_arms(evidence)
                arm[where[block]] = columns[picks]
                cheap = evidence.means
                means = evidence.belief.mean if cheap is None else cheap[0]
                if len(columns) == len(policy.arms):  # in less than half the time
                    mean[where[block]] = means
                else:
                    mean[where[block][:, None], columns] = means
        return Answered(arm, mean, status)

    def _doubts(self, rows: FloatArray, among: Mask | None) -> tuple[FloatArray, FloatArray]:
        """Return expected regrets and certificates, infinite ones as large as all others."""
        regret, bound = np.empty((2, len(rows)))
        for where, found, evidence in self.policy.answers(rows, among):
            belief = evidence.belief
            regret[where] = expected_regret(belief.mean, own_std(belief), found.arm)
            bound[where] = found.gap
        most = self.policy.state.largest_regret
        return finite(np.minimum(regret, most)), finite(np.clip(bound, 0.0, most))

    def _outside(self, rows: FloatArray) -> Mask:
        return np.asarray((rows < self._limits[0]) | (rows > self._limits[1]))

    @property
    @synchronized
    def evidence(self) -> float:
        """The wealth of the bets: the alarm is given at 1 / failure probability."""
        self._take_held()
        return self.wealth.total

    @property
    @synchronized
    def alarm(self) -> Alarm | None:
        """What changed in contexts, and what to do; None if nothing is known to have changed."""
        self._take_held()
        return self._in_words(self._moved(self._changed())) if self.wealth.alarm else None

    @synchronized
    def report(self) -> WatchReport:
        """Return a report of everything observed so far.

        Examples
        --------
        >>> watch = policy.watch()
        >>> _ = watch.see(contexts)
        >>> report = watch.report()
        >>> report.rows, report.alarm
        (40, None)
        """
        self._take_held()
        self._score()
        first = self._changed()
        spans, log, audited = self._spans, self._log, self._audited
        sums, lengths = spans.sums[first:], spans.lengths[first:]
        count = float(lengths.sum()) or math.nan  # without a row, nothing is known
        part = sums.sum(axis=0) / count
        shares = zip(
            part[len(_PLAIN) : self._parts[1]].tolist(), self._shares.tolist(), strict=True
        )
        moved = self._moved(first) if self.rows else ()
        value, gain = audited.values()
        with np.errstate(invalid="ignore"):
            average = spans.sums[:, 3:5] / spans.sums[:, 2:3]
        known = np.flatnonzero(sums[:, 2])
        weights = lengths[known] / (lengths[known].sum() or math.nan)
        regret, bound = weights @ average[first + known] if len(known) else (math.nan, math.nan)
        return WatchReport(
            rows=self.rows,
            since=int(spans.ends[first - 1]) if first else 0,
            alarm=self._in_words(moved),
            evidence=self.wealth.total,
            expected_regret=(float(regret), log["expected_regret"]),
            certificate=(float(bound), log["certificate"]),
            fallback=(float(part[1]), log["fallback"]),
            outside=(float(part[0]), log["outside"]),
            decisions=dict(zip(self.policy.arms, shares, strict=True)),
            moved=moved,
            audits=audited.count,
            value=value,
            gain=gain,
            drift=audited.alarm(),
            drift_evidence=audited.evidence,
            over_time={
                "row": spans.ends.astype(float),
                "expected_regret": average[:, 0],
                "certificate": average[:, 1],
                "outside": spans.sums[:, 0] / spans.lengths,
                "evidence": spans.evidence.copy(),
            },
        )

    def _changed(self) -> int:
        """Return the span of time in which contexts seem to have changed; the first if none did."""
        if self.wealth.alarm is None:
            return 0
        return int(self._spans.of(min(self.wealth.alarm[1] * self.block, self.rows - 1)))

    def _wealths(self) -> list[Wealth]:
        return [self.wealth, *self._audited.tests.values()]

    def _arrays(self) -> dict[str, NDArray[Any]]:
        """Return all numbers that rows and audits change, by the names they have in files."""
        spans, audited = self._spans, self._audited
        found = {
            "baseline": self._baseline,
            "edges": self.ranks.edges,
            "counts": self.ranks.counts,
            "waiting": self._waiting,
            "ends": spans.ends,
            "sums": spans.sums,
            "evidence": spans.evidence,
            "terms": np.array(audited.terms),
            "gains": np.array(audited.gains),
        }
        found |= {f"errors_{i}": each for i, each in enumerate(audited.errors.values())}
        return found | {f"bets_{i}": each.bets for i, each in enumerate(self._wealths())}

    @synchronized
    def save(self, path: files.File) -> None:
        """Write the watch to a ``.cgap`` file, without its policy, to go on after a restart.

        Parameters
        ----------
        path
            Where to write, or a binary file that is open already.

        Examples
        --------
        >>> policy.watch().save("watch.cgap")
        """
        self._take_held()
        self._score()
        drift = self._audited.drift
        header = {
            "failure_probability": self.failure_probability,
            "block": self.block,
            "seed": self._seed,
            "reward_range": list(self._range),
            "declared": self._declared,
            "beyond": self._audited.beyond,
            "data": self.policy.provenance.data,
            "audits": self._audited.count,
            "unpaired": self._audited.unpaired,
            "drift": drift and [drift[0], encode_label(drift[1])],
            "random": self._rng.bit_generator.state,
            "wealth": [[each.rows, each.alarm] for each in self._wealths()],
        }
        files.write(path, "watch", header, self._arrays())

    @classmethod
    def load(cls, path: files.File, policy: Policy) -> Self:
        """Read a watch from a ``.cgap`` file; it goes on as the saved one would have.

        Parameters
        ----------
        path
            A file that ``save`` wrote, or a binary file that is open already.
        policy
            The policy that it watched.

        Examples
        --------
        >>> policy.watch().save("watch.cgap")
        >>> watch = cg.insight.Watch.load("watch.cgap", policy)
        """
        header, arrays = files.read(path, "watch")
        checks.instance("policy", policy, Policy, "learner.freeze()")
        if header.get("data") != policy.provenance.data:
            raise ValueError(f"{path} watched a policy that was learnt from other data")
        with files.making_sense_of(path):
            names = "failure_probability", "block", "seed", "reward_range"
            given: dict[str, Any] = {name: header[name] for name in names}
            if len(arrays["baseline"]):
                given["baseline"] = Encoded(arrays["baseline"], policy.state.schema)
            found = cls(policy, **given)
            edges = arrays.setdefault("edges", found.ranks.edges)  # earlier files have none
            same = found.ranks.has(edges)
        if not same:
            raise ValueError(f"{path} watched a policy with other beliefs about the same data")
        with files.making_sense_of(path):
            found._restore(header, arrays)
        return found

    def _restore(self, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        spans, audited = self._spans, self._audited
        errors = [f"errors_{i}" for i in range(len(audited.errors))]
        longer = ("waiting", "ends", "sums", "evidence", "terms", "gains", *errors)
        for name, own in self._arrays().items():
            one, other = (each.shape[name in longer :] for each in (own, arrays[name]))
            if one != other or own.dtype != arrays[name].dtype:
                raise ValueError(f"{name} is {arrays[name].dtype} {arrays[name].shape}")
        spans.ends, spans.sums = arrays["ends"], arrays["sums"]
        spans.evidence = arrays["evidence"]
        checks.same_length(ends=len(spans.ends), sums=len(spans.sums), evidence=len(spans.evidence))
        self.rows = spans.rows
        self._rng.bit_generator.state = header["random"]
        self.ranks.counts, self._waiting = arrays["counts"], arrays["waiting"]
        audited.count = checks.whole("audits", header["audits"], least=0)
        audited.unpaired = bool(header["unpaired"])
        self._declared = bool(header.get("declared", True))
        audited.beyond = bool(header.get("beyond", False))
        if header["drift"] is not None:
            audited.drift = int(header["drift"][0]), decode_label(header["drift"][1])
        audited.terms, audited.gains = arrays["terms"].tolist(), arrays["gains"].tolist()
        audited.errors = dict(zip(audited.errors, map(arrays.__getitem__, errors), strict=True))
        for i, each in enumerate(self._wealths()):
            rows, alarm = header["wealth"][i]
            each.rows = int(rows)
            each.alarm = alarm and (int(alarm[0]), int(alarm[1]), int(alarm[2]))
            each.won, each.gain, each.since = arrays[f"bets_{i}"]

    def __str__(self) -> str:
        return str(self.report())

    def __repr__(self) -> str:
        return f"Watch({self.rows} rows, {self._audited.count} audits, of {self.policy!r})"

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()

    def _moved(self, first: int) -> tuple[Moved, ...]:
        """Return how columns moved since a span of time, most first.

        Of several numbers, it is the one that moved most.
        """
        schema, found = self.policy.state.schema, []
        part = self._spans.sums[first:].sum(axis=0) / self._spans.lengths[first:].sum()
        _, _, beyond, moved = np.split(part, self._parts)
        plain = len(moved) - self._codes  # codes of levels come last, and have no average
        for name, numbers in schema.parts().items():
            shifts = [float(moved[i]) for i in numbers if i < plain]
            outside = max(float(beyond[i]) for i in numbers)
            found.append(Moved(str(name), max(shifts, key=abs, default=0.0), outside))
        return tuple(sorted(found, key=lambda each: -abs(each.by) - 4 * each.outside))

    def _statistic(self, place: int) -> tuple[str, str]:
        """Return the name of a statistic, which is a column's for columns, and what it is."""
        if place < len(STATISTICS):
            return list(STATISTICS.items())[place]
        number = int(self.scores.columns[place - len(STATISTICS)])
        parts = self.policy.state.schema.parts().items()
        name = next(str(name) for name, numbers in parts if number in numbers)
        return name, f"values of {short(name)}"

    def _in_words(self, moved: tuple[Moved, ...]) -> Alarm | None:
        if self.wealth.alarm is None:
            return None
        row, since, statistic = self.wealth.alarm
        row, since = row * self.block, since * self.block
        sign, changed = self._statistic(statistic)
        when = f"since row {since:,}"
        most = max(moved, key=lambda each: each.outside)
        if most.outside > 0.02 + 2 * self._log["outside"]:
            said = f"is outside what was seen in {100 * most.outside:.0f} % of rows {when}"
            return Alarm(row, since, sign, f"{most.column} {said}; explore there")
        if sign == "distance" and self.wealth.won[statistic].argmax() % 2:  # they have fallen
            said = "contexts are nearer to the log's than these are to each other"
            return Alarm(row, since, sign, f"{said} {when}; watch rows not learnt from")
        most = max(moved, key=lambda each: abs(each.by))
        said = f"{changed} have changed {when}; {most.column} moved most"
        by = f"by {deviations(most.by)} standard deviations"
        return Alarm(row, since, sign, f"{said}, {by}: explore there")

    @synchronized
    def audit(
        self, contexts: Any, k: int = 20, *, costs: Any = None, against: bool = False
    ) -> Audit:
        """Return which rows to measure: drawn at random, those with most regret in doubt per cost.

        Half of the draws are from all rows alike. The others are from rows by their expected
        regret, times the evidence that rewards of the arm answered have changed, over the cost.

        Parameters
        ----------
        contexts
            Contexts that the policy met recently.
        k
            How many rows to draw.
        costs
            What each of the contexts costs to measure, all the same by default.
        against
            Whether to measure the log's best single arm, too, at rows where the policy answers
            another one, so that it is known what the policy gains over it.

        See Also
        --------
        insight.Watch.tell : Take in what was measured.

        Examples
        --------
        >>> audit = policy.watch(seed=1).audit(contexts, k=3)
        >>> audit.arms.shape, audit.weights.shape
        ((3,), (3,))
        """
        rows, single = self.policy.state.read(contexts)
        if single or not len(rows):
            raise ValueError("audit chooses among many contexts; pass a table of them")
        count = checks.whole("k", k, least=1)
        price = np.ones(len(rows)) if costs is None else checks.finite_vector("costs", costs)
        checks.same_length(contexts=len(rows), costs=len(price))
        if not (price > 0).all():
            raise ValueError(f"costs must be positive, got {price.min():g}")
        among = self._rng.permutation(len(rows))[:_CANDIDATES]
        rows, price = rows[among], price[among]
        arm = self.answer(rows).arm
        regret = finite(self.policy.expected_regret(Encoded(rows, self.policy.state.schema)))
        suspicion = np.array([self._audited.suspicion(label) for label in self.policy.arms])[arm]
        stake = (regret + regret.mean() + np.finfo(float).tiny) * suspicion / price
        chance = RANDOM / len(rows) + (1 - RANDOM) * stake / stake.sum()
        places = self._rng.choice(len(rows), size=count, p=chance / chance.sum())
        picks = arm[places]
        if read_truth("against", against):
            twice = 1 + (picks != self._best_single)
            places, picks = np.repeat(places, twice), np.repeat(picks, twice)
            picks[np.cumsum(twice) - 1] = self._best_single
        weights = 1 / (len(rows) * chance[places])
        return Audit(among[places], label_array(self.policy.arms, picks), weights)

    @synchronized
    def tell(self, contexts: Any, arms: Any, rewards: Any, *, weights: Any = None) -> None:
        """Take in rewards measured at contexts met in deployment.

        Parameters
        ----------
        contexts
            One context or many.
        arms
            The arm measured at each.
        rewards
            What it gave, or what it cost where rewards are costs.
        weights
            Those of the audit; 1 by default, for rows drawn at random, all alike.

        See Also
        --------
        insight.Watch.audit : Choose what to measure.

        Examples
        --------
        >>> watch = policy.watch(seed=1)
        >>> audit = watch.audit(contexts, k=8)
        >>> rewards = [measure(contexts[i], arm) for i, arm in zip(audit.places, audit.arms)]
        >>> watch.tell(contexts[audit.places], audit.arms, rewards, weights=audit.weights)
        >>> watch.report().audits
        8
        """
        policy, (low, high) = self.policy, self._range
        rows, single = policy.state.read(contexts)
        given = ([arms], [rewards]) if single else (arms, rewards)
        places = _read_arms("arms", given[0], policy.arms, len(rows))
        told = checks.finite_vector("rewards", given[1], checks.reward)
        weight = np.ones(len(rows))
        if weights is not None:
            weight = checks.finite_vector("weights", [weights] if single else weights)
        checks.same_length(contexts=len(rows), rewards=len(told), weights=len(weight))
        beyond = told[(told < low) | (told > high)]
        if len(beyond) and self._declared:
            raise ValueError(
                f"rewards must lie in reward_range, {low:g} to {high:g}, got {beyond[0]:g}"
            )
        if not ((weight > 0) & (weight <= 1 / RANDOM * (1 + 1e-9))).all():
            raise ValueError(f"weights must be those of the audit, got {weight.tolist()}")
        expected = policy.beliefs(Encoded(rows, policy.state.schema))
        own = np.arange(len(rows)), places
        spread = np.hypot(expected.std[own], math.sqrt(policy.ridge))
        z = policy.state.rules.sign * (told - expected.mean[own]) / spread
        answered, audited = self.answer(rows).arm, self._audited
        terms = weight * (told - (low + high) / 2)
        audited.beyond |= len(beyond) > 0
        audited.note_value(rows, places, answered, self._best_single, terms)
        # Errors of rewards of two values are larger where the policy is in doubt, and audits prefer
        # such rows. Kept in proportion to their weights, they are those of rows drawn at random.
        kept = np.ones(len(rows), dtype=bool)
        if weights is not None and policy.state.reward_range is not None:
            kept = uniforms(self.salt ^ 1, audited.count, len(rows), 1)[:, 0] < weight * RANDOM
        for row, (place, best) in enumerate(zip(places.tolist(), answered.tolist(), strict=True)):
            audited.count += 1
            if place == best and kept[row]:
                audited.note_error(policy.arms[place], float(z[row]))


def _best_single(policy: Policy) -> int:
    """Return the place of the arm with the highest mean over the log's contexts."""
    log = policy.state.model.observed.contexts
    means = policy.raw_means(log[evenly(np.arange(len(log)), 1000)]).mean(axis=0)
    return int((policy.state.rules.sign * means).argmax())


def _read_range(given: Any, policy: Policy) -> tuple[float, float]:
    if given is None:
        if policy.state.reward_range is not None:
            return policy.state.reward_range
        told = policy.state.rules.sign * policy.state.model.observed.rewards
        return float(told.min()), float(told.max())
    low, high = (checks.real("reward_range", each) for each in given)
    if low >= high:
        raise ValueError(f"reward_range must be the lowest and the highest reward, got {given!r}")
    return low, high


def _read_arms(name: str, given: Any, arms: tuple[Label, ...], count: int) -> IntArray:
    places = {arm: place for place, arm in enumerate(arms)}
    labels = given.tolist() if hasattr(given, "tolist") else given
    if isinstance(labels, str) or not isinstance(labels, Sequence):
        raise TypeError(f"{name} must be a sequence of arms, one per context, got {given!r}")
    unknown = [each for each in labels if not isinstance(each, Hashable) or each not in places]
    if unknown:
        raise ValueError(f"{name} must be among {list(arms)}, got {unknown[0]!r}")
    checks.same_length(contexts=count, **{name: len(labels)})
    return np.array([places[label] for label in labels], dtype=np.intp)


def _falls_back(status: IntArray) -> Mask:
    return np.asarray((status == Status.BOUND_TOO_LARGE) | (status == Status.OUTSIDE))
