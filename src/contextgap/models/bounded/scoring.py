"""What score cards ask of the bounded model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.models.answers import LeftOut
from contextgap.models.base import NOTHING_PENDING
from contextgap.models.bounded.arm import BoundedArm, squares
from contextgap.models.bounded.statistics import Statistics

if TYPE_CHECKING:
    from contextgap.models.bounded.model import BoundedModel

_TINY = float(np.finfo(np.float64).tiny)


def left_out(
    model: BoundedModel, places: IntArray, visits: IntArray, arms: Sequence[int]
) -> LeftOut:
    """Return posteriors at observed contexts, without the rewards observed there.

    With h = w·(|q|² − |v|²), the share of a prediction that is the reward's own, k visits left out
    together have the error (y − mean)/(1 − k·h) and leave a variance of δ + (|q|² − |v|²)/(1 −
    k·h). The support points stay as they are.
    """
    log, prior = model.observed, model.prior()
    contexts = log.contexts[places]
    posterior = model.posterior(contexts, arms)
    error = np.empty(len(places))
    columns = {arm: column for column, arm in enumerate(arms)}
    for arm in np.unique(log.arms[places]).tolist():
        rows, state = np.flatnonzero(log.arms[places] == arm), model.arm(arm)
        features, residual = model.whiten(contexts[rows])
        q, v = state.solve_many(features, assumed=False)
        known = np.maximum(squares(q) - squares(v), 0.0)
        left = np.maximum(1.0 - visits[rows] * known / (model.ridge + residual), _TINY)
        heard = log.rewards[places[rows]]
        error[rows] = (heard - prior - state.mean(q, v, prior)) / left
        if arm in columns:
            posterior.mean[rows, columns[arm]] = heard - error[rows]
            posterior.std[rows, columns[arm]] = np.sqrt(residual + known / left)
    return LeftOut(posterior, error)


def averages(
    model: BoundedModel, arms: Sequence[int], sums: Mapping[int, Statistics]
) -> tuple[FloatArray, FloatArray]:
    """Return what always choosing each arm would earn, averaged over the rows of statistics.

    The first are averages of predictions at all rows; the second add, at an arm's own rows, the
    prediction errors with their importance weights. Predictions are linear in φ, so their sums are
    those at sums of φ.
    """
    prior, everything = model.prior(), list(sums.values())
    count, seen = sum(each.count for each in everything), sum(each.seen[0] for each in everything)
    direct, added = np.empty((2, len(arms)))
    for column, arm in enumerate(arms):
        own, state = sums.get(arm), model.arm(arm)
        features = np.stack([seen, np.zeros_like(seen) if own is None else own.seen[1]], axis=1)
        q, v = state.solve_many(features, assumed=False)
        everywhere, here = state.mean(q, v, prior)
        weight, told = (0.0, 0.0) if own is None else own.weighted
        direct[column] = prior + everywhere / count
        added[column] = (told - weight * prior - here) / count
    return direct, direct + added


def sums(
    model: BoundedModel, contexts: FloatArray, arms: Sequence[int], weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return what is known about Σ weight · (expected reward) over contexts and arms.

    What support points leave over has its prior covariance, K − ΦᵀΦ.
    """
    model.assume(NOTHING_PENDING)
    gram, features = model.kernel(contexts, contexts), model.whiten(contexts).features
    variance, duals = np.zeros(len(weights)), {}
    for column, arm in enumerate(arms):
        own, state = weights[:, :, column], model.arm(arm)
        combined = np.ascontiguousarray(features @ own.T)
        q, v = state.solve_many(combined, assumed=False)
        variance += np.einsum("ki,ki->k", own, own @ gram) - squares(combined)
        variance += squares(q) - squares(v)
        # R⁻¹(I + VᵀV)⁻¹q, by the same identity that gives the variance.
        inner = q - state.beside.rows.view.T @ _solved_transposed(state, v)
        duals[arm] = np.stack([state.folded.root.solve_transposed(x) for x in inner.T])
    return np.maximum(variance, 0.0), _moves(model, duals, len(weights))


def _moves(model: BoundedModel, duals: dict[int, FloatArray], count: int) -> FloatArray:
    """Return w·φ·dual of every observation's arm, shape (count, observations)."""
    log = model.observed
    moves = np.zeros((count, len(log)))
    for block in model.blocks(len(log)):
        features, residual = model.whiten(log.contexts[block])
        for arm, dual in duals.items():
            own = np.flatnonzero(log.arms[block] == arm)
            moves[:, block.start + own] = dual @ features[:, own] / (model.ridge + residual[own])
    return moves


def _solved_transposed(arm: BoundedArm, columns: FloatArray) -> FloatArray:
    """Return C⁻ᵀ·columns."""
    rows = np.ascontiguousarray(columns.T)
    for row in rows:
        arm.beside.factor.solve_transposed(row)
    return rows.T
