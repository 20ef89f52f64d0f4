"""Tests by betting, which may be read after every row, and intervals that hold at any time.

Scores of a baseline, and of what comes after it, are exchangeable while nothing changes: every
order of them is equally likely. Then the rank of each new score among all before it, drawn at
random among equal ones and divided by their number, is a *conformal p-value*: uniform, and
independent of all earlier ones (Vovk, Gammerman and Shafer, "Algorithmic Learning in a Random
World", 2005, theorem 8.1; Vovk, Nouretdinov and Gammerman, "Testing Exchangeability On-Line",
2003). A bet f of mean 1 over [0, 1] multiplies its stake by f(p), so that its wealth is a
martingale, and by Ville's inequality a wealth that starts at 1 ever reaches 1/δ with probability at
most δ. That holds for the number of a bin in the place of a score, if bins do not depend on the
scores that are ranked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.methods.recommenders.rules import scramble

BINS = 8
"""How many bins scores are counted in."""
BETS = 4
"""How many bets there are on each statistic."""
# Quantiles of the scores that bins begin at. With 16 bins and 8 bets, which take twice the memory,
# changes were found after an eighth fewer rows.
_LEVELS = np.array([2, 16, 40, 64, 88, 112, 126]) / 128
_CHUNK = 1000  # rows whose bets are multiplied at once; the least of them, 0.5^1000, is a number
_STEPS = 8  # rows that are accumulated one after the other, in all parts of a chunk at once
_SMALLEST = 1e-5  # p-value; bets pay the same on smaller ones, which loses nothing but luck
_RICHEST = 1e30  # wealth beyond which nothing more is won; C's floats hold it


def payoffs(p: FloatArray) -> FloatArray:
    """Return what each of the bets pays, on a new axis before the last.

    Half of them expect small p-values: 1 + (1 − 2p)/2, and 1/(2√p). The others expect large ones,
    and take 1 − p for p.
    """
    paid = np.empty((*p.shape[:-1], BETS, p.shape[-1]))
    even, root = paid[..., :2, :], paid[..., 2:, :]
    root[..., 0, :], root[..., 1, :] = p, 1.0 - p
    np.maximum(root, _SMALLEST, out=root)
    np.subtract(1.5, root, out=even)
    np.divide(0.5, np.sqrt(root, out=root), out=root)
    return paid


def uniforms(salt: int, first: int, rows: int, columns: int) -> FloatArray:
    """Return the numbers that break ties, each a hash of a salt and its place, as in C."""
    places = np.arange(first * columns, (first + rows) * columns, dtype=np.uint64)
    bits = scramble(places ^ np.uint64(salt)) >> np.uint64(11)
    return np.asarray((bits + 0.5) * 2.0**-53, dtype=np.float64).reshape(rows, columns)


class Ranks:
    """Conformal p-values of scores by the bins that they fall into, shape (rows, statistics)."""

    def __init__(self, edges: FloatArray, counts: IntArray) -> None:
        self.edges = edges  # (statistics, BINS − 1), each bin without its own edge
        self.counts = counts  # (statistics, BINS)

    @classmethod
    def of(cls, first: FloatArray, others: FloatArray) -> Ranks:
        """Return bins by the quantiles of some scores, and counts of others."""
        ordered = np.sort(first, axis=0)
        above = np.ceil(_LEVELS * len(first)).astype(np.intp).clip(1, len(first) - 1)
        # Halfway between two scores, and a bit above where these are equal, so that rounding
        # elsewhere changes no bin of a known one.
        with np.errstate(invalid="ignore"):
            low, high = ordered[above - 1], ordered[above]
            unit = np.where(np.isfinite(ordered), np.abs(ordered), 0.0).max(axis=0)
            edges = np.asarray(((low + high) / 2 + 1e-6 * unit * (low == high)).T)
        found = cls(np.nan_to_num(edges, nan=math.inf), np.zeros((first.shape[1], BINS), np.intp))
        found.counts += (found._bins(others)[:, None] == np.arange(BINS)[:, None]).sum(axis=-1)
        return found

    def has(self, edges: FloatArray) -> bool:
        """Return whether these are its edges, up to rounding."""
        if edges.shape != self.edges.shape:
            return False
        unit = np.where(np.isfinite(edges), np.abs(edges), 0.0).max(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            near = np.abs(edges - self.edges) <= 1e-6 * unit
        return bool((near | (edges == self.edges)).all())

    def _bins(self, scores: FloatArray) -> NDArray[np.int8]:
        """Return the bins of scores, shape (statistics, rows)."""
        columns = np.ascontiguousarray(scores.T)
        found = np.zeros(columns.shape, dtype=np.int8)
        for edge in self.edges.T:
            found += (columns > edge[:, None]).view(np.int8)
        return found

    def p_values(self, scores: FloatArray, ties: FloatArray) -> FloatArray:
        """Return the p-values of new scores, which count from then on."""
        bins = self._bins(scores)
        # How many of these scores, up to each row, are in a bin or above it; then, how many before.
        now = np.zeros((len(bins), BINS + 1, len(scores)), dtype=np.int32)
        now[:, :-1] = bins[:, None] >= np.arange(BINS, dtype=np.int8)[:, None]
        np.cumsum(now, axis=-1, out=now)
        series = np.arange(len(bins))[:, None]
        own = (series * (BINS + 1) + bins) * len(scores) + np.arange(len(scores))
        larger = now.take(own + len(scores))
        equal = now.take(own)
        equal -= larger
        own = series * BINS + bins
        above = self.counts[:, ::-1].cumsum(axis=-1)[:, ::-1] - self.counts
        found = ties.T * (equal + self.counts.take(own))
        found += larger
        found += above.take(own)
        found /= now[:, 0] + self.counts.sum(axis=-1, keepdims=True)
        if len(scores):
            self.counts = self.counts - np.diff(now[:, :, -1], axis=-1)
        return found.T


class Wealth:
    """What bets on p-values have won: some on each statistic, begun at any row.

    Bets on one statistic are fair to those who know its earlier p-values, not to those who know the
    p-values of all statistics: their wealths added up would be no martingale. So the stake is
    divided, and the alarm is given when one statistic's part of it has reached the level.

    A change may come at any time, so half of the stake is bet from the first row on, and the rest
    little by little: K / ((t + K − 1)(t + K)) of it at row t, which adds up to all of it. With f_t
    what a bet pays at row t, the bets begun so far are worth A_t = (A_{t−1} + stake_t)·f_t. With
    the stake not yet bet, the wealth of each of S statistics is a martingale that starts at 1/S,
    and by Ville's inequality any of them ever reaches 1/δ with probability at most S·(δ/S).
    """

    def __init__(self, statistics: int, early: float, level: float = math.inf) -> None:
        self.rows = 0
        self.level = level  # the wealth at which an alarm is given
        self.alarm: tuple[int, int, int] | None = None  # when, since when, and by what statistic
        self.early = early  # K: changes as early as this are found soonest
        self.share = 1.0 / (statistics * BETS)
        self.won = np.full((statistics, BETS), self.share / 2)
        self.gain = np.ones((statistics, BETS))  # of the bet begun at the best time
        self.since = np.zeros((statistics, BETS))  # when that bet began

    @property
    def total(self) -> float:
        """The largest wealth of a statistic, with the stake not yet bet."""
        reserve = 0.5 * self.early / (self.rows + self.early) / len(self.won)
        return float(self.won.sum(axis=1).max()) + reserve

    @property
    def bets(self) -> FloatArray:
        """All numbers that p-values change, as saved."""
        return np.stack([self.won, self.gain, self.since])

    def bet(self, p: FloatArray) -> FloatArray:
        """Take in p-values, shape (rows, statistics); return the largest wealth after each row."""
        ends = [len(p) - len(p) % unit for unit in (_CHUNK, _STEPS)]
        found = [self._bet(each) for each in np.split(p, ends) if len(each)]
        return np.concatenate([np.empty(0), *found])

    @np.errstate(over="ignore")
    def _bet(self, p: FloatArray) -> FloatArray:
        """Take in some p-values: whole chunks, or a few whole steps, or less than one."""
        # Arrays have the shape (steps, statistics, BETS, parts). Accumulating over few steps in all
        # parts at once, then over the parts of each chunk, takes a third of the time.
        steps, parts = min(len(p), _STEPS), min(len(p), _CHUNK) // min(len(p), _STEPS)
        t = np.arange(self.rows + 1, self.rows + len(p) + 1)
        stakes = self.share * 0.5 * self.early / ((t + self.early - 1) * (t + self.early))
        growth = payoffs(p.reshape(-1, steps, p.shape[1]).transpose(1, 2, 0))
        won, put = np.empty_like(growth), stakes.reshape(-1, steps).T
        np.multiply(growth[0], put[0], out=won[0])
        for step in range(1, steps):
            np.add(won[step - 1], put[step], out=won[step])
            won[step] *= growth[step]
            growth[step] *= growth[step - 1]
        start, least = np.empty_like(growth[0]), growth.min(axis=0)
        wealth, gain, since = self.won, self.gain, self.since
        for first in range(0, start.shape[-1], parts):
            part = slice(first, first + parts)
            so_far = np.multiply.accumulate(growth[-1, ..., part], axis=-1)
            added = np.add.accumulate(won[-1, ..., part] / so_far, axis=-1)
            end = so_far * (wealth[..., None] + added)
            start[..., first], start[..., first + 1 : part.stop] = wealth, end[..., :-1]
            wealth = np.minimum(end[..., -1], _RICHEST)
            # A bet begun at the lowest point so far has gained most, as in CUSUM.
            least[..., first + 1 : part.stop] *= so_far[..., :-1]
            place = parts - 1 - least[..., part][..., ::-1].argmin(axis=-1)
            within = growth[::-1, *np.indices(place.shape, sparse=True), first + place]
            lowest = gain * least[..., part].min(axis=-1)
            last = self.rows + steps * (first + place + 1) - within.argmin(axis=0)
            since = np.where(lowest <= 1.0, last, since)
            gain = np.minimum(gain * so_far[..., -1] / np.minimum(lowest, 1.0), _RICHEST)
        growth *= start
        won += growth
        best = won.sum(axis=2).max(axis=1).T.ravel()
        totals = np.minimum(best + 0.5 * self.early / (t + self.early) / len(self.won), _RICHEST)
        reached = totals >= self.level
        if self.alarm is None and reached[:-1].any():  # all is to be as it was at that row
            row = int(reached.argmax()) + 1
            return np.concatenate([self.bet(p[:row]), self.bet(p[row:])])
        self.rows += len(p)
        self.won, self.gain, self.since = wealth, gain, since
        if self.alarm is None and reached[-1]:
            statistic = int(self.won.sum(axis=1).argmax())
            when = int(self.since[statistic, self.won[statistic].argmax()])
            self.alarm = self.rows, when, statistic
        return np.asarray(totals)


def exact_p_value(score: float, before: FloatArray, tie: float) -> float:
    """Return the conformal p-value of one more score after those before it."""
    larger, equal = np.count_nonzero(before > score), np.count_nonzero(before == score) + 1
    return float(larger + tie * equal) / (len(before) + 1)


_SLOPES = 0.9 * 2.0 ** -np.arange(8.0)
_COSTS = -np.log1p(-_SLOPES) - _SLOPES


def confidence_sequence(
    terms: Sequence[float], length: float, failure_probability: float
) -> tuple[float, float]:
    """Return an interval for the average of the terms' expectations, valid at any time.

    Each term lies in an interval of this length around 0, and its expectation may depend on all
    that came before. For guesses g_t made before each term and ξ = (x_t − g_t)/length ≥ −1,
    exp(λξ − (−ln(1 − λ) − λ)ξ²) ≤ 1 + λξ (Fan, Grama and Liu, 2015), so that its product over time
    is a supermartingale up to exp(λ Σ(E x_t − g_t)); averaged over some λ, Ville's inequality
    bounds the sum (Howard, Ramdas, McAuliffe and Sekhon, "Time-uniform, nonparametric,
    nonasymptotic confidence sequences", 2021, theorem 4).
    """
    x = np.asarray(terms, dtype=np.float64) / length
    count = len(x)
    if not count:
        return -math.inf, math.inf
    sums = np.concatenate([[0.0], np.cumsum(x)[:-1]])
    guess = sums / np.arange(1, count + 1)
    spread = float(np.square(x - guess).sum())
    level = math.log(2 / failure_probability)
    low, high = 0.0, float(2 * count)
    for _ in range(60):
        middle = (low + high) / 2
        logs = _SLOPES * middle - _COSTS * spread
        most = logs.max()
        low, high = (
            (low, middle)
            if most + math.log(np.exp(logs - most).mean()) >= level
            else (middle, high)
        )
    mean, half = float(x.mean()), high / count
    return length * (mean - half), length * (mean + half)
