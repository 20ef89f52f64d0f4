"""Timing within one run: contestants alternate, each keeps its median, ratios are reported."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median


def seconds(call: Callable[[], object]) -> float:
    """Return the CPU seconds of one call: of the process alone, whatever else the machine does."""
    start = time.process_time()
    call()
    return time.process_time() - start


def medians(rounds: int, **contestants: Callable[[], object]) -> dict[str, float]:
    """Return each contestant's median seconds over ``rounds`` turns.

    A turn is five calls, of which the first, which finds the other's data in the caches, does not
    count.
    """
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, contestant in contestants.items():
            contestant()
            for _ in range(4):
                times[name].append(seconds(contestant))
    return {name: median(each) for name, each in times.items()}


def row(what: str, measured: float, unit: str, target: str, met: bool) -> str:
    """One line of a benchmark's table."""
    return f"{what:58} {measured:9.3g} {unit:2} {target:10} {'ok' if met else 'MISSED'}"
