"""How raw features become contexts: fitted once, then applied to new instances alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from contextgap.base.arrays import FloatArray


@dataclass(frozen=True)
class Feature:
    """A number of the context that is made from one feature.

    Parameters
    ----------
    name
        The feature.
    choices
        Names that stand for 0, 1, ... where the feature's values are names; None for numbers.
    logarithm
        Whether a value x becomes sign(x) · ln(1 + abs(x)).
    gap
        The number where the value is missing.
    """

    name: str
    choices: tuple[str, ...] | None
    logarithm: bool
    gap: float

    def of(self, raw: Mapping[str, FloatArray]) -> FloatArray:
        """Return the number for every instance, from raw columns with NaN for gaps."""
        column = unskewed(raw[self.name]) if self.logarithm else raw[self.name]
        return np.where(np.isnan(column), self.gap, column)


@dataclass(frozen=True)
class FailedStep:
    """A number of the context: 1 where a step of the feature computation failed, else 0.

    Parameters
    ----------
    name
        What the number is called.
    features
        The step failed where all of these are missing. None where a column called ``name`` says
        whether it did.
    """

    name: str
    features: tuple[str, ...] | None

    def of(self, raw: Mapping[str, FloatArray]) -> FloatArray:
        """Return the number for every instance, from raw columns with NaN for gaps."""
        if self.features is None:
            return raw[self.name]
        missing = [np.isnan(raw[name]) for name in self.features]
        return np.asarray(np.all(missing, axis=0), dtype=np.float64)


@dataclass(frozen=True)
class Preparation:
    """How raw features become the numbers of a context.

    Parameters
    ----------
    features
        The numbers that come from features.
    steps
        The numbers that come behind: which steps of the feature computation failed.
    centre, unit
        From each number its centre is subtracted, then it is divided by its unit; None for numbers
        that stay as they are.
    """

    features: tuple[Feature, ...]
    steps: tuple[FailedStep, ...]
    centre: tuple[float, ...] | None = None
    unit: tuple[float, ...] | None = None

    @property
    def _parts(self) -> tuple[Feature | FailedStep, ...]:
        return (*self.features, *self.steps)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of a context's numbers."""
        return tuple(part.name for part in self._parts)

    @property
    def needed(self) -> tuple[str, ...]:
        """The raw columns that contexts are made from."""
        behind = [name for step in self.steps for name in step.features or [step.name]]
        return tuple(dict.fromkeys([*(feature.name for feature in self.features), *behind]))

    def contexts(self, raw: Mapping[str, FloatArray]) -> FloatArray:
        """Return one context per instance.

        Parameters
        ----------
        raw
            The needed columns, with a number per instance, NaN where it is missing.
        """
        numbers = np.column_stack([part.of(raw) for part in self._parts])
        if self.centre is None or self.unit is None:
            return numbers
        return np.asarray((numbers - np.array(self.centre)) / np.array(self.unit))

    @classmethod
    def restored(cls, described: Mapping[str, Any]) -> Self:
        """Return a preparation from what ``dataclasses.asdict`` made of it, and JSON of that.

        Parameters
        ----------
        described
            Lists in place of tuples will do.
        """

        def fixed(value: Any) -> Any:
            return tuple(value) if isinstance(value, list) else value

        def parts(kind: Any, name: str) -> tuple[Any, ...]:
            entries = described[name]
            return tuple(kind(**{key: fixed(entry[key]) for key in entry}) for entry in entries)

        centre, unit = fixed(described["centre"]), fixed(described["unit"])
        return cls(parts(Feature, "features"), parts(FailedStep, "steps"), centre, unit)


def unskewed(column: FloatArray) -> FloatArray:
    """Return sign(x) · ln(1 + abs(x))."""
    return np.asarray(np.sign(column) * np.log1p(np.abs(column)))
