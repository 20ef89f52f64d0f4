"""Compressing a policy to a number of points, to a number of bytes, or to an agreement."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray, IntArray
from contextgap.export.c.layout import Layout
from contextgap.export.c.literals import Real
from contextgap.export.compression.selection import (
    WAYS,
    Candidate,
    Decided,
    answered_arms,
    make_candidates,
    read_sample,
    search,
)
from contextgap.policy import Policy
from contextgap.policy.state import read_seed, read_truth

_PER_DOUBLING = 2  # rows of the curve


class CurveRow(NamedTuple):
    """One size of a compressed policy.

    Parameters
    ----------
    points
        Points of all arms together.
    bytes
        Bytes of constants in C.
    agreement
        Share of held-out reference contexts at which the decision is unchanged.
    """

    points: int
    bytes: int
    agreement: float


@dataclass(frozen=True)
class CompressionReport:
    """What compressing a policy cost.

    Parameters
    ----------
    agreement
        Share of decisions unchanged at reference contexts that were not used for choosing or
        refitting points; only ``compress(agreement=...)`` uses them, to choose the size.
    agreement_fitted
        The same at the contexts that were used.
    added_regret
        Average over held-out contexts of what the original policy's mean says the changed
        decisions lose; never negative if the original deploys the highest mean and has no safe arm.
    added_regret_bound
        The same with the original's upper bound of its own arm and its lower bound of the new one:
        what changed decisions lose at most, where the original's intervals hold.
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
        What its means were fitted to: ``"mean"``, the original's means; ``"upper"``, its upper
        bounds; ``"nothing"`` if the policy was small enough as it was. Either way only up to a
        function that all arms share, so differences between arms are meant, not levels.
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
    """Return a policy that rests on fewer points and decides almost alike.

    Points are chosen one by one among an arm's observed contexts, and their rewards refitted, so
    that decisions change least at reference contexts; exactly one of ``points``, ``bytes`` and
    ``agreement`` says how many. A policy that meets the demand as it is, or that only all points
    would satisfy, is returned unchanged.

    A compressed policy is an ordinary one, but its rewards were never observed:

    - It deploys by ``HighestMean``, which needs no widths and so has room for many more points, or
      by its original rule (``SmallestGap`` for a look-back), if that agrees better.
    - Its means differ from the original's by a function of the context that all arms share:
      differences between arms are meant. If it was fitted to upper bounds, which a policy that
      deploys the highest upper bound may be, they are differences of these.
    - Its intervals and certificates are those of the points left, wider than the original's, and
      promise nothing: ``probability`` is None. ``report.added_regret_bound`` plus the original's
      certificates is what bounds the regret where the original's intervals hold, on average over
      contexts like the reference.
    - It keeps the fallback, its tolerance and the range of contexts seen. Wider intervals exceed
      the tolerance more often, so that the safe arm is answered more often; agreement and regret
      are those of what is answered.

    Parameters
    ----------
    policy
        A policy that deploys by ``HighestMean``, ``HighestUpper``, ``SmallestGap`` or
        ``SmallestGapInHistory``.
    points
        Points that each arm may keep at most.
    bytes
        Bytes that the constants of the C export may take at most.
    agreement
        Share of decisions that must stay, at held-out contexts and at those fitted to: above 0, at
        most 1. The number of points is the smallest found by doubling and bisection. Since these
        contexts choose it, the agreement reported is slightly better than that at other contexts.
    contexts
        A sample of contexts like those to be met, of which every fourth is held out to measure
        agreement. None for the observed contexts and as many copies, each moved by a tenth of the
        difference between two others: explored contexts need not be like those to be met, so pass
        a sample if there is one. Contexts in time order are held out between their neighbours, so
        the agreement says little about days unlike those.
    float32
        Whether bytes are counted for numbers of 4 bytes or of 8. Agreement is that of the policy
        itself, which computes in 8; ``export.c.write_c`` says what 4 may change.
    seed
        Makes everything random repeatable.

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
    _check_compressible(policy)
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
    report = _report(compressed, candidate, fitting, held_out)
    return compressed, report


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


def _check_compressible(policy: Policy) -> None:
    recommender = policy.method.recommender
    if type(recommender) not in WAYS:
        can = ", ".join(kind.__name__ for kind in WAYS)
        raise ValueError(
            f"a policy that deploys by {type(recommender).__name__} cannot be compressed; {can} can"
        )
    if not any(policy.counts.values()):
        raise ValueError("a policy that rests on no rewards has nothing to compress")


def _report(
    compressed: Policy, candidate: Candidate, fitting: Decided, held_out: Decided
) -> CompressionReport:
    arms = answered_arms(compressed, held_out.contexts)
    believed, most = _added_regret(held_out, arms)
    points, before = tuple(compressed.counts.values()), candidate.layout
    curve = _curve(candidate, sum(points), before.points, held_out)
    return CompressionReport(
        agreement=float(np.mean(arms == held_out.answered)),
        agreement_fitted=fitting.share_kept(compressed),
        added_regret=believed,
        added_regret_bound=most,
        points=points,
        points_before=before.sizes,
        bytes=candidate.bytes(sum(points)),
        bytes_before=before.rom_bytes,
        recommender=type(candidate.recommender).__name__,
        fitted=candidate.fitted,
        curve=(*curve, CurveRow(before.points, before.rom_bytes, 1.0)),
    )


def _curve(candidate: Candidate, size: int, whole: int, held_out: Decided) -> list[CurveRow]:
    """Agreement by size, up to twice the chosen one, but not beyond the original's."""
    sizes = {size} if size else set()
    steps = np.arange(0, _PER_DOUBLING * np.log2(max(2, 2 * size)) + 1e-9) / _PER_DOUBLING
    for wanted in np.unique(np.round(2.0**steps).astype(int)).tolist():
        if wanted < whole and (reached := candidate.selection.reach(wanted)):
            sizes.add(reached)
    return [
        CurveRow(each, candidate.bytes(each), held_out.share_kept(candidate.policy(each)))
        for each in sorted(sizes)
    ]


def _added_regret(original: Decided, arms: IntArray) -> tuple[float, float]:
    """What answering other arms than a policy loses on average, as believed and at most."""
    believed = _at(original.mean, original.answered) - _at(original.mean, arms)
    most = np.maximum(_at(original.upper, original.answered) - _at(original.lower, arms), 0.0)
    changed = arms != original.answered
    return float(np.mean(believed)), float(np.mean(np.where(changed, most, 0.0)))


def _at(values: FloatArray, arms: IntArray) -> FloatArray:
    return np.asarray(np.take_along_axis(values, arms[:, None], axis=1)[:, 0])


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
