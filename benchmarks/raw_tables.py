"""Tables as they are beside tables encoded by hand: ``python benchmarks/raw_tables.py``.

Logs have three category columns (5, 12 and 40 levels, some frequent and most rare), four numbers
and a tenth of all cells missing; four arms are tried at random, 1000 times. Three learners without
settings take the same log: as it is; with one column per level (and numbers as their median and an
indicator), every column with a bandwidth of its own; and with every category replaced by what each
arm paid on average where its level was met, shrunk towards the arm's average, which is what careful
people do by hand. Printed is what each misses on fresh rows, over what the first misses.

Then: how much wider intervals are at levels that were never met, and what reading tables costs.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pandas

import contextgap as cg
from contextgap.kernels.categories import Spread

LEVELS = {"country": 5, "device": 12, "city": 40}
NUMBERS = ("age", "load", "price", "speed")
ARMS, TRIALS, FRESH = 4, 1000, 2000
NOISE, GAPS, SHRINK = 0.3, 0.1, 5.0


def log(count: int, seed: int) -> tuple[pandas.DataFrame, np.ndarray]:
    """Return a table and every arm's expected reward."""
    rng = np.random.default_rng([seed, 1])
    codes = []
    for levels in LEVELS.values():
        share = 1 / np.arange(1, levels + 1)
        codes.append(rng.choice(levels, size=count, p=share / share.sum()))
    numbers = rng.normal(size=(count, len(NUMBERS)))
    world = np.random.default_rng([seed, 2])
    sizes = zip(LEVELS.values(), (1.0, 0.7, 0.7), strict=True)
    effects = [size * world.normal(size=(levels, ARMS)) for levels, size in sizes]
    slopes = 0.7 * world.normal(size=(len(NUMBERS), ARMS))
    rewards = np.sin(numbers @ slopes + world.uniform(0, 2 * np.pi, ARMS))
    rewards += sum(effect[code] for effect, code in zip(effects, codes, strict=True))
    columns = {
        name: np.array([f"{name} {each}" for each in code], dtype=object)
        for name, code in zip(LEVELS, codes, strict=True)
    }
    columns |= dict(zip(NUMBERS, numbers.T, strict=True))
    for column in columns.values():
        column[rng.random(count) < GAPS] = np.nan if column.dtype == float else None
    return pandas.DataFrame(columns), rewards


def numbers_by_hand(table: pandas.DataFrame, known: pandas.DataFrame) -> list[np.ndarray]:
    """Return each number as its median where it is missing, and whether it is."""
    columns = []
    for name in NUMBERS:
        values = table[name].to_numpy(dtype=float)
        gap = np.isnan(values)
        columns += [np.where(gap, np.nanmedian(known[name]), values), gap]
    return columns


def one_column_per_level(table: pandas.DataFrame, known: pandas.DataFrame) -> np.ndarray:
    columns = numbers_by_hand(table, known)
    for name in LEVELS:
        text = table[name].fillna("missing")
        columns += [text == level for level in known[name].fillna("missing").unique()]
    return np.column_stack(columns).astype(float)


def average_rewards(
    table: pandas.DataFrame, known: pandas.DataFrame, arms: np.ndarray, rewards: np.ndarray
) -> np.ndarray:
    """Replace categories by the shrunk average of every arm's rewards at their levels.

    Rows of the log itself leave their own reward out.
    """
    columns, own = numbers_by_hand(table, known), table is known
    for name in LEVELS:
        levels, text = known[name].fillna("missing"), table[name].fillna("missing")
        for arm in range(ARMS):
            tried = arms == arm
            centre = rewards[tried].mean()
            groups = pandas.Series(rewards - centre).where(tried).groupby(levels.to_numpy())
            total, count = text.map(groups.sum()).fillna(0), text.map(groups.count()).fillna(0)
            if own:
                total -= np.where(tried, rewards - centre, 0.0)
                count -= tried
            columns.append(total / (count + SHRINK))
    return np.column_stack(columns).astype(float)


def missed(contexts: list[object], log_of: tuple, expected: np.ndarray) -> float:
    learner = cg.Learner(ARMS).fit(contexts[0], *log_of)
    picks = learner.recommend(contexts[1]).astype(int)
    return float((expected.max(axis=1) - expected[np.arange(len(expected)), picks]).mean())


def compare(seed: int) -> dict[str, float]:
    """Return the regret of each way to read one log."""
    table, expected = log(TRIALS + FRESH, seed)
    known, fresh = table[:TRIALS], table[TRIALS:]
    rng = np.random.default_rng([seed, 3])
    arms = rng.integers(ARMS, size=TRIALS)
    rewards = expected[np.arange(TRIALS), arms] + NOISE * rng.normal(size=TRIALS)
    tried, rest = (arms, rewards), expected[TRIALS:]
    ways = {
        "as it is": [known, fresh],
        "one column per level": [one_column_per_level(each, known) for each in (known, fresh)],
        "average rewards": [average_rewards(each, known, *tried) for each in (known, fresh)],
    }
    regret = {name: missed(contexts, tried, rest) for name, contexts in ways.items()}
    single = rest.max(axis=1).mean() - rest.mean(axis=0).max()
    return {**regret, "best single arm": float(single), **widths(known, fresh[:200], tried)}


def widths(known: pandas.DataFrame, fresh: pandas.DataFrame, tried: tuple) -> dict[str, float]:
    """Return how wide intervals are at levels never met, over those of average contexts."""
    policy = cg.Learner(ARMS).fit(known, *tried).freeze()

    def std(table: pandas.DataFrame) -> float:
        return float(np.mean([policy.decide(row).std for row in table.to_dict("records")]))

    usual = std(fresh)
    return {f"width, new {name}": std(fresh.assign(**{name: "new"})) / usual for name in LEVELS}


def costs() -> None:
    """Print what reading costs: 100,000 rows against numbers, one row against an array."""
    table, expected = log(102_000, 0)
    arms = np.arange(TRIALS) % ARMS
    rewards = expected[np.arange(TRIALS), arms]
    typed = cg.Learner(ARMS).fit(table[:TRIALS], arms, rewards).freeze()
    known, many = table[:TRIALS], table[TRIALS : TRIALS + 100_000]
    # The same model of numbers: one column per level, with the bandwidths learnt.
    spread = Spread.of([typed.state.read(known)[0]], typed.state.schema.layout)
    same = {"kernel": spread.of_columns(typed.kernel), "ridge": typed.ridge}
    plain = cg.Learner(ARMS, prior_mean=typed.prior_mean, width=typed.width, **same)
    plain.fit(spread.columns(typed.state.read(known)[0]), arms, rewards)
    rows = spread.columns(typed.state.read(many)[0])
    seconds = []
    for rule, contexts in ((typed, many), (plain.freeze(), rows)):
        start = time.perf_counter()
        rule.recommend(contexts)
        seconds.append(time.perf_counter() - start)
    start = time.perf_counter()
    typed.state.read(many)
    print(f"reading 100,000 rows takes {time.perf_counter() - start:.2f} s")
    print(f"100,000 rows: {seconds[0]:.2f} s as they are, {seconds[1]:.2f} s as numbers, ", end="")
    print(f"ratio {seconds[0] / seconds[1]:.2f}")
    row = {**table.iloc[0].to_dict(), "x": 1.0, "y": 2.0, "z": 3.0}
    wide = pandas.DataFrame([row] * 30)
    schema = cg.Learner(2, columns=cg.Columns.from_table(wide)).state.schema
    schema = schema.read(wide, learning=True).schema
    array, of_array = np.arange(10.0), cg.Learner(2).state.schema.read(np.zeros((1, 10))).schema
    taken = []
    for known, context in ((schema, row), (of_array, array)):
        start = time.perf_counter()
        for _ in range(5000):
            known.read(context, learning=True)
        taken.append((time.perf_counter() - start) / 5000 * 1e6)
    print(f"one row of ten columns: {taken[0]:.0f} µs, an array {taken[1]:.0f} µs, ", end="")
    print(f"{taken[0] - taken[1]:.0f} µs more")


def main(first: int, count: int) -> None:
    found = pandas.DataFrame([compare(seed) for seed in range(first, first + count)])
    print(f"seeds {first} to {first + count - 1}, {TRIALS} trials")
    reference = found["as it is"]
    for name in found.columns:
        if name.startswith("width"):
            print(f"{name:22}{found[name].mean():8.2f} × usual, at least {found[name].min():.2f}")
            continue
        error = (reference - found[name]).sem() / found[name].mean()
        ratio = reference.mean() / found[name].mean()
        print(f"{name:22}{found[name].mean():8.4f}   as it is over this {ratio:.3f} ± {error:.3f}")
    costs()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=10)
    asked = parser.parse_args()
    main(asked.first_seed, asked.seeds)
