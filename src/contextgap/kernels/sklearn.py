"""Any scikit-learn Gaussian-process kernel as a kernel of this library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray
from contextgap.kernels.base import Kernel


@dataclass(frozen=True)
class SklearnKernel(Kernel):
    """An adapter for ``sklearn.gaussian_process.kernels``; hyper-parameters stay as given.

    Kernels built from scikit-learn's own classes can be saved; loading needs scikit-learn.

    Parameters
    ----------
    kernel
        A scikit-learn kernel object. White noise is refused: noise is the learner's ``ridge``.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> kernel = cg.SklearnKernel(RBF(2.0))
    >>> kernel(np.zeros((1, 1)), np.ones((1, 1))).round(3)
    array([[0.882]])
    """

    kernel: Any

    def __post_init__(self) -> None:
        from sklearn.base import clone
        from sklearn.gaussian_process import kernels

        checks.instance("kernel", self.kernel, kernels.Kernel, "sklearn's RBF(1.0)")
        object.__setattr__(self, "kernel", clone(self.kernel))  # theirs are mutable
        if any(isinstance(part, kernels.WhiteKernel) for part in _parts(self.kernel)):
            raise ValueError("kernel contains a WhiteKernel; express noise by ridge instead")

    def __call__(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return np.asarray(self.kernel(left, right), dtype=np.float64)

    def diagonal(self, contexts: FloatArray) -> FloatArray:
        return np.asarray(self.kernel.diag(contexts), dtype=np.float64)

    def check_dimension(self, dimension: int) -> None:
        try:
            self.kernel(np.zeros((1, dimension)))
        except ValueError as error:
            raise ValueError(
                f"kernel does not suit contexts of {dimension} numbers: {error}"
            ) from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SklearnKernel) and _key(self.kernel) == _key(other.kernel)

    def __hash__(self) -> int:
        return hash(_key(self.kernel))

    def describe(self) -> dict[str, Any]:
        """Return the scikit-learn kernel as nested class names and parameters."""
        return {"type": "SklearnKernel", "kernel": _describe(self.kernel)}

    @classmethod
    def _build(cls, values: Mapping[str, Any]) -> Self:
        return cls(_rebuild(values["kernel"]))


def _parts(kernel: Any) -> list[Any]:
    from sklearn.gaussian_process.kernels import Kernel as Theirs

    values = kernel.get_params(deep=False).values()
    return [
        kernel,
        *(part for value in values if isinstance(value, Theirs) for part in _parts(value)),
    ]


def _key(value: Any) -> Any:
    """A kernel as nested tuples, which compare and hash by value."""
    if hasattr(value, "get_params"):
        parameters = sorted(value.get_params(deep=False).items())
        return (type(value), *((name, _key(setting)) for name, setting in parameters))
    if isinstance(value, tuple | list | np.ndarray):
        return tuple(_key(item) for item in value)
    return value


def _describe(value: Any) -> Any:
    from sklearn.gaussian_process import kernels

    if isinstance(value, kernels.Kernel):
        name = type(value).__name__
        if getattr(kernels, name, None) is not type(value):
            raise TypeError(f"the scikit-learn kernel {name} cannot be described in a file")
        parameters = value.get_params(deep=False)
        return {"class": name, **{key: _describe(item) for key, item in parameters.items()}}
    if isinstance(value, tuple | list | np.ndarray):
        return [_describe(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a scikit-learn kernel setting cannot be described in a file: {value!r}")


def _rebuild(value: Any) -> Any:
    from sklearn.gaussian_process import kernels

    if isinstance(value, Mapping):
        settings = {key: _rebuild(item) for key, item in value.items() if key != "class"}
        kind = getattr(kernels, str(value["class"]), None)
        if not (isinstance(kind, type) and issubclass(kind, kernels.Kernel)):
            raise ValueError(f"scikit-learn has no kernel {value['class']!r}")
        return kind(**settings)
    return tuple(_rebuild(item) for item in value) if isinstance(value, list) else value
