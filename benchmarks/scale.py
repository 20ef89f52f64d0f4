"""How learning goes on when observations are many: the bounded model against the exact one.

Run with ``python benchmarks/scale.py PART ...``; the parts are those of ``PARTS`` and take minutes.
Figures are ratios within one run; memory is the peak of the resident set.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from threadpoolctl import threadpool_limits
from timing import row

import contextgap as cg
from contextgap.learner.bulk import SAMPLE, Add, Summarise, partitions_of
from contextgap.models import BoundedModel, Dictionary, ExactModel
from contextgap.tables.contexts import ContextSchema
from contextgap.tables.files import Trials

SEEDS = range(100, 105)
T = TypeVar("T")


class Smooth:
    """Six arms drawn from a Gaussian process over a cube in five dimensions, told with noise."""

    name, noise, arms, dimension = "smooth 5-D, 6 arms, noise 0.3", 0.3, 6, 5
    kernel, ridge = cg.Gaussian(1.0), 0.09

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng([seed, 5])
        features = 2000  # random Fourier features: sums of cosines are draws from the process
        self._frequencies = rng.normal(size=(self.dimension, features))
        self._phases = rng.uniform(0, 2 * np.pi, features)
        self._weights = rng.normal(size=(features, self.arms)) * np.sqrt(2 / features)

    def contexts(self, rng: np.random.Generator, count: int) -> np.ndarray:
        return rng.uniform(-1, 1, (count, self.dimension))

    def expected(self, contexts: np.ndarray) -> np.ndarray:
        return np.cos(contexts @ self._frequencies + self._phases) @ self._weights


class Sines:
    """The paper's twenty sinusoids, observed with noise."""

    name, noise, arms, dimension = "sinusoids, 20 arms, noise 0.1", 0.1, 20, 1
    kernel, ridge = cg.Gaussian(0.0707), 0.01

    def __init__(self, seed: int) -> None:
        del seed  # only contexts and noise are random

    def contexts(self, rng: np.random.Generator, count: int) -> np.ndarray:
        return rng.uniform(0, 2 * np.pi, (count, 1))

    def expected(self, contexts: np.ndarray) -> np.ndarray:
        return np.sin(contexts * np.arange(1, self.arms + 1))


class Flight:
    """Three magnetometers of a spacecraft, its frames revisited in random order."""

    name, noise, arms = "spacecraft, 3 sensors", 0.1, 3
    kernel, ridge = cg.Gaussian(6.0), 0.01

    def __init__(self, seed: int) -> None:
        from contextgap.studies.problems.problem import standardised
        from contextgap.studies.problems.spacecraft import Spacecraft

        flight = Spacecraft().sample(seed=seed)
        self._rows, self._rewards = standardised(flight.contexts), standardised(flight.observations)
        self.dimension = self._rows.shape[1]

    def contexts(self, rng: np.random.Generator, count: int) -> np.ndarray:
        return self._rows[rng.integers(len(self._rows), size=count)]

    def expected(self, contexts: np.ndarray) -> np.ndarray:
        places = {row.tobytes(): i for i, row in enumerate(self._rows)}
        return self._rewards[[places[row.tobytes()] for row in contexts]]


def learner(
    problem: Smooth | Sines | Flight, points: int | None, method: str = "contextual-gap"
) -> cg.Learner:
    return cg.Learner(
        problem.arms,
        kernel=problem.kernel,
        ridge=problem.ridge,
        method=method,
        points=points,
        seed=0,
    )


def regret_of(subject: cg.Learner, contexts: np.ndarray, truth: np.ndarray) -> float:
    chosen = np.array(subject.recommend(contexts).tolist())
    return float((truth.max(axis=1) - truth[np.arange(len(truth)), chosen]).mean())


def regrets(
    problem: Smooth | Sines | Flight, points: int | None, seed: int, stops: list[int]
) -> list[float]:
    """Return the regret at new contexts after so many steps of asking and telling."""
    rng = np.random.default_rng(seed)
    new = problem.contexts(rng, 2000)
    truth = problem.expected(new)
    subject, found, done = learner(problem, points), [], 0
    for stop in stops:
        contexts = problem.contexts(rng, stop - done)
        heard = problem.expected(contexts) + problem.noise * rng.normal(
            size=(stop - done, problem.arms)
        )
        for context, rewards in zip(contexts, heard, strict=True):
            arm = subject.ask(context)
            subject.tell(context, arm, float(rewards[arm]))
        found.append(regret_of(subject, new, truth))
        done = stop
    return found


def regret(
    kind: type[Smooth | Sines | Flight],
    points: int,
    limit: float,
    steps: int,
    later: dict[int, float],
) -> None:
    """Print the regret over the exact model's, and how it goes on falling."""
    exact, ours = [], []
    for seed in SEEDS:
        problem = kind(seed)
        exact += regrets(problem, None, seed, [steps])
        stops = [steps, *later] if seed == SEEDS[0] else [steps]
        ours.append(regrets(problem, points, seed, stops))
        print(f"  seed {seed}: exact {exact[-1]:.5f}, with points {ours[-1]}", flush=True)
    ratio = float(np.mean([each[0] for each in ours]) / np.mean(exact))
    differences = np.array([each[0] for each in ours]) - exact
    error = float(differences.std(ddof=1) / np.sqrt(len(differences)) / np.mean(exact))
    print(f"{kind.name}, {steps} steps, m = {points}: paired error of the ratio {error:.3f}")
    print(row("  regret over that of exact beliefs", ratio, "x", f"<= {limit}", ratio <= limit))
    for (step, most), value in zip(later.items(), ours[0][1:], strict=True):
        left = value / ours[0][0]
        what = f"  regret at {step} over that at {steps}"
        print(row(what, left, "x", f"<= {most}", left <= most))


def logged(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, Smooth]:
    problem, rng = Smooth(seed), np.random.default_rng(seed)
    contexts, arms = problem.contexts(rng, count), rng.integers(problem.arms, size=count)
    rewards = np.concatenate(
        [problem.expected(block) for block in np.array_split(contexts, max(1, count // 20_000))]
    )[np.arange(count), arms]
    return contexts, arms, rewards + problem.noise * rng.normal(size=count), problem


def steps(few: int, many: int, turns: int, method: str = "contextual-gap") -> None:
    """Print the time of ask + tell, which must not depend on how much was told."""
    subjects = {}
    for count in (few, many):
        contexts, arms, rewards, problem = logged(count)
        subjects[count] = learner(problem, 512, method).fit(contexts, arms, rewards)
    rng, pauses = np.random.default_rng(1), []
    times: dict[int, list[float]] = {count: [] for count in subjects}
    # Turns of many steps, since folding 64 rows at once is a part of a step; their median, and the
    # processor's time rather than the clock's, since other processes may come between.
    for _ in range(turns):
        contexts = problem.contexts(rng, 200)
        for count, subject in subjects.items():
            start = time.process_time()
            for context in contexts:
                began = time.perf_counter()
                arm = subject.ask(context)
                pauses.append(time.perf_counter() - began)
                subject.tell(context, arm, 0.0)
            times[count].append((time.process_time() - start) / len(contexts))
    mean = {count: float(np.median(each)) for count, each in times.items()}
    for count, seconds in mean.items():
        what = f"ask + tell, {method}, 6 arms, m = 512, {count} observations"
        print(row(what, seconds * 1e3, "ms", "<= 1", seconds <= 1e-3))
    ratio = mean[many] / mean[few]
    print(row(f"  {many} observations over {few}", ratio, "x", "<= 1.2", ratio <= 1.2))
    longest = float(np.quantile(pauses, 0.999)) * 1e3
    print(row("  longest ask but one in a thousand", longest, "ms", "<= 50", longest <= 50))


def load(count: int, *, bounds: bool = True) -> None:
    """Print what ``contextgap learn`` and ``recommend`` take, with as many rows in a Parquet file.

    Seconds of the clock, and in brackets of all processors, which other processes do not prolong.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Elsewhere: the peak memory of a child counts what its parent had when it began.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            pool.submit(write_log, count, folder / "log.parquet").result()
        options = ["--arm", "arm", "--reward", "reward", "-o", folder / "policy.cgap"]
        learning = run_program("learn", folder / "log.parquet", *options)
        goal = 120.0 * count / 1e6
        report(f"learn from {count} rows", learning, goal, 2000.0)
        size = (folder / "policy.cgap").stat().st_size / 1e6
        print(row("  the policy's file", size, "MB", "<= 30", size <= 30))
        inputs = [folder / "policy.cgap", folder / "log.parquet", "-o", folder / "out.csv"]
        plain = run_program("recommend", *inputs, "--no-bounds")
        report(f"recommend for {count} rows without bounds", plain, goal / 2, 2000.0)
        if bounds:
            bounded = run_program("recommend", *inputs)
            report(f"recommend for {count} rows with bounds", bounded, goal / 2, 2000.0)
        policy = cg.Policy.load(folder / "policy.cgap")
        problem = Smooth(0)
        contexts = problem.contexts(np.random.default_rng(1), 5000)
        truth = problem.expected(contexts)
        names = [f"x{i}" for i in range(problem.dimension)]
        chosen = [int(arm) for arm in policy.recommend(pd.DataFrame(contexts, columns=names))]
        regret = truth.max(axis=1) - truth[np.arange(5000), chosen]
        print(
            f"  regret at 5000 new contexts: {regret.mean():.2g}; card: {policy.card.gain} gained"
        )


def write_log(count: int, path: Path) -> Smooth:
    """Write a log in pieces, so that making it takes little memory.

    There are a million contexts, which come again with other arms and noise; computing what to
    expect at more of them would take longer than all that is measured.
    """
    problem, writer, pieces = Smooth(0), None, list[tuple[np.ndarray, np.ndarray]]()
    for number, first in enumerate(range(0, count, 250_000)):
        rng = np.random.default_rng([0, number])
        if number < 4:
            drawn = problem.contexts(rng, min(250_000, count - first))
            parts = np.array_split(drawn, 1 + len(drawn) // 20_000)
            pieces.append((drawn, np.concatenate([problem.expected(part) for part in parts])))
        rows = min(250_000, count - first)
        contexts, expected = (each[:rows] for each in pieces[number % 4])
        arms = rng.integers(problem.arms, size=rows)
        rewards = expected[np.arange(rows), arms] + problem.noise * rng.normal(size=rows)
        columns = {f"x{i}": contexts[:, i] for i in range(problem.dimension)}
        table = pa.table({**columns, "arm": arms, "reward": rewards})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()
    return problem


class Ran(NamedTuple):
    """What a program took: seconds of the clock and of all processors, and megabytes at most."""

    clock: float
    processors: float
    peak: float


def run_program(*arguments: object) -> Ran:
    command = [sys.executable, "-m", "contextgap", *map(str, arguments)]
    start = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    clock = time.perf_counter() - start
    if status:
        raise SystemExit(f"{' '.join(command)} failed")
    return Ran(clock, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def report(what: str, ran: Ran, seconds: float, megabytes: float) -> None:
    title = f"{what} ({ran.processors:.1f} s of processors)"
    print(row(title, ran.clock, "s", f"<= {seconds:g}", ran.clock <= seconds))
    met = ran.peak <= megabytes
    print(row("  peak memory", ran.peak, "MB", f"<= {megabytes:g}", met), flush=True)


def rates(count: int) -> None:
    """Print what every row costs one core, and what travels for every partition."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "log.parquet"
        problem = write_log(count, path)
        (partition,) = partitions_of(path)
        trials = Trials("arm", "reward")
        summary, reading = _timed(lambda: Summarise(trials, SAMPLE, 1024)(partition))
        per_row = 1e6 * reading / count
        sent = len(pickle.dumps(summary)) / 1e6
        print(f"first pass: {per_row:.3g} µs per row; {sent:.3g} MB from a partition")
        names = [f"x{i}" for i in range(problem.dimension)]
        contexts = problem.contexts(np.random.default_rng(1), 8192)
        work = Add(
            trials=trials,
            columns=names,
            holds=summary.holds,
            truths=False,
            schema=ContextSchema(problem.dimension, tuple(names)),
            places={str(arm): arm for arm in range(problem.arms)},
            sign=1.0,
            kernel=problem.kernel,
            ridge=problem.ridge,
            dictionary=Dictionary.chosen(problem.kernel, contexts, 512, 0.0),
        )
        totals, adding = _timed(lambda: work(partition))
        per_row, sent = 1e6 * adding / count, len(pickle.dumps(totals)) / 1e6
        asked = len(pickle.dumps(work)) / 1e6
        print(f"second pass, m = {len(work.dictionary)}: {per_row:.3g} µs per row;", end=" ")
        print(f"{asked:.3g} MB to a worker, {sent:.3g} MB from a partition")


def _timed(call: Callable[[], T]) -> tuple[T, float]:
    """Return what a call returns, and the seconds of the processor that it takes."""
    start = time.process_time()
    return call(), time.process_time() - start


def deviations() -> None:
    """Print standard deviations over exact ones; fewer points make them larger, not smaller."""
    for kind, points in ((Smooth, 512), (Sines, 512), (Flight, 1024)):
        lowest = []
        for seed in SEEDS:
            problem, rng = kind(seed), np.random.default_rng(seed)
            contexts, new = problem.contexts(rng, 2500), problem.contexts(rng, 2000)
            one, two = (
                ExactModel(problem.kernel, problem.ridge, 1),
                BoundedModel(problem.kernel, problem.ridge, 1, points=points),
            )
            for model in (one, two):
                model.observe_many(contexts, np.zeros(2500, dtype=int), np.zeros(2500))
            ratio = two.posterior(new, [0]).std / one.posterior(new, [0]).std
            lowest.append(float(np.quantile(ratio, 0.01)))
        what = f"std over the exact one, 1st percentile, {kind.name}"
        print(row(what, min(lowest), "x", ">= 0.9", min(lowest) >= 0.9))


def updates(count: int) -> None:
    """Print the error of variances after many single updates, against a fresh factorisation."""
    contexts, _, rewards, problem = logged(count)
    model = BoundedModel(problem.kernel, problem.ridge, 1, points=256)
    model.observe_many(contexts[:4000], np.zeros(4000, dtype=int), rewards[:4000])
    for context, reward in zip(contexts[4000:], rewards[4000:].tolist(), strict=True):
        model.observe(context, 0, reward)
    fresh = BoundedModel(problem.kernel, problem.ridge, 1, points=256)
    fresh.take_over(model.observed.snapshot(), model.dictionary)
    new = problem.contexts(np.random.default_rng(1), 500)
    one, two = (each.posterior(new, [0]).std ** 2 for each in (model, fresh))
    error = float((np.abs(one - two) / two).max())
    print(row(f"{count} single updates, relative error", error, "", "< 1e-10", error < 1e-10))


PARTS: dict[str, Callable[[], None]] = {
    "steps": partial(steps, 20_000, 1_000_000, 25),
    "default": partial(steps, 20_000, 100_000, 25, "auto"),
    "deviations": deviations,
    "updates": partial(updates, 1_000_000),
    "load": partial(load, 1_000_000),
    "more": partial(load, 10_000_000, bounds=False),
    "rates": partial(rates, 200_000),
    "sines": partial(regret, Sines, 512, 1.05, 12_000, {50_000: 1.0, 200_000: 1.0}),
    "smooth": partial(regret, Smooth, 512, 1.05, 12_000, {40_000: 0.5}),
    "spacecraft": partial(regret, Flight, 1024, 1.08, 12_000, {}),
}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="+", choices=list(PARTS))
    for part in parser.parse_args().parts:
        # One BLAS thread: figures then do not depend on how idle other cores are.
        with threadpool_limits(None if part in ("load", "more") else 1):
            PARTS[part]()
