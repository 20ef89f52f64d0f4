"""Compressing a policy to a number of points, to a number of bytes, or to an agreement."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from contextgap.base import checks
from contextgap.compression.candidates import WAYS, Candidate, make_candidates
from contextgap.compression.original import Original, deployed_arms
from contextgap.compression.reference import read_reference
from contextgap.compression.report import CompressionReport, CurveRow, added_regret
from contextgap.compression.size import Layout
from contextgap.policy import Policy
from contextgap.policy.state import read_seed, read_truth

_PER_DOUBLING = 2  # rows of the curve


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
        Share of decisions at held-out contexts that must stay: above 0, at most 1. The number of
        points is the smallest found by doubling and bisection. Since the held-out contexts choose
        it, the agreement reported is slightly better than that at other contexts.
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
    goal = _read_goal(points=points, bytes=bytes, agreement=agreement)
    layout = _layout(policy, float32=read_truth("float32", float32))
    rng = np.random.default_rng(read_seed(seed))
    reference = read_reference(policy, contexts, rng)
    if _small_enough(policy, goal, layout):
        return policy, _unchanged(policy, layout)
    fitting, held_out = (Original.of(policy, rows) for rows in reference)
    most_per_arm = int(goal[1]) if goal[0] == "points" else None
    found = _search(
        make_candidates(policy, fitting, layout, most_per_arm, rng), goal, fitting, held_out
    )
    if found is None:
        return policy, _unchanged(policy, layout)
    candidate, size = found
    compressed = candidate.policy(size)
    return compressed, _report(policy, compressed, candidate, layout, fitting, held_out)


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


def _layout(policy: Policy, *, float32: bool) -> Layout:
    recommender = policy.method.recommender
    if type(recommender) not in WAYS:
        can = ", ".join(kind.__name__ for kind in WAYS)
        raise ValueError(
            f"a policy that deploys by {type(recommender).__name__} cannot be compressed; {can} can"
        )
    if not any(policy.counts.values()):
        raise ValueError("a policy that rests on no rewards has nothing to compress")
    return Layout.of(policy, float32=float32)


def _small_enough(policy: Policy, goal: tuple[str, float], layout: Layout) -> bool:
    counts = tuple(policy.counts.values())
    if goal[0] == "points":
        return max(counts) <= goal[1]
    whole = layout.bytes(policy.method.recommender, counts)
    return goal[0] == "bytes" and whole <= goal[1]


def _search(
    candidates: Iterable[Candidate],
    goal: tuple[str, float],
    fitting: Original,
    held_out: Original,
) -> tuple[Candidate, int] | None:
    """Return the best way and its number of points; None if only all points satisfy the goal."""
    kind, wanted = goal
    best: tuple[float, Candidate, int] | None = None
    least_bytes: list[int] = []
    for candidate in candidates:
        if kind == "agreement":
            size = _smallest(candidate, lambda policy: share_kept(policy, held_out) >= wanted)
            score = 0.0 if size is None else -float(candidate.bytes(size))
        else:
            size = _largest(candidate, int(wanted) if kind == "bytes" else None)
            least_bytes.append(candidate.bytes(0))
            score = 0.0 if size is None else share_kept(candidate.policy(size), fitting)
        if size is not None and (best is None or score > best[0]):
            best = score, candidate, size
    if best is None and kind == "bytes":
        raise ValueError(
            f"bytes must be at least {min(least_bytes)}, which this policy takes without a single "
            f"point, got {int(wanted)}"
        )
    return None if best is None else best[1:]


def share_kept(policy: Policy, original: Original) -> float:
    """Return the share of decisions at which two policies agree.

    Parameters
    ----------
    policy
        One of them.
    original
        The other's decisions.
    """
    return float(np.mean(deployed_arms(policy, original.contexts) == original.arm))


def _largest(candidate: Candidate, most_bytes: int | None) -> int | None:
    """The largest number of points that fits; any fits if there is no limit."""
    if most_bytes is None:
        return candidate.reach(np.iinfo(np.int64).max)
    if candidate.bytes(0) > most_bytes:
        return None
    low, high = 0, 1
    while candidate.reach(high) == high and candidate.bytes(high) <= most_bytes:
        low, high = high, 2 * high
    high = min(high, candidate.reach(high) + 1)
    return _bisect(low, high, lambda size: candidate.bytes(size) > most_bytes) - 1


def _smallest(candidate: Candidate, enough: Callable[[Policy], bool]) -> int | None:
    """The smallest number of points that is enough, found by doubling and bisection."""
    low, high = -1, 1
    while not enough(candidate.policy(size := candidate.reach(high))):
        if size < high:
            return None
        low, high = high, 2 * high
    return _bisect(low, size, lambda size: enough(candidate.policy(size)))


def _bisect(low: int, high: int, true: Callable[[int], bool]) -> int:
    """The first whole number above ``low`` for which something is true, ``high`` being one."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if true(middle) else (middle, high)
    return high


def _report(
    policy: Policy,
    compressed: Policy,
    candidate: Candidate,
    layout: Layout,
    fitting: Original,
    held_out: Original,
) -> CompressionReport:
    arms = deployed_arms(compressed, held_out.contexts)
    believed, most = added_regret(held_out, arms)
    points = tuple(compressed.counts.values())
    before = _whole(policy, layout)
    return CompressionReport(
        agreement=float(np.mean(arms == held_out.arm)),
        agreement_fitted=share_kept(compressed, fitting),
        added_regret=believed,
        added_regret_bound=most,
        points=points,
        points_before=tuple(policy.counts.values()),
        bytes=layout.bytes(candidate.recommender, points),
        bytes_before=before.bytes,
        recommender=type(candidate.recommender).__name__,
        fitted=candidate.fitted,
        curve=(*_curve(candidate, sum(points), before.points, held_out), before),
    )


def _curve(candidate: Candidate, size: int, whole: int, held_out: Original) -> list[CurveRow]:
    """Agreement by size, up to twice the chosen one, but not beyond the original's."""
    sizes = {size} if size else set()
    steps = np.arange(0, _PER_DOUBLING * np.log2(max(2, 2 * size)) + 1e-9) / _PER_DOUBLING
    for wanted in np.unique(np.round(2.0**steps).astype(int)).tolist():
        if wanted < whole and (reached := candidate.reach(wanted)):
            sizes.add(reached)
    return [
        CurveRow(each, candidate.bytes(each), share_kept(candidate.policy(each), held_out))
        for each in sorted(sizes)
    ]


def _whole(policy: Policy, layout: Layout) -> CurveRow:
    points = tuple(policy.counts.values())
    return CurveRow(sum(points), layout.bytes(policy.method.recommender, points), 1.0)


def _unchanged(policy: Policy, layout: Layout) -> CompressionReport:
    whole, points = _whole(policy, layout), tuple(policy.counts.values())
    return CompressionReport(
        agreement=1.0,
        agreement_fitted=1.0,
        added_regret=0.0,
        added_regret_bound=0.0,
        points=points,
        points_before=points,
        bytes=whole.bytes,
        bytes_before=whole.bytes,
        recommender=type(policy.method.recommender).__name__,
        fitted="nothing",
        curve=(whole,),
    )
