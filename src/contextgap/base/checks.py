"""Checks of what users pass in: numbers, labels of arms, and which arms may be chosen where.

Most return the value in its canonical type or raise an error that names the argument, the offending
value and what would be right. A label is any hashable value; its arm has the index 0, 1, 2, ...
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from contextgap.base.arrays import FloatArray, IntArray


def real(name: str, value: Any, hint: str = "a finite number") -> float:
    """Return ``value`` as a finite float."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise TypeError(f"{name} must be {hint}, got {value!r}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{name} must be {hint}, got {value!r}")
    return number


def reward(name: str, value: Any) -> float:
    """Return a reward as a finite float; True and False are 1 and 0, decimals are numbers."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, bool | np.bool_ | Decimal):
        value = float(value)
    if isinstance(value, str):
        raise TypeError(
            f"{name} must be a finite number, got {value!r}; text is understood in files only: "
            "yes, no, true and false"
        )
    return real(name, value)


def positive(name: str, value: Any, hint: str) -> float:
    """Return ``value`` as a finite float above zero; ``hint`` says which values are usual."""
    number = real(name, value, f"a positive number ({hint})")
    if number <= 0:
        raise ValueError(f"{name} must be positive, got {value!r}; {hint}")
    return number


def at_least(name: str, value: Any, least: float, hint: str = "a finite number") -> float:
    number = real(name, value, hint)
    if number < least:
        raise ValueError(f"{name} must be {hint} of at least {least:g}, got {value!r}")
    return number


def whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number of at least {least}, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value!r}")
    return int(value)


def fraction(name: str, value: Any, most: float = 1.0) -> float:
    """Return ``value`` as a float above 0 and below 1, or at most ``most`` if that is below 1."""
    hint = "a small probability such as 0.05"
    number = positive(name, value, hint)
    if number >= 1 or number > most:
        limit = "below 1" if most >= 1 else f"at most {most:g}"
        raise ValueError(f"{name} must be {limit}, got {value!r}; {hint}")
    return number


def share(name: str, value: Any) -> float:
    """Return ``value`` as a float from 0 to 1."""
    number = at_least(name, value, 0, "a number between 0 and 1")
    if number > 1:
        raise ValueError(f"{name} must be a number between 0 and 1, got {value!r}")
    return number


def truth(name: str, value: Any) -> bool:
    """Return a truth value; 0 or an empty list is refused."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return value


def instance(name: str, value: Any, kind: type, example: str) -> None:
    """Raise unless ``value`` is an instance of ``kind``; the error notices a class not called."""
    if not isinstance(value, kind):
        got = f"the class {value.__name__}; call it" if isinstance(value, type) else repr(value)
        raise TypeError(f"{name} must be a {kind.__name__} such as {example}, got {got}")


def settle(thing: Any, **values: Any) -> None:
    """Set fields of a frozen dataclass to what they were read as, in its ``__post_init__``."""
    for name, value in values.items():
        object.__setattr__(thing, name, value)


def same_length(**lengths: int) -> None:
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{count} {name}" for name, count in lengths.items())
        raise ValueError(f"one entry per context is needed, got {listed}")


def no_name_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object, to be used as ``object_pairs_hook``; raise if a name comes twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise ValueError(f"the name {twice!r} is there twice")
    return found


def finite_vector(name: str, values: Any, entry: Callable[[str, Any], float] = real) -> FloatArray:
    """Return ``values`` as a one-dimensional array of finite floats, each read by ``entry``."""
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
        raise TypeError(f"{name} must be a sequence of numbers, one per context, got {values!r}")
    if np.ma.is_masked(values):
        raise ValueError(f"{name} must have no missing values, got masked entries")
    try:
        given = np.asarray(values)
    except ValueError:
        raise ValueError(f"{name} must be one-dimensional, got ragged lists") from None
    if given.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {given.shape}")
    if given.dtype.kind in "iuf":
        vector = given.astype(np.float64)
    else:
        entries = np.asarray(values, dtype=object)
        vector = np.array([entry(f"{name} at row {i}", value) for i, value in enumerate(entries)])
    if not np.isfinite(vector).all():
        row = int(np.flatnonzero(~np.isfinite(vector))[0])
        hint = "; leave out rows without a reward" if name == "rewards" else ""
        raise ValueError(f"{name} must be finite, got {vector[row]} at row {row}{hint}")
    return vector


Label: TypeAlias = Hashable
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
"""A number as files have it; 007 is none."""


class Restored(tuple[Label, ...]):
    """Labels from a file; in earlier versions they could be written alike."""


def read_labels(arms: Any) -> tuple[Label, ...]:
    """Return distinct labels from a number of arms or an iterable of labels."""
    scalar_array = isinstance(arms, np.ndarray) and arms.ndim == 0
    countable = isinstance(arms, int | np.integer | Iterable)
    if scalar_array or not countable or isinstance(arms, str | bytes):
        raise TypeError(f"arms must be a number of arms or a list of labels, got {arms!r}")
    if isinstance(arms, int | np.integer):
        return tuple(range(whole("arms", arms, least=1)))
    labels = arms if isinstance(arms, Restored) else tuple(arms)
    if not labels:
        raise ValueError("arms must name at least one arm, got an empty list")
    seen: set[Label] = set()
    for label in labels:
        check_label(label)
        if label in seen:
            raise ValueError(f"arms must be distinct, got {label!r} twice")
        seen.add(label)
    if not isinstance(labels, Restored):
        check_written(labels)
    return labels


def check_written(labels: Iterable[Label]) -> None:
    """Raise unless labels can be written as text and understood again."""
    written: dict[str, Label] = {}
    for label in labels:
        if _is_infinite(label):
            raise ValueError(
                f"arms must be finite if they are numbers, got {label!r}; write such an arm as text"
            )
        other = written.setdefault(str(label), label)
        if other is not label:
            raise ValueError(
                f"arms must be written differently, got {other!r} and {label!r}: files and "
                "commands cannot distinguish them; rename one"
            )


def check_new_label(label: Any, others: Iterable[Label]) -> None:
    check_label(label)
    check_written([*(each for each in others if each != label and str(each) == str(label)), label])


def _is_infinite(label: Label) -> bool:
    if isinstance(label, tuple):
        return any(map(_is_infinite, label))
    return isinstance(label, float | np.floating) and bool(np.isinf(label))


class Written(dict[str, Label]):
    """Labels by how they are written; numbers may be written otherwise, as 5 for 5.0."""

    def __init__(self, labels: Iterable[Label]) -> None:
        listed = tuple(labels)
        check_written(listed)
        super().__init__((str(label), label) for label in listed)
        numbers = (label for label in listed if type(label) in (int, float))
        self._numbers = {Decimal(repr(number)): number for number in numbers}

    def read(self, text: str, default: Any = None) -> Any:
        if text not in self and NUMBER.fullmatch(text):
            return self._numbers.get(Decimal(text), default)
        return self.get(text, default)


def _equals_itself(label: Any) -> bool:
    try:
        return bool(label == label)
    except TypeError:  # pandas' NA
        return False


def check_label(label: Any) -> None:
    try:
        hash(label)
    except TypeError:
        raise TypeError(f"arms must be hashable (text, numbers, tuples), got {label!r}") from None
    if not _equals_itself(label):
        raise ValueError(f"arms must be labels that equal themselves, unlike NaN; got {label!r}")


def label_array(labels: Sequence[Label], indices: IntArray) -> NDArray[Any]:
    """Return the labels at ``indices``: an int array for int labels, an object array otherwise."""
    if all(type(label) is int and -(2**63) <= label < 2**63 for label in labels):
        return np.asarray(labels, dtype=np.int64)[indices]
    table = np.empty(len(labels), dtype=object)
    table[:] = labels
    return table[indices]


def encode_label(label: Label) -> Any:
    """Return ``label`` as a JSON value; tuples become ``{"tuple": [...]}``."""
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, tuple):
        return {"tuple": [encode_label(item) for item in label]}
    if label is None or type(label) in (bool, int, float, str):
        return label
    raise TypeError(
        f"the label {label!r} of type {type(label).__name__} cannot be saved; "
        "text, numbers, booleans, None and tuples of them can"
    )


def decode_label(value: Any) -> Label:
    """Reverse ``encode_label``."""
    if isinstance(value, dict):
        if not isinstance(value["tuple"], list):
            raise ValueError(f"not a label: {value!r}")
        return tuple(decode_label(item) for item in value["tuple"])
    if isinstance(value, list):
        raise ValueError(f"not a label: {value!r}")
    return value  # type: ignore[no-any-return]  # JSON leaves only hashable scalars here


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
