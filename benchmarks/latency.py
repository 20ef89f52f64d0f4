"""How long calls take, as ratios within one run.

The whole run over the same with the kernel given; single calls over a Cholesky factorisation of
1000 x 1000 numbers. All times are the process's own (CPU), on one BLAS thread, so that other work
on the machine matters little. Another checkout is measured with ``PYTHONPATH=../before/src``.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from scipy.linalg import cholesky
from threadpoolctl import threadpool_limits
from timing import medians, row, seconds

import contextgap as cg

ARMS, COLUMNS, STEPS, REPEATS = 6, 8, 1000, 3
GIVEN: dict[str, Any] = {"kernel": cg.Gaussian(2.0), "ridge": 0.05}
# Settings of learners that learn hyperparameters, and of the same with these given.
KINDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "independent arms": ({}, GIVEN),
    "arms that share": ({}, {**GIVEN, "sharing": 0.9}),
    "inducing points": ({"points": 50}, {**GIVEN, "points": 50}),
}


def problem(rows: int, share: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return contexts, and noisy rewards of all arms: sines, of all arms nearly the same if so."""
    rng = np.random.default_rng(0)
    contexts, noise = rng.normal(size=(rows, COLUMNS)), 0.1 * rng.normal(size=(rows, ARMS))
    own = np.sin(contexts @ rng.normal(size=(COLUMNS, ARMS)) / 2)
    return contexts, (own[:, :1] + 0.1 * own if share else own) + noise


def logged(rows: int, share: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a log of arms drawn at random."""
    contexts, rewards = problem(rows, share)
    arms = np.random.default_rng(1).integers(ARMS, size=rows)
    return contexts, arms, rewards[np.arange(rows), arms]


def factorisation() -> float:
    """Return the seconds that a Cholesky factorisation of 1000 x 1000 numbers takes."""
    square = np.random.default_rng(0).normal(size=(1000, 1000))
    square = square @ square.T + 1000 * np.eye(1000)
    return medians(5, cholesky=lambda: cholesky(square, lower=True))["cholesky"]


def calls(share: bool, settings: dict[str, Any]) -> np.ndarray:
    """Return the seconds of each ask and tell of a run: the medians over some repetitions."""
    contexts, rewards = problem(STEPS, share)
    times = np.empty((REPEATS, STEPS, 2))
    for repeat in times:
        learner = cg.Learner(ARMS, seed=0, **settings)
        for step, context in enumerate(contexts):
            start = time.process_time()
            arm = learner.ask(context)
            asked = time.process_time()
            learner.tell(context, arm, float(rewards[step, arm]))
            repeat[step] = asked - start, time.process_time() - asked
    return np.median(times, axis=0)


def runs(unit: float) -> Iterator[tuple[str, np.ndarray]]:
    """Print whole runs and longest calls; yield the kinds and the seconds of their calls."""
    for kind, (learnt, given) in KINDS.items():
        share = kind == "arms that share"
        ours, plain = calls(share, learnt), calls(share, given)
        print(f"{STEPS} asks and tells, {kind}: {ours.sum():.2f} s, longest {ours.max():.3f} s")
        ratio, longest, most = ours.sum() / plain.sum(), ours.max() / unit, 10 if share else 5
        print(row("  over the run with the kernel given", ratio, "x", "<= 2", ratio <= 2))
        print(row("  longest call", longest, "ch", f"<= {most}", longest <= most))
        longest = plain.max() / unit
        print(row("  longest call with the kernel given", longest, "ch", "<= 1", longest <= 1))
        yield kind, ours


def fits(unit: float) -> None:
    for rows, share, most in ((1000, False, 25), (10_000, False, 250), (2100, True, 73)):
        log = logged(rows, share)
        fits = [partial(cg.Learner(ARMS, seed=0).fit, *log) for _ in range(REPEATS)]
        took = median(map(seconds, fits))
        what = f"fit of {rows} rows{', arms that share' if share else ''}: {took:.2f} s"
        print(row(what, took / unit, "ch", f"<= {most}", took / unit <= most))


def pool(unit: float) -> None:
    """Print the time of steps that choose from 300 contexts, from 100 to 160 rewards."""
    contexts, rewards = problem(300)
    learner = cg.Learner(ARMS, seed=0).fit(*logged(100))

    def step() -> None:
        chosen, arm = learner.ask(pool=contexts, index=True)
        learner.tell(contexts[chosen], arm, float(rewards[chosen, arm]))

    took = median(seconds(step) for _ in range(60))
    what = f"ask(pool=...) of 300 rows and tell: {took * 1e3:.1f} ms"
    print(row(what, took / unit, "ch", "<= 0.8", took / unit <= 0.8))


def batch(unit: float) -> None:
    contexts, _ = problem(2000)
    learner = cg.Learner(ARMS, seed=0).fit(*logged(300))
    took = seconds(lambda: learner.ask(contexts))
    what = f"ask for 2000 contexts at 300 rewards: {took:.2f} s"
    print(row(what, took / unit, "ch", "<= 38", took / unit <= 38))


def look_ahead() -> None:
    """Print a step of the default over one of Contextual-Gap, 20 arms of 100 points."""
    rng = np.random.default_rng(0)
    contexts, arms = rng.normal(size=(2000, COLUMNS)), np.tile(np.arange(20), 100)
    for kind, points in (("exact", None), ("512 points", 512)):
        steps = {}
        for name, method in (("ours", "auto"), ("plain", "contextual-gap")):
            learner = cg.Learner(20, method=method, points=points, seed=0, **GIVEN)
            learner.fit(contexts, arms, np.sin(contexts[:, 0] + arms))
            if points is not None:
                many = rng.normal(size=(20 * 1100, COLUMNS))
                learner.fit(many, np.tile(np.arange(20), 1100), np.sin(many[:, 0]))
            steps[name] = step_of(learner)
        times = medians(20, **steps)
        ratio = times["ours"] / times["plain"]
        what = f"default's step over Contextual-Gap's, {kind}"
        print(row(what, ratio, "x", "<= 2", ratio <= 2))


def step_of(learner: cg.Learner) -> Callable[[], None]:
    """Return an ask and a tell at a random context."""
    rng = np.random.default_rng(1)

    def step() -> None:
        context = rng.normal(size=COLUMNS)
        arm = learner.ask(context)
        learner.tell(context, arm, float(np.sin(context[0] + arm)))

    return step


def commands() -> None:
    """Print the time of commands, once modules are compiled, over that of two imports."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder, "OPENBLAS_NUM_THREADS": "1"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)

        def run(*arguments: str) -> float:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            python = [sys.executable, *arguments]
            subprocess.run(python, cwd=folder, env=environment, check=True, capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

        program, times = ("-m", "contextgap"), []
        run(*program, "campaign", "create", "bench", "--arms", "a,b")
        for trial in range(1, 12):
            taken = {
                "imports": run("-c", "import numpy, scipy.linalg"),
                "--version": run(*program, "--version"),
                "campaign ask": run(*program, "campaign", "ask", f"x={trial / 7}"),
                "campaign tell": run(*program, "campaign", "tell", str(trial), f"{trial % 3}"),
                "campaign status": run(*program, "campaign", "status"),
            }
            times.append(taken)
    print("commands over import numpy, scipy.linalg")
    usual = {name: median(taken[name] for taken in times[2:]) for name in times[0]}
    for name, took in usual.items():
        if name != "imports":
            ratio, most = took / usual["imports"], 1.4 if name == "--version" else 2.5
            what = f"  contextgap {name}: {took:.2f} s"
            print(row(what, ratio, "x", f"<= {most}", ratio <= most))


def draw(durations: dict[str, np.ndarray], unit: float, file: Path) -> None:
    """Write a histogram of the calls of each kind of run."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(len(durations), sharex=True, figsize=(7, 6), layout="constrained")
    everything = np.concatenate([each.ravel() for each in durations.values()])
    edges = np.geomspace(everything.min(), everything.max(), 60) * 1e3
    for axis, (kind, times) in zip(axes, durations.items(), strict=True):
        axis.hist([times[:, 0] * 1e3, times[:, 1] * 1e3], edges, label=["ask", "tell"])
        axis.axvline(unit * 1e3, color="black", linestyle=":", label="Cholesky of 1000 x 1000")
        axis.set(title=kind, ylabel="calls", xscale="log", yscale="log", ylim=(0.7, None))
    axes[0].legend()
    axes[-1].set_xlabel("CPU time of a call (ms)")
    figure.savefig(file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parts = ("runs", "fits", "pool", "batch", "look-ahead", "commands")
    parser.add_argument("--only", default=",".join(parts), help=f"some of {','.join(parts)}")
    parser.add_argument("--figure", type=Path, help="where to draw a histogram of runs' calls")
    given = parser.parse_args()
    only = given.only.split(",")
    unit = factorisation()
    print(f"{cg.__file__}; ch: Cholesky factorisations of 1000 x 1000, {unit * 1e3:.1f} ms each")
    if "runs" in only:
        durations = dict(runs(unit))
        if given.figure:
            draw(durations, unit, given.figure)
    for name, part in (("fits", fits), ("pool", pool), ("batch", batch)):
        if name in only:
            part(unit)
    if "look-ahead" in only:
        look_ahead()
    if "commands" in only:
        commands()


if __name__ == "__main__":
    # One BLAS thread: ratios then do not depend on how idle other cores are.
    with threadpool_limits(1):
        main()
