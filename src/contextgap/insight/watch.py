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
from contextgap.base.descriptors import synchronized
from contextgap.base.labels import Label, decode_label, encode_label, label_array
from contextgap.insight.betting import Ranks, Wealth, confidence_sequence, exact_p_value, uniforms
from contextgap.insight.watch_baseline import (
    FEWEST,
    MOST,
    STATISTICS,
    Answered,
    LeftOut,
    Scores,
    finite,
)
from contextgap.insight.watch_report import Alarm, Interval, Moved, Spans, WatchReport, short
from contextgap.policy import Policy, Status
from contextgap.policy.answers import expected_regret, own_std
from contextgap.policy.fallback import Fallback
from contextgap.policy.state import read_truth
from contextgap.tables.contexts import Encoded
from contextgap.tables.eligible import Mask, read_eligible

_TOGETHER = 64  # rows that are scored at once, unless somebody reads before
_POINTS = 64  # of the log, which distances are measured to
_STRIDE = 128  # certificates take long: they are computed at one row of so many, or of more
_EARLY, _EARLY_AUDITS = 1000.0, 20.0  # rows, and audits, after which a change counts as late
_CANDIDATES = 1000  # rows that audits are drawn from, at most
_SUSPECT = 100.0  # times as often rows are drawn, at most, whose arm seems to have changed
_RANDOM = 0.5  # of audits are drawn from all rows alike, so that no weight exceeds 2


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
        The lowest and the highest reward that there can be; by default those of the log.
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
    column 0 is outside what was seen in 46 % of rows since row 1,000; explore there
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
        # Of the numbers that break ties: policies should not have their luck in common.
        self.salt = int(self._rng.integers(2**63)) ^ int(str(policy.provenance.data)[:15], 16)
        self._lock = RLock()
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
        codes = 0 if state.schema.layout is None else state.schema.layout.categories
        arms = policy.arms
        seen = policy.fallback or Fallback.of(arms[0], None, arms, log.contexts, codes)
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
        self._spans = Spans(
            **dict.fromkeys(("rows", "outside", "fallback", "looked", "regret", "bound"), ()),
            arms=(len(arms),),
            beyond=rows.shape[1:],
            moved=rows.shape[1:],
        )
        self.rows = 0
        self._held: list[tuple[FloatArray, Answered, Mask | None]] = []
        self._waiting = np.empty((0, self.scores.size))
        self._residuals = left.residuals(policy)
        self._audits = 0
        self._terms: list[float] = []  # of the value
        self._gains: list[float] = []
        self._unpaired = False  # whether the best single arm was not measured somewhere
        self._tests = {arm: Wealth(1, _EARLY_AUDITS) for arm in self._residuals}
        self._drift: tuple[int, Label] | None = None

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
        among = read_eligible(eligible, self.policy.arms, len(rows), single=single)
        found = self.answer(rows, among)
        if decisions is not None:
            given = [decisions] if single else decisions
            arm = _read_arms("decisions", given, self.policy.arms, len(rows))
            if among is not None and not among[np.arange(len(rows)), arm].all():
                raise ValueError("decisions must be eligible arms where arms are restricted")
            found = found._replace(arm=arm)
        self._held.append((rows, found, among))
        self.rows += len(rows)
        if self.rows - self._spans.rows >= _TOGETHER:
            self._take_held()
        arms = self.policy.arms
        return arms[int(found.arm[0])] if single else label_array(arms, found.arm)

    def _take_held(self) -> None:
        """Score rows that were held back: many at once take hardly longer than one."""
        held, self._held = self._held, []
        if not held:
            return
        rows = np.concatenate([each for each, _, _ in held])
        parts = {name: [getattr(each, name) for _, each, _ in held] for name in Answered._fields}
        found = Answered(*(np.concatenate(each) for each in parts.values()))
        among = None
        if any(mask is not None for _, _, mask in held):
            shape = len(self.policy.arms)
            among = np.concatenate(
                [np.ones((len(x), shape), bool) if mask is None else mask for x, _, mask in held]
            )
        for first in range(0, len(rows), MOST):
            part = slice(first, first + MOST)
            answered = Answered(found.arm[part], found.mean[part], found.status[part])
            self._take(rows[part], answered, None if among is None else among[part])

    def _take(self, rows: FloatArray, found: Answered, among: Mask | None) -> None:
        scores = self.scores.at(self.policy, rows, found.mean, found.arm, among)
        before = self._spans.rows + np.arange(len(rows))
        some = np.flatnonzero(before % self._stride == 0)
        regret, bound = self._doubts(rows[some], None if among is None else among[some])
        evidence = self._bet(scores)
        looked, doubts = np.zeros(len(rows)), np.zeros((2, len(rows)))
        looked[some], doubts[:, some] = 1.0, (regret, bound)
        beyond = self._outside(rows)
        noted = {
            "rows": np.ones(len(rows)),
            "outside": beyond.any(axis=1),
            "fallback": _falls_back(found.status),
            "looked": looked,
            "regret": doubts[0],
            "bound": doubts[1],
            "arms": np.eye(len(self.policy.arms))[found.arm],
            "beyond": beyond,
            "moved": (rows - self._centre) / self._unit,
        }
        self._spans.add(noted, evidence)

    def _bet(self, scores: FloatArray) -> FloatArray:
        """Bet on the scores of whole blocks, and return wealth after each row; the rest waits."""
        waiting = np.concatenate([self._waiting, scores])
        count = len(waiting) // self.block
        ends = (len(self._waiting) + np.arange(1, len(scores) + 1)) // self.block
        self._waiting = waiting[count * self.block :]
        whole = waiting[: count * self.block]
        units = whole.reshape(count, self.block, self.scores.size).mean(axis=1)
        totals = np.array([self.wealth.total])
        if count:
            ties = uniforms(self.salt, self.wealth.rows, *units.shape)
            totals = np.append(totals, self.wealth.bet(self.ranks.p_values(units, ties)))
        return totals[ends]

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
                mean[np.ix_(where, columns)] = evidence.belief.mean
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
                mean[np.ix_(where[block], columns)] = means
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
    def evidence(self) -> float:
        """The wealth of the bets: the alarm is given at 1 / failure probability."""
        return self.report().evidence

    @property
    def alarm(self) -> Alarm | None:
        """What changed in contexts, and what to do; None if nothing is known to have changed."""
        return self.report().alarm

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
        since = 0 if self.wealth.alarm is None else self.wealth.alarm[1] * self.block
        since, part = self._spans.since(since)
        count, looked = float(part["rows"]), float(part["looked"])
        # Without a row, nothing is known.
        share = {each: float(part[each]) / (count or math.nan) for each in ("fallback", "outside")}
        doubt = {each: float(part[each]) / (looked or math.nan) for each in ("regret", "bound")}
        shares = (part["arms"] / (count or math.nan)).tolist()
        pairs = zip(shares, self._shares.tolist(), strict=True)
        moved = self._moved(part["moved"], part["beyond"], count) if count else ()
        value, gain = self._values()
        return WatchReport(
            rows=self.rows,
            since=since,
            alarm=self._in_words(moved),
            evidence=self.wealth.total,
            expected_regret=(doubt["regret"], self._log["expected_regret"]),
            certificate=(doubt["bound"], self._log["certificate"]),
            fallback=(share["fallback"], self._log["fallback"]),
            outside=(share["outside"], self._log["outside"]),
            decisions=dict(zip(self.policy.arms, pairs, strict=True)),
            moved=moved,
            audits=self._audits,
            value=value,
            gain=gain,
            drift=self._rewards_in_words(),
            drift_evidence=self._drift_evidence(),
            over_time=self._spans.over_time(),
        )

    def _wealths(self) -> list[Wealth]:
        return [self.wealth, *self._tests.values()]

    def _arrays(self) -> dict[str, NDArray[Any]]:
        """Return all numbers that rows and audits change, by the names they have in files."""
        found = {
            "baseline": self._baseline,
            "counts": self.ranks.counts,
            "waiting": self._waiting,
            "terms": np.array(self._terms),
            "gains": np.array(self._gains),
            "evidence": self._spans.evidence,
        }
        found |= {f"spans_{name}": sums for name, sums in self._spans.sums.items()}
        found |= {f"errors_{i}": each for i, each in enumerate(self._residuals.values())}
        for i, each in enumerate(self._wealths()):
            found |= {f"{name}_{i}": vars(each)[name] for name in ("won", "gain", "since")}
        return found

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
        header = {
            "failure_probability": self.failure_probability,
            "block": self.block,
            "seed": self._seed,
            "reward_range": list(self._range),
            "data": self.policy.provenance.data,
            "rows": self.rows,
            "audits": self._audits,
            "unpaired": self._unpaired,
            "drift": self._drift and [self._drift[0], encode_label(self._drift[1])],
            "random": self._rng.bit_generator.state,
            "width": self._spans.width,
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
            names = ("failure_probability", "block", "seed", "reward_range")
            given: dict[str, Any] = {name: header[name] for name in names}
            if len(arrays["baseline"]):
                given["baseline"] = Encoded(arrays["baseline"], policy.state.schema)
            found = cls(policy, **given)
            found._restore(header, arrays)
        return found

    def _restore(self, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        longer = ("terms", "gains", "waiting", *(f"errors_{i}" for i in range(len(self._tests))))
        for name, own in self._arrays().items():
            one, other = (each.shape[name in longer :] for each in (own, arrays[name]))
            if one != other or own.dtype != arrays[name].dtype:
                raise ValueError(f"{name} is {arrays[name].dtype} {arrays[name].shape}")
        self.rows = self._spans.rows = checks.whole("rows", header["rows"], least=0)
        self._audits = checks.whole("audits", header["audits"], least=0)
        self._unpaired = bool(header["unpaired"])
        if header["drift"] is not None:
            self._drift = int(header["drift"][0]), decode_label(header["drift"][1])
        self._rng.bit_generator.state = header["random"]
        self._spans.width = checks.whole("width", header["width"], least=1)
        self._spans.evidence = arrays["evidence"]
        self._spans.sums = {name: arrays[f"spans_{name}"] for name in self._spans.sums}
        self.ranks.counts, self._waiting = arrays["counts"], arrays["waiting"]
        self._terms, self._gains = arrays["terms"].tolist(), arrays["gains"].tolist()
        self._residuals = {arm: arrays[f"errors_{i}"] for i, arm in enumerate(self._residuals)}
        for i, (each, (rows, alarm)) in enumerate(
            zip(self._wealths(), header["wealth"], strict=True)
        ):
            each.rows, each.alarm = (
                int(rows),
                alarm and (int(alarm[0]), int(alarm[1]), int(alarm[2])),
            )
            each.won, each.gain, each.since = (
                arrays[f"{name}_{i}"] for name in ("won", "gain", "since")
            )

    def __str__(self) -> str:
        return str(self.report())

    def __repr__(self) -> str:
        return f"Watch({self.rows} rows, {self._audits} audits, of {self.policy!r})"

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()

    def _moved(self, moved: FloatArray, beyond: FloatArray, count: float) -> tuple[Moved, ...]:
        """Return how columns moved, most first; of several numbers, the one that moved most."""
        schema, found = self.policy.state.schema, []
        codes = 0 if schema.layout is None else schema.layout.categories
        plain = len(moved) - codes  # codes of levels come last, and have no average
        for name, numbers in schema.parts().items():
            shifts = [float(moved[i]) / count for i in numbers if i < plain]
            outside = max(float(beyond[i]) for i in numbers) / count
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
        most = max(moved, key=lambda each: abs(each.by))
        said = f"{changed} have changed {when}; {most.column} moved most"
        return Alarm(
            row, since, sign, f"{said}, by {most.by:+.2f} standard deviations: explore there"
        )

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
        among = self._rng.permutation(len(rows))[:_CANDIDATES]  # whose doubts are computed
        rows, price = rows[among], price[among]
        arm = self.answer(rows).arm
        regret = finite(self.policy.expected_regret(Encoded(rows, self.policy.state.schema)))
        suspicion = np.array([self._suspicion(label) for label in self.policy.arms])[arm]
        stake = (regret + regret.mean() + np.finfo(float).tiny) * suspicion / price
        chance = _RANDOM / len(rows) + (1 - _RANDOM) * stake / stake.sum()
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
        sizes = {"rewards": len(told), "weights": len(weight)}
        checks.same_length(contexts=len(rows), **sizes)
        if len(wrong := told[(told < low) | (told > high)]):
            raise ValueError(
                f"rewards must lie in reward_range, {low:g} to {high:g}, got {wrong[0]:g}; pass "
                "the lowest and the highest that there can be to policy.watch"
            )
        if not ((weight > 0) & (weight <= 1 / _RANDOM * (1 + 1e-9))).all():
            raise ValueError(f"weights must be those of the audit, got {weight.tolist()}")
        expected = policy.beliefs(Encoded(rows, policy.state.schema))
        own = np.arange(len(rows)), places
        spread = np.hypot(expected.std[own], math.sqrt(policy.ridge))
        z = policy.state.rules.sign * (told - expected.mean[own]) / spread
        answered = self.answer(rows).arm
        self._value(rows, places, answered, weight * (told - (low + high) / 2))
        for place, best, error in zip(places.tolist(), answered.tolist(), z.tolist(), strict=True):
            self._audits += 1
            if place == best:
                self._test(policy.arms[place], error)

    def _value(
        self, rows: FloatArray, places: IntArray, answered: IntArray, terms: FloatArray
    ) -> None:
        """Note terms of the policy's value, and of its gain where both arms were measured."""
        single = self._best_single
        for i, (place, best) in enumerate(zip(places.tolist(), answered.tolist(), strict=True)):
            if place == best:
                self._terms.append(float(terms[i]))
                paired = i + 1 < len(rows) and (rows[i] == rows[i + 1]).all()
                if best == single:
                    self._gains.append(0.0)
                elif paired and places[i + 1] == single:
                    self._gains.append(
                        self.policy.state.rules.sign * float(terms[i] - terms[i + 1])
                    )
                else:
                    self._unpaired = True

    def _test(self, arm: Label, z: float) -> None:
        """Bet on the rank of one more standardised error among those of its arm."""
        test = self._tests.get(arm)
        if test is None:
            return
        before = self._residuals[arm]
        tie = float(uniforms(self.salt ^ self._audits, test.rows, 1, 1)[0, 0])
        test.bet(np.array([[exact_p_value(-z, -before, tie)]]))
        self._residuals[arm] = np.append(before, z)
        if self._drift is None and self._drift_evidence() >= 1 / self.failure_probability:
            strongest = max(self._tests, key=lambda each: self._tests[each].total)
            self._drift = self._audits, strongest

    def _drift_evidence(self) -> float:
        """Return the wealth of all tests, which is the average of theirs."""
        totals = [test.total for test in self._tests.values()]
        return float(np.mean(totals)) if totals else 1.0

    def _suspicion(self, arm: Label) -> float:
        return (
            min(self._tests[arm].total, 1 / self.failure_probability) if arm in self._tests else 1.0
        )

    def _rewards_in_words(self) -> Alarm | None:
        if self._drift is None:
            return None
        row, arm = self._drift
        test = self._tests[arm]
        since = int(test.since.flat[test.won.argmax()])
        errors = self._residuals[arm][since - test.rows :]
        middle = float(np.median(errors))
        by = f"{abs(middle):.1f} standard deviations {'worse' if middle < 0 else 'better'}"
        about = (
            f"rewards of {short(arm)!r} have changed: its last {len(errors)} audits are {by} than"
        )
        return Alarm(row, since, arm, f"{about} expected (median); explore it again")

    def _values(self) -> tuple[Interval | None, Interval | None]:
        """Return the policy's value and its gain, with intervals that hold at any time."""
        if not self._terms:
            return None, None
        low, high = self._range
        middle, length = (low + high) / 2, (high - low) / _RANDOM
        ends = confidence_sequence(self._terms, length, self.failure_probability)
        mean = middle + float(np.mean(self._terms))
        value = Interval(mean, max(low, middle + ends[0]), min(high, middle + ends[1]))
        if self._unpaired:
            return value, None
        gain = confidence_sequence(self._gains, 2 * length, self.failure_probability)
        least = max(low - high, gain[0]), min(high - low, gain[1])
        return value, Interval(float(np.mean(self._gains)), *least)


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
    return np.isin(status, (Status.BOUND_TOO_LARGE, Status.OUTSIDE))
