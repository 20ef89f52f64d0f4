"""Features of arms, as users give them: a row of numbers for each arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.base.checks import finite_vector
from contextgap.base.labels import Label
from contextgap.kernels import Gaussian

_HINT = 'features must map every arm to its numbers, such as {"A": [1.0, 0.2], "B": [2.0, 0.1]}'


def read_features(features: Any, labels: Sequence[Label]) -> FloatArray | None:
    """Return one row per arm, from a mapping, a DataFrame indexed by arm, or rows in their order.

    None stays None.
    """
    if features is None:
        return None
    if hasattr(features, "index") and hasattr(features, "to_numpy"):
        features = dict(zip(features.index, features.to_numpy().tolist(), strict=True))
    if isinstance(features, Mapping):
        missing = [label for label in labels if label not in features]
        if missing or len(features) > len(labels):
            wrong = (
                f"{missing[0]!r} has none"
                if missing
                else f"{next(iter(set(features) - set(labels)))!r} is not an arm"
            )
            raise ValueError(f"{_HINT}; {wrong}")
        features = [features[label] for label in labels]
    if isinstance(features, str) or not isinstance(features, Sequence | np.ndarray):
        raise TypeError(f"{_HINT}, got {type(features).__name__}")
    if len(features) != len(labels):
        raise ValueError(f"features must have a row for each of {len(labels)} arms")
    rows = [read_row(row) for row in features]
    if len({len(row) for row in rows}) != 1:
        raise ValueError("features must be equally many for all arms")
    return np.array(rows)


def read_row(features: Any) -> FloatArray:
    """Return the features of one arm; a number alone counts as a row of one."""
    row = finite_vector("features", [features] if np.isscalar(features) else features)
    if not len(row):
        raise ValueError("features must be at least one number for each arm")
    return row


def usual_bandwidths(features: FloatArray) -> tuple[float, ...]:
    """Return bandwidths for features before any are learnt: √p standard deviations over arms."""
    if len(features) < 2:
        return (1.0,) * int(features.shape[1])
    found = np.asarray(Gaussian.from_contexts(features).bandwidth, dtype=np.float64)
    return tuple(float(width) for width in found.reshape(-1))
