"""Components that are deliberately broken, each in one way, must be caught and told why."""

import itertools
import random
import subprocess
import sys
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

import contextgap as cg
from contextgap.beliefs import Width
from contextgap.kernels import Kernel
from contextgap.methods.explorers import Explorer, least_pulled
from contextgap.methods.recommenders import Recommender
from contextgap.methods.recommenders.history import Choice
from contextgap.studies.problems import FixedData, Maker, Problem, Sinusoids
from contextgap.testing import (
    check_explorer,
    check_kernel,
    check_problem,
    check_recommender,
    check_width,
)

COUNT = itertools.count()


@dataclass(frozen=True)
class Good(Explorer):
    def pick(self, moment):
        return least_pulled(moment)


class NoDataclass(Explorer):
    def __init__(self, size):
        self.size = size

    def pick(self, moment):
        return least_pulled(moment)

    def __eq__(self, other):
        return isinstance(other, NoDataclass) and other.size == self.size


@dataclass
class Unhashable(Explorer):
    size: int = 1

    def pick(self, moment):
        return least_pulled(moment)


@dataclass(frozen=True)
class HoldsAnArray(Good):
    weights: object = field(default_factory=lambda: np.ones(2))


@dataclass(frozen=True)
class HoldsAList(Good):
    weights: list = field(default_factory=lambda: [1.0])

    def __hash__(self):
        return 1


@dataclass(frozen=True)
class OneTooFar(Good):
    def pick(self, moment):
        return len(moment.pulls) if moment.seen > 3 else 0


@dataclass(frozen=True)
class TwoArmsAtLeast(Good):
    def pick(self, moment):
        return int(np.argsort(moment.belief.mean)[-2])


@dataclass(frozen=True)
class OwnRandomness(Good):
    def pick(self, moment):
        return random.randrange(len(moment.pulls))


@dataclass(frozen=True)
class Remembers(Good):
    def pick(self, moment):
        return (next(COUNT) // 3) % len(moment.pulls)


@dataclass(frozen=True)
class Writes(Good):
    def pick(self, moment):
        moment.belief.mean[0] = -np.inf
        return int(moment.belief.mean.argmax())


@dataclass(frozen=True)
class LastRow(Good):
    def choose(self, pool):
        return -1


@dataclass(frozen=True)
class CountsCalls(Good):
    """Fine as long as nobody asks what it would do."""

    calls: tuple = ()

    def pick(self, moment):
        object.__setattr__(self, "calls", (*self.calls, 1)[-50:])
        return len(self.calls) % len(moment.pulls)


def local_explorer():
    @dataclass(frozen=True)
    class Local(Good):
        pass

    return Local()


@pytest.mark.parametrize(
    ("explorer", "says"),
    [
        (Good, "Good is a class; check an object"),
        (cg.SmallestGap(), "SmallestGap is no Explorer: derive it from"),
        (NoDataclass(1), "NoDataclass.*make it a frozen dataclass"),
        (Unhashable(), r"hash\(Unhashable\).*frozen dataclass.*unhashable"),
        (HoldsAnArray(), "HoldsAnArray.weights cannot be described"),
        (HoldsAList(), "HoldsAList.weights cannot be described"),
        (local_explorer(), "pickling Local.*top level of a module"),
        (OneTooFar(), "asked after .* raised ValueError: OneTooFar.pick must return"),
        (TwoArmsAtLeast(), "TwoArmsAtLeast.pick with 1 arms raised IndexError"),
        (OwnRandomness(), "draw from moment.rng only"),
        (Remembers(), "keep nothing between calls"),
        (CountsCalls(), "keep nothing between calls"),
        (Writes(), "Writes.pick changed the belief"),
        (LastRow(), "LastRow.choose must return the row of a context, 0 to 2, got -1"),
    ],
    ids=lambda value: getattr(type(value), "__name__", ""),
)
def test_broken_explorers(explorer, says):
    random.seed(0)
    with pytest.raises(AssertionError, match=says):
        check_explorer(explorer)


def test_the_explorer_that_the_others_break_is_sound():
    check_explorer(Good())
    check_explorer(Good(), dimension=5)


@dataclass(frozen=True)
class Tent(Kernel):
    def __call__(self, left, right):
        return np.maximum(0, 1 - np.abs(left[:, None, :] - right[None, :, :])).prod(axis=-1)

    def diagonal(self, contexts):
        return np.ones(len(contexts))


@dataclass(frozen=True)
class Lopsided(Tent):
    def __call__(self, left, right):
        return super().__call__(left, right) * (1 + 0.1 * np.tanh(left[:, :1]))


@dataclass(frozen=True)
class Distance(Tent):
    """Symmetric, but similarity must not grow with distance."""

    def __call__(self, left, right):
        return 1 + np.abs(left[:, None, :] - right[None, :, :]).sum(axis=-1)


@dataclass(frozen=True)
class OtherDiagonal(Tent):
    def diagonal(self, contexts):
        return np.full(len(contexts), 2.0)


@dataclass(frozen=True)
class Transposed(Tent):
    def __call__(self, left, right):
        return super().__call__(right, left)


@dataclass(frozen=True)
class Single(Tent):
    def __call__(self, left, right):
        return super().__call__(left, right).astype(np.float32)


@dataclass(frozen=True)
class NotANumber(Tent):
    def __call__(self, left, right):
        return super().__call__(left, right) * np.nan


@dataclass(frozen=True)
class Standardises(Tent):
    def __call__(self, left, right):
        spread = np.ptp(right, axis=0).max() + 1 if len(right) else 1.0
        return super().__call__(left / spread, right / spread)


@dataclass(frozen=True)
class Scales(Tent):
    def __call__(self, left, right):
        left *= 2
        return super().__call__(left, 2 * right)


@dataclass(frozen=True)
class TwoOnly(Tent):
    def check_dimension(self, dimension):
        if dimension != 2:
            raise ValueError("two numbers are needed")


@dataclass(frozen=True)
class TwoOnlyUnsaid(Tent):
    def __call__(self, left, right):
        return super().__call__(left - [[1, 2]], right - [[1, 2]])


@dataclass(frozen=True)
class Refuses(Tent):
    def check_dimension(self, dimension):
        raise KeyError(dimension)


@pytest.mark.parametrize(
    ("kernel", "says"),
    [
        (Lopsided(), "Lopsided is not symmetric"),
        (Distance(), "Distance is not positive semi-definite"),
        (OtherDiagonal(), "OtherDiagonal.diagonal is not the diagonal"),
        (Transposed(), r"must have shape \(5, 7\), got \(7, 5\)"),
        (Single(), "must be of dtype float64, got float32"),
        (NotANumber(), "must be finite"),
        (Standardises(), "depends on which others it is computed with"),
        (Scales(), "Scales of 5 and 7 read-only contexts.*ValueError"),
        (TwoOnly(), r"TwoOnly suits contexts of none of \[1, 3\]"),
        (TwoOnlyUnsaid(), r"or have check_dimension\(\d\) raise ValueError"),
        (Refuses(), "raised KeyError: 1; it must raise ValueError"),
    ],
    ids=lambda value: getattr(type(value), "__name__", ""),
)
def test_broken_kernels(kernel, says):
    with pytest.raises(AssertionError, match=says):
        check_kernel(kernel)


def test_sound_kernels_pass():
    check_kernel(Tent())
    check_kernel(TwoOnly(), dimensions=[2])


@dataclass(frozen=True)
class Plain(Width):
    def half_width(self, posterior):
        return 2 * posterior.std


@dataclass(frozen=True)
class Negative(Plain):
    def half_width(self, posterior):
        return posterior.std - 1


@dataclass(frozen=True)
class Shrinks(Plain):
    def half_width(self, posterior):
        return 1 / (1 + posterior.std)


@dataclass(frozen=True)
class Divides(Plain):
    def half_width(self, posterior):
        with np.errstate(divide="ignore", invalid="ignore"):
            return posterior.std / posterior.information_gain


@dataclass(frozen=True)
class OneNumber(Plain):
    def half_width(self, posterior):
        return posterior.std.max()


@dataclass(frozen=True)
class Relative(Plain):
    def half_width(self, posterior):
        return posterior.std * (1 + posterior.std.max())


@dataclass(frozen=True)
class WritesStd(Plain):
    def half_width(self, posterior):
        posterior.std[...] *= 2
        return posterior.std


@dataclass(frozen=True)
class Sure(Plain):
    @property
    def probability(self):
        return 95


@pytest.mark.parametrize(
    ("width", "says"),
    [
        (Negative(), "must not be negative"),
        (Shrinks(), "must not shrink when posterior.std grows"),
        (Divides(), "must be finite"),
        (OneNumber(), "must have the shape of posterior.std"),
        (Relative(), "depends on the others it is computed with"),
        (WritesStd(), "of a read-only posterior.*ValueError"),
        (Sure(), "must be a number between 0 and 1, or None .* got 95"),
    ],
    ids=lambda value: getattr(type(value), "__name__", ""),
)
def test_broken_widths(width, says):
    with pytest.raises(AssertionError, match=says):
        check_width(width)


def test_a_sound_width_passes():
    check_width(Plain())


@dataclass(frozen=True)
class Best(Recommender):
    def choose(self, evidence):
        return self.chosen(evidence, evidence.belief.mean.argmax(axis=-1))

    def chosen(self, evidence, arm):
        return Choice(arm, evidence.belief.gap[np.arange(len(arm)), arm])


@dataclass(frozen=True)
class Last(Best):
    def choose(self, evidence):
        return self.chosen(evidence, np.full(len(evidence.contexts), -1))


@dataclass(frozen=True)
class Labels(Best):
    def choose(self, evidence):
        return Choice(np.full(len(evidence.contexts), 1.0), np.zeros(len(evidence.contexts)))


@dataclass(frozen=True)
class Pair(Best):
    def choose(self, evidence):
        return evidence.belief.mean.argmax(axis=-1), 0


@dataclass(frozen=True)
class AllGaps(Best):
    def choose(self, evidence):
        return Choice(evidence.belief.mean.argmax(axis=-1), evidence.belief.gap)


@dataclass(frozen=True)
class Alternates(Best):
    def choose(self, evidence):
        return self.chosen(evidence, np.arange(len(evidence.contexts)) % evidence.n_arms)


@dataclass(frozen=True)
class Average(Best):
    """In any order, but one arm for all contexts that are asked about together."""

    def choose(self, evidence):
        arm = int(evidence.belief.mean.mean(axis=0).argmax())
        return self.chosen(evidence, np.full(len(evidence.contexts), arm))


@dataclass(frozen=True)
class Fickle(Best):
    def choose(self, evidence):
        shift = next(COUNT)
        return self.chosen(evidence, (evidence.belief.leader + shift) % evidence.n_arms)


@dataclass(frozen=True)
class WrongShortcut(cg.HighestMean):
    def clear(self, evidence):
        rows = len(evidence.contexts)
        return np.zeros(rows, dtype=np.intp), np.ones(rows, dtype=bool)


@dataclass(frozen=True)
class LooksBack(Best):
    def choose(self, evidence):
        return evidence.smallest_gap_in_history(3)


@pytest.mark.parametrize(
    ("recommender", "says"),
    [
        (Last(), r"must return positions of arms, 0 to 0, got \[-1"),
        (Labels(), "must return one whole number per context"),
        (Pair(), r"must return a Choice\(arm, gap\), got tuple"),
        (AllGaps(), "one finite gap per context"),
        (Alternates(), "in another order"),
        (Average(), "one by one"),
        (Fickle(), "must be a function of its context"),
        (WrongShortcut(), "choose and choose_arms must choose alike"),
        (LooksBack(), "no look-back was kept.*SmallestGapInHistory and its subclasses"),
    ],
    ids=lambda value: getattr(type(value), "__name__", ""),
)
def test_broken_recommenders(recommender, says):
    with pytest.raises(AssertionError, match=says):
        check_recommender(recommender)


def test_a_sound_recommender_passes():
    check_recommender(Best())


@dataclass(frozen=True)
class Lines(Maker):
    def sample(self, n=None, seed=None):
        x = np.random.default_rng(seed).normal(size=(n or 50, 2))
        return Problem(name="lines", contexts=x, rewards=x)


@dataclass(frozen=True)
class Unseeded(Lines):
    def sample(self, n=None, seed=None):
        return super().sample(n, seed=None)


@dataclass(frozen=True)
class AlwaysMany(Lines):
    def sample(self, n=None, seed=None):
        return super().sample(50, seed)


@dataclass(frozen=True)
class Arrays(Lines):
    def sample(self, n=None, seed=None):
        return super().sample(n, seed).contexts


@dataclass(frozen=True)
class Fails(FixedData):
    def load(self):
        raise FileNotFoundError("lines.csv")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Earnings(Problem):
    """Measures regret against a fixed wage, below which some arms fall."""

    @property
    def regret_table(self):
        return 0.5 - self.rewards


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Sorts(Problem):
    def take(self, index):
        return super().take(np.sort(self._row_numbers(index)))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Shuffles(Problem):
    def split(self, *sizes, seed=None):
        return super().split(*sizes, seed=next(COUNT))


def problem_of(kind):
    given = Lines().sample(20, seed=0)
    return kind(name="lines", contexts=given.contexts, rewards=given.rewards)


@pytest.mark.parametrize(
    ("problem", "says"),
    [
        (Unseeded(), "gives other data for the same seed"),
        (AlwaysMany(), r"sample\(12\) must have 12 rows, got 50"),
        (Arrays(), "sample must return a Problem, got ndarray"),
        (Fails(), "raised FileNotFoundError: lines.csv"),
        (np.ones((3, 3)), "ndarray is neither a Problem nor a Maker"),
        (problem_of(Earnings), "must have no negative entry"),
        (problem_of(Sorts), r"take\(\[2, 0, 3\]\) must return a Sorts of these rows"),
        (problem_of(Shuffles), "split must return consecutive rows"),
        (problem_of(Problem).take(slice(3)), "has 3 rows; at least 4"),
        (replace(problem_of(Problem), name=""), "name must be a text"),
    ],
    ids=lambda value: getattr(type(value), "__name__", ""),
)
def test_broken_problems(problem, says):
    with pytest.raises(AssertionError, match=says):
        check_problem(problem)


def test_sound_problems_pass():
    check_problem(Lines())
    check_problem(problem_of(Problem))
    check_problem(Sinusoids(1))


def test_checks_need_no_extras():
    code = (
        "import sys, contextgap as cg\n"
        "cg.testing.check_explorer(cg.explorers.ContextualGap())\n"
        "cg.testing.check_kernel(cg.Matern(1.0))\n"
        "print('\\n'.join(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {line.partition(".")[0] for line in done.stdout.split()}
    assert not loaded & {"pytest", "pandas", "sklearn", "matplotlib", "typer", "threadpoolctl"}
