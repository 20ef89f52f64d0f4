"""Logs of several sensors beside telemetry: which sensor to trust, and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.base.labels import Label, read_labels
from contextgap.studies.problems.problem import FixedData, Problem, standardised
from contextgap.tables.files import SUFFIXES, check_file, read_names, read_path, read_sheet

_TELEMETRY, _NOISE = "telMat", "bNorm"


@dataclass(frozen=True)
class SensorLog(FixedData):
    r"""Telemetry and each sensor's noise over time; trusting a sensor pays −noise.

    A MATLAB file holds ``telMat``, channels by time, and ``bNorm``, sensors by time. Either may
    also be stored time first: time is the axis on which the two have equal length; if that leaves
    a choice, the longer axis; and in a square matrix the second. A CSV (or Parquet) file has a
    row per time step.

    Parameters
    ----------
    path
        The file; its suffix is .mat, .csv, .parquet or .pq.
    noise
        Columns with the sensors' noise; by default those whose names start with "noise". A MATLAB
        file has no column names.
    telemetry
        Columns that make up the context; by default all others but those that hold text
        throughout, such as time stamps.
    arms
        A label per sensor; by default the noise columns' names, or 0, 1, ... for a MATLAB file.
    scale
        Whether to give each channel mean 0 and standard deviation 1 over the whole log (constant
        channels become 0), which suits kernels with one bandwidth for all channels. The noise
        plays no part in it.

    Examples
    --------
    >>> with open("log.csv", "w") as file:
    ...     _ = file.write("current,noise hull,noise boom\n0.1,3,1\n0.4,2,4\n")
    >>> cg.problems.SensorLog("log.csv").sample()
    Problem('log': 2 rows, 1 number per context, 2 arms (noise hull, noise boom), in time order)
    """

    path: str | Path
    _: KW_ONLY
    noise: Sequence[str] | None = None
    telemetry: Sequence[str] | None = None
    arms: Sequence[Label] | None = None
    scale: bool = True

    def __post_init__(self) -> None:
        path = read_path(self.path)
        object.__setattr__(self, "path", path)
        for argument in ("noise", "telemetry"):
            names = getattr(self, argument)
            if names is None:
                continue
            if path.suffix.lower() == ".mat":
                raise ValueError(
                    f"{argument} must be left out for a MATLAB file, which has no column names, "
                    f"got {names!r}"
                )
            object.__setattr__(self, argument, read_names(argument, names))
        if self.arms is not None:
            object.__setattr__(self, "arms", read_labels(self.arms))

    def load(self) -> Problem:
        """Return the whole log, in time order."""
        path = Path(self.path)
        check_file(path, (".mat", *SUFFIXES))
        arms: Sequence[Label] | None
        if path.suffix.lower() == ".mat":
            contexts, noise = _read_matlab(path)
            columns, arms = None, self.arms
        else:
            columns, sensors, contexts, noise = self._read_columns(path)
            arms = sensors if self.arms is None else self.arms
        return Problem(
            name=path.stem,
            contexts=standardised(contexts) if self.scale else contexts,
            rewards=-noise,
            arms=arms,  # type: ignore[arg-type]  # None stands for 0, 1, ...
            ordered=True,
            columns=columns,
        )

    def _read_columns(
        self, path: Path
    ) -> tuple[tuple[str, ...], tuple[str, ...], FloatArray, FloatArray]:
        sheet = read_sheet(path)
        noise = tuple(self.noise or (name for name in sheet.columns if name.startswith("noise")))
        if not noise:
            raise ValueError(
                f"{path}: no column's name starts with 'noise'; name the sensors' columns with "
                f"noise=[...]; the columns are {list(sheet.columns)}"
            )
        values = sheet.numbers(noise)
        if self.telemetry is not None:
            telemetry = tuple(self.telemetry)
        else:
            telemetry = tuple(name for name in sheet.others(noise) if not sheet.is_text(name))
        if not telemetry:
            raise ValueError(f"{path}: no numeric column is left as telemetry beside {list(noise)}")
        both = [name for name in telemetry if name in noise]
        if both:
            raise ValueError(f"column {both[0]!r} cannot be both in telemetry and in noise")
        return telemetry, noise, sheet.numbers(telemetry), values


def _read_matlab(path: Path) -> tuple[FloatArray, FloatArray]:
    """Return telemetry and noise, both time first."""
    # Imported here: only this reader needs it, and it doubles the time to import this package.
    from scipy.io import loadmat

    try:
        variables = loadmat(path)
    except NotImplementedError:
        raise ValueError(
            f"{path}: saved in MATLAB's 7.3 format, which SciPy cannot read; save it with '-v7'"
        ) from None
    except Exception as error:  # a damaged file raises almost anything
        raise ValueError(f"{path}: not a readable MATLAB file ({error})") from error
    telemetry = _variable(path, variables, _TELEMETRY)
    noise = _variable(path, variables, _NOISE)
    telemetry_axis, noise_axis = _time_axes(path, telemetry, noise)
    return np.moveaxis(telemetry, telemetry_axis, 0), np.moveaxis(noise, noise_axis, 0)


def _variable(path: Path, variables: dict[str, Any], name: str) -> FloatArray:
    if name not in variables:
        present = sorted(key for key in variables if not key.startswith("__"))
        raise ValueError(f"{path}: there is no variable {name!r}; the variables are {present}")
    matrix = variables[name]
    matrix = matrix.toarray() if hasattr(matrix, "toarray") else matrix  # MATLAB's sparse
    if matrix.dtype.kind not in "biuf" or matrix.ndim != 2 or matrix.size == 0:
        raise ValueError(
            f"{path}: {name} must be a matrix of real numbers, got {matrix.dtype} values of shape "
            f"{matrix.shape}"
        )
    bad = np.argwhere(~np.isfinite(matrix))
    if bad.size:
        row, column = bad[0].tolist()
        raise ValueError(
            f"{path}, {name}, row {row + 1}, column {column + 1}: a finite number is needed, "
            f"got {matrix[row, column]}"
        )
    return np.asarray(matrix, dtype=np.float64)


def _time_axes(path: Path, telemetry: FloatArray, noise: FloatArray) -> tuple[int, int]:
    pairs = []
    for i, j in product((0, 1), repeat=2):
        steps, channels, sensors = telemetry.shape[i], telemetry.shape[1 - i], noise.shape[1 - j]
        # With 3 channels by 4000 and 3 sensors by 3999 it is not time that agrees.
        if steps == noise.shape[j] and steps >= min(channels, sensors):
            pairs.append((steps, i, j))
    if not pairs:
        raise ValueError(
            f"{path}: {_TELEMETRY} {telemetry.shape} and {_NOISE} {noise.shape} must have the "
            "number of time steps in common"
        )
    _, telemetry_axis, noise_axis = max(pairs)
    return telemetry_axis, noise_axis
