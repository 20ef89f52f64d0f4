"""What a kernel and a width must do, and what all checks share."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.base.components import Component, build
from contextgap.beliefs.widths import Width
from contextgap.kernels import Gaussian, Kernel
from contextgap.learner import Learner
from contextgap.models import Posterior
from contextgap.policy import Policy

_SIZES = (1e-3, 1.0, 30.0)  # of contexts that kernels are checked on
_ROWS, _ARMS = 6, 5  # of posteriors that widths are checked on


def expect(right: Any, message: str) -> None:
    """Raise ``AssertionError`` with a message unless something is as it should be."""
    if not right:
        raise AssertionError(message)


@contextmanager
def doing(what: str) -> Iterator[None]:
    """Say what was being done when a component raises an error."""
    try:
        yield
    except AssertionError:
        raise
    except Exception as error:  # somebody's component may raise anything
        raise AssertionError(f"{what} raised {type(error).__name__}: {error}") from error


def check_kind(part: Any, kind: type, package: str, example: str) -> str:
    """Return what to call a component, if it is one of this kind of a public package."""
    if isinstance(part, type):
        raise AssertionError(f"{part.__name__} is a class; check an object: {part.__name__}()")
    name = type(part).__name__
    expect(
        isinstance(part, kind),
        f"{name} is no {kind.__name__}: derive it from the class that {example} derives from, "
        f"contextgap.{package}.{kind.__name__}",
    )
    return name


def check_description(part: Component) -> None:
    """Check that a component goes into a file and out, into a set, and to another process."""
    name = type(part).__name__
    advice = "make it a frozen dataclass (@dataclass(frozen=True)) of plain values"
    with doing(f"{name}.describe(), which files need; {advice}: it"):
        rebuilt = build(json.loads(json.dumps(part.describe(), allow_nan=False)))
    expect(
        type(rebuilt) is type(part) and rebuilt == part,
        f"{name}, described and built again, is {rebuilt!r} instead of {part!r}: {advice}, "
        "in which lists become tuples",
    )
    with doing(f"hash({name}), which studies need; {advice}: it"):
        expect(hash(rebuilt) == hash(part), f"equal {name} objects have different hashes: {advice}")
    check_pickle(part, name, lambda copy: copy == part)


def check_pickle(part: Any, name: str, same: Any) -> None:
    """Check that a part reaches other processes."""
    with doing(
        f"pickling {name}, by which it is sent to worker processes; define its class at the top "
        "level of a module: it"
    ):
        copy = pickle.loads(pickle.dumps(part))
        expect(same(copy), f"{name} is no longer the same after pickling")


def points(rows: int, dimension: int, seed: int = 0) -> FloatArray:
    """Return random contexts."""
    return np.random.default_rng(seed).normal(size=(rows, dimension))


def payoff(contexts: FloatArray, n_arms: int) -> FloatArray:
    """Return rewards of smooth arms that cross, contexts by arms."""
    return np.asarray(np.sin(contexts.sum(axis=1)[:, None] + 1.3 * np.arange(n_arms)))


def taught(n_arms: int, dimension: int, rows: int, **settings: Any) -> Learner:
    """Return a learner that was told rewards of all arms, one after the other."""
    settings = {"kernel": Gaussian(1.0), "ridge": 0.1, "seed": 0, "points": None, **settings}
    contexts = points(rows, dimension)
    arms = np.arange(rows) % n_arms
    rewards = payoff(contexts, n_arms)[np.arange(rows), arms]
    learner = Learner(n_arms, **settings)
    if rows:
        learner.tell(contexts, arms, rewards)
    return learner


@contextmanager
def scratch(name: str) -> Iterator[Path]:
    """Give the path of a file that goes when the block ends."""
    with TemporaryDirectory() as folder:
        yield Path(folder) / name


def check_files(name: str, learner: Learner, contexts: FloatArray) -> Policy:
    """Check that a learner and its policy answer alike when loaded; return the policy."""
    policy = learner.freeze()
    with scratch("part.cgap") as path:
        with doing(f"saving and loading a policy with {name}"):
            policy.save(path)
            loaded = Policy.load(path)
        expect(
            np.array_equal(loaded.recommend(contexts), policy.recommend(contexts))
            and np.array_equal(
                loaded.certificate(contexts).bound, policy.certificate(contexts).bound
            ),
            f"a policy with {name} answers otherwise when loaded: all that {name} depends on must "
            "be in its fields",
        )
        with doing(f"saving and loading a learner with {name}"):
            learner.save(path)
            again = Learner.load(path)
        expect(
            np.array_equal(again.recommend(contexts), learner.recommend(contexts)),
            f"a learner with {name} recommends otherwise when loaded: all that {name} depends on "
            "must be in its fields",
        )
    return policy


def check_kernel(kernel: Kernel, *, dimensions: Sequence[int] = (1, 3)) -> None:
    """Check that a kernel can be used wherever the library takes one.

    It must be symmetric and positive semi-definite on random contexts of several sizes, its
    ``diagonal`` that of the matrix, and its values those of each pair alone. Dimensions that do not
    suit it must be refused by ``check_dimension`` with a ``ValueError``, and those are left out.
    Learners and policies with it must go through files.

    .. versionadded:: 0.2

    Parameters
    ----------
    kernel
        The kernel.
    dimensions
        Numbers per context to try; it must suit one of them at least.

    Examples
    --------
    >>> cg.testing.check_kernel(cg.Linear())
    """
    name = check_kind(kernel, Kernel, "kernels", "Gaussian(1.0)")
    check_description(kernel)
    suitable = [dimension for dimension in dimensions if _suits(name, kernel, dimension)]
    expect(
        suitable,
        f"{name} suits contexts of none of {list(dimensions)} numbers; check_kernel(kernel, "
        "dimensions=[...]) tries others",
    )
    for dimension in suitable:
        _check_shapes(name, kernel, dimension)
        for seed, size in enumerate(_SIZES):
            _check_values(name, kernel, size * points(25, dimension, seed))
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


def check_width(width: Width) -> None:
    """Check that a width can be used wherever the library takes one.

    Half widths must be finite and not negative, have the shape of the standard deviations, grow
    with them, and not depend on the other contexts. ``probability`` must be None or one. Policies
    with it, those that look back included, must go through files, and carry ``probability`` unless
    ``adaptive`` is False and picks depend on rewards.

    .. versionadded:: 0.2

    Parameters
    ----------
    width
        The width.

    Examples
    --------
    >>> cg.testing.check_width(cg.PosteriorWidth(2.0))
    """
    name = check_kind(width, Width, "widths", "PosteriorWidth()")
    check_description(width)
    promised: Any = width.probability
    expect(
        promised is None or (isinstance(promised, float) and 0 < promised < 1),
        f"{name}.probability must be a number between 0 and 1, or None where nothing is promised, "
        f"got {promised!r}",
    )
    for posterior in _posteriors():
        _check_half_widths(name, width, posterior)
    _check_alone(name, width)
    for method in ("contextual-gap", "contextual-gap-history", "uniform"):
        with doing(f"exploring by {method} with {name}"):
            learner = taught(3, 2, 30, width=width, method=method)
            learner.ask(points(5, 2))
        learner.drop_pending()
        policy = check_files(name, learner, points(20, 2, seed=7))
        holds = learner.width.adaptive or not learner.method.adaptive
        carried = policy.certificate(points(4, 2)).probability
        expect(
            carried == (promised if holds else None),
            f"certificates of {method} must carry {name}.probability, {promised!r}, or None where "
            f"picks depend on rewards and {name}.adaptive is False; got {carried!r}",
        )


def _posteriors() -> list[Posterior]:
    """Return what widths are applied to: one context, several, an arm's states, certainty."""
    rng = np.random.default_rng(0)
    one, several = rng.uniform(0.1, 2, _ARMS), rng.uniform(0.1, 2, (_ROWS, _ARMS))
    gains = rng.uniform(0, 3, _ARMS)
    states = np.linspace(0, 3, _ROWS)[:, None]
    return [
        Posterior(rng.normal(size=std.shape), std, gain, 0.1, _ARMS)
        for std, gain in (
            (one, gains),
            (several, gains),
            (several, states),
            (several, np.zeros(_ARMS)),
            (np.zeros(_ARMS), gains),
            (one[:1], gains[:1]),
        )
    ]


def _check_half_widths(name: str, width: Width, posterior: Posterior) -> None:
    std = posterior.std
    for array in posterior[:3]:
        array.flags.writeable = False
    with doing(f"{name}.half_width of a read-only posterior of shape {std.shape}"):
        half: Any = width.half_width(posterior)
    expect(
        isinstance(half, np.ndarray) and half.shape == std.shape,
        f"{name}.half_width must have the shape of posterior.std, {std.shape}, "
        f"got {np.shape(half)}",
    )
    expect(np.isfinite(half).all(), f"{name}.half_width must be finite, got {half}")
    expect(
        (half >= 0).all(),
        f"{name}.half_width must not be negative, got {half.min()}: it is upper − mean",
    )
    wider = width.half_width(posterior._replace(std=1.5 * std + 0.01))
    expect(
        (wider >= half).all(),
        f"{name}.half_width must not shrink when posterior.std grows: recommendations are made "
        "from bounds on the standard deviations",
    )


def _check_alone(name: str, width: Width) -> None:
    table = _posteriors()[1]
    together = width.half_width(table)
    for row in range(_ROWS):
        one = table._replace(mean=table.mean[row], std=table.std[row])
        expect(
            np.allclose(width.half_width(one), together[row], rtol=1e-12),
            f"{name}.half_width at one context depends on the others it is computed with",
        )
