"""Arm labels: any hashable value that names an arm, and its index 0, 1, 2, ..."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from contextgap.base import checks
from contextgap.base.arrays import IntArray

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
        return tuple(range(checks.whole("arms", arms, least=1)))
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
    """Raise unless ``label`` can be that of a new arm beside others."""
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
        """Return the label that is written so; the default if there is none."""
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
