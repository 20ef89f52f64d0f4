"""A problem that knows where the spacecraft was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contextgap.base.arrays import FloatArray, IntArray, frozen
from contextgap.studies.problems.problem import Problem

_FACTS = {
    "time": np.float64,
    "sunlit": np.float64,
    "dipole_latitude": np.float64,
    "known": np.bool_,
    "orbit_phase": np.float64,
    "orbit_number": np.intp,
}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Flight(Problem):
    """A problem along an orbit, in parts of which the field is known and feedback available.

    Parameters
    ----------
    name
        What results are labelled with.
    contexts
        One context per row, shape (n, d); a DataFrame's column names are kept.
    rewards
        Expected reward of each arm at each context, shape (n, A); regret is measured against it.
    arms
        A label per column of ``rewards``; 0..A-1 by default.
    ordered
        Whether the rows are in time order and must stay so.
    columns
        Names of a context's numbers.
    observations
        The reward that a learner observes when it tries an arm, shape (n, A); by default the
        expected rewards.
    schema
        How the columns of ``contexts`` became numbers, if they were not.
    time
        s since the start, one entry per row.
    sunlit
        Visible fraction of the Sun's disc: 0 in eclipse, 1 outside, between them in penumbra.
    dipole_latitude
        Degrees from the geomagnetic equator.
    known
        Whether the field is known well enough to tell how wrong a sensor is.
    orbit_phase
        Fraction of the orbit since the ascending node, from 0 to below 1.
    orbit_number
        0, 1, ...: how often the ascending node was passed since the start.
    """

    time: FloatArray
    sunlit: FloatArray
    dipole_latitude: FloatArray
    known: NDArray[np.bool_]
    orbit_phase: FloatArray
    orbit_number: IntArray

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, dtype in _FACTS.items():
            values: NDArray[Any] = np.array(getattr(self, name), dtype=dtype)
            if values.shape != (len(self),):
                raise ValueError(
                    f"{name} must have an entry for each of {len(self)} rows, "
                    f"got shape {values.shape}"
                )
            object.__setattr__(self, name, frozen(values))

    def __repr__(self) -> str:
        return f"Flight{super().__repr__().removeprefix('Problem')}"

    def _facts(self, rows: IntArray) -> dict[str, Any]:
        return {name: getattr(self, name)[rows] for name in _FACTS}
