"""``contextgap reproduce``, from nothing to the report: seconds and memory.

Also how much slower the explicit-inverse way of doing the same evaluation would be: a small part of
it is timed, then scaled to the whole.

Takes some minutes, so ``make bench`` leaves it out: ``python benchmarks/reproduce.py [folder]``.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
from rivals import ExplicitInverse
from threadpoolctl import threadpool_limits
from timing import row

import contextgap as cg

EXPLORE, EVALUATE, EVERY = 2000, 1000, 50
BANDWIDTH, RIDGE = 0.0707, 1e-4


def tree_memory(pid: int) -> float:
    """Resident megabytes of a process and all its descendants."""
    total = 0.0
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        total += sum(tree_memory(int(child)) for child in task.read_text().split())
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            total += int(line.split()[1]) / 1024
    return total


def watch(process: subprocess.Popen, peak: list[float]) -> None:
    while process.poll() is None:
        with suppress(FileNotFoundError, ProcessLookupError):  # a worker may end while we look
            peak.append(tree_memory(process.pid))
        time.sleep(0.5)


def reproduce(folder: Path) -> tuple[float, float]:
    command = [
        sys.executable,
        "-m",
        "contextgap",
        "reproduce",
        "sinusoids",
        "--jobs",
        "2",
        "--out",
        str(folder),
    ]
    start = time.perf_counter()
    process = subprocess.Popen(command)
    peak = [0.0]
    watcher = threading.Thread(target=watch, args=(process, peak))
    watcher.start()
    if process.wait():
        raise SystemExit("reproduce failed")
    seconds = time.perf_counter() - start
    watcher.join()
    return seconds, max(peak)


def one_run_tracked() -> float:
    problem = cg.problems.Sinusoids().sample(EXPLORE + EVALUATE, seed=0)
    explore, exploit = problem.split(EXPLORE, EVALUATE)
    start = time.perf_counter()
    cg.experiments.run(
        explore, exploit, kernel=cg.Gaussian(BANDWIDTH), ridge=RIDGE, checkpoints=EVERY
    )
    return time.perf_counter() - start


def one_run_by_explicit_inverse(sample: int = 20) -> float:
    """Time some steps and evaluations at a quarter, half and all of a run; scale to the whole."""
    problem = cg.problems.Sinusoids().sample(EXPLORE + EVALUATE, seed=0)
    contexts, arms = problem.contexts, np.arange(EXPLORE) % 20
    rewards = problem.rewards[np.arange(EXPLORE), arms]
    steps, evaluations = [], []
    for done in (EXPLORE // 4, EXPLORE // 2, EXPLORE - sample):
        rival = ExplicitInverse(20, BANDWIDTH, RIDGE)
        rival.load(contexts[:done], arms[:done], rewards[:done])
        start = time.perf_counter()
        for context in contexts[-sample:]:
            rival.ask(context)
        evaluations.append((time.perf_counter() - start) / sample)
        start = time.perf_counter()
        for t in range(done, done + sample):
            arm = rival.ask(contexts[t])
            rival.tell(contexts[t], arm, problem.rewards[t, arm])
        steps.append((time.perf_counter() - start) / sample)
    checkpoints = EXPLORE // EVERY
    return float(EXPLORE * np.mean(steps) + checkpoints * EVALUATE * np.mean(evaluations))


if __name__ == "__main__":
    with threadpool_limits(1):
        ours, theirs = one_run_tracked(), one_run_by_explicit_inverse()
    print(f"one run, {EXPLORE} steps, {EVALUATE} contexts at {EXPLORE // EVERY} checkpoints:")
    print(f"  tracked {ours:.2f} s, explicit inverse {theirs:.0f} s (scaled from a part)")
    print(f"  {theirs / ours:.0f} times faster")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(made) / "reproduce"
        seconds, peak = reproduce(folder)
    print(
        row(
            "reproduce, 2 processes, from nothing to the report",
            seconds,
            "s",
            "< 720",
            seconds < 720,
        )
    )
    print(row("  peak memory of all processes", peak, "MB", "< 4096", peak < 4096))
