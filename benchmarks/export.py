"""Do exports decide as Python does? All rules and widths with all kernels that can be exported.

Run with ``python benchmarks/export.py``, or ``--each 100000`` for so many contexts per combination
instead of 100,000 in all. Contexts are random: observed ones, between and around them. Where the
scores of two arms differ by less than 1e-9, a different decision is a near tie, counted apart.
Random contexts hardly ever are one, so some are put on the boundary between two decisions as
closely as bisection can.
Single precision is compared at the same contexts, which it rounds first, so what rounding the input
costs is in its numbers.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import contextgap as cg
from contextgap.export import Parity, decision_rule, parity
from contextgap.export.c import CompiledPolicy
from contextgap.export.onnx import GraphPolicy
from contextgap.export.rule import NEAR, answers_of, comparison_contexts
from contextgap.kernels import Constant

ARMS, POINTS, DIMENSION = 4, 40, 2
ON_BOUNDARY = 24  # contexts per combination
NOISE, RIDGE = 0.1, 0.01
WIDTHS = {
    "posterior": cg.PosteriorWidth(1.0),
    "theorem": cg.TheoremWidth(noise=NOISE, norm=2.0, failure_probability=0.1),
}
RULES = {
    "HighestMean": (cg.HighestMean(), "posterior"),
    "HighestUpper": (cg.HighestUpper(), "posterior"),
    "HighestUpper, theorem": (cg.HighestUpper(), "theorem"),
    "SmallestGap": (cg.SmallestGap(), "posterior"),
    "SmallestGap, theorem": (cg.SmallestGap(), "theorem"),
    "SmallestGapInHistory": (cg.SmallestGapInHistory(), "posterior"),
    "SmallestGapInHistory, theorem": (cg.SmallestGapInHistory(), "theorem"),
}
KERNELS = {
    "Gaussian": cg.Gaussian(0.5),
    "Gaussian, two bandwidths": cg.Gaussian((0.4, 0.9)),
    "Matérn 1/2": cg.Matern(0.8, smoothness=0.5),
    "Matérn 3/2, two bandwidths": cg.Matern((0.8, 0.5), smoothness=1.5),
    "Matérn 5/2": cg.Matern(0.8, smoothness=2.5),
    "Linear": cg.Linear(),
    "Polynomial": cg.Polynomial(3, 0.7),
    "Periodic": cg.Periodic(1.3, 0.8),
    "Gaussian + Constant": cg.Gaussian(0.5) + 2.0 * Constant(),
    "Gaussian × Periodic": cg.Gaussian(0.8) * cg.Periodic((1.3, 2.0), (0.8, 1.1)),
    "0.5 · Matérn": 0.5 * cg.Matern(0.7, smoothness=2.5),
    "0.5 · (Gaussian + Linear) · Matérn": 0.5 * (cg.Gaussian(0.6) + cg.Linear()) * cg.Matern(1.0),
}


@dataclass
class Total:
    """Sums over all combinations for one kind of export."""

    contexts: int = 0
    same: int = 0
    near_ties: int = 0
    different: int = 0
    worst: float = 0.0

    def add(self, result: Parity) -> None:
        self.contexts += result.contexts
        self.same += result.same
        self.near_ties += result.near_ties
        self.different += result.different
        self.worst = max(self.worst, result.worst_added_regret)


def explored(rule: cg.Recommender, width: cg.Width, kernel: cg.Kernel) -> cg.Policy:
    method = cg.Method(explorer=cg.explorers.Uniform(), recommender=rule)
    learner = cg.Learner(ARMS, kernel=kernel, ridge=RIDGE, width=width, method=method, seed=0)
    rng = np.random.default_rng(0)
    for context in rng.uniform(-1, 1, (ARMS * POINTS, DIMENSION)):
        arm = learner.ask(context)
        reward = np.sin(3 * (1 + arm) * context[0] + context[1]) + NOISE * rng.standard_normal()
        learner.tell(context, arm, float(reward))
    return learner.freeze()


def exported(policy: cg.Policy) -> Iterator[tuple[str, CompiledPolicy | GraphPolicy]]:
    with tempfile.TemporaryDirectory() as folder:
        for float32 in (False, True):
            size = 32 if float32 else 64
            path = policy.to_onnx(Path(folder) / f"{size}.onnx", float32=float32).path
            yield f"ONNX float{size}", GraphPolicy(path, threads=1)
            code = policy.to_c(Path(folder) / f"{size}", float32=float32)
            yield f"C {'float' if float32 else 'double'}", CompiledPolicy(code.source.parent)


def on_boundary(policy: cg.Policy, contexts: np.ndarray) -> np.ndarray:
    """Contexts between two decisions, as close to both as bisection gets."""
    arms = policy.chooser.pick(contexts)
    pairs = np.flatnonzero(arms[:-1] != arms[1:])[:ON_BOUNDARY]
    one, two, arm = contexts[pairs], contexts[pairs + 1], arms[pairs]
    for _ in range(60):
        middle = (one + two) / 2
        same = (policy.chooser.pick(middle) == arm)[:, None]
        one, two = np.where(same, middle, one), np.where(same, two, middle)
    return one


@dataclass(frozen=True)
class Outcome:
    """How exports of one policy compare, and what Python says of itself."""

    random: dict[str, Parity]
    boundary: dict[str, Parity]
    near_ties: tuple[int, int]  # of two arms, by margin: random contexts, those on a boundary
    shortcut: int  # where ``recommend``, which takes shortcuts, differs from the rule


def compare(policy: cg.Policy, count: int, seed: int) -> Outcome:
    rule = decision_rule(policy)
    contexts = comparison_contexts(policy, rule, count, None, seed)
    boundary = on_boundary(policy, contexts[len(contexts) // 4 :])
    sets = (contexts, boundary)
    answers = [answers_of(policy, rule, rows) for rows in sets]
    random, edge = {}, {}
    for name, export in exported(policy):
        random[name], edge[name] = (parity(policy, export.recommend(x), x) for x in sets)
    ties = (each.tied(np.full(len(each.arm), NEAR)).sum(axis=1) for each in answers)
    near = tuple(int((count > 1).sum()) for count in ties)
    shortcut = sum(
        int((policy.chooser.pick(x) != each.arm).sum())
        for x, each in zip(sets, answers, strict=True)
    )
    return Outcome(random, edge, near, shortcut)


def line(kernel: str, results: dict[str, Parity]) -> str:
    exact = "  ".join(
        f"{r.same:7} {r.near_ties:4} {r.different:4}"
        for name, r in results.items()
        if "64" in name or "double" in name
    )
    single = "  ".join(
        f"{100 * r.agreement:8.3f} {r.worst_added_regret:8.1e}"
        for name, r in results.items()
        if "32" in name or name == "C float"
    )
    return f"  {kernel:34}  {exact}  {single}"


def main(each: int) -> None:
    start = time.perf_counter()
    totals: dict[str, Total] = {}
    edges: dict[str, Total] = {}
    near, shortcuts = np.zeros(2, dtype=int), 0
    for number, (name, (recommender, width)) in enumerate(RULES.items()):
        print(f"{name:36}  {'ONNX float64':17}  {'C double':17}  {'ONNX float32':17}  C float")
        double, single = "   same near diff", "agree % worst add"
        print(f"{'':36}  {double}  {double}   {single}  {single}")
        for place, (shown, kernel) in enumerate(KERNELS.items()):
            policy = explored(recommender, WIDTHS[width], kernel)
            outcome = compare(policy, each, seed=100 * number + place)
            print(line(shown, outcome.random), flush=True)
            near += outcome.near_ties
            shortcuts += outcome.shortcut
            for kind in outcome.random:
                totals.setdefault(kind, Total()).add(outcome.random[kind])
                edges.setdefault(kind, Total()).add(outcome.boundary[kind])
    count = each * len(RULES) * len(KERNELS)
    print(f"{len(RULES) * len(KERNELS)} combinations, {each} random contexts each, {count} in all,")
    print_totals(totals, near[0])
    for kind in ("ONNX float32", "C float"):
        total = totals[kind]
        print(
            f"  {kind}: {100 * total.same / total.contexts:.4f} % agree, "
            f"worst added regret {total.worst:.2g}"
        )
    print("and contexts put on the boundary between two decisions,")
    print_totals(edges, near[1])
    print(f"Python's recommend, with its shortcuts, differs from the rule at {shortcuts} contexts")
    exact = [
        total[kind].different for total in (totals, edges) for kind in ("ONNX float64", "C double")
    ]
    met = not any(exact) and not shortcuts and count >= 100_000
    print(f"double precision decides as Python does: {'ok' if met else 'MISSED'}")
    print(f"took {time.perf_counter() - start:.0f} s")


def print_totals(totals: dict[str, Total], near: int) -> None:
    print(f"{near} of {totals['C double'].contexts} of them near ties of two arms:")
    for kind, total in totals.items():
        print(
            f"  {kind:13} same {total.same}, near ties decided otherwise {total.near_ties}, "
            f"different {total.different}"
        )


if __name__ == "__main__":
    combinations = len(RULES) * len(KERNELS)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=-(-100_000 // combinations))
    main(parser.parse_args().each)
