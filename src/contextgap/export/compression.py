"""Policies with fewer points, for small memories: to a number of points, of bytes, or an agreement.

Forward selection takes, each time, the point that lowers the error most. With e_a the error of arm
a's function, it is

    Σ_x Σ_b ω_b(x)·(e_d(x) − e_b(x))²  +  τ Σ_x Σ_a e_a(x)²        over reference contexts x
      + μ (Σ_a |e_a − ē|² + τ Σ_a |e_a|²)                            in the kernel's norm

where d is the arm deployed at x. Errors that all arms share change no decision and count little
(τ). ω is large where an arm is close to the deployed one. The norm keeps functions together away
from the reference contexts.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from contextgap.base import checks
from contextgap.base.arrays import FloatArray, IntArray, Rows
from contextgap.export.c import Layout, rom_bytes
from contextgap.export.c.text import Real
from contextgap.kernels import Kernel
from contextgap.methods.method import Method
from contextgap.methods.recommenders import (
    HighestMean,
    HighestUpper,
    Recommender,
    SmallestGap,
    SmallestGapInHistory,
)
from contextgap.models import weighted_model
from contextgap.policy import Policy
from contextgap.policy.state import answer, read_seed, read_truth
from contextgap.tables.contexts import Encoded

__all__ = ["CompressionReport", "CurveRow", "compress", "rom_bytes"]

_JITTER = 0.1
_EVERY = 4
_MOST_FITTED = 4500
_FEWEST = 8
_LEVELS = 0.003  # τ
_NORM = 2e-3  # μ per reference context and unit of prior variance
_CLOSE = 2.0  # usual margins below the deployed arm, up to which arms are close
# Below this share of its diagonal, a candidate is a combination of others.
_SINGULAR = 1e-10
# Observed contexts that may become points: their matrix has to fit in memory.
_MOST = 6000
_GAP = ((HighestMean(), "mean"), (SmallestGap(), "mean"))
WAYS: dict[type[Recommender], tuple[tuple[Recommender, str], ...]] = {
    HighestMean: ((HighestMean(), "mean"),),
    SmallestGap: _GAP,
    SmallestGapInHistory: _GAP,
    HighestUpper: ((HighestMean(), "upper"), (HighestUpper(), "mean")),
}
_PER_DOUBLING = 2  # rows of the curve


class CurveRow(NamedTuple):
    """One size of a compressed policy: points of all arms, bytes in C, share of decisions kept."""

    points: int
    bytes: int
    agreement: float


@dataclass(frozen=True)
class CompressionReport:
    """What compressing a policy cost.

    Parameters
    ----------
    agreement
        Share of decisions unchanged at reference contexts held out; only
        ``compress(agreement=...)`` uses them, to choose the size.
    agreement_fitted
        The same at those that points were fitted to.
    added_regret
        What the changed decisions lose on average over held-out contexts, by the original's means.
    added_regret_bound
        What changed decisions lose at most, where the original's intervals hold.
    points
        Points of each arm.
    points_before
        Those of the original policy.
    bytes
        Bytes of constants in C.
    bytes_before
        Those of the original policy.
    recommender
        Name of the rule by which the compressed policy deploys.
    fitted
        What the differences of its means were fitted to: the original's ``"mean"`` or ``"upper"``
        bounds, or ``"nothing"`` if it was small enough.
    curve
        Agreement at held-out contexts by size, for the same rule; the last row is the original.

    See Also
    --------
    compression.compress : Returns one.

    Examples
    --------
    >>> report = policy.compress(points=3).compression
    >>> report.points, report.agreement
    ((3, 3), 1.0)
    """

    agreement: float
    agreement_fitted: float
    added_regret: float
    added_regret_bound: float
    points: tuple[int, ...]
    points_before: tuple[int, ...]
    bytes: int
    bytes_before: int
    recommender: str
    fitted: str
    curve: tuple[CurveRow, ...] = field(repr=False)

    def __str__(self) -> str:
        return (
            f"{self.bytes_before} bytes to {self.bytes} ({self.curve[-1].points} points to "
            f"{sum(self.points)}, deployed by {self.recommender}): {self.agreement:.2%} of "
            f"decisions unchanged, average regret added {self.added_regret:.3g}, "
            f"at most {self.added_regret_bound:.3g} where the original's intervals hold"
        )


def compress(
    policy: Policy,
    *,
    points: int | None = None,
    bytes: int | None = None,  # noqa: A002  # the word users know it by
    agreement: float | None = None,
    contexts: Any = None,
    float32: bool = True,
    seed: int = 0,
) -> tuple[Policy, CompressionReport]:
    """Return a policy that rests on fewer points and decides almost alike, and what that cost.

    ``Policy.compress`` is the same as a method, and says what parameters and results mean. A policy
    that meets the demand as it is, or that only all points would satisfy, is returned unchanged.

    Returns
    -------
    policy, report
        The compressed policy, and what it cost.

    Examples
    --------
    >>> from contextgap import Gaussian, Learner
    >>> x = np.linspace(-1, 1, 200)[:, None]
    >>> learner = Learner(2, kernel=Gaussian(0.5), method="uniform")
    >>> policy = learner.fit(x, [0, 1] * 100, np.sin(4 * x[:, 0]) * ([1, -1] * 100)).freeze()
    >>> small, report = compress(policy, points=5)
    >>> sum(small.counts.values()), report.agreement > 0.95
    (10, True)
    """
    checks.instance("policy", policy, Policy, "learner.freeze()")
    kind, wanted = goal = _read_goal(points=points, bytes=bytes, agreement=agreement)
    real = Real(read_truth("float32", float32))
    if type(policy.method.recommender) not in WAYS:
        deploys, can = type(policy.method.recommender), ", ".join(each.__name__ for each in WAYS)
        raise ValueError(
            f"a policy that deploys by {deploys.__name__} cannot be compressed; {can} can"
        )
    if not any(policy.counts.values()):
        raise ValueError("a policy that rests on no rewards has nothing to compress")
    layout = Layout.of(policy, real)
    rng = np.random.default_rng(read_seed(seed))
    sample = read_sample(policy, contexts, rng)
    taken = {"points": max(layout.sizes), "bytes": layout.rom_bytes}
    if kind in taken and taken[kind] <= wanted:
        return policy, _unchanged(policy, layout)
    fitting, held_out = (Decided.of(policy, rows) for rows in sample)
    most_per_arm = int(wanted) if kind == "points" else None
    candidates = make_candidates(policy, fitting, layout, most_per_arm, rng)
    found = search(candidates, goal, fitting, held_out)
    if found is None:
        return policy, _unchanged(policy, layout)
    candidate, size = found
    compressed = candidate.policy(size)
    return compressed, _report(compressed, candidate, fitting, held_out)


def _read_goal(**given: Any) -> tuple[str, float]:
    named = {name: value for name, value in given.items() if value is not None}
    if len(named) != 1:
        got = ", ".join(f"{name}={value!r}" for name, value in named.items()) or "none of them"
        raise TypeError(f"compress takes exactly one of points, bytes and agreement; got {got}")
    ((name, value),) = named.items()
    if name != "agreement":
        return name, checks.whole(name, value, least=1)
    share = checks.positive(name, value, "a share of decisions such as 0.99")
    if share > 1:
        raise ValueError(f"agreement must be a share, at most 1, such as 0.99, got {value!r}")
    return name, share


def _report(
    compressed: Policy, candidate: Candidate, fitting: Decided, held_out: Decided
) -> CompressionReport:
    whole = _unchanged(candidate.original, candidate.layout)
    rows, arms = np.arange(len(held_out.arm)), answered_arms(compressed, held_out.contexts)
    own, changed = held_out.answered, arms != held_out.answered
    most = np.maximum(held_out.upper[rows, own] - held_out.lower[rows, arms], 0.0)
    points = tuple(compressed.counts.values())
    return replace(
        whole,
        agreement=float(np.mean(~changed)),
        agreement_fitted=fitting.share_kept(compressed),
        added_regret=float(np.mean(held_out.mean[rows, own] - held_out.mean[rows, arms])),
        added_regret_bound=float(np.mean(np.where(changed, most, 0.0))),
        points=points,
        bytes=candidate.bytes(sum(points)),
        recommender=type(candidate.recommender).__name__,
        fitted=candidate.fitted,
        curve=(*_curve(candidate, sum(points), held_out), *whole.curve),
    )


def _curve(candidate: Candidate, size: int, held_out: Decided) -> list[CurveRow]:
    sizes = {size} if size else set()
    steps = np.arange(0, _PER_DOUBLING * np.log2(max(2, 2 * size)) + 1e-9) / _PER_DOUBLING
    for wanted in np.unique(np.round(2.0**steps).astype(int)).tolist():
        if wanted < candidate.layout.points and (reached := candidate.selection.reach(wanted)):
            sizes.add(reached)
    return [
        CurveRow(each, candidate.bytes(each), held_out.share_kept(candidate.policy(each)))
        for each in sorted(sizes)
    ]


def _unchanged(policy: Policy, layout: Layout) -> CompressionReport:
    return CompressionReport(
        agreement=1.0,
        agreement_fitted=1.0,
        added_regret=0.0,
        added_regret_bound=0.0,
        points=layout.sizes,
        points_before=layout.sizes,
        bytes=layout.rom_bytes,
        bytes_before=layout.rom_bytes,
        recommender=type(policy.method.recommender).__name__,
        fitted="nothing",
        curve=(CurveRow(layout.points, layout.rom_bytes, 1.0),),
    )


def read_sample(
    policy: Policy, contexts: Any, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return the contexts to fit at, and those held out."""
    if contexts is None:
        layout = policy.state.schema.layout
        observed = policy.state.model.deployed().observed.contexts
        # And copies, each moved by a tenth of the way between two others, so that constants and
        # correlations stay; so do codes, the last numbers of a context.
        start = np.tile(observed, (-(-_FEWEST // len(observed)), 1))
        one, two = rng.integers(len(observed), size=(2, len(start)))
        moved = start + _JITTER * (observed[one] - observed[two])
        numbers = observed.shape[1] - (0 if layout is None else layout.categories)
        moved[:, numbers:] = start[:, numbers:]
        rows = np.vstack([observed, moved])
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
    if len(fitted) > _MOST_FITTED:
        fitted = fitted[np.sort(rng.choice(len(fitted), _MOST_FITTED, replace=False))]
    return fitted, rows[held_out]


class Decided(NamedTuple):
    """What a policy decides and believes at m contexts."""

    contexts: FloatArray
    arm: IntArray  # the indices of the arms recommended
    answered: IntArray  # those of the arms answered, which may be the safe one
    mean: FloatArray  # shape (m, arms), as are the bounds
    lower: FloatArray
    upper: FloatArray

    @classmethod
    def of(cls, policy: Policy, contexts: FloatArray) -> Decided:
        shape = (len(contexts), len(policy.arms))
        mean, lower, upper = np.empty(shape), np.empty(shape), np.empty(shape)
        arm, answered = np.empty((2, len(contexts)), dtype=np.intp)
        for rows, choice, evidence in policy.chooser.decisions(contexts):
            arm[rows], belief = choice.arm, evidence.belief
            answered[rows] = answer(policy.fallback, choice, evidence).arm
            mean[rows], lower[rows], upper[rows] = belief.mean, belief.lower, belief.upper
        return cls(contexts, arm, answered, mean, lower, upper)

    def share_kept(self, policy: Policy) -> float:
        return float(np.mean(answered_arms(policy, self.contexts) == self.answered))


def answered_arms(policy: Policy, contexts: FloatArray) -> IntArray:
    index = {label: i for i, label in enumerate(policy.arms)}
    labels = policy.recommend(Encoded(contexts, policy.state.schema))
    return np.array([index[label] for label in labels.tolist()], dtype=np.intp)


def targets(decided: Decided, fitted: str) -> FloatArray:
    """Return the functions to fit, one per arm, whose highest is the decision."""
    # The upper bounds, or the means. Where the deployed arm's mean is not the highest, it is raised
    # and those above it are lowered as little as it takes, half a usual margin apart.
    if fitted == "upper":
        return decided.upper
    moved = decided.mean.copy()
    apart = 0.25 * usual_margin(decided.mean)
    for row in np.flatnonzero(decided.mean.argmax(axis=1) != decided.arm):
        means, arm = moved[row], decided.arm[row]
        # Where raising one and lowering those above costs least in squares.
        pooled = np.cumsum([means[arm], *np.sort(means[means > means[arm]])[::-1]])
        level = (pooled / np.arange(1, len(pooled) + 1)).max()
        np.minimum(means, level - apart, out=means)
        means[arm] = level + apart
    return moved


def usual_margin(values: FloatArray) -> float:
    """Return the median difference between the best two arms."""
    if values.shape[1] < 2 or not len(values):
        return 1.0
    best = np.sort(values, axis=1)[:, -2:]
    difference = best[:, 1] - best[:, 0]
    # Of many ties the median says nothing.
    return float(np.median(difference)) or float(difference.max()) or 1.0


class Equations(NamedTuple):
    """The normal equations ``matrix @ weights = rhs`` of all candidates."""

    matrix: FloatArray
    rhs: FloatArray
    arm: IntArray
    contexts: FloatArray


def normal_equations(
    kernel: Kernel,
    contexts: FloatArray,
    wanted: FloatArray,
    deployed: IntArray,
    candidates: FloatArray,
    arm: IntArray,
    wanted_there: FloatArray,
) -> Equations:
    """Return the normal equations of candidates, each a point of the arm in ``arm``.

    ``wanted``, shape (m, arms), and ``wanted_there``, shape (n, arms), are the functions to fit
    less the prior mean, at the reference contexts and at the candidates.
    """
    arms = wanted.shape[1]
    importance = _importance(wanted, deployed)
    norm = _NORM * len(contexts) * float(kernel.diagonal(contexts).mean())
    in_norm = norm * ((1 + _LEVELS) * np.eye(arms) - 1 / arms)
    own = [np.flatnonzero(arm == a) for a in range(arms)]
    values = [kernel(contexts, candidates[places]) for places in own]
    matrix, rhs = np.empty((len(arm), len(arm))), np.empty(len(arm))
    pulled = np.einsum("xab,xb->xa", importance, wanted)
    for a, left in enumerate(own):
        rhs[left] = values[a].T @ pulled[:, a] + wanted_there[left] @ in_norm[a]
        for b, right in enumerate(own[a:], start=a):
            between = importance[:, a, b]
            rows = np.flatnonzero(between)  # few, mostly
            block = values[a][rows].T @ (between[rows, None] * values[b][rows])
            block += in_norm[a, b] * kernel(candidates[left], candidates[right])
            matrix[np.ix_(left, right)] = block
            matrix[np.ix_(right, left)] = block.T
    return Equations(matrix, rhs, arm, candidates)


def _importance(wanted: FloatArray, deployed: IntArray) -> FloatArray:
    """The quadratic form in the arms' errors, shape (m, arms, arms)."""
    rows, arms = np.arange(len(wanted)), wanted.shape[1]
    far = _CLOSE * usual_margin(wanted)
    close = far**2 / (far**2 + (wanted[rows, deployed][:, None] - wanted) ** 2)
    close[rows, deployed] = 0.0
    form = np.zeros((len(wanted), arms, arms))
    for b in range(arms):
        form[rows, b, b] += close[:, b] + _LEVELS
        form[rows, deployed, b] -= close[:, b]
        form[rows, b, deployed] -= close[:, b]
    form[rows, deployed, deployed] += close.sum(axis=1)
    return form


class Selection:
    """An order of candidates, of which any first k can be kept, with weights refitted.

    A partial Cholesky factor of the normal equations, whose pivot lowers the squared error most
    once all weights are refitted (orthogonal least squares).
    """

    def __init__(self, equations: Equations, most_per_arm: int | None = None) -> None:
        self._equations = equations
        self._most = len(equations.arm) if most_per_arm is None else most_per_arm
        self._counts = np.zeros_like(np.bincount(equations.arm))
        self._chosen: list[int] = []
        self._solved: list[float] = []  # L⁻¹ rhs
        self._columns = Rows(len(equations.rhs))  # of L, each of all candidates
        self._left = equations.matrix.diagonal().copy()
        self._floor = _SINGULAR * self._left
        self._residual = equations.rhs.copy()
        self._open = np.ones(len(equations.rhs), dtype=bool)

    def reach(self, size: int) -> int:
        while len(self._chosen) < size and self._choose():
            pass
        return min(size, len(self._chosen))

    def points(self, size: int) -> tuple[FloatArray, IntArray, FloatArray]:
        chosen = self._chosen[:size]
        factor = self._columns.view[:size, chosen].T
        weights = np.empty(0)
        if chosen:
            weights = solve_triangular(factor, self._solved[:size], lower=True, trans=1)
        return self._equations.contexts[chosen], self._equations.arm[chosen], weights

    def _choose(self) -> bool:
        self._open &= self._left > self._floor
        if not self._open.any():
            return False
        gain = np.zeros_like(self._left)
        np.divide(self._residual**2, self._left, out=gain, where=self._open)
        best = int(gain.argmax())
        if gain[best] <= 0:
            return False
        root, known = np.sqrt(self._left[best]), self._columns.view.T
        column = (self._equations.matrix[:, best] - known @ known[best]) / root
        self._columns.append(column)
        solved = float(self._residual[best] / root)
        self._left -= column**2
        self._residual -= solved * column
        self._chosen.append(best)
        self._solved.append(solved)
        self._open[best] = False
        arm = self._equations.arm[best]
        self._counts[arm] += 1
        if self._counts[arm] >= self._most:
            self._open[self._equations.arm == arm] = False
        return True


def refitted(
    policy: Policy,
    recommender: Recommender,
    contexts: FloatArray,
    arm: IntArray,
    weights: FloatArray,
) -> Policy:
    """Return a policy whose means are prior + weights·k."""
    # That is the posterior mean of rewards prior + (K + ridge·I)·weights. They were never observed,
    # so nothing is promised any more. ``arm`` holds indices into ``policy.arms``.
    place = np.asarray(policy.state.active, dtype=np.intp)[arm]
    final = weighted_model(policy.state.model, contexts, place, weights)
    method = Method(explorer=policy.method.explorer, recommender=recommender)
    rules = replace(policy.state.rules, method=method, tuned_on_rewards=True)
    return Policy(replace(policy.state, model=final, rules=rules, card=None, compression=None))


class Candidate(NamedTuple):
    original: Policy
    recommender: Recommender
    fitted: str  # what the means are fitted to, "mean" or "upper"
    selection: Selection
    layout: Layout

    def policy(self, size: int) -> Policy:
        return refitted(self.original, self.recommender, *self.selection.points(size))

    def bytes(self, size: int) -> int:
        arm = self.selection.points(size)[1]
        counts = np.bincount(arm, minlength=len(self.original.arms))
        return self.layout.holding(self.recommender, counts.tolist()).rom_bytes


def make_candidates(
    policy: Policy,
    fitting: Decided,
    layout: Layout,
    most_per_arm: int | None,
    rng: np.random.Generator,
) -> Iterator[Candidate]:
    # Of arms in use, arm after arm.
    model = policy.state.model.deployed()
    index = np.full(model.n_arms, -1, dtype=np.intp)
    index[list(policy.state.active)] = np.arange(len(policy.state.active))
    arm = index[model.observed.arms]
    places = np.flatnonzero(arm >= 0)
    if len(places) > _MOST:
        places = rng.choice(places, _MOST, replace=False)
    places = places[np.lexsort((places, arm[places]))]
    contexts, arm = model.observed.contexts[places], arm[places]
    there = Decided.of(policy, contexts)
    selections: dict[str, Selection] = {}
    for recommender, fitted in WAYS[type(policy.method.recommender)]:
        if fitted not in selections:
            equations = normal_equations(
                policy.kernel,
                fitting.contexts,
                targets(fitting, fitted) - policy.prior_mean,
                fitting.arm,
                contexts,
                arm,
                # The functions themselves: jumps to where decisions differ have a large norm.
                (there.upper if fitted == "upper" else there.mean) - policy.prior_mean,
            )
            selections[fitted] = Selection(equations, most_per_arm)
        yield Candidate(policy, recommender, fitted, selections[fitted], layout)


def search(
    candidates: Iterable[Candidate],
    goal: tuple[str, float],
    fitting: Decided,
    held_out: Decided,
) -> tuple[Candidate, int] | None:
    kind, wanted = goal
    best: tuple[float, Candidate, int] | None = None
    least_bytes: list[int] = []
    for candidate in candidates:
        if kind == "agreement":
            size = _smallest(candidate, wanted, (held_out, fitting))
            score = 0.0 if size is None else -float(candidate.bytes(size))
        else:
            size = _largest(candidate, int(wanted) if kind == "bytes" else None)
            least_bytes.append(candidate.bytes(0))
            score = 0.0 if size is None else fitting.share_kept(candidate.policy(size))
        if size is not None and (best is None or score > best[0]):
            best = score, candidate, size
    if best is None and kind == "bytes":
        raise ValueError(
            f"bytes must be at least {min(least_bytes)}, which this policy takes without a single "
            f"point, got {int(wanted)}"
        )
    return None if best is None else best[1:]


def _largest(candidate: Candidate, most_bytes: int | None) -> int | None:
    if most_bytes is None:
        return candidate.selection.reach(np.iinfo(np.int64).max)
    if candidate.bytes(0) > most_bytes:
        return None
    low, high = 0, 1
    while candidate.selection.reach(high) == high and candidate.bytes(high) <= most_bytes:
        low, high = high, 2 * high
    sizes = range(low, min(high, candidate.selection.reach(high) + 1))
    return low + bisect_right(sizes[1:], most_bytes, key=candidate.bytes)


def _smallest(candidate: Candidate, wanted: float, samples: Iterable[Decided]) -> int | None:
    def enough(size: int) -> bool:
        policy = candidate.policy(size)
        return all(sample.share_kept(policy) >= wanted for sample in samples)

    low, high = -1, 1
    while not enough(size := candidate.selection.reach(high)):
        if size < high:
            return None
        low, high = high, 2 * high
    return low + 1 + bisect_left(range(low + 1, size), True, key=enough)
