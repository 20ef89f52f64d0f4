"""Timing within one run: alternate the contestants, keep each one's median, report ratios."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median


def medians(rounds: int, **contestants: Callable[[], object]) -> dict[str, float]:
    """Return each contestant's median seconds over ``rounds`` alternating calls."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for contestant in contestants.values():
        contestant()
    for _ in range(rounds):
        for name, contestant in contestants.items():
            start = time.perf_counter()
            contestant()
            times[name].append(time.perf_counter() - start)
    return {name: median(each) for name, each in times.items()}


def row(what: str, measured: float, unit: str, target: str, met: bool) -> str:
    """One line of a benchmark's table."""
    return f"{what:58} {measured:9.3g} {unit:2} {target:10} {'ok' if met else 'MISSED'}"
