"""What a policy answers: arms, certificates, rankings, and the expected regret of its picks.

Arms are chosen block by block, so that memory stays bounded. Where only some arms are eligible,
rows with the same eligible arms are chosen for together: the answer is that for each row alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from contextgap.base import html
from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.descriptors import lazy
from contextgap.base.labels import Label
from contextgap.base.names import study_import
from contextgap.beliefs.belief import Belief
from contextgap.methods.recommenders.history import Choice
from contextgap.methods.recommenders.rules import ModelEvidence
from contextgap.models import Model, Predictor
from contextgap.tables.eligible import Mask, groups

if TYPE_CHECKING:
    from contextgap.policy.state import Rules

_REACH = np.arange(-8.0, 9.0)  # standard deviations; what is beyond does not count in a float
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(6)
_BLOCK = 2**22  # numbers in one block of kernel values, which take 32 MB


@dataclass(frozen=True)
class Certificate:
    """A bound on the simple regret of each recommendation.

    Parameters
    ----------
    bound
        One per context, never negative; where rewards have two values, at most their difference.
    probability
        The probability with which all bounds hold at once; None where the width guarantees nothing
        and the bounds are heuristic.

    See Also
    --------
    Policy.certificate : Returns one.

    Examples
    --------
    >>> certificate = policy.certificate([[0.5, 0.0]])
    >>> bool(certificate.bound[0] < 0.5), certificate.probability is None
    (True, True)
    """

    bound: FloatArray
    probability: float | None

    def _repr_html_(self) -> str:
        kind = "heuristic" if self.probability is None else f"probability {self.probability:g}"
        shares = (0.1, 0.5, 0.9, 1.0) if len(self.bound) else ()
        # Bounds may be infinite, between which there is nothing to interpolate.
        bounds = np.quantile(self.bound, shares, method="higher") if shares else ()
        rows = [[f"{100 * p:g} %", float(x)] for p, x in zip(shares, bounds, strict=True)]
        title = f"bounds on regret at {len(self.bound)} contexts ({kind})"
        return html.table(title, ["of contexts", "at most"], rows)


class Answered(NamedTuple):
    """All that is answered at some contexts: labels, statuses and, if asked for, certificates."""

    arms: Any
    status: IntArray
    certificate: Certificate | None


@dataclass(frozen=True)
class Ranked:
    """One arm of a ranking, with its mean, interval and regret bound.

    .. versionadded:: 0.2

    Parameters
    ----------
    arm
        Its label.
    mean, std, lower, upper
        Posterior of its reward; of its cost where rewards are costs.
    bound
        A bound on the simple regret of deploying it: max(0, its gap among the eligible arms), and
        at most the difference of rewards that have two values.

    See Also
    --------
    Policy.rank : Returns them in order.

    Examples
    --------
    >>> best = policy.rank([0.5, 0.0])[0]
    >>> best.arm, best.lower < best.mean < best.upper
    ('right', True)
    """

    arm: Label
    mean: float
    std: float
    lower: float
    upper: float
    bound: float


@dataclass(frozen=True)
class Beliefs:
    """Means, standard deviations and intervals of every arm at many contexts.

    .. versionadded:: 0.3

    Parameters
    ----------
    arms
        The arms, in the order of the arrays.
    mean, std, lower, upper
        Of shape (rows, arms), for one context (arms,): of rewards, or of costs where costs are
        told.
    index
        The index of the DataFrame that the contexts were; None for other contexts.

    See Also
    --------
    Policy.beliefs : Returns them.

    Examples
    --------
    >>> beliefs = policy.beliefs([[0.5, 0.0], [-0.5, 0.0]])
    >>> beliefs.arms, beliefs.mean.shape
    (('left', 'right'), (2, 2))
    """

    arms: tuple[Label, ...]
    mean: FloatArray
    std: FloatArray
    lower: FloatArray
    upper: FloatArray
    index: Any = None

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row per context and columns such as ("mean", arm).

        It has the index of the contexts: ``X.join(frame["mean"])`` puts the means of all arms
        beside them. Needs pandas.

        Examples
        --------
        >>> frame = policy.beliefs([[0.5, 0.0], [-0.5, 0.0]]).to_frame()
        >>> frame["mean"].idxmax(axis=1).tolist()
        ['right', 'left']
        """
        pandas = study_import("pandas")
        arms = np.fromiter(self.arms, dtype=object, count=len(self.arms))
        columns = pandas.Index(arms, name="arm", tupleize_cols=False)
        parts = {
            name: pandas.DataFrame(np.atleast_2d(getattr(self, name)), self.index, columns)
            for name in ("mean", "std", "lower", "upper")
        }
        return pandas.concat(parts, axis=1)


def regret_bounds(gap: FloatArray, most: float) -> FloatArray:
    """Return bounds on the simple regret of arms, given their gaps and the largest regret."""
    bound = np.maximum(gap, 0.0)
    bound[np.isnan(bound)] = np.inf  # what cannot be computed is not certified
    return np.minimum(bound, most)


def expected_regret(mean: FloatArray, std: FloatArray, picks: IntArray) -> FloatArray:
    """Return E[highest reward of any arm] − E[reward of the pick], for each row of beliefs."""
    regrets = np.full(len(picks), np.inf)  # what cannot be computed is not certified
    for row, pick in enumerate(picks):
        relative = mean[row] - mean[row, pick]
        if np.isfinite(relative).all() and np.isfinite(std[row]).all():
            regrets[row] = max(_expected_highest(relative, std[row]), relative.max(), 0.0)
    return regrets


def own_std(belief: Belief) -> FloatArray:
    """Return the standard deviations of what arms do not share."""
    # By the average covariance of two arms, the average variance of a difference is right.
    arms = belief.mean.shape[-1]
    if belief.covariance is None or arms == 1:
        return belief.std
    variance = np.square(belief.std)
    pairs = belief.covariance.sum(axis=(-2, -1)) - variance.sum(axis=-1)
    common = np.minimum(pairs / (arms * (arms - 1)), variance.min(axis=-1))
    return np.asarray(np.sqrt(np.maximum(variance - common[:, None], 0.0)))


def _expected_highest(mean: FloatArray, std: FloatArray) -> float:
    """Return E[highest] = end − ∫ P(all are below z) dz, up to an end that none exceeds."""
    # Within reach of an arm, no interval is longer than the arm's standard deviation.
    from scipy.special import ndtr  # slow to load, and most policies do without

    edges = np.unique(mean + std * _REACH[:, None])
    edges = edges[edges >= (mean + std * _REACH[0]).max()]  # below, P is zero
    half = np.diff(edges) / 2
    z = (edges[:-1] + half)[:, None] + half[:, None] * _NODES
    with np.errstate(over="ignore"):  # arms that are known exactly
        all_below = ndtr((z[..., None] - mean) / np.maximum(std, np.finfo(float).tiny)).prod(-1)
    return float(edges[-1] - half @ (all_below @ _WEIGHTS))


@dataclass(frozen=True)
class Chooser:
    """Chooses among some arms of a policy, by its recommender; arms are places in ``active``."""

    model: Model
    active: tuple[int, ...]  # the model's indices of the arms
    columns: tuple[int, ...]  # their places among all arms of the policy
    rules: Rules
    seed: int

    def groups(self, eligible: Mask | None) -> Iterator[tuple[IntArray | slice, Chooser]]:
        """Yield places of rows, and what chooses among the arms that are eligible there."""
        if eligible is None:
            yield slice(None), self
            return
        for places, columns in groups(eligible):
            active = tuple(self.active[column] for column in columns)
            yield places, replace(self, active=active, columns=tuple(columns.tolist()))

    def evidence(self, rows: FloatArray, among: int = 0) -> ModelEvidence:
        """Return what the recommender sees; ``among`` counts all rows, if these are a block."""
        return ModelEvidence(
            self.predictor,
            rows,
            self.rules.width,
            burn_in_end=self.rules.burn_in * len(self.active),
            seed=self.seed,
            columns=self.columns,
            among=among,
        )

    @lazy
    def predictor(self) -> Predictor:
        """What the model says about these arms; a policy's model never changes."""
        return self.model.predictor(self.active)

    def pick(self, rows: FloatArray) -> IntArray:
        """Return the arms chosen by ``decisions``, without their gaps, which take longer."""
        picks = np.empty(len(rows), dtype=np.intp)
        for block in self.blocks(len(rows)):
            evidence = self.evidence(rows[block], among=len(rows))
            picks[block] = self.rules.method.recommender.choose_arms(evidence)
        return picks

    def decisions(self, rows: FloatArray) -> Iterator[tuple[slice, Choice, ModelEvidence]]:
        """Yield blocks of rows, what is chosen there, and what it was chosen by."""
        for block in self.blocks(len(rows)):
            evidence = self.evidence(rows[block], among=len(rows))
            yield block, self.rules.method.recommender.choose(evidence), evidence

    def blocks(self, rows: int) -> Iterator[slice]:
        size = max(1, _BLOCK // max(1, self.model.numbers_per_context, len(self.active)))
        for first in range(0, rows, size):
            yield slice(first, first + size)
