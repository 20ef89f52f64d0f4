"""How a watch over a deployed policy keeps its word, what it finds, how soon, and what it costs.

Six problems, each with several logs of rewards of arms tried at random. Without change: streams of
rows from where the log came from. With change, from row 10,000 on: a sensor that ages adds a bias
to half of the columns as reported, or rows from one side of the data become more frequent; as much
of it as doubles the policy's regret. Beside it, two-sample tests of every column (Kolmogorov and
Smirnov) on every 250 rows, read after each of them. Their false alarms are counted on the same
streams: at 5 %, corrected for the number of columns and of tests in a stream, and at the level that
gave as many as the watch's on streams of other logs, at which they are compared. Last, one arm's
rewards drop, which contexts cannot show: audits as the watch draws them, and as many drawn at
random; and how often ``half_life="auto"`` finds that rewards age.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import kstwo
from timing import medians

import contextgap as cg
from contextgap.export.c import CompiledPolicy
from contextgap.insight.betting import Ranks, Wealth, uniforms
from contextgap.insight.watch import Watch
from contextgap.studies.problems import spacecraft as constants

FALSE, CHANGE, WINDOW = 0.05, 10_000, 250
DROP, MOST_AUDITS = 0.75, 60  # of 40 runs with seeds 0 to 39, audits at random found it in 21
SHIFT = ("shift", "watch", "tests")
WIDTHS = (14, 8, 8, 9, 10, 8, 8, 7, 7, 8, 7, 7)
Rows = tuple[np.ndarray, np.ndarray]  # contexts, and expected rewards of every arm


@dataclass(frozen=True)
class Problem:
    """Where rows come from."""

    name: str
    log: int
    noise: float
    draw: Callable[[int, np.random.Generator], Rows]

    def policy(self, seed: int) -> cg.Policy:
        """Return a policy learnt from arms tried at random."""
        rng = np.random.default_rng([1, seed])
        x, expected = self.draw(self.log, rng)
        arms = rng.integers(expected.shape[1], size=len(x))
        rewards = expected[np.arange(len(x)), arms] + self.noise * rng.standard_normal(len(x))
        return cg.Learner(expected.shape[1], seed=0).fit(x, arms, rewards).freeze()


def sinusoids(n: int, rng: np.random.Generator) -> Rows:
    """The paper's synthetic problem, with six arms."""
    x = rng.uniform(0, 2 * np.pi, (n, 1))
    return x, np.sin(x * np.arange(1, 7))


def prices(n: int, rng: np.random.Generator) -> Rows:
    """Four columns of one customer; four offers."""
    x = rng.standard_normal((n, 4))
    z = x @ np.random.default_rng(5).standard_normal((4, 4))
    return x, np.tanh(z) + 0.3 * np.cos(x)


def _set(name: str) -> Callable[[int, np.random.Generator], Rows]:
    data = cg.problems.Classification(name).sample()

    def draw(n: int, rng: np.random.Generator) -> Rows:
        rows = rng.integers(len(data), size=n)
        x = data.contexts[rows]
        return x + 0.3 * rng.standard_normal(x.shape), data.rewards[rows]

    return draw


def bench(n: int, rng: np.random.Generator) -> Rows:
    """Three magnetometers among current loops."""
    data = cg.problems.MagnetometerBench().sample(max(n, 20_000), seed=3)
    rows = rng.integers(len(data), size=n)
    x = data.contexts[rows]
    return x + 1e-3 * rng.standard_normal(x.shape), data.rewards[rows]


PROBLEMS = [
    Problem("sinusoids", 200, 0.1, sinusoids),
    Problem("prices", 400, 0.3, prices),
    Problem("bench", 300, 20.0, bench),
    Problem("wine", 200, 0.0, _set("wine")),
    Problem("breast_cancer", 200, 0.0, _set("breast_cancer")),
    Problem("digits", 1000, 0.0, _set("digits")),
]


@dataclass
class Pool:
    """Rows, and what the watch and the policy make of them, computed once."""

    x: np.ndarray
    scores: np.ndarray
    regret: np.ndarray


def pooled(watch: Watch, x: np.ndarray, expected: np.ndarray) -> Pool:
    """Return the scores and regrets of rows."""
    found = watch.answer(x)
    regret = expected.max(axis=1) - expected[np.arange(len(x)), found.arm]
    return Pool(x, watch.scores.at(watch.policy, x, found.mean, found.arm, None), regret)


def alarm_of(watch: Watch, scores: np.ndarray, salt: int) -> int | None:
    """Return the row of the alarm on a stream of scores; the watch stays as it is."""
    ranks = Ranks(watch.ranks.edges, watch.ranks.counts.copy())
    wealth = Wealth(watch.scores.size, watch.wealth.early, 1 / FALSE)
    for first in range(0, len(scores), 4096):
        part = scores[first : first + 4096]
        wealth.bet(ranks.p_values(part, uniforms(salt, first, *part.shape)))
        if wealth.alarm is not None:
            return wealth.alarm[0]
    return None


def aged(
    watch: Watch, x: np.ndarray, expected: np.ndarray, usual: float, seed: int
) -> tuple[float, Pool]:
    """Return the bias of half of the columns that doubles the regret, and rows with it."""
    rng = np.random.default_rng([7, seed])
    size = x.shape[1]
    moving = rng.permutation(size) < max(1, size // 2)
    direction = x.std(axis=0) * moving * rng.choice([-1, 1], size)
    return _doubling(lambda s: pooled(watch, x + s * direction, expected), usual)


def tilted(
    watch: Watch, x: np.ndarray, expected: np.ndarray, usual: float, seed: int
) -> tuple[float, Pool]:
    """Return how much more frequent rows of one side become, the regret doubling, and rows."""
    rng = np.random.default_rng([8, seed])
    everything = pooled(watch, x, expected)
    unit = (x - x.mean(axis=0)) / np.where(x.std(axis=0) > 0, x.std(axis=0), 1)
    side = unit @ rng.standard_normal(x.shape[1])
    side /= side.std()
    side *= np.sign(np.corrcoef(side, everything.regret)[0, 1]) or 1.0
    draw = rng.random(len(x))

    def at(s: float) -> Pool:
        chance = np.exp(s * side - (s * side).max())
        rows = np.searchsorted(np.cumsum(chance) / chance.sum(), draw).clip(max=len(x) - 1)
        return Pool(x[rows], everything.scores[rows], everything.regret[rows])

    return _doubling(at, usual)


def _doubling(at: Callable[[float], Pool], usual: float) -> tuple[float, Pool]:
    low, high = 0.0, 4.0
    for _ in range(9):
        middle = (low + high) / 2
        low, high = (low, middle) if at(middle).regret.mean() >= 2 * usual else (middle, high)
    return high, at(high)


Shares = tuple[np.ndarray, np.ndarray]  # of the log below each value, and up to it


def shares(log: np.ndarray, x: np.ndarray) -> Shares:
    """Return where rows lie among those of the log, column by column."""
    ordered = np.sort(log, axis=0)
    low, high = (
        np.stack([np.searchsorted(*each, side) for each in zip(ordered.T, x.T, strict=True)])
        for side in ("left", "right")
    )
    return low.T / len(log), high.T / len(log)


def largest(found: Shares, rows: np.ndarray) -> np.ndarray:
    """Return the largest statistic of Kolmogorov and Smirnov of all columns, of each window."""
    low, high = (
        np.sort(np.float32(each[rows]).reshape(len(rows) // WINDOW, WINDOW, -1), axis=1)
        for each in found
    )
    steps = np.arange(1, WINDOW + 1)[:, None] / WINDOW
    above, below = steps - high, low - (steps - 1 / WINDOW)
    return np.maximum(above, below).max(axis=(1, 2))


def limit(log: np.ndarray, rows: int) -> float:
    """Return the statistic that tests at 5 %, corrected for columns and windows, must exceed."""
    level = FALSE / (log.shape[1] * rows / WINDOW)
    return float(kstwo.isf(level, round(len(log) * WINDOW / (len(log) + WINDOW))))


def offers(n: int, rng: np.random.Generator) -> Rows:
    """Three columns of one customer; eight offers."""
    x = rng.standard_normal((n, 3))
    return x, np.tanh(x @ np.random.default_rng(6).standard_normal((3, 8)))


def audited(seed: int, directed: bool, drop: float) -> float:
    """Return after how many audits, ten at a time, the drop of one arm's rewards is noticed."""
    problem = Problem("offers", 600, 0.3, offers)
    policy, rng = problem.policy(seed), np.random.default_rng([9, seed])
    watch = policy.watch(FALSE, reward_range=(-6, 6), seed=seed)
    x, expected = offers(3000, rng)
    often = np.bincount(policy.recommend(x), minlength=8)
    expected[:, np.argsort(often)[-4]] -= drop
    for count in range(10, MOST_AUDITS + 1, 10):
        some = rng.integers(len(x), size=1000)
        found = watch.audit(x[some], 10) if directed else None
        places = some[:10] if found is None else some[found.places]
        arms = policy.recommend(x[places]) if found is None else found.arms
        told = expected[places, arms] + problem.noise * rng.standard_normal(10)
        weights = None if found is None else found.weights
        watch.tell(x[places], arms, told, weights=weights)
        if watch.report().drift is not None:
            return count
    return np.inf


def print_audits(runs: int) -> None:
    """Print how often audits find that one of eight arms has changed."""
    print(f"\nan arm of eight drops by {DROP}; found within {MOST_AUDITS} audits, of {runs} runs")
    for name, directed, drop, of in (
        ("as the watch draws", True, DROP, runs),
        ("at random", False, DROP, runs),
        ("nothing changed", True, 0.0, 5 * runs),
    ):
        found = np.array([audited(seed, directed, drop) for seed in range(100, 100 + of)])
        often = np.isfinite(found).sum()
        print(f"{name:>20} {often:>4}/{of}   median {np.median(found):.0f}", flush=True)


def ageing(kind: str, noise: float, seed: int) -> tuple[bool, float, float]:
    """Return whether a half life is learnt, and the regret at the end without and with it."""
    rng, rows = np.random.default_rng([3, seed]), 240
    x, expected = prices(rows, rng)
    if kind == "contexts in order":
        order = np.argsort(x[:, 0])
        x, expected = x[order], expected[order]
    then, now = prices(1000, rng)
    if kind in ("a jump", "slowly"):  # each reward becomes another arm's
        share = np.linspace(0, 1, rows)[:, None]
        share = share if kind == "slowly" else share >= 0.5
        expected += share * (np.roll(expected, 1, 1) - expected)
        now = np.roll(now, 1, 1)
    tried = rng.integers(4, size=rows)
    told = expected[np.arange(rows), tried] + noise * rng.standard_normal(rows)
    plain, aged = (cg.Learner(4, half_life=h, seed=0).fit(x, tried, told) for h in (None, "auto"))
    regrets = [
        float((now.max(axis=1) - now[np.arange(1000), each.recommend(then)]).mean())
        for each in (plain, aged)
    ]
    return aged.tuning.chosen == "ageing", regrets[0], regrets[1]


def print_ageing(runs: int) -> None:
    """Print how often a half life is learnt, and what it is worth."""
    print("\nhalf_life='auto', 240 rewards    learnt   regret without   with")
    for noise in (0.3, 1.0):
        for kind in ("nothing changes", "contexts in order", "a jump", "slowly"):
            found = np.array([ageing(kind, noise, seed) for seed in range(100, 100 + runs)])
            learnt, (_, without, auto) = int(found[:, 0].sum()), found.mean(axis=0)
            name, often = f"{kind}, noise {noise}", f"{learnt}/{runs}"
            print(f"{name:>30} {often:>8} {without:16.3f} {auto:6.3f}", flush=True)


def print_time(rounds: int) -> None:
    """Print what watching takes beside recommending."""
    print("\ntime of see, of recommend's:   100 one by one   alarm read each time   1000 at once")
    for problem in PROBLEMS:
        policy = problem.policy(100)
        watch, x = policy.watch(), problem.draw(1000, np.random.default_rng(0))[0]
        one = medians(
            rounds,
            recommend=partial(one_by_one, policy.recommend, x[:100]),
            see=partial(one_by_one, watch.see, x[:100], watch),
            read=partial(one_by_one, partial(see_and_read, watch), x[:100]),
        )
        many = medians(
            rounds,
            recommend=partial(one_by_one, policy.recommend, [x] * 6),
            see=partial(one_by_one, watch.see, [x] * 6, watch),
        )
        ratios = [one["see"] / one["recommend"], one["read"] / one["recommend"]]
        ratios.append(many["see"] / many["recommend"])
        cells = " ".join(
            f"{each:{size}.2f}" for each, size in zip(ratios, (16, 22, 14), strict=True)
        )
        print(f"{problem.name:>28} {cells}", flush=True)


def one_by_one(call: Callable[[Any], Any], parts: Iterable[Any], watch: Watch | None = None) -> Any:
    """Call something with each part; then ask the watch, which has held some rows back."""
    for each in parts:
        call(each)
    return watch and watch.evidence


def see_and_read(watch: Watch, row: np.ndarray) -> None:
    """See one row, and read the alarm."""
    watch.see(row)
    _ = watch.alarm


def print_c(rows: int) -> None:
    """Print how far the exported watch's wealth is from Python's."""
    problem = PROBLEMS[1]
    policy = problem.policy(100)
    watch, rng = policy.watch(), np.random.default_rng(0)
    x = np.vstack([problem.draw(rows - 100, rng)[0], 2 * problem.draw(100, rng)[0]])
    with tempfile.TemporaryDirectory() as folder:
        policy.to_c(folder, watch=watch)
        evidence, alarm = CompiledPolicy(folder).watched(x)
    watch.see(x[:-100])
    watch.see(x[-100:])
    apart = abs(evidence[-1] / watch.evidence - 1)
    same = alarm == (watch.alarm and watch.alarm.row)
    print(f"\nC and Python after {rows} rows: wealth {apart:.1e} apart, same alarm: {same}")


def print_flight(logs: int) -> None:
    """Print false alarms on a bench whose rows come in time order, by rows and by orbits."""
    maker = cg.problems.MagnetometerBench(sequence=True)
    orbit = round(constants.BENCH_ORBIT / constants.BENCH_STEP)
    print(f"\nin time order, {orbit} rows an orbit; alarms in 60 orbits, of {logs} flights")
    for block in (1, orbit):
        false = 0
        for seed in range(100, 100 + logs):
            data, rng = maker.sample(100 * orbit, seed=seed), np.random.default_rng(seed)
            some = rng.permutation(40 * orbit)[:300]
            arms = rng.integers(3, size=300)
            learner = cg.Learner(data.arms, seed=0)
            told = data.observations[some, arms]
            learner.fit(data.contexts[some], [data.arms[arm] for arm in arms], told)
            watch = learner.freeze().watch(FALSE, block=block, baseline=data.contexts[: 40 * orbit])
            watch.see(data.contexts[40 * orbit :])
            false += watch.alarm is not None
        print(f"   block of {block:4} rows {false:>4}/{logs}", flush=True)


@dataclass
class Unchanged:
    """A policy, and what happened on streams without change."""

    watch: Watch
    log: np.ndarray
    x: np.ndarray
    expected: np.ndarray
    pool: Pool
    rng: np.random.Generator
    alarms: int  # of the watch, on so many streams
    tests: np.ndarray  # the largest statistic of two-sample tests, on each stream


def unchanged(problem: Problem, seed: int, streams: int, rows: int) -> Unchanged:
    """Watch streams from where the log came from."""
    policy = problem.policy(seed)
    watch, log = policy.watch(FALSE), policy.state.model.observed.contexts
    rng = np.random.default_rng([2, seed])
    x, expected = problem.draw(20_000, rng)
    pool, lying = pooled(watch, x, expected), shares(log, x)
    drawn = [rng.integers(len(x), size=rows) for _ in range(streams)]
    alarms = sum(alarm_of(watch, pool.scores[each], int(each.sum())) is not None for each in drawn)
    tests = np.array([largest(lying, each).max() for each in drawn])
    return Unchanged(watch, log, x, expected, pool, rng, alarms, tests)


def calm(*given: Any) -> tuple[int, np.ndarray]:
    """Return what is counted on streams without change."""
    found = unchanged(*given)
    return found.alarms, found.tests


def delays(one: Unchanged, change: Callable[..., Any], seed: int, at: float) -> list[float]:
    """Return after how many rows the watch and the tests find a shift, and how large it is."""
    some, usual, rng = slice(0, 4000), one.pool.regret.mean(), one.rng
    amount, after = change(one.watch, one.x[some], one.expected[some], usual, seed)
    before = rng.integers(len(one.x), size=CHANGE)
    then = rng.integers(len(after.x), size=5000)
    stream = np.concatenate([one.pool.scores[before], after.scores[then]])
    alarm = alarm_of(one.watch, stream, int(before.sum()))
    found = np.flatnonzero(largest(shares(one.log, after.x), then) > at)
    return [
        amount,
        np.inf if alarm is None else float(alarm - CHANGE),
        WINDOW * (found[0] + 1.0) if len(found) else np.inf,
    ]


def study(problem: Problem, logs: int, streams: int, rows: int, shifts: int) -> list[str]:
    """Return what happened with all logs of a problem, as cells of a table."""
    # At which tests have as many false alarms as the watch, on streams of four times as many logs.
    others = [calm(problem, seed, streams, rows) for seed in range(1000, 1000 + 4 * logs)]
    statistics = np.sort(np.concatenate([tests for _, tests in others]))[::-1]
    often = min(sum(alarms for alarms, _ in others), len(statistics) - 1)
    at = float(statistics[often])
    false, regrets, shifted = np.zeros(3, dtype=int), [], []
    for seed in range(100, 100 + logs):
        one = unchanged(problem, seed, streams, rows)
        false += one.alarms, (one.tests > limit(one.log, rows)).sum(), (one.tests > at).sum()
        regrets.append(one.pool.regret.mean())
        for kind in (aged, tilted):
            shifted += [delays(one, kind, 1000 * seed + i, at) for i in range(shifts)]
    table = np.array(shifted).reshape(logs, 2, shifts, 3)
    medians_of = [f"{each:.3g}" for each in np.median(table, axis=(0, 2)).ravel()]
    counts = [f"{each}/{logs * streams}" for each in false]
    counts.insert(2, f"{often}/{len(statistics)}")
    return [problem.name, f"{np.mean(regrets):.3g}", *counts, *medians_of]


def line(cells: list[str]) -> str:
    """Return one line of a table."""
    return " ".join(f"{cell:>{size}}" for cell, size in zip(cells, WIDTHS, strict=True))


def main() -> None:
    """Print all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few short streams")
    parser.add_argument("--only", help="one problem, or audits, ageing, time, c or flight")
    parser.add_argument("--streams", type=int, help="streams without change for each log")
    given = parser.parse_args()
    logs, streams, rows, shifts = (2, 2, 5000, 1) if given.quick else (10, 20, 100_000, 3)
    streams = streams if given.streams is None else given.streams
    wanted = [each for each in PROBLEMS if given.only in (None, each.name)]
    if wanted:
        print(f"{logs * streams} streams of {rows} rows; shift at row {CHANGE}: rows until found")
        print(line([*" " * 2, "false", "false:", "both, on", "false:", *" " * 6]).rstrip())
        heads = ["problem", "regret", "watch", "tests 5 %", "other logs", "tests", *2 * SHIFT]
        print(line(heads))
    for problem in wanted:
        start = time.perf_counter()
        cells = study(problem, logs, streams, rows, shifts)
        print(line(cells), f"  {time.perf_counter() - start:.0f} s", flush=True)
    rest = {
        "audits": (print_audits, 2 if given.quick else 40),
        "ageing": (print_ageing, 2 if given.quick else 20),
        "time": (print_time, 1 if given.quick else 20),
        "c": (print_c, rows),
        "flight": (print_flight, 1 if given.quick else 20),
    }
    for name, (show, size) in rest.items():
        if given.only in (None, name):
            show(size)


if __name__ == "__main__":
    main()
