"""The contexts at which decisions shall change least, and what the policy decides there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.policy import Policy
from contextgap.policy.fallback import answer
from contextgap.tables.contexts import Encoded

_JITTER = 0.1
_EVERY = 4  # every fourth context is held out
_MOST = 4500  # contexts to fit at; the normal equations take time in proportion
_FEWEST = 8


def read_sample(
    policy: Policy, contexts: Any, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return the contexts at which decisions shall change least, and others to measure that at.

    They come from a table of contexts, by default the observed ones and jittered copies of them.
    """
    if contexts is None:
        layout = policy.state.schema.layout
        observed = policy.state.model.deployed().observed.contexts
        rows = _jittered(observed, rng, 0 if layout is None else layout.categories)
    else:
        rows, single = policy.state.read(contexts)
        if single or len(rows) < _FEWEST:
            got = "one context" if single else f"{len(rows)}"
            raise ValueError(
                f"contexts must be a table of at least {_FEWEST} contexts like those to be met, "
                f"got {got}"
            )
    held_out = np.arange(len(rows)) % _EVERY == _EVERY - 1
    fitted = rows[~held_out]
    if len(fitted) > _MOST:
        fitted = fitted[np.sort(rng.choice(len(fitted), _MOST, replace=False))]
    return fitted, rows[held_out]


def _jittered(observed: FloatArray, rng: np.random.Generator, categories: int = 0) -> FloatArray:
    """Return observed contexts and copies, each moved by a tenth of the way between two others.

    So that constants stay constant, and what varies together is moved together. There are at
    least as many copies as contexts, and enough in all to hold some out. Codes of categories, the
    last numbers of a context, stay as they are.
    """
    copies = -(-_FEWEST // len(observed)) if len(observed) < _FEWEST else 1
    start = np.tile(observed, (copies, 1))
    one, two = rng.integers(len(observed), size=(2, len(start)))
    moved = start + _JITTER * (observed[one] - observed[two])
    numbers = observed.shape[1] - categories
    moved[:, numbers:] = start[:, numbers:]
    return np.vstack([observed, moved])


class Decided(NamedTuple):
    """What a policy decides at m contexts, and what it believes there.

    ``contexts`` has shape (m, d), ``arm`` holds the indices of the m arms recommended, ``answered``
    those of the arms answered, which may be the safe one, and ``mean``, ``lower`` and ``upper``
    have shape (m, arms).
    """

    contexts: FloatArray
    arm: IntArray
    answered: IntArray
    mean: FloatArray
    lower: FloatArray
    upper: FloatArray

    @classmethod
    def of(cls, policy: Policy, contexts: FloatArray) -> Decided:
        """Ask a policy."""
        shape = (len(contexts), len(policy.arms))
        mean, lower, upper = np.empty(shape), np.empty(shape), np.empty(shape)
        arm, answered = np.empty((2, len(contexts)), dtype=np.intp)
        for rows, choice, evidence in policy.chooser.decisions(contexts):
            arm[rows], belief = choice.arm, evidence.belief
            answered[rows] = answer(policy.fallback, choice, evidence).arm
            mean[rows], lower[rows], upper[rows] = belief.mean, belief.lower, belief.upper
        return cls(contexts, arm, answered, mean, lower, upper)

    def share_kept(self, policy: Policy) -> float:
        """Return the share of contexts at which another policy answers the same."""
        return float(np.mean(answered_arms(policy, self.contexts) == self.answered))


def answered_arms(policy: Policy, contexts: FloatArray) -> IntArray:
    """Return the indices of the arms that a policy answers."""
    index = {label: i for i, label in enumerate(policy.arms)}
    labels = policy.recommend(Encoded(contexts, policy.state.schema))
    return np.array([index[label] for label in labels.tolist()], dtype=np.intp)


def targets(decided: Decided, fitted: str) -> FloatArray:
    """Return the functions of the context to fit, one per arm, whose highest is the decision.

    These are the upper bounds, or the means. Where the arm with the highest mean is not the one
    deployed, the means are moved as little as it takes: the deployed arm's is raised, and those
    above it are lowered, to the same level, and half a usual margin apart.
    """
    if fitted == "upper":
        return decided.upper
    moved = decided.mean.copy()
    apart = 0.25 * usual_margin(decided.mean)
    for row in np.flatnonzero(decided.mean.argmax(axis=1) != decided.arm):
        means, arm = moved[row], decided.arm[row]
        level = _common_level(means[arm], np.sort(means[means > means[arm]])[::-1])
        np.minimum(means, level - apart, out=means)
        means[arm] = level + apart
    return moved


def margins(values: FloatArray, arm: IntArray) -> FloatArray:
    """Return by how much every arm is below the deployed one, shape (m, arms)."""
    return np.asarray(np.take_along_axis(values, arm[:, None], axis=1) - values)


def usual_margin(values: FloatArray) -> float:
    """Return the median difference between the best two arms; 1 if there is none to speak of."""
    if values.shape[1] < 2 or not len(values):
        return 1.0
    best = np.sort(values, axis=1)[:, -2:]
    difference = best[:, 1] - best[:, 0]
    # Where most contexts are ties, the median says nothing about those that are not.
    return float(np.median(difference)) or float(difference.max()) or 1.0


def _common_level(own: float, above: FloatArray) -> float:
    """The level at which raising one number and lowering those above it costs least in squares."""
    total, count = own, 1
    for value in above:
        if value <= total / count:
            break
        total, count = total + value, count + 1
    return float(total / count)
