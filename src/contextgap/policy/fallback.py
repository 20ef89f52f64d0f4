"""A safe arm, which a policy answers where it does not know enough."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple, Self

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.labels import Label, decode_label, encode_label
from contextgap.methods.recommenders.history import Choice
from contextgap.methods.recommenders.rules import Evidence
from contextgap.tables.contexts import ContextSchema
from contextgap.tables.eligible import Mask

_MARGIN = 0.1  # of a column's range: so far beyond what was seen a context may lie


class Status(IntEnum):
    """Why a policy returned an arm; a number, as in exported C.

    .. versionadded:: 0.2

    See Also
    --------
    Policy.status : Returns it.

    Examples
    --------
    >>> policy.with_fallback("left").status([9.0, 0.0])
    <Status.OUTSIDE: 2>
    """

    RECOMMENDED = 0
    """The arm that the recommender chose."""
    BOUND_TOO_LARGE = 1
    """The fallback: the recommended arm's bound exceeds the tolerance."""
    OUTSIDE = 2
    """The fallback: the context lies outside what was seen, whatever the bound."""
    NO_FALLBACK = 3
    """The arm that the recommender chose: the fallback would be answered but is not eligible."""


@dataclass(frozen=True)
class Fallback:
    """A safe arm, and when a policy returns it in place of the recommended one.

    .. versionadded:: 0.2

    Parameters
    ----------
    arm
        Its label.
    column
        Its place among the policy's arms.
    tolerance
        The largest bound at which a recommended arm is returned; None for any.
    low, high
        The range of each number of a context that counts as seen: that of the contexts whose
        rewards were told, and a tenth of its length to either side; for codes of categories their
        range alone, which leaves out levels never met. Empty if there were none.

    See Also
    --------
    Policy.with_fallback : Sets one.

    Examples
    --------
    >>> policy.with_fallback("left", tolerance=0.5).fallback.tolerance
    0.5
    """

    arm: Label
    column: int
    tolerance: float | None
    low: tuple[float, ...] = field(repr=False)
    high: tuple[float, ...] = field(repr=False)

    @classmethod
    def of(
        cls,
        arm: Any,
        tolerance: Any,
        arms: tuple[Label, ...],
        contexts: FloatArray,
        categories: int = 0,
    ) -> Fallback:
        """Return a fallback for a policy that has ``arms`` and was told rewards at ``contexts``.

        The last ``categories`` numbers of a context are codes, which have no margin.
        """
        try:
            column = arms.index(arm)
        except ValueError:
            raise ValueError(f"fallback must be among {list(arms)}, got {arm!r}") from None
        if tolerance is not None:
            tolerance = checks.at_least("tolerance", tolerance, 0, "a simple regret")
        if not len(contexts):
            return cls(arms[column], column, tolerance, (), ())
        low, high = contexts.min(axis=0), contexts.max(axis=0)
        margin = _MARGIN * (high - low)
        margin[len(margin) - categories :] = 0.0
        seen = tuple((low - margin).tolist()), tuple((high + margin).tolist())
        return cls(arms[column], column, tolerance, *seen)

    def outside(self, contexts: FloatArray) -> Mask:
        if not self.low:
            return np.ones(len(contexts), dtype=bool)
        inside = (contexts >= np.array(self.low)) & (contexts <= np.array(self.high))
        return np.asarray(~inside.all(axis=1))

    def why(self, context: FloatArray, gap: float, schema: ContextSchema) -> str:
        """Return in words why the recommended arm, which has this gap, is not to be answered."""
        if not self.outside(context[None])[0]:
            return f"the bound {gap:.3g} exceeds the tolerance {self.tolerance:g}"
        for i, (value, low, high) in enumerate(zip(context, self.low, self.high, strict=False)):
            if not low <= value <= high:
                if schema.table is not None:  # its numbers are not what users know
                    return f"outside what was seen: {schema.table.column_of(i)!r}"
                name = f"column {i}" if schema.columns is None else repr(schema.columns[i])
                return f"outside what was seen: {name} is {value:.4g}, not {low:.4g} to {high:.4g}"
        return "outside what was seen: there are no rewards"

    def describe(self) -> dict[str, Any]:
        return {
            "arm": encode_label(self.arm),
            "tolerance": self.tolerance,
            "low": list(self.low),
            "high": list(self.high),
        }

    @classmethod
    def restored(
        cls, values: Mapping[str, Any], arms: tuple[Label, ...], dimension: int | None
    ) -> Self:
        given = cls.of(decode_label(values["arm"]), values["tolerance"], arms, np.empty((0, 0)))
        low, high = (
            tuple(checks.real(name, number) for number in values[name]) for name in ("low", "high")
        )
        if len(low) not in (0, dimension) or len(low) != len(high):
            raise ValueError("the fallback's ranges do not match the contexts")
        return cls(given.arm, given.column, given.tolerance, low, high)


class Answer(NamedTuple):
    """The arms that a policy answers, their gaps, and how it came to them (``Status``)."""

    arm: IntArray
    gap: FloatArray
    status: IntArray


def answer(fallback: Fallback | None, choice: Choice, evidence: Evidence) -> Answer:
    """Return a choice with the fallback in its place where the policy does not know enough."""
    status = np.zeros(len(evidence.contexts), dtype=np.intp)
    if fallback is None:
        return Answer(choice.arm, choice.gap, status)
    if fallback.tolerance is not None:
        # Not `gap > tolerance`: a gap that cannot be computed is NaN, and certifies nothing.
        status[~(choice.gap <= fallback.tolerance)] = Status.BOUND_TOO_LARGE
    status[fallback.outside(evidence.contexts)] = Status.OUTSIDE
    if not status.any():
        return Answer(choice.arm, choice.gap, status)
    if fallback.column not in evidence.columns:
        return Answer(choice.arm, choice.gap, np.where(status > 0, int(Status.NO_FALLBACK), 0))
    place = list(evidence.columns).index(fallback.column)
    arm = np.where(status > 0, place, choice.arm)
    gap = np.where(status > 0, evidence.belief.gap[:, place], choice.gap)
    return Answer(arm, gap, status)
