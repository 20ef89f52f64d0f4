"""Eligible arms: which arms may be chosen at each context, as users say it and as a mask."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from contextgap.base.arrays import IntArray
from contextgap.base.labels import Label

Mask: TypeAlias = NDArray[np.bool_]


def read_eligible(
    arms: Any,
    labels: Sequence[Label],
    rows: int,
    *,
    single: bool,
    called: str = "arms",
    retired: Sequence[Label] = (),
) -> Mask | None:
    """Return a mask of shape (rows, labels), or None if every arm is eligible.

    ``arms`` is None; a collection of labels, for several contexts also one per row; or a boolean
    array of shape (labels,) or (rows, labels). A tuple may be a label. ``retired`` labels may be
    named, too, and are the mask's last columns. Errors call the argument ``called``.
    """
    if arms is None:
        return None
    try:
        mask = _read(arms, (*labels, *retired), len(labels), rows, single)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{called} {error}") from None
    empty = np.flatnonzero(~mask.any(axis=1))
    if len(empty):
        where = "" if single else f" at row {empty[0]}"
        raise ValueError(f"{called} must leave at least one arm to choose from, got none{where}")
    return mask


def groups(eligible: Mask) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield rows that have the same eligible arms, and the columns of these arms."""
    if not len(eligible):
        return
    if eligible.strides[0] == 0:  # one collection for all rows
        yield np.arange(len(eligible)), np.flatnonzero(eligible[0])
        return
    packed = np.packbits(eligible, axis=1)
    _, first, group = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(group.reshape(-1), kind="stable")
    ends = np.bincount(group.reshape(-1)).cumsum()
    for row, places in zip(first, np.split(order, ends[:-1]), strict=True):
        yield places, np.flatnonzero(eligible[row])


def _read(arms: Any, labels: Sequence[Label], columns: int, rows: int, single: bool) -> Mask:
    if hasattr(arms, "to_numpy") and not hasattr(arms, "columns"):  # a pandas or polars Series
        arms = arms.to_numpy()
    if isinstance(arms, np.ndarray) and arms.dtype == np.bool_:
        return _padded(arms, columns, len(labels), rows, single)
    if isinstance(arms, np.ndarray) and _looks_like_mask(arms, columns, rows, single):
        raise ValueError("must be a boolean array to be a mask, got zeros and ones; .astype(bool)")
    if not _is_collection(arms):
        raise TypeError(
            f"must be labels, such as {list(labels[:2])}, or a boolean array with a column for "
            f"each arm, got {arms!r}"
        )
    index, entries = {label: i for i, label in enumerate(labels)}, list(arms)
    if single or any(_place(entry, index) is not None for entry in entries):
        return np.broadcast_to(_row(entries, index, ""), (rows, len(labels)))
    if entries and not all(map(_is_collection, entries)):
        _row(entries, index, "")  # raises, naming the first that is not an arm
    if not entries and rows:
        return np.zeros((rows, len(labels)), dtype=bool)
    if len(entries) != rows:
        raise ValueError(
            f"must be one collection of labels, or one for each of {rows} contexts, "
            f"got {len(entries)}"
        )
    mask = [_row(entry, index, f" at row {row}") for row, entry in enumerate(entries)]
    return np.array(mask, dtype=bool).reshape(rows, len(labels))


def _looks_like_mask(arms: Any, columns: int, rows: int, single: bool) -> bool:
    """Whether numbers are more probably a mask than labels: zeros and ones in its shape."""
    if arms.dtype.kind not in "iuf" or columns < 2 or not np.isin(arms, (0, 1)).all():
        return False
    if arms.shape == (columns,):
        return len(np.unique(arms)) < columns
    return not single and arms.shape == (rows, columns)


def _padded(mask: Mask, columns: int, width: int, rows: int, single: bool) -> Mask:
    right = [(columns,)] if single else [(columns,), (rows, columns)]
    if mask.shape not in right:
        shapes = " or ".join(map(str, right))
        raise ValueError(f"must be a mask of shape {shapes}, got shape {mask.shape}")
    padded = np.zeros((*mask.shape[:-1], width), dtype=bool)
    padded[..., :columns] = mask
    return np.broadcast_to(padded, (rows, width))


def _row(entries: Iterable[Any], index: Mapping[Label, int], where: str) -> Mask:
    row = np.zeros(len(index), dtype=bool)
    for entry in entries:
        place = _place(entry, index)
        if place is None:
            raise ValueError(f"must be among {list(index)}, got {entry!r}{where}")
        row[place] = True
    return row


def _place(entry: Any, index: Mapping[Label, int]) -> int | None:
    try:
        place = index.get(entry)
    except TypeError:  # it cannot be hashed
        return None
    if isinstance(entry, bool | np.bool_) and place is not None:
        # True equals the label 1, but whoever writes it means a mask.
        truths = [label for label in index if isinstance(label, bool | np.bool_)]
        return place if entry in truths else None
    return place


def _is_collection(value: Any) -> bool:
    scalar_array = isinstance(value, np.ndarray) and value.ndim == 0
    # Of frames and mappings only the keys would be read, whatever their values say.
    keyed = hasattr(value, "columns") or isinstance(value, Mapping)
    return isinstance(value, Iterable) and not (
        scalar_array or keyed or isinstance(value, str | bytes)
    )
