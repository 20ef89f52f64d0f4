"""Problems in data that exist: a user's own table, a log of sensors, a set of classified rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.base.labels import Label, read_labels
from contextgap.base.names import renamed, study_import
from contextgap.studies.problems.problem import FixedData, Problem, indices, standardised
from contextgap.tables.cells import is_missing
from contextgap.tables.columns import Columns, all_numbers
from contextgap.tables.contexts import ContextSchema, read_columns
from contextgap.tables.files import (
    SUFFIXES,
    check_file,
    check_missing,
    read_names,
    read_path,
    read_sheet,
)


@renamed(gaps="missing")
@dataclass(frozen=True)
class Table(FixedData):
    r"""A CSV, TSV or Parquet file with context columns and one reward column per arm.

    Parameters
    ----------
    path
        The file; its suffix is .csv, .tsv, .parquet or .pq.
    context
        Columns that make up the context; by default all that are not in ``rewards``.
    exclude
        Columns that are not context, such as ids.
    kinds
        What columns hold that are not what they seem: ``{"hour": Cyclic(24), "shop": "category"}``.
    missing
        Columns of which later tables may lack cells, though this one lacks none.
    separator
        What separates the cells of a text file; by default inferred from its header.
    skip_missing
        Whether to leave out rows that lack a reward, which are an error otherwise.
    rewards
        Columns with the arms' rewards, one per arm.
    arms
        A label per reward column; by default the columns' names.
    ordered
        Whether the rows are in time order and must stay so.
    scale
        Whether to give each context column mean 0 and standard deviation 1 over all rows
        (constant columns become 0), which suits kernels with one bandwidth for all columns. The
        rewards play no part in it. Tables with text or missing values stay raw.

    Examples
    --------
    >>> with open("table.csv", "w") as file:
    ...     _ = file.write("x,left,right\n0.0,1,0\n1.0,0.5,2\n")
    >>> cg.problems.Table("table.csv", rewards=["left", "right"]).sample()
    Problem('table': 2 rows, 1 number per context, 2 arms (left, right))
    """

    path: str | Path
    _: KW_ONLY
    context: Sequence[str] | None = None
    exclude: Sequence[str] = ()
    kinds: Mapping[str, Any] | None = None
    missing: Sequence[str] = ()
    separator: str | None = None
    skip_missing: bool = False
    rewards: Sequence[str]
    arms: Sequence[Label] | None = None
    ordered: bool = False
    scale: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", read_path(self.path))
        object.__setattr__(self, "rewards", read_names("rewards", self.rewards))
        if self.arms is not None:
            object.__setattr__(self, "arms", read_labels(self.arms))
        if self.kinds:
            object.__setattr__(self, "kinds", Columns(self.kinds))
        named = {"exclude": self.exclude or None, "missing": self.missing or None}
        for argument, names in {**named, "context": self.context}.items():
            if names is not None:
                object.__setattr__(self, argument, read_names(argument, names))
        _check_apart(self.context or (), "context", self.rewards, "rewards")

    def load(self) -> Problem:
        """Return all rows of the file."""
        path = Path(self.path)
        sheet = read_sheet(path, self.separator)
        if missing := sheet.without(self.rewards):
            first = f"{path}, {sheet.places[missing[0]]}"
            check_missing(first, len(missing), len(sheet), self.skip_missing)
            sheet = sheet.drop(missing)
        rewards = np.column_stack([sheet.rewards(name) for name in self.rewards])
        for name in (*self.exclude, *(self.kinds or {}), *self.missing):
            sheet.cells_of(name)  # a name that is mistyped would do nothing
        wanted = self.context or sheet.others((*self.rewards, *self.exclude))
        columns = tuple(name for name in wanted if name not in self.exclude)
        if not columns:
            raise ValueError(f"{path}: every column is in rewards, which leaves none as context")
        table: Any = sheet.table(columns, self.kinds)
        contexts: dict[str, Any] = {"contexts": table, "columns": columns}
        if self.kinds or self.missing:  # columns are not all what they seem
            given = {name: kind for name, kind in (self.kinds or {}).items() if name in columns}
            known = Columns.from_table(table, **given).with_missing(self.missing)
            intake = read_columns(known).read(table, learning=True)
            contexts = {"contexts": intake.rows, "schema": intake.schema}
        elif all(map(all_numbers, table.cells)):
            numbers = np.column_stack(table.cells)
            contexts["contexts"] = standardised(numbers) if self.scale else numbers
        return Problem(
            name=path.stem,
            rewards=rewards,
            arms=tuple(self.rewards if self.arms is None else self.arms),
            ordered=self.ordered,
            **contexts,
        )


def _check_apart(some: Sequence[str], first: str, others: Sequence[str], second: str) -> None:
    for name in some:
        if name in others:
            raise ValueError(f"column {name!r} cannot be both in {first} and in {second}")


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
        _check_apart(telemetry, "telemetry", noise, "noise")
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


_BUNDLED = ("breast_cancer", "digits", "iris", "wine")


# Compared by identity: the data may be arrays, whose equality is not one truth value.
@dataclass(frozen=True, eq=False)
class Classification(FixedData):
    """A data set whose classes are the arms: 1 for the right class, 0 for any other.

    Parameters
    ----------
    data
        "digits", "wine", "breast_cancer" or "iris", which come with scikit-learn; any other name
        is fetched from openml.org ("letter", "usps") and cached by scikit-learn; or a pair
        (features, classes) of arrays or DataFrame and Series.
    ordinal
        Pay −|difference| between the class picked and the right one; classes must be numbers.
    scale
        Whether to give each feature mean 0 and standard deviation 1 over all rows (constant
        features become 0), which suits kernels with one bandwidth for all features. The classes
        play no part in it.
    version
        Which version of an OpenML data set to fetch.
    name
        What results are labelled with; by default the data set's name.

    Examples
    --------
    >>> Classification(([[0.0], [1.0], [2.0]], ["a", "b", "a"])).sample().rewards
    array([[1., 0.], [0., 1.], [1., 0.]])
    """

    data: Any
    _: KW_ONLY
    ordinal: bool = False
    scale: bool = True
    version: int | str = "active"
    name: str | None = None

    def __post_init__(self) -> None:
        pair = isinstance(self.data, tuple | list) and len(self.data) == 2
        if not (pair or (isinstance(self.data, str) and self.data)):
            raise TypeError(
                f"data must be a data set's name, such as 'digits', or a pair (features, classes), "
                f"got {self.data!r}"
            )

    def load(self) -> Problem:
        """Return all rows."""
        by_name = isinstance(self.data, str)
        name = self.name or (self.data if by_name else "classification")
        features, target, known = self._fetch(self.data) if by_name else (*self.data, None)
        contexts, columns = _read_features(name, features, known)
        classes, right = _read_classes(name, target, len(contexts))
        if self.ordinal:
            values = np.array([_value(label) for label in classes])
            if np.isnan(values).any():
                label = classes[int(np.isnan(values).argmax())]
                raise ValueError(
                    f"ordinal=True needs classes that are numbers, got {label!r} in {name!r}"
                )
            # Subtracted, not negated: the right class pays 0, not -0.
            rewards = 0.0 - np.abs(values - values[right][:, np.newaxis])
        else:
            rewards = np.eye(len(classes))[right]
        return Problem(
            name=name,
            contexts=standardised(contexts) if self.scale else contexts,
            rewards=rewards,
            arms=classes,
            columns=columns,
        )

    def _fetch(self, name: str) -> tuple[Any, Any, Any]:
        datasets = study_import("sklearn.datasets")
        if name in _BUNDLED:
            bunch = getattr(datasets, f"load_{name}")()
            return bunch.data, bunch.target, bunch.feature_names
        try:
            # "auto": sparse data sets come as matrices, all others with column names.
            bunch = datasets.fetch_openml(name, version=self.version, as_frame="auto")
        except (OSError, ValueError) as error:
            kind = OSError if isinstance(error, OSError) else ValueError
            raise kind(
                f"could not fetch {name!r} from openml.org ({error}); "
                f"{', '.join(_BUNDLED)} need no download"
            ) from error
        features = bunch.data.toarray() if hasattr(bunch.data, "toarray") else bunch.data
        return features, bunch.target, None


def _read_features(
    name: str, features: Any, columns: Any
) -> tuple[FloatArray, tuple[str, ...] | None]:
    try:
        names = None if columns is None else tuple(map(str, columns))
        intake = ContextSchema(columns=names).read(features)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(
            f"the features of {name!r} must be numbers without missing values: {error}"
        ) from None
    if intake.single or len(intake.rows) == 0:
        raise ValueError(
            f"the features of {name!r} must have the shape (rows, features) with at least one row, "
            f"got {np.shape(features)}"
        )
    return intake.rows, intake.schema.columns


def _read_classes(name: str, target: Any, rows: int) -> tuple[tuple[Label, ...], Any]:
    """Return the distinct classes, in order, and for each row the place of its class."""
    if target is None or np.ndim(target) != 1:
        raise ValueError(
            f"the classes of {name!r} must be one label per row, got shape {np.shape(target)}"
        )
    labels = target.tolist() if hasattr(target, "tolist") else list(target)
    labels = [label.item() if isinstance(label, np.generic) else label for label in labels]
    if len(labels) != rows:
        raise ValueError(f"{name!r} has {rows} rows of features but {len(labels)} classes")
    for row, label in enumerate(labels):
        if is_missing(label):
            raise ValueError(f"the classes of {name!r} lack a value: got {label!r} in row {row}")
    # Not a set: classes that sort alike, such as "1" and "1.0", must not change places.
    classes = tuple(sorted(dict.fromkeys(labels), key=_sort_key))
    if len(classes) < 2:
        raise ValueError(f"{name!r} must have at least two classes, got only {classes[0]!r}")
    return classes, indices(labels, classes)


def _value(label: Any) -> float:
    """Return the number a class is or, as often on OpenML, spells; NaN if it is none."""
    try:
        value = float(label)
    except (TypeError, ValueError, OverflowError):
        return math.nan
    return value if math.isfinite(value) else math.nan


def _sort_key(label: Any) -> tuple[bool, float, str]:
    value = _value(label)
    return (True, 0.0, str(label)) if math.isnan(value) else (False, value, "")
