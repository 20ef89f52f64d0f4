"""How learning goes on when observations are many: the bounded model against the exact one.

Run with ``python benchmarks/scale.py PART ...``; the parts are those of ``PARTS`` and take minutes.
Figures are ratios within one run; memory is the peak of the resident set.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from threadpoolctl import threadpool_limits
from timing import row

import contextgap as cg
from contextgap.models import BoundedModel, ExactModel

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
        from contextgap.problems.maker import standardised
        from contextgap.problems.spacecraft import Spacecraft

        flight = Spacecraft().sample(seed=seed)
        self._rows, self._rewards = standardised(flight.contexts), standardised(flight.rewards)
        self.dimension = self._rows.shape[1]

    def contexts(self, rng: np.random.Generator, count: int) -> np.ndarray:
        return self._rows[rng.integers(len(self._rows), size=count)]

    def expected(self, contexts: np.ndarray) -> np.ndarray:
        places = {row.tobytes(): i for i, row in enumerate(self._rows)}
        return self._rewards[[places[row.tobytes()] for row in contexts]]


def learner(problem: Smooth | Sines | Flight, points: int | None, method: str) -> cg.Learner:
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
    subject, found, done = learner(problem, points, "auto"), [], 0
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


def steps(few: int, many: int, turns: int) -> None:
    """Print the time of ask + tell, which must not depend on how much was told."""
    subjects = {}
    for count in (few, many):
        contexts, arms, rewards, problem = logged(count)
        subjects[count] = learner(problem, 512, "auto").fit(contexts, arms, rewards)
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
        what = f"ask + tell, 6 arms, m = 512, {count} observations"
        print(row(what, seconds * 1e3, "ms", "<= 1", seconds <= 1e-3))
    ratio = mean[many] / mean[few]
    print(row(f"  {many} observations over {few}", ratio, "x", "<= 1.2", ratio <= 1.2))
    longest = float(np.quantile(pauses, 0.999)) * 1e3
    print(row("  longest ask but one in a thousand", longest, "ms", "<= 50", longest <= 50))


def load(count: int) -> None:
    """Print what learning from a large log and deciding for as many rows takes.

    Seconds of the clock, and in brackets of all processors, which other processes do not prolong.
    """
    contexts, arms, rewards, problem = logged(count)
    before = _peak()
    new = cg.Learner(problem.arms, seed=0)
    subject, learning = _timed(lambda: new.fit(contexts, arms, rewards))
    print(f"fit of {count} rows, scales learnt: {learning[0]:.1f} s ({learning[1]:.1f} s)")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.cgap"
        policy = subject.freeze()
        _, saving = _timed(lambda: policy.save(path))  # with its score card
        size = path.stat().st_size / 1e6
    print(f"  scoring and saving: {saving[0]:.1f} s ({saving[1]:.1f} s)")
    both = learning[0] + saving[0]
    print(row("  both together", both, "s", "<= 120", both <= 120))
    print(row("  the policy's file", size, "MB", "<= 30", size <= 30))
    chosen, deciding = _timed(lambda: policy.recommend(contexts))
    what = f"recommend for {count} rows ({deciding[1]:.1f} s)"
    print(row(what, deciding[0], "s", "<= 60", deciding[0] <= 60))
    truth = problem.expected(contexts[:5000])
    regret = truth.max(axis=1) - truth[np.arange(5000), np.array(chosen[:5000].tolist())]
    print(f"  its regret: {regret.mean():.2g}")
    peak = _peak()
    print(row(f"peak memory, {before:.0f} MB before learning", peak, "MB", "<= 2000", peak <= 2000))


def _timed(call: Callable[[], T]) -> tuple[T, tuple[float, float]]:
    clock, processors = time.perf_counter(), time.process_time()
    found = call()
    return found, (time.perf_counter() - clock, time.process_time() - processors)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


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
    "deviations": deviations,
    "updates": partial(updates, 1_000_000),
    "load": partial(load, 1_000_000),
    "more": partial(load, 10_000_000),
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
