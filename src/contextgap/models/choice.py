"""The one module that chooses a model, and that knows which kind a file holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtpmv

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.kernels import Kernel
from contextgap.models.alike import Alike
from contextgap.models.base import Model
from contextgap.models.exact import ExactModel
from contextgap.models.joint import JointModel


def new_model(
    kernel: Kernel,
    ridge: float,
    n_arms: int,
    prior_mean: float | str,
    alike: Alike | None = None,
) -> Model:
    """Return the model that learners use; ``alike`` is None for arms with nothing in common."""
    if alike is not None:
        return JointModel(kernel, ridge, n_arms, prior_mean, **alike.settings())
    return ExactModel(kernel, ridge, n_arms, prior_mean)


def refitted_model(
    old: Model, kernel: Kernel, ridge: float, prior_mean: float | str, alike: Alike | None = None
) -> Model:
    """Return a model of the same observations with other settings, of the kind these need."""
    model = new_model(kernel, ridge, old.n_arms, prior_mean, alike)
    log = old.observed
    model.observe_many(log.contexts, log.arms, log.rewards)
    model.observed.take_eligible_from(log)
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
    kind = Model.kinds.get(name)
    if kind is None or version > kind.version:
        raise ValueError(
            f"it holds a model of kind {name!r}, version {version}, unknown to this release"
        )
    model = kind(kernel, ridge, n_arms, prior_mean, **settings)
    model.restore(arrays)
    return model


def weighted_model(like: Model, contexts: FloatArray, arms: IntArray, weights: FloatArray) -> Model:
    """Return a model whose arms' means are prior + weights·k(own contexts, x).

    The posterior mean has this form if the rewards are prior + (K + ridge·I)·weights. Such rewards
    were never observed, so nothing is guaranteed any more.
    """
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
