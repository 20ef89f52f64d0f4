"""The one module that chooses a model, and that knows which kind a file holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtpmv

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.kernels import Kernel
from contextgap.models.ageing import Ageing, AgeingModel
from contextgap.models.base import Model
from contextgap.models.bounded import TOLERANCE, BoundedModel
from contextgap.models.dictionary import Dictionary, Statistics
from contextgap.models.exact import ExactModel
from contextgap.models.exclusive import Exclusive, ExclusiveModel
from contextgap.models.joint import Alike, JointModel
from contextgap.models.observations import Observations

# Kinds of earlier releases that kept observations alone; the exact model answers alike.
_DENSE = ("dense", "dense with history")

# What a reward of one arm says about the others, or about later ones.
Relation: TypeAlias = Alike | Exclusive | Ageing


def new_model(
    kernel: Kernel,
    ridge: float,
    n_arms: int,
    prior_mean: float | str,
    alike: Relation | None = None,
) -> Model:
    """Return the model that learners use; ``alike`` is None for arms with nothing in common."""
    if isinstance(alike, Exclusive):
        return ExclusiveModel(kernel, ridge, n_arms, prior_mean, **asdict(alike))
    if isinstance(alike, Ageing):
        return AgeingModel(kernel, ridge, n_arms, prior_mean, **asdict(alike))
    if alike is not None:
        return JointModel(kernel, ridge, n_arms, prior_mean, **alike.settings())
    return ExactModel(kernel, ridge, n_arms, prior_mean)


def refitted_model(
    log: Observations,
    kernel: Kernel,
    ridge: float,
    prior_mean: float | str,
    alike: Relation | None = None,
    points: int | None = None,
) -> Model:
    """Return a model of logged observations, of the kind that they and the settings need."""
    empty = new_model(kernel, ridge, log.n_arms, prior_mean, alike)
    noise = log.noise if log.has_noise else None
    model = grown_model(empty, log.contexts, log.arms, log.rewards, points, noise)
    model.observed.take_notes_from(log)
    return model


def restated_model(
    model: Model, log: Observations, alike: Relation | None = None, points: int | None = None
) -> Model:
    """Return the model of a log with other rewards and noise at the same contexts."""
    if isinstance(model, BoundedModel):
        return _bounded(model, log, model.points, model.dictionary)
    return refitted_model(log, model.kernel, model.ridge, model.prior_mean, alike, points)


def grown_model(
    model: Model,
    contexts: FloatArray,
    arms: IntArray,
    rewards: FloatArray,
    points: int | None,
    noise: FloatArray | None = None,
) -> Model:
    """Return the model with more observations; another one if its kind does not suit so many.

    Exact posteriors take time and memory in the square of an arm's observations. With 2·``points``
    of any arm, a bounded model of at most so many inducing points takes over; with ``points`` or
    half as many it does if inducing points half as many as the observations explain all contexts.
    None for ``points`` keeps the exact model for ever. The model given is not changed if another
    one is returned.
    """
    told = contexts, arms, rewards, noise
    if points is None or model.kind != ExactModel.kind:
        _observe(model, *told)
        return model
    counts = [model.observed.count(arm) for arm in range(model.n_arms)]
    most_before = max(counts)
    if len(arms) == 1:
        most = max(most_before, counts[int(arms[0])] + 1)
    else:
        most = int((np.bincount(arms, minlength=model.n_arms) + counts).max())
    if most >= 2 * points:
        log = model.observed.snapshot()
        log.extend(*told)
        return _bounded(model, log, points)
    _observe(model, *told)
    if not any(most_before < size <= most for size in (points // 2, points)):
        return model
    log, tolerance = model.observed, TOLERANCE * model.ridge
    dictionary = Dictionary.chosen(model.kernel, log.contexts, most // 2, tolerance)
    if dictionary.mean_residual(model.kernel, log.contexts)[1] > tolerance:
        return model
    return _bounded(model, log.snapshot(), points, dictionary)


def larger_model(model: Model, points: int) -> Model:
    """Return a copy of the model, with up to so many inducing points where more of them pay."""
    larger = model.with_points(points) if isinstance(model, BoundedModel) else None
    return model.snapshot() if larger is None else larger


def dictionary_of(model: Model, points: int) -> Dictionary:
    """Return inducing points that suit a model's observations."""
    if isinstance(model, BoundedModel):
        return model.dictionary
    contexts, tolerance = model.observed.contexts, TOLERANCE * model.ridge
    return Dictionary.chosen(model.kernel, contexts, points, tolerance)


def summed_model(
    like: Model,
    log: Observations,
    dictionary: Dictionary,
    sums: Mapping[int, Statistics],
    reward_sum: float,
    points: int,
) -> BoundedModel:
    """Return a model of sums over many rows, of which the log has some.

    It has kernel, ridge and prior mean of the model given. Nothing can be added to it.
    """
    model = BoundedModel(like.kernel, like.ridge, like.n_arms, like.prior_mean, points)
    model.take_sums(log, dictionary, sums, reward_sum)
    return model


def _observe(
    model: Model,
    contexts: FloatArray,
    arms: IntArray,
    rewards: FloatArray,
    noise: FloatArray | None,
) -> None:
    if len(rewards) == 1:
        own = 0.0 if noise is None else float(noise[0])
        model.observe(contexts[0], int(arms[0]), float(rewards[0]), own)
    else:
        model.observe_many(contexts, arms, rewards, noise)


def _bounded(
    like: Model, log: Observations, points: int, dictionary: Dictionary | None = None
) -> Model:
    model = BoundedModel(like.kernel, like.ridge, like.n_arms, like.prior_mean, points)
    model.take_over(log, dictionary)
    return model


def describe_model(model: Model) -> dict[str, Any]:
    """Return what a file's header says about a model."""
    return {"kind": model.kind, "version": model.version, **model.settings()}


def restored_model(
    description: Any,
    arrays: Mapping[str, NDArray[Any]],
    kernel: Kernel,
    ridge: float,
    n_arms: int,
    prior_mean: float | str,
) -> Model:
    """Return the model of a file; files of release 0.1 do not name theirs, which is exact."""
    settings: dict[str, Any] = dict(description or {"kind": "exact", "version": 1})
    name, version = settings.pop("kind"), settings.pop("version")
    if name in _DENSE:
        log = Observations.restored(arrays, n_arms)
        return refitted_model(log, kernel, ridge, prior_mean)
    kind = Model.kinds.get(name)
    if kind is None or version > kind.version:
        raise ValueError(
            f"it holds a model of kind {name!r}, version {version}, unknown to this release"
        )
    model = kind(kernel, ridge, n_arms, prior_mean, **settings)
    model.restore(arrays)
    return model


def weighted_model(like: Model, contexts: FloatArray, arms: IntArray, weights: FloatArray) -> Model:
    """Return a model whose arms' means are prior + weights·k(own contexts, x)."""
    # The posterior mean has this form if the rewards are prior + (K + ridge·I)·weights. Such
    # rewards were never observed, so nothing is guaranteed any more.
    prior = like.prior()
    trial, final = (ExactModel(like.kernel, like.ridge, like.n_arms, prior) for _ in range(2))
    if not len(arms):
        return final
    trial.observe_many(contexts, arms, np.full(len(arms), prior))
    rewards = np.full(len(arms), prior)
    for arm in np.unique(arms):
        # Where K is nearly singular, L·Lᵀ is not K + ridge·I to the last digit, and the factor is
        # what the mean comes from. Rows of L are columns of its packed transpose.
        own, packed = arms == arm, trial.supports([arm])[0].factors[0][1]
        size = int(own.sum())
        rewards[own] += dtpmv(size, packed, dtpmv(size, packed, weights[own]), trans=1)
    final.observe_many(contexts, arms, rewards)
    return final
