"""What all checks share."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.base.components import Component, build
from contextgap.kernels import Gaussian
from contextgap.learner import Learner
from contextgap.policy import Policy


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


def check_kind(part: Any, kind: type, example: str) -> str:
    """Return what to call a component, if it is one of this kind."""
    if isinstance(part, type):
        raise AssertionError(f"{part.__name__} is a class; check an object: {part.__name__}()")
    name = type(part).__name__
    expect(
        isinstance(part, kind),
        f"{name} is no {kind.__name__}: derive it from the class that {example} derives from, "
        f"{kind.__module__.rpartition('.')[0]}.{kind.__name__}",
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
    """Return a learner that was told rewards of all arms in turn."""
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
