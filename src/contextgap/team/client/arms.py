"""Arms as JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from contextgap.base.labels import Label, encode_label


def eligible_json(arms: Any, known: Callable[[], Sequence[Label]]) -> Any:
    """Return eligible arms as JSON values: None for all, labels, or labels for each context.

    ``known`` returns all arms; it is called where these say what is meant: for a boolean array, and
    for tuples, which are labels or collections of them.
    """
    if arms is None:
        return None
    if hasattr(arms, "to_numpy") and not hasattr(arms, "columns"):
        arms = arms.to_numpy()
    if isinstance(arms, np.ndarray) and arms.dtype == np.bool_:
        return _named(arms, known())
    if isinstance(arms, str) or not hasattr(arms, "__iter__"):
        raise TypeError(f"arms must be labels, or a boolean array, got {arms!r}")
    entries = list(arms)
    labels = set(known()) if any(isinstance(entry, tuple) for entry in entries) else set()
    return [
        [encode_label(label) for label in entry]
        if _is_collection(entry) and not (isinstance(entry, tuple) and entry in labels)
        else encode_label(entry)
        for entry in entries
    ]


def tried_json(arms: Any, several: bool) -> Any:
    """Return the arm tried, or one for each context, as JSON values."""
    if arms is None:
        return None
    if not several:
        return encode_label(arms)
    listed = arms.to_list() if hasattr(arms, "to_list") else list(arms)
    return [encode_label(label) for label in listed]


def _named(mask: np.ndarray[Any, np.dtype[np.bool_]], labels: Sequence[Label]) -> Any:
    if mask.shape[-1] != len(labels):
        raise ValueError(f"arms must have a column for each of {len(labels)} arms")
    places = [np.flatnonzero(row).tolist() for row in np.atleast_2d(mask)]
    rows = [[encode_label(labels[place]) for place in row] for row in places]
    return rows[0] if mask.ndim == 1 else rows


def _is_collection(entry: Any) -> bool:
    return isinstance(entry, list | tuple | set | frozenset | np.ndarray)
