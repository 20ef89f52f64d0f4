"""Problems: contexts with the reward of every arm at each of them; and what makes them.

Makers here are the paper's sinusoids, and data that exist: a user's own table, a log of sensors, a
set of classified rows.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from itertools import accumulate, pairwise, product
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from contextgap.base import checks
from contextgap.base.arrays import FloatArray, IntArray, frozen
from contextgap.base.checks import Label, read_labels
from contextgap.base.components import lazy, renamed, study_import
from contextgap.tables.columns import Columns, all_numbers
from contextgap.tables.contexts import ContextSchema, Encoded, read_columns
from contextgap.tables.files import (
    SUFFIXES,
    Sheet,
    check_file,
    check_missing,
    read_names,
    read_path,
    read_sheet,
)
from contextgap.tables.table import is_missing


def part_ends(sizes: Sequence[Any], rows: int, name: str) -> list[int]:
    """Return 0 and the end of each consecutive part of whole numbers or fractions of rows."""
    if not sizes:
        raise ValueError("split needs at least one size, such as split(0.7, 0.3)")
    # Exact sums: a part of k rows has k rows wherever the fractions before it end.
    shares = [_share(size, rows) for size in sizes]
    ends = [math.floor(end + Fraction(1, 2)) for end in accumulate(shares, initial=Fraction(0))]
    if ends[-1] > rows:
        listed = " + ".join(map(str, sizes))
        raise ValueError(f"split asks for {ends[-1]} rows ({listed}), but {name!r} has {rows}")
    for size, (start, end) in zip(sizes, pairwise(ends), strict=True):
        if start == end:
            raise ValueError(f"split leaves no row for the part {size} of {rows} rows")
    return ends


def _share(size: Any, rows: int) -> Fraction:
    if isinstance(size, Integral):
        return Fraction(checks.whole("a split size", size, least=1))
    fraction = checks.real("a split size", size, "a number of rows or a fraction below 1")
    if not 0 < fraction < 1:
        raise ValueError(
            f"a split size must be a whole number of rows or a fraction below 1, got {size!r}"
        )
    return Fraction(fraction) * rows


# Compared by identity: equality of arrays is not one truth value.
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Problem:
    """Contexts with every arm's reward known, so that any pick's regret can be measured.

    Arrays are copied and made read-only.

    Parameters
    ----------
    name
        What results are labelled with.
    contexts
        One context per row, shape (n, d); a DataFrame's column names are kept. Where it has text,
        dates or missing values, contexts are kept as kernels see them; ``inputs`` is for learners.
    rewards
        Expected reward of each arm at each context, shape (n, A); regret is measured against it.
    arms
        A label per column of ``rewards``; 0..A-1 by default.
    ordered
        Whether the rows are in time order and must stay so.
    columns
        Names of a context's numbers.
    observations
        The reward that a learner observes when it tries an arm, shape (n, A); by default the
        expected rewards.
    schema
        How the columns of ``contexts`` became numbers, if they were not; inferred from a table.

    Examples
    --------
    >>> problem = Problem(name="toy", contexts=[[0.0], [1.0]], rewards=[[1, 0], [0.5, 2]])
    >>> problem
    Problem('toy': 2 rows, 1 number per context, 2 arms (0, 1))
    >>> problem.regret([0, 0])
    array([0. , 1.5])
    """

    name: str
    contexts: FloatArray
    rewards: FloatArray
    # None stands for "derive it" on the way in only; __post_init__ leaves no None behind.
    arms: tuple[Label, ...] = None  # type: ignore[assignment]
    ordered: bool = False
    columns: tuple[str, ...] | None = None
    observations: FloatArray = None  # type: ignore[assignment]
    schema: ContextSchema | None = None
    # Further fields of a subclass, with an entry per row, and the types of their entries.
    _facts: ClassVar[Mapping[str, Any]] = {}

    def __post_init__(self) -> None:
        contexts, columns, schema = _read_contexts(self.contexts, self.columns, self.schema)
        rewards = _read_rewards("rewards", self.rewards, len(contexts))
        given: Any = self.arms
        arms = read_labels(rewards.shape[1] if given is None else given)
        if len(arms) != rewards.shape[1]:
            raise ValueError(
                f"arms must name the {rewards.shape[1]} columns of rewards, got {len(arms)} labels"
            )
        # Sharing one array keeps "nothing is simulated" visible, and halves what workers are sent.
        observations, given_ones = rewards, cast(Any, self.observations)
        if given_ones is not None and given_ones is not self.rewards:
            observations = _read_rewards("observations", given_ones, len(contexts))
            if observations.shape != rewards.shape:
                raise ValueError(
                    f"observations must have the shape of rewards, {rewards.shape}, "
                    f"got {observations.shape}"
                )
        checks.settle(self, contexts=contexts, columns=columns, schema=schema)
        checks.settle(self, rewards=rewards, arms=arms, observations=observations)
        for field, kind in self._facts.items():
            fact: NDArray[Any] = np.array(getattr(self, field), dtype=kind)
            if fact.shape not in ((len(self),), rewards.shape):
                raise ValueError(
                    f"{field} must have an entry for each of {len(self)} rows, "
                    f"got shape {fact.shape}"
                )
            checks.settle(self, **{field: frozen(fact)})

    def __len__(self) -> int:
        return len(self.contexts)

    def __repr__(self) -> str:
        shown = [str(arm) for arm in self.arms]
        if len(shown) > 6:
            shown[3:-1] = ["..."]
        parts = [
            _count(len(self), "row"),
            f"{_count(self.dimension, 'number')} per context",
            f"{_count(self.n_arms, 'arm')} ({', '.join(shown)})",
        ]
        if self.ordered:
            parts.append("in time order")
        if self.observations is not self.rewards:
            parts.append("observations differ from rewards")
        return f"{type(self).__name__}({self.name!r}: {', '.join(parts)})"

    @property
    def inputs(self) -> Any:
        """The contexts as learners, policies and kernels take them.

        .. versionadded:: 0.2
        """
        return self.contexts if self.schema is None else Encoded(self.contexts, self.schema)

    @property
    def n_arms(self) -> int:
        """Number of arms, A."""
        return len(self.arms)

    @property
    def dimension(self) -> int:
        """Numbers per context, d."""
        return int(self.contexts.shape[1])

    @lazy
    def regret_table(self) -> FloatArray:
        """Simple regret of every arm at every row, shape (n, A): the row's best reward minus it."""
        return frozen(self.rewards.max(axis=1, keepdims=True) - self.rewards)

    @lazy
    def ranks(self) -> IntArray:
        """Rank of every arm at every row, shape (n, A): 1 is best, equals share the better rank."""
        ranks = np.ones(self.rewards.shape, dtype=np.intp)
        for rival in self.rewards.T:
            ranks += rival[:, np.newaxis] > self.rewards
        return frozen(ranks)

    def regret(self, arms: Any) -> FloatArray:
        """Return the simple regret of one pick per row.

        Parameters
        ----------
        arms
            Indices 0..A-1 (not labels), one per row.

        Examples
        --------
        >>> toy = cg.problems.Problem(name="toy", contexts=[[0.0], [1.0]], rewards=[[1, 0], [0, 2]])
        >>> toy.regret([1, 1])
        array([1., 0.])
        """
        picks = np.asarray(arms)
        if picks.dtype.kind not in "iu":
            raise TypeError(
                f"arms must be indices 0..{self.n_arms - 1}, got {picks.ravel()[:1].tolist()}; "
                "problem.arms.index(label) is a label's index"
            )
        if picks.shape != (len(self),):
            raise ValueError(f"arms must be {len(self)} indices, got shape {picks.shape}")
        wrong = np.flatnonzero((picks < 0) | (picks >= self.n_arms))
        if wrong.size:
            row = int(wrong[0])
            raise ValueError(
                f"arms must be indices 0..{self.n_arms - 1}, got {picks[row]} at row {row}"
            )
        return np.asarray(self.regret_table[np.arange(len(self)), picks])

    def take(self, index: Any) -> Self:
        """Return the problem with some of its rows, in the order given.

        Parameters
        ----------
        index
            A slice, row numbers, or a boolean per row.

        Examples
        --------
        >>> toy = cg.problems.Problem(name="toy", contexts=[[0.0], [1.0]], rewards=[[1, 0], [0, 2]])
        >>> toy.take([1]).rewards
        array([[0., 2.]])
        """
        rows = self._row_numbers(index)
        rewards = self.rewards[rows]
        shared = self.observations is self.rewards
        facts: Any = {field: np.asarray(getattr(self, field))[rows] for field in self._facts}
        return replace(
            self,
            contexts=self.contexts[rows],
            rewards=rewards,
            observations=rewards if shared else self.observations[rows],
            **facts,
        )

    def _row_numbers(self, index: Any) -> IntArray:
        try:
            picked = np.arange(len(self))[index if isinstance(index, slice) else np.asarray(index)]
        except IndexError as error:
            raise IndexError(
                f"index must be a slice, row numbers below {len(self)} or {len(self)} booleans: "
                f"{error}"
            ) from None
        rows = np.atleast_1d(picked)
        if rows.ndim != 1 or rows.size == 0:
            raise ValueError(
                f"index must be a list of at least one of {len(self)} rows, got {index!r}"
            )
        return rows

    def split(self, *sizes: float, seed: Any = None) -> tuple[Self, ...]:
        """Return consecutive parts; rows beyond the last part are left out.

        Parameters
        ----------
        *sizes
            For each part a whole number of rows, or a fraction (below 1) of all rows. Where parts
            meet is rounded to the nearest row, so fractions that sum to 1 use every row.
        seed
            Shuffles the rows first. None keeps their order.

        Examples
        --------
        >>> problem = Problem(name="toy", contexts=np.eye(10), rewards=np.eye(10))
        >>> [len(part) for part in problem.split(0.25, 4, seed=0)]
        [3, 4]
        """
        if seed is not None and self.ordered:
            raise ValueError(
                f"the rows of {self.name!r} are in time order, which shuffling (seed={seed!r}) "
                "would destroy; leave seed out to split in time order"
            )
        ends, order = part_ends(sizes, len(self), self.name), np.arange(len(self))
        if seed is not None:
            order = np.random.default_rng(seed).permutation(len(self))
        return tuple(self.take(order[start:end]) for start, end in pairwise(ends))

    def with_noise(self, std: float, seed: Any = None) -> Self:
        """Return the problem with Gaussian noise in the observations; regret stays exact.

        Parameters
        ----------
        std
            Standard deviation of the noise, the same for all arms; 0 removes noise.
        seed
            Fixes the noise.

        Examples
        --------
        >>> toy = cg.problems.Problem(name="toy", contexts=[[0.0], [1.0]], rewards=[[1, 0], [0, 2]])
        >>> toy.with_noise(0.1, seed=0).observations.round(2)
        array([[ 1.01, -0.01],
               [ 0.06,  2.01]])
        """
        std, observed = checks.at_least("std", std, 0, "a standard deviation"), self.rewards
        if std:
            observed = observed + np.random.default_rng(seed).normal(0, std, observed.shape)
        return replace(self, observations=observed)

    def frame(self) -> Any:
        """Return the contexts as a pandas DataFrame; unnamed numbers are called x0, x1, ...

        Examples
        --------
        >>> toy = cg.problems.Problem(name="toy", contexts=[[0.0], [1.0]], rewards=[[1, 0], [0, 2]])
        >>> toy.frame().columns.tolist()
        ['x0']
        """
        if self.schema is not None:
            raise TypeError(f"the contexts of {self.name!r} are not all numbers")
        names = self.columns or [f"x{number}" for number in range(self.dimension)]
        return study_import("pandas").DataFrame(self.contexts, columns=list(names))


def _read_contexts(
    contexts: Any, columns: Any, schema: ContextSchema | None
) -> tuple[FloatArray, tuple[str, ...] | None, ContextSchema | None]:
    if schema is not None and schema.table is not None:  # rows that were read before
        # Codes do not change, whichever rows a learner observes.
        told = schema.table.all_told()
        schema = schema if told is schema.table else ContextSchema.of(told)
        return frozen(np.array(contexts)), schema.columns, schema
    if isinstance(columns, str):
        raise TypeError(f"columns must be a list of names, got {columns!r}")
    names = None if columns is None else tuple(str(name) for name in columns)
    intake = ContextSchema(columns=names).read(contexts, learning=True)
    if intake.single or len(intake.rows) == 0:
        raise ValueError(
            f"contexts must have the shape (rows, numbers) with at least one row, "
            f"got {np.shape(contexts)}"
        )
    names = intake.schema.columns
    if intake.schema.table is not None:
        return _read_contexts(intake.rows, None, intake.schema)
    return frozen(intake.rows.copy()), names, None


def _read_rewards(name: str, values: Any, rows: int) -> FloatArray:
    try:
        table = np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be numbers: {error}") from None
    if table.ndim != 2 or len(table) != rows or table.shape[1] == 0:
        raise ValueError(
            f"{name} must have the shape ({rows}, arms), a row per context, got {table.shape}"
        )
    bad = np.argwhere(~np.isfinite(table))
    if bad.size:
        row, arm = bad[0].tolist()
        raise ValueError(f"{name} must be finite, got {table[row, arm]} in row {row}, column {arm}")
    return frozen(table)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


class Maker(ABC):
    """A source of problems.

    See Also
    --------
    testing.check_problem : Checks your own.

    Examples
    --------
    >>> isinstance(cg.problems.Sinusoids(), cg.problems.Maker)
    True
    """

    @abstractmethod
    def sample(self, n: int | None = None, seed: Any = None) -> Problem:
        """Return a problem of ``n`` rows.

        Parameters
        ----------
        n
            Number of rows; the default depends on the maker.
        seed
            Fixes everything random about the problem.

        Examples
        --------
        >>> len(cg.problems.Sinusoids(n_arms=3).sample(50, seed=0))
        50
        """


class FixedData(Maker):
    """Data that exist once: a sample is a part of them.

    Examples
    --------
    >>> data = cg.problems.Classification(([[0.0], [1.0], [2.0]], ["a", "b", "a"]))
    >>> len(data.sample(2, seed=0))
    2
    """

    @abstractmethod
    def load(self) -> Problem:
        """Return all rows, in their own order.

        Examples
        --------
        >>> cg.problems.Classification(([[0.0], [1.0]], ["a", "b"])).load().arms
        ('a', 'b')
        """

    def sample(self, n: int | None = None, seed: Any = None) -> Problem:
        """Return ``n`` rows: the first in time order, or where order does not matter random ones.

        Parameters
        ----------
        n
            Number of rows; None for all.
        seed
            Chooses and shuffles the rows. Data in time order ignore it. With neither ``n`` nor
            ``seed``, rows come in their own order.
        """
        problem = self.load()
        size = len(problem) if n is None else checks.whole("n", n, least=1)
        if size > len(problem):
            raise ValueError(
                f"n must be at most the {len(problem)} rows of {problem.name!r}, got {n}"
            )
        if problem.ordered or (n is None and seed is None):
            return problem if n is None else problem.take(slice(size))
        # Data sets often come sorted by class: a subset without a seed must be random as well.
        return problem.take(np.random.default_rng(seed).permutation(len(problem))[:size])


def indices(labels: Iterable[Any], among: Sequence[Any]) -> IntArray:
    places = {label: place for place, label in enumerate(among)}
    return np.array([places[label] for label in labels], dtype=np.intp)


def standardised(contexts: FloatArray) -> FloatArray:
    """Return ``contexts`` with mean 0 and standard deviation 1 in each column, or only zeros."""
    centre, unit = centre_and_unit(contexts)
    return np.asarray((contexts - centre) / unit)


def centre_and_unit(contexts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return each column's mean and standard deviation; its value and 1 if it is constant."""
    # By its range: the deviation computed for a constant column may be rounding error.
    spread = contexts.std(axis=0)
    constant = contexts.max(axis=0) == contexts.min(axis=0)
    centre = np.where(constant, contexts[0], contexts.mean(axis=0))
    return centre, np.where(constant | (spread == 0), 1.0, spread)


_ROWS = 3000  # 2000 to explore and 1000 to evaluate on, as in the paper


@dataclass(frozen=True)
class Sinusoids(Maker):
    """Contexts x ~ U[0, 2π]; arm a pays sin(a·x), a = 1..n_arms.

    Parameters
    ----------
    n_arms
        Number of arms; the paper has 20.
    noise
        Standard deviation of Gaussian noise in the observations. Regret is measured without.
    first
        The first arm's a: 1 in the paper's text, 0 in its authors' code, where arms are 0..19.

    Examples
    --------
    >>> Sinusoids(n_arms=3).sample(100, seed=0)
    Problem('sinusoids-3': 100 rows, 1 number per context, 3 arms (1, 2, 3))
    """

    n_arms: int = 20
    _: KW_ONLY
    noise: float = 0.0
    first: int = 1

    def __post_init__(self) -> None:
        checks.settle(
            self,
            n_arms=checks.whole("n_arms", self.n_arms, least=1),
            noise=checks.at_least("noise", self.noise, 0, "a standard deviation"),
            first=checks.whole("first", self.first, least=0),
        )

    def sample(self, n: int | None = None, seed: Any = None) -> Problem:
        """Return ``n`` independent rows, 3000 by default; noise does not change their contexts."""
        size = _ROWS if n is None else checks.whole("n", n, least=1)
        rng = np.random.default_rng(seed)
        contexts = rng.uniform(0, 2 * math.pi, (size, 1))
        frequencies = np.arange(self.first, self.first + self.n_arms)
        problem = Problem(
            name=self._name(),
            contexts=contexts,
            rewards=np.sin(contexts * frequencies),
            arms=tuple(frequencies.tolist()),
            columns=("x",),
        )
        return problem.with_noise(self.noise, rng)

    def _name(self) -> str:
        """Only the paper's problem has the plain name, so that others are not mistaken for it."""
        if (self.n_arms, self.noise, self.first) == (20, 0.0, 1):
            return "sinusoids"
        start = "" if self.first == 1 else f"-from-{self.first}"
        noise = f"-noise-{self.noise:g}" if self.noise else ""
        return f"sinusoids-{self.n_arms}{start}{noise}"


@renamed(gaps="missing")
@dataclass(frozen=True)
class Table(FixedData):
    r"""A CSV, TSV or Parquet file with context columns and one reward column per arm.

    Parameters
    ----------
    path
        The file; its suffix is .csv, .tsv, .parquet or .pq.
    context
        Columns that make up the context; by default all that are not in ``rewards``.
    exclude
        Columns that are not context, such as ids.
    kinds
        What columns hold that are not what they seem: ``{"hour": Cyclic(24), "shop": "category"}``.
    missing
        Columns of which later tables may lack cells, though this one lacks none.
    separator
        What separates the cells of a text file; by default inferred from its header.
    skip_missing
        Whether to leave out rows that lack a reward, which are an error otherwise.
    rewards
        Columns with the arms' rewards, one per arm.
    arms
        A label per reward column; by default the columns' names.
    ordered
        Whether the rows are in time order and must stay so.
    scale
        Whether to give each context column mean 0 and standard deviation 1 over all rows
        (constant columns become 0), which suits kernels with one bandwidth for all columns. The
        rewards play no part in it. Tables with text or missing values stay raw.

    Examples
    --------
    >>> with open("table.csv", "w") as file:
    ...     _ = file.write("x,left,right\n0.0,1,0\n1.0,0.5,2\n")
    >>> cg.problems.Table("table.csv", rewards=["left", "right"]).sample()
    Problem('table': 2 rows, 1 number per context, 2 arms (left, right))
    """

    path: str | Path
    _: KW_ONLY
    context: Sequence[str] | None = None
    exclude: Sequence[str] = ()
    kinds: Mapping[str, Any] | None = None
    missing: Sequence[str] = ()
    separator: str | None = None
    skip_missing: bool = False
    rewards: Sequence[str]
    arms: Sequence[Label] | None = None
    ordered: bool = False
    scale: bool = True

    def __post_init__(self) -> None:
        checks.settle(
            self,
            path=read_path(self.path),
            rewards=read_names("rewards", self.rewards),
            arms=None if self.arms is None else read_labels(self.arms),
            kinds=Columns(self.kinds) if self.kinds else self.kinds,
        )
        named = {"exclude": self.exclude or None, "missing": self.missing or None}
        for argument, names in {**named, "context": self.context}.items():
            if names is not None:
                checks.settle(self, **{argument: read_names(argument, names)})
        _check_apart(self.context or (), "context", self.rewards, "rewards")

    def load(self) -> Problem:
        path = Path(self.path)
        sheet = read_sheet(path, self.separator)
        if missing := sheet.without(self.rewards):
            first = f"{path}, {sheet.places[missing[0]]}"
            check_missing(first, len(missing), len(sheet), self.skip_missing)
            sheet = sheet.drop(missing)
        rewards = np.column_stack([sheet.rewards(name) for name in self.rewards])
        for name in (*self.exclude, *(self.kinds or {}), *self.missing):
            sheet.cells_of(name)  # a name that is mistyped would do nothing
        wanted = self.context or sheet.others((*self.rewards, *self.exclude))
        columns = tuple(name for name in wanted if name not in self.exclude)
        if not columns:
            raise ValueError(f"{path}: every column is in rewards, which leaves none as context")
        table: Any = sheet.table(columns, self.kinds)
        contexts: dict[str, Any] = {"contexts": table, "columns": columns}
        if self.kinds or self.missing:  # columns are not all what they seem
            given = {name: kind for name, kind in (self.kinds or {}).items() if name in columns}
            known = Columns.from_table(table, **given).with_missing(self.missing)
            intake = read_columns(known).read(table, learning=True)
            contexts = {"contexts": intake.rows, "schema": intake.schema}
        elif all(map(all_numbers, table.cells)):
            numbers = np.column_stack(table.cells)
            contexts["contexts"] = standardised(numbers) if self.scale else numbers
        return Problem(
            name=path.stem,
            rewards=rewards,
            arms=tuple(self.rewards if self.arms is None else self.arms),
            ordered=self.ordered,
            **contexts,
        )


def _check_apart(some: Sequence[str], first: str, others: Sequence[str], second: str) -> None:
    for name in some:
        if name in others:
            raise ValueError(f"column {name!r} cannot be both in {first} and in {second}")


_TELEMETRY, _NOISE = "telMat", "bNorm"


@dataclass(frozen=True)
class SensorLog(FixedData):
    r"""Telemetry and each sensor's noise over time; trusting a sensor pays −noise.

    A MATLAB file holds ``telMat``, channels by time, and ``bNorm``, sensors by time. Either may
    also be stored time first: time is the axis on which the two have equal length; if that leaves
    a choice, the longer axis; and in a square matrix the second. A CSV (or Parquet) file has a
    row per time step.

    Parameters
    ----------
    path
        The file; its suffix is .mat, .csv, .parquet or .pq.
    noise
        Columns with the sensors' noise; by default those whose names start with "noise". A MATLAB
        file has no column names.
    telemetry
        Columns that make up the context; by default all others but those that hold text
        throughout, such as time stamps.
    arms
        A label per sensor; by default the noise columns' names, or 0, 1, ... for a MATLAB file.
    scale
        Whether to give each channel mean 0 and standard deviation 1 over the whole log (constant
        channels become 0), which suits kernels with one bandwidth for all channels. The noise
        plays no part in it.

    Examples
    --------
    >>> with open("log.csv", "w") as file:
    ...     _ = file.write("current,noise hull,noise boom\n0.1,3,1\n0.4,2,4\n")
    >>> cg.problems.SensorLog("log.csv").sample()
    Problem('log': 2 rows, 1 number per context, 2 arms (noise hull, noise boom), in time order)
    """

    path: str | Path
    _: KW_ONLY
    noise: Sequence[str] | None = None
    telemetry: Sequence[str] | None = None
    arms: Sequence[Label] | None = None
    scale: bool = True

    def __post_init__(self) -> None:
        path = read_path(self.path)
        arms = None if self.arms is None else read_labels(self.arms)
        checks.settle(self, path=path, arms=arms)
        for argument in ("noise", "telemetry"):
            names = getattr(self, argument)
            if names is None:
                continue
            if path.suffix.lower() == ".mat":
                raise ValueError(
                    f"{argument} must be left out for a MATLAB file, which has no column names, "
                    f"got {names!r}"
                )
            checks.settle(self, **{argument: read_names(argument, names)})

    def load(self) -> Problem:
        path = Path(self.path)
        check_file(path, (".mat", *SUFFIXES))
        arms: Sequence[Label] | None
        if path.suffix.lower() == ".mat":
            contexts, noise = _read_matlab(path)
            columns, arms = None, self.arms
        else:
            sheet = read_sheet(path)
            columns, sensors = self._columns_of(sheet)
            contexts, noise = sheet.numbers(columns), sheet.numbers(sensors)
            arms = sensors if self.arms is None else self.arms
        return Problem(
            name=path.stem,
            contexts=standardised(contexts) if self.scale else contexts,
            rewards=-noise,
            arms=arms,  # type: ignore[arg-type]  # None stands for 0, 1, ...
            ordered=True,
            columns=columns,
        )

    def _columns_of(self, sheet: Sheet) -> tuple[tuple[str, ...], tuple[str, ...]]:
        noise = tuple(self.noise or (name for name in sheet.columns if name.startswith("noise")))
        if not noise:
            raise ValueError(
                f"{sheet.path}: no column's name starts with 'noise'; name the sensors' columns "
                f"with noise=[...]; the columns are {list(sheet.columns)}"
            )
        telemetry = tuple(
            self.telemetry or (name for name in sheet.others(noise) if not sheet.is_text(name))
        )
        if not telemetry:
            raise ValueError(
                f"{sheet.path}: no numeric column is left as telemetry beside {list(noise)}"
            )
        _check_apart(telemetry, "telemetry", noise, "noise")
        return telemetry, noise


def _read_matlab(path: Path) -> tuple[FloatArray, FloatArray]:
    # Imported here: only this reader needs it, and it doubles the time to import this package.
    from scipy.io import loadmat

    try:
        variables = loadmat(path)
    except NotImplementedError:
        raise ValueError(
            f"{path}: saved in MATLAB's 7.3 format, which SciPy cannot read; save it with '-v7'"
        ) from None
    except Exception as error:  # a damaged file raises almost anything
        raise ValueError(f"{path}: not a readable MATLAB file ({error})") from error
    telemetry = _variable(path, variables, _TELEMETRY)
    noise = _variable(path, variables, _NOISE)
    pairs = []
    for i, j in product((0, 1), repeat=2):
        steps, channels, sensors = telemetry.shape[i], telemetry.shape[1 - i], noise.shape[1 - j]
        # With 3 channels by 4000 and 3 sensors by 3999 it is not time that agrees.
        if steps == noise.shape[j] and steps >= min(channels, sensors):
            pairs.append((steps, i, j))
    if not pairs:
        raise ValueError(
            f"{path}: {_TELEMETRY} {telemetry.shape} and {_NOISE} {noise.shape} must have the "
            "number of time steps in common"
        )
    _, *axes = max(pairs)
    return np.moveaxis(telemetry, axes[0], 0), np.moveaxis(noise, axes[1], 0)


def _variable(path: Path, variables: dict[str, Any], name: str) -> FloatArray:
    if name not in variables:
        present = sorted(key for key in variables if not key.startswith("__"))
        raise ValueError(f"{path}: there is no variable {name!r}; the variables are {present}")
    matrix = variables[name]
    matrix = matrix.toarray() if hasattr(matrix, "toarray") else matrix  # MATLAB's sparse
    if matrix.dtype.kind not in "biuf" or matrix.ndim != 2 or matrix.size == 0:
        raise ValueError(
            f"{path}: {name} must be a matrix of real numbers, got {matrix.dtype} values of shape "
            f"{matrix.shape}"
        )
    bad = np.argwhere(~np.isfinite(matrix))
    if bad.size:
        row, column = bad[0].tolist()
        raise ValueError(
            f"{path}, {name}, row {row + 1}, column {column + 1}: a finite number is needed, "
            f"got {matrix[row, column]}"
        )
    return np.asarray(matrix, dtype=np.float64)


_BUNDLED = ("breast_cancer", "digits", "iris", "wine")


# Compared by identity: the data may be arrays, whose equality is not one truth value.
@dataclass(frozen=True, eq=False)
class Classification(FixedData):
    """A data set whose classes are the arms: 1 for the right class, 0 for any other.

    Parameters
    ----------
    data
        "digits", "wine", "breast_cancer" or "iris", which come with scikit-learn; any other name
        is fetched from openml.org ("letter", "usps") and cached by scikit-learn; or a pair
        (features, classes) of arrays or DataFrame and Series.
    ordinal
        Pay −|difference| between the class picked and the right one; classes must be numbers.
    scale
        Whether to give each feature mean 0 and standard deviation 1 over all rows (constant
        features become 0), which suits kernels with one bandwidth for all features. The classes
        play no part in it.
    version
        Which version of an OpenML data set to fetch.
    name
        What results are labelled with; by default the data set's name.

    Examples
    --------
    >>> Classification(([[0.0], [1.0], [2.0]], ["a", "b", "a"])).sample().rewards
    array([[1., 0.], [0., 1.], [1., 0.]])
    """

    data: Any
    _: KW_ONLY
    ordinal: bool = False
    scale: bool = True
    version: int | str = "active"
    name: str | None = None

    def __post_init__(self) -> None:
        pair = isinstance(self.data, tuple | list) and len(self.data) == 2
        if not (pair or (isinstance(self.data, str) and self.data)):
            raise TypeError(
                f"data must be a data set's name, such as 'digits', or a pair (features, classes), "
                f"got {self.data!r}"
            )

    def load(self) -> Problem:
        by_name = isinstance(self.data, str)
        name = self.name or (self.data if by_name else "classification")
        features, target, known = self._fetch(self.data) if by_name else (*self.data, None)
        contexts, columns = _read_features(name, features, known)
        classes, right = _read_classes(name, target, len(contexts))
        if self.ordinal:
            values = np.array([_value(label) for label in classes])
            if np.isnan(values).any():
                label = classes[int(np.isnan(values).argmax())]
                raise ValueError(
                    f"ordinal=True needs classes that are numbers, got {label!r} in {name!r}"
                )
            # Subtracted, not negated: the right class pays 0, not -0.
            rewards = 0.0 - np.abs(values - values[right][:, np.newaxis])
        else:
            rewards = np.eye(len(classes))[right]
        return Problem(
            name=name,
            contexts=standardised(contexts) if self.scale else contexts,
            rewards=rewards,
            arms=classes,
            columns=columns,
        )

    def _fetch(self, name: str) -> tuple[Any, Any, Any]:
        datasets = study_import("sklearn.datasets")
        if name in _BUNDLED:
            bunch = getattr(datasets, f"load_{name}")()
            return bunch.data, bunch.target, bunch.feature_names
        try:
            # "auto": sparse data sets come as matrices, all others with column names.
            bunch = datasets.fetch_openml(name, version=self.version, as_frame="auto")
        except (OSError, ValueError) as error:
            kind = OSError if isinstance(error, OSError) else ValueError
            raise kind(
                f"could not fetch {name!r} from openml.org ({error}); "
                f"{', '.join(_BUNDLED)} need no download"
            ) from error
        features = bunch.data.toarray() if hasattr(bunch.data, "toarray") else bunch.data
        return features, bunch.target, None


def _read_features(
    name: str, features: Any, columns: Any
) -> tuple[FloatArray, tuple[str, ...] | None]:
    try:
        names = None if columns is None else tuple(map(str, columns))
        intake = ContextSchema(columns=names).read(features)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(
            f"the features of {name!r} must be numbers without missing values: {error}"
        ) from None
    if intake.single or len(intake.rows) == 0:
        raise ValueError(
            f"the features of {name!r} must have the shape (rows, features) with at least one row, "
            f"got {np.shape(features)}"
        )
    return intake.rows, intake.schema.columns


def _read_classes(name: str, target: Any, rows: int) -> tuple[tuple[Label, ...], Any]:
    if target is None or np.ndim(target) != 1:
        raise ValueError(
            f"the classes of {name!r} must be one label per row, got shape {np.shape(target)}"
        )
    labels = target.tolist() if hasattr(target, "tolist") else list(target)
    labels = [label.item() if isinstance(label, np.generic) else label for label in labels]
    if len(labels) != rows:
        raise ValueError(f"{name!r} has {rows} rows of features but {len(labels)} classes")
    for row, label in enumerate(labels):
        if is_missing(label):
            raise ValueError(f"the classes of {name!r} lack a value: got {label!r} in row {row}")
    # Not a set: classes that sort alike, such as "1" and "1.0", must not change places.
    classes = tuple(sorted(dict.fromkeys(labels), key=_sort_key))
    if len(classes) < 2:
        raise ValueError(f"{name!r} must have at least two classes, got only {classes[0]!r}")
    return classes, indices(labels, classes)


def _value(label: Any) -> float:
    """Return the number a class is or, as often on OpenML, spells; NaN if it is none."""
    try:
        value = float(label)
    except (TypeError, ValueError, OverflowError):
        return math.nan
    return value if math.isfinite(value) else math.nan


def _sort_key(label: Any) -> tuple[bool, float, str]:
    value = _value(label)
    return (True, 0.0, str(label)) if math.isnan(value) else (False, value, "")
