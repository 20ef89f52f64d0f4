"""Classification as a bandit: the arms are the classes, and the right one pays 1."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.base.labels import Label, check_label
from contextgap.base.names import study_import
from contextgap.studies.problems.problem import FixedData, Problem, standardised
from contextgap.tables.contexts import ContextSchema

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
            values = _class_values(name, classes)
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
        if not _is_label(label):
            raise ValueError(f"the classes of {name!r} lack a value: got {label!r} in row {row}")
    # Not a set: classes that sort alike, such as "1" and "1.0", must not change places.
    classes = tuple(sorted(dict.fromkeys(labels), key=_sort_key))
    if len(classes) < 2:
        raise ValueError(f"{name!r} must have at least two classes, got only {classes[0]!r}")
    places = {label: place for place, label in enumerate(classes)}
    return classes, np.array([places[label] for label in labels])


def _is_label(label: Any) -> bool:
    try:
        check_label(label)
    except (TypeError, ValueError):
        return False
    return label is not None


def _value(label: Any) -> float | None:
    """Return the number a class is or, as often on OpenML, spells."""
    try:
        value = float(label)
    except (TypeError, ValueError, OverflowError):
        return None
    return value if math.isfinite(value) else None


def _sort_key(label: Any) -> tuple[bool, float, str]:
    value = _value(label)
    return (True, 0.0, str(label)) if value is None else (False, value, "")


def _class_values(name: str, classes: tuple[Label, ...]) -> FloatArray:
    values = []
    for label in classes:
        value = _value(label)
        if value is None:
            raise ValueError(
                f"ordinal=True needs classes that are numbers, got {label!r} in {name!r}"
            )
        values.append(value)
    return np.array(values)
