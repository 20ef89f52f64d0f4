"""What trials cost, known, told or predicted, and how long to let a run go on where that is time.

Told costs are predicted in logarithms, those of each arm apart: log(cost/known cost), or log(cost)
where none is known, is a mean plus a kernel regression with the learner's own kernel, scaled to
k(x, x) = 1. Its regularisation is the one of ``_RATIOS`` with the lowest leave-one-out error, the
last of which leaves the mean alone. Exponentials are typical costs: geometric means.

The time T of a run is believed to be normal with mean μ and variance v = s² + ridge, s² being the
variance of its expectation f, and positive. A run that ends at t ≤ c leaves f with the mean
μ + (t − μ)·s²/v; of one that is cut off at c it is known that T > c, and the mean is the average of
those. So the gain

    E[lowest mean now − lowest mean then]

of a cutoff c, the other arms' means being fixed, is an average over quantiles of T. An arm that
seems slower than the best other one need run only until it is known not to be faster: a longer
cutoff has the same gain and takes more time. The cutoff is the one of C, C/2, C/4, ... with the
highest gain per expected time E[min(T, c)]; none is shorter than half the shortest run so far that
was not cut off. Where no cutoff gains anything, it is the shortest of at least twice the lowest
mean, which tells whether an arm is about as fast as the best one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray, IntArray, evenly
from contextgap.base.labels import Label
from contextgap.beliefs import Belief
from contextgap.kernels import Kernel
from contextgap.models import Model, Observations, refitted_model
from contextgap.policy.policy import Policy
from contextgap.tables.contexts import Encoded

if TYPE_CHECKING:
    from contextgap.learner.state import LearnerState

_RATIOS = (0.01, 0.1, 1.0, 1e9)  # of noise to signal
_MOST = 128  # costs of an arm that the regression rests on, evenly spread
_GROWTH = 1.1  # of an arm's costs between two regressions, once there are more than _FEW
_FEW = 32
_LARGEST = 1e45
_SAMPLE = 100  # contexts at which regret is expected
_FLAT = 0.1  # powers of spending below which regret does not seem to fall
_DIGITS = 9  # of logarithms: costs that are the same must not differ by rounding


def read_known_costs(costs: Any, labels: Sequence[Label]) -> tuple[float, ...] | None:
    if costs is None:
        return None
    if not isinstance(costs, Mapping):
        raise TypeError(f"costs must map arms to costs, such as {{'a': 1, 'b': 5}}, got {costs!r}")
    if unknown := [arm for arm in costs if arm not in labels]:
        raise ValueError(f"costs must be about arms among {list(labels)}, got {unknown[0]!r}")
    for label in labels:
        if label not in costs:
            raise ValueError(f"costs must have a cost for every arm; {label!r} has none")
    return tuple(read_cost("costs", costs[label]) for label in labels)


def read_cost(called: str, cost: Any) -> float:
    value = checks.positive(called, cost, "what a trial costs")
    if value > _LARGEST:
        raise ValueError(f"{called} must be at most {_LARGEST:g}, got {value:g}")
    return value


def read_told_costs(cost: Any, count: int, *, single: bool, called: str = "cost") -> FloatArray:
    """Return what trials at so many contexts cost, NaN where that was not told."""
    if cost is None:
        return np.full(count, np.nan)
    if single or not hasattr(cost, "__len__"):
        return np.full(count, read_cost(called, cost))
    given = checks.finite_vector(called, cost)
    checks.same_length(contexts=count, **{called: len(given)})
    for extreme in (given.min(), given.max()) if count else ():
        read_cost(called, float(extreme))
    return given


def spending(log: Observations, known: Sequence[float] | None) -> FloatArray:
    """Return what each trial cost: as told, else as known, else 1."""
    usual = np.ones(len(log)) if known is None else np.array(known)[log.arms]
    return np.where(np.isnan(log.costs), usual, log.costs)


class _Fit(NamedTuple):
    contexts: FloatArray
    mean: float
    weights: FloatArray  # of the kernel's values


class CostModel:
    """Predicts costs from those told so far; a log that grows is read anew from time to time.

    What it predicts depends on the log and the kernel alone.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._fits: dict[int, tuple[int, _Fit]] = {}

    def typical(
        self, contexts: FloatArray, arms: Sequence[int], known: Sequence[float] | None
    ) -> FloatArray | None:
        """Return typical costs, contexts by arms; None if nothing is known or told about any."""
        log = self.model.observed
        if not log.has_costs and known is None:
            return None
        prior = np.zeros(log.n_arms) if known is None else np.log(known)
        logs = np.tile(prior[list(arms)], (len(contexts), 1))
        if log.has_costs:
            told = ~np.isnan(log.costs)
            for column, arm in enumerate(arms):
                logs[:, column] += self._predicted(contexts, arm, log, told, prior)
        return np.exp(np.round(logs, _DIGITS))

    def _predicted(
        self, contexts: FloatArray, arm: int, log: Observations, told: Any, prior: FloatArray
    ) -> FloatArray | float:
        places = log.places(arm)[told[log.places(arm)]]
        if not len(places):
            return _mean_log(log, np.flatnonzero(told), prior)
        count = len(places)
        if count > _FEW:
            steps = math.floor(math.log(count / _FEW) / math.log(_GROWTH) + 1e-9)
            count = min(count, math.floor(_FEW * _GROWTH**steps + 1e-9))
        if self._fits.get(arm, (0, None))[0] != count:
            before = np.flatnonzero(told[: places[count - 1] + 1])
            usual = _mean_log(log, before, prior)
            used = evenly(places[:count], _MOST)
            logs = np.log(log.costs[used]) - prior[arm]
            mean = (logs.sum() + usual) / (len(logs) + 1)
            weights = _weights(_unit(self.model.kernel, *[log.contexts[used]] * 2), logs - mean)
            self._fits[arm] = count, _Fit(log.contexts[used], mean, weights)
        fit = self._fits[arm][1]
        return fit.mean + _unit(self.model.kernel, contexts, fit.contexts) @ fit.weights


def _mean_log(log: Observations, places: IntArray, prior: FloatArray) -> float:
    return float((np.log(log.costs[places]) - prior[log.arms[places]]).mean())


def _unit(kernel: Kernel, one: FloatArray, two: FloatArray) -> FloatArray:
    scale = [np.sqrt(np.maximum(kernel.diagonal(each), 1e-300)) for each in (one, two)]
    return np.asarray(kernel(one, two) / scale[0][:, None] / scale[1])


def _weights(kernel: FloatArray, values: FloatArray) -> FloatArray:
    """Return the regression's weights that predict each value best from the others."""
    eigenvalues, vectors = np.linalg.eigh(kernel)
    turned, found = vectors.T @ values, []
    for ratio in _RATIOS:
        inverse = 1 / (np.maximum(eigenvalues, 0.0) + ratio)
        weights = vectors @ (inverse * turned)
        left_out = weights / (np.square(vectors) @ inverse)
        found.append((float(np.square(left_out).sum()), weights))
    # Of equals the smoothest.
    return np.asarray(min(reversed(found), key=lambda each: each[0])[1])


def cost_of_a_tenth(state: LearnerState) -> float | None:
    """Return about what it costs to have a tenth less regret; None where that is unknown.

    It extrapolates from half of what was spent to all, as a power of what is spent.
    """
    log, model = state.model.observed, state.model
    paid = np.cumsum(spending(log, state.costs))
    half = int(np.searchsorted(paid, paid[-1] / 2)) + 1 if len(paid) >= _FEW else len(paid)
    if half >= len(paid):
        return None
    earlier = log.snapshot()
    earlier.truncate(half)
    known, alike = (model.kernel, model.ridge, model.prior_mean), getattr(model, "alike", None)
    then = replace(state, model=refitted_model(earlier, *known, alike, state.points))
    contexts = Encoded(log.contexts[evenly(np.arange(len(log)), _SAMPLE)], state.schema)
    regret = [
        float(Policy(each.policy()).expected_regret(contexts).mean()) for each in (then, state)
    ]
    if not 0 < regret[1] < math.inf:
        return None
    power = math.log(regret[0] / regret[1]) / math.log(paid[-1] / paid[half - 1])
    return None if power < _FLAT else float(paid[-1] * (0.9 ** (-1 / power) - 1))


_HALVINGS = 12  # of the longest cutoff
_QUANTILES = 200
_ENOUGH = 2.0  # times the lowest mean, where nothing is to be gained
_FIRST = 7  # halvings, for the very first run


class Pick(NamedTuple):
    """An arm to try, and how long to let it run.

    Parameters
    ----------
    arm
        The label of the arm.
    cutoff
        When to stop the run; tell it as ``censored`` then.
    """

    arm: Label
    cutoff: float


class Cutoffs(NamedTuple):
    """The cutoff of each arm, and how long its run is expected to take."""

    cutoffs: FloatArray
    expected: FloatArray


def best_cutoffs(belief: Belief, ridge: float, most: float, least: float = 0.0) -> Cutoffs:
    """Return cutoffs for all arms at one context, where rewards are minus times."""
    from scipy.special import ndtr, ndtri

    grid = most * 0.5 ** np.arange(_HALVINGS, -1.0, -1.0)
    grid = grid[grid >= min(least, most)]
    mean, variance = -belief.mean, np.square(belief.std)
    v = variance + ridge
    above = ndtr(mean / np.sqrt(v))[:, None]  # the probability of times that there can be
    z = -ndtri(above * (np.arange(_QUANTILES) + 0.5) / _QUANTILES)[:, ::-1]
    times = mean[:, None] + np.sqrt(v)[:, None] * z  # arms by quantiles
    then = mean[:, None] + (variance / np.sqrt(v))[:, None] * z
    cut = times[:, None] > grid[:, None]  # arms by cutoffs by quantiles
    expected = np.minimum(times[:, None], grid[:, None]).mean(axis=-1)
    given = np.where(cut, then[:, None], 0.0).sum(axis=-1) / np.maximum(cut.sum(axis=-1), 1)
    found = np.where(cut, given[..., None], then[:, None])
    others = np.array([np.delete(mean, arm).min(initial=np.inf) for arm in range(len(mean))])
    now = np.minimum(then.mean(axis=-1), others)[:, None]
    gain = now - np.minimum(found, others[:, None, None]).mean(axis=-1)
    places = (gain / expected).argmax(axis=1)  # of equals the shortest
    enough = min(int(np.searchsorted(grid, _ENOUGH * mean.min())), len(grid) - 1)
    places[gain.max(axis=1) <= 1e-9 * np.sqrt(v)] = enough
    return Cutoffs(grid[places], np.take_along_axis(expected, places[:, None], axis=1)[:, 0])


def first_cutoff(longest: float, most: float) -> float:
    """Return the cutoff of a run before there are beliefs: twice the longest time told so far."""
    return min(most, 2 * longest) if longest > 0 else most * 0.5**_FIRST
