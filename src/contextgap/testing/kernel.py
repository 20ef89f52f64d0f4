"""What a kernel must do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.kernels import Kernel
from contextgap.testing.common import (
    check_description,
    check_files,
    check_kind,
    doing,
    expect,
    points,
    taught,
)

_SCALES = (1e-3, 1.0, 30.0)


def check_kernel(kernel: Kernel, *, dimensions: Sequence[int] = (1, 3)) -> None:
    """Check that a kernel can be used wherever the library takes one.

    It must be symmetric and positive semi-definite on random contexts of several scales, its
    ``diagonal`` that of the matrix, and its values those of each pair alone. Dimensions that do not
    suit it must be refused by ``check_dimension`` with a ``ValueError``, and those are left out.
    Learners and policies with it must go through files.

    Parameters
    ----------
    kernel
        The kernel.
    dimensions
        Numbers per context to try; it must suit one of them at least.
    """
    name = check_kind(kernel, Kernel, "Gaussian(1.0)")
    check_description(kernel)
    suitable = [dimension for dimension in dimensions if _suits(name, kernel, dimension)]
    expect(
        suitable,
        f"{name} suits contexts of none of {list(dimensions)} numbers; check_kernel(kernel, "
        "dimensions=[...]) tries others",
    )
    for dimension in suitable:
        _check_shapes(name, kernel, dimension)
        for seed, scale in enumerate(_SCALES):
            _check_values(name, kernel, scale * points(25, dimension, seed))
        with doing(f"learning with {name} from contexts of {dimension} numbers"):
            learner = taught(3, dimension, 30, kernel=kernel)
        check_files(name, learner, points(20, dimension, seed=7))


def _suits(name: str, kernel: Kernel, dimension: int) -> bool:
    try:
        kernel.check_dimension(dimension)
    except ValueError:
        return False
    except Exception as error:
        raise AssertionError(
            f"{name}.check_dimension({dimension}) raised {type(error).__name__}: {error}; "
            "it must raise ValueError for what does not suit"
        ) from error
    return True


def _check_shapes(name: str, kernel: Kernel, dimension: int) -> None:
    left, right = points(5, dimension, 1), points(7, dimension, 2)
    for array in (left, right):
        array.flags.writeable = False
    refuse = f"(or have check_dimension({dimension}) raise ValueError)"
    for m, n in ((5, 7), (1, 7), (5, 1), (0, 7), (5, 0)):
        with doing(f"{name} of {m} and {n} read-only contexts of {dimension} numbers {refuse}"):
            values: Any = kernel(left[:m], right[:n])
        _check_array(f"{name} of {m} and {n} contexts", values, (m, n))
    for m in (5, 1, 0):
        with doing(f"{name}.diagonal of {m} read-only contexts of {dimension} numbers"):
            diagonal: Any = kernel.diagonal(left[:m])
        _check_array(f"{name}.diagonal of {m} contexts", diagonal, (m,))
        expect(
            diagonal.flags.writeable,
            f"{name}.diagonal must return a new array that may be written to",
        )


def _check_array(what: str, values: Any, shape: tuple[int, ...]) -> None:
    expect(isinstance(values, np.ndarray), f"{what} must be an array, got {type(values).__name__}")
    expect(values.shape == shape, f"{what} must have shape {shape}, got {values.shape}")
    expect(values.dtype == np.float64, f"{what} must be of dtype float64, got {values.dtype}")
    expect(np.isfinite(values).all(), f"{what} must be finite, got {values}")


def _check_values(name: str, kernel: Kernel, contexts: FloatArray) -> None:
    gram = kernel(contexts, contexts)
    size = float(np.abs(gram).max())
    expect(
        np.allclose(gram, gram.T, rtol=1e-9, atol=1e-12 * size),
        f"{name} is not symmetric: k(x, y) and k(y, x) differ by {np.abs(gram - gram.T).max():.3g}",
    )
    expect(
        np.allclose(kernel.diagonal(contexts), np.diagonal(gram), rtol=1e-9, atol=1e-12 * size),
        f"{name}.diagonal is not the diagonal of the matrix: it must return k(x, x) for every row",
    )
    lowest, *_, highest = np.linalg.eigvalsh((gram + gram.T) / 2)
    expect(
        lowest >= -1e-9 * abs(highest),
        f"{name} is not positive semi-definite: a matrix of 25 random contexts has an eigenvalue "
        f"of {lowest:.3g}, the largest is {highest:.3g}; sums and products of kernels that are, "
        "are too",
    )
    alone = [[kernel(x[None], y[None])[0, 0] for y in contexts[:4]] for x in contexts[:6]]
    expect(
        np.allclose(alone, gram[:6, :4], rtol=1e-9, atol=1e-12 * size),
        f"{name} of two contexts depends on which others it is computed with: it must be a "
        "function of the two alone",
    )
