"""Checks of what users pass in.

Each returns the value in its canonical type or raises an error that names the argument, the
offending value and what would be right.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np

from contextgap.base.arrays import FloatArray


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
