"""The base class of explorers, and what an explorer sees when it picks an arm to try."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray, frozen
from contextgap.base.components import Component, lazy
from contextgap.beliefs import Belief
from contextgap.models import LookAhead
from contextgap.tables.contexts import ContextSchema, read_table
from contextgap.tables.table import Table, plain


def as_numbers(contexts: Any) -> FloatArray:
    """Return contexts that are numbers as an array."""
    return np.array(contexts, dtype=np.float64)


def _cannot_look_ahead(reference: IntArray | FloatArray) -> Any:
    raise NotImplementedError("this moment was made without look_ahead or kernel_at")


@dataclass
class Moment:
    """What an explorer knows at one step.

    Parameters
    ----------
    believe
        Computes the belief at the context; called only by explorers that use it.
    pulls
        How often each arm was picked so far, pending picks included.
    step
        The number of this pick, from 1.
    rng
        The one source of randomness.
    seen
        How many rewards were told so far.
    look_ahead
        Looks ahead to reference contexts: places among the contexts of the rewards told, or
        contexts, shape (m, d).
    ridge
        The regularisation: the variance of the noise.
    shares
        Whether a reward of one arm says something about the others.
    read
        Returns contexts as users write them as those that ``look_ahead`` takes.
    kernel_at
        Returns the kernel's values between reference contexts, given as for ``look_ahead``, and the
        current one: shape (m + 1, m + 1), the current one last.
    costs
        What trying each arm costs, about; None if all cost the same.
    believe_own
        Where at most one arm pays at a context, computes the belief from every arm's own rewards,
        without what rewards of other arms imply; else None.

    Examples
    --------
    >>> class First(cg.explorers.Explorer):
    ...     def pick(self, moment):
    ...         print(moment.step, moment.pulls)
    ...         return 0
    >>> cg.Learner(2, kernel=cg.Gaussian(1.0), method=First(), burn_in=0).ask([0.2])
    1 [0, 0]
    0
    """

    believe: Callable[[], Belief]
    pulls: Sequence[int]
    step: int
    rng: np.random.Generator
    seen: int = 0
    look_ahead: Callable[[IntArray | FloatArray], LookAhead] = _cannot_look_ahead
    ridge: float = 0.0
    shares: bool = False
    read: Callable[[Any], FloatArray] = as_numbers
    kernel_at: Callable[[IntArray | FloatArray], FloatArray] = _cannot_look_ahead
    costs: FloatArray | None = None
    believe_own: Callable[[], Belief] | None = None

    @lazy
    def belief(self) -> Belief:
        """What is believed about every arm at the context."""
        return self.believe()


@dataclass
class Pool:
    """What an explorer knows when it chooses the next context.

    Parameters
    ----------
    contexts
        The contexts to choose from, shape (m, d).
    believe
        Computes the belief at all of them, contexts by arms.
    moves
        Given an arm and r reference contexts, as places in the pool or shape (r, d), returns how
        far the arm's mean at each reference would move if it were tried at each context of the
        pool, times a standard normal: shape (r, m), or, where arms share what they learn,
        (r, m, arms moved).
    means
        Given reference contexts in the same way, returns all arms' means there.
    ridge, rng, shares
        As for ``Moment``.
    read
        Returns contexts as users write them as those that ``moves`` takes.
    costs
        What trying each arm at each context costs, about; None if all cost the same.

    Examples
    --------
    >>> class Widest(cg.explorers.Uniform):
    ...     def choose(self, pool):
    ...         return int(np.argmax(pool.belief.std.max(axis=1)))
    >>> learner = cg.Learner(2, kernel=cg.Gaussian(1.0), method=Widest(), burn_in=0)
    >>> learner.ask(pool=[[0.2], [0.3]], index=True)
    (0, 0)
    """

    contexts: FloatArray
    believe: Callable[[], Belief]
    moves: Callable[[int, IntArray | FloatArray], FloatArray]
    means: Callable[[IntArray | FloatArray], FloatArray]
    ridge: float
    rng: np.random.Generator
    shares: bool = False
    read: Callable[[Any], FloatArray] = as_numbers
    costs: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.contexts)

    @lazy
    def belief(self) -> Belief:
        """What is believed about every arm at every context."""
        return self.believe()


class Pick(NamedTuple):
    """The position of the arm to try, why, and with which probability it was drawn, if known.

    .. versionadded:: 0.2

    Examples
    --------
    >>> pick = cg.explorers.Pick(arm=1, reason="coin", propensity=0.5)
    >>> pick.arm, pick.propensity
    (1, 0.5)
    """

    arm: int
    reason: str
    propensity: float | None = None


class Explorer(Component, ABC):
    """A rule that picks the arm to try next, where mistakes are free.

    ``adaptive`` says whether picks depend on rewards; with ``NonadaptiveWidth`` they must not.

    See Also
    --------
    Method : Pairs an explorer with a recommender.
    testing.check_explorer : Checks your own.

    Examples
    --------
    >>> class First(cg.explorers.Explorer):
    ...     def pick(self, moment):
    ...         return 0
    >>> cg.Learner(2, kernel=cg.Gaussian(1.0), method=First(), burn_in=0).ask([0.2])
    0
    """

    adaptive: ClassVar[bool] = True
    reason: ClassVar[str] = "picked by the explorer"

    @property
    def given_contexts(self) -> Any:
        """Contexts that it was given, which learners check beforehand; None if it has none.

        .. versionadded:: 0.2
        """
        return None

    @abstractmethod
    def pick(self, moment: Moment) -> int:
        """Return the position of the arm to try.

        Examples
        --------
        >>> class Widest(cg.explorers.Explorer):
        ...     def pick(self, moment):
        ...         return int(np.argmax(moment.belief.std))
        >>> cg.Learner(2, kernel=cg.Gaussian(1.0), method=Widest()).ask([[0.2], [0.3]])
        array([0, 1])
        """

    def propensities(self, moment: Moment) -> FloatArray | None:
        """Return the probability with which ``pick`` returns each arm; None if none are known.

        .. versionadded:: 0.3

        Examples
        --------
        >>> explorer = cg.explorers.Uniform(random=True)
        >>> learner = cg.Learner(2, kernel=cg.Gaussian(1.0), method=explorer, burn_in=0, seed=0)
        >>> learner.decide([0.2]).propensity
        0.5
        """
        del moment
        return None

    def choose(self, pool: Pool) -> int:
        """Return which of several contexts to try an arm at; a random one by default.

        Examples
        --------
        >>> class Last(cg.explorers.Uniform):
        ...     def choose(self, pool):
        ...         return len(pool.contexts) - 1
        >>> learner = cg.Learner(2, kernel=cg.Gaussian(1.0), method=Last(), burn_in=0)
        >>> learner.ask(pool=[[0.2], [0.3]], index=True)
        (1, 0)
        """
        return any_context(pool)


class GapExplorer(Explorer):
    """A rule that tries an arm where a reward is needed most."""

    def choose(self, pool: Pool) -> int:
        """Return the context with the largest regret bound.

        Where costs differ, it is the largest bound per cost of the leader or its challenger,
        whichever is cheaper.
        """
        belief, bound = pool.belief, pool.belief.gap.min(axis=-1)
        if pool.costs is not None:
            both = np.stack([belief.leader, belief.challenger], axis=-1)
            cheaper = np.take_along_axis(pool.costs, both, axis=-1).min(axis=-1)
            bound = np.where(bound > 0, bound / cheaper, bound)
        return int(bound.argmax())


class ReferringExplorer(Explorer):
    """A rule that may be given reference contexts, ``references``, and names of their columns.

    Subclasses have both as fields, and call ``_read_references`` when they are made.
    """

    references: Any
    columns: tuple[str, ...] | None
    most: int

    def _reference(self, seen: int, read: Callable[[Any], FloatArray]) -> IntArray | FloatArray:
        """Return the given contexts, or places of up to ``most`` that were seen."""
        if self.references is None:
            return spread_over(seen, self.most)
        return read(self.given_contexts)

    def _read_references(self) -> None:
        """Keep the rows of a table as plain values, so that files can hold them."""
        if self.references is None:
            return
        intake = read_table(self.references, "references")
        if intake is not None:
            names, rows = intake.schema.columns, tuple(map(tuple, intake.rows.tolist()))
        else:
            table = Table.of(self.references)
            names = None if table.names is None else tuple(table.names)
            cells = [[plain(cell) for cell in column] for column in table.cells]
            rows = tuple(zip(*cells, strict=True))
        object.__setattr__(self, "references", rows)
        object.__setattr__(self, "columns", names or self.columns)

    @lazy
    def given_contexts(self) -> Any:
        """The references as learners read them, always the same object; None if there are none."""
        if self.references is None or self.columns is None:
            return self.references
        return [dict(zip(self.columns, row, strict=True)) for row in self.references]


@lru_cache(maxsize=8)
def spread_over(seen: int, most: int) -> IntArray:
    """Return places 0, s, 2s, ... below ``seen``, s the lowest power of 2 that leaves ``most``."""
    # From one step to the next all places stay, one is added, or every second one is dropped, so
    # that most of what was computed for them can be reused.
    stride = 1
    while seen > most * stride:
        stride *= 2
    return frozen(np.arange(0, seen, stride))  # the same array for all picks of a batch


class DrawingExplorer(Explorer):
    """A rule that draws the arm to try with probabilities that it knows, and that are logged.

    It has no round-robin burn-in: as many first picks are drawn from all arms with equal
    probabilities.

    .. versionadded:: 0.3

    Examples
    --------
    >>> class Coin(cg.explorers.DrawingExplorer):
    ...     def propensities(self, moment):
    ...         return np.array([0.9, 0.1])
    >>> learner = cg.Learner(2, kernel=cg.Gaussian(1.0), method=Coin(), burn_in=0, seed=0)
    >>> learner.decide([0.2]).propensity
    0.9
    """

    @abstractmethod
    def propensities(self, moment: Moment) -> FloatArray:
        """Return the probability with which each arm is drawn."""

    def pick(self, moment: Moment) -> int:
        """Return an arm drawn with these probabilities."""
        return _drawn(self.propensities(moment), moment)


def _drawn(chances: FloatArray, moment: Moment) -> int:
    # A source of its own: the learner's may have the seed with which contexts were simulated, and
    # would then draw the very numbers that the contexts are made of.
    rng = np.random.default_rng(moment.rng.integers(2**63, size=2))
    return int(rng.choice(len(chances), p=chances))


class ReferenceReader:
    """Reads the contexts that an explorer was given, once for every schema."""

    def __init__(self) -> None:
        self._given: Any = None
        self._schema: ContextSchema | None = None
        self._rows = np.empty((0, 0))

    def __call__(self, given: Any, schema: ContextSchema) -> FloatArray:
        """Return contexts, always the same object, as numbers."""
        if given is not self._given or schema is not self._schema:
            self._rows = schema.read(given, called="references").rows
            self._given, self._schema = given, schema
        return self._rows


def check_reference(reference: IntArray | FloatArray, dimension: int) -> None:
    """Raise unless reference contexts, if given as contexts, have as many numbers as all others."""
    if reference.ndim == 2 and reference.shape[1] != dimension:
        raise ValueError(
            f"references must have {dimension} numbers per context, as the contexts do, "
            f"got {reference.shape[1]}"
        )


def any_context(pool: Pool) -> int:
    return int(pool.rng.integers(len(pool)))


def choose_context(pool: Pool, explorer: Explorer) -> int:
    """Return the context of the pool that an explorer chooses, checked."""
    return _checked(explorer.choose(pool), len(pool), explorer, "choose", "row of a context")


def _checked(place: Any, count: int, explorer: Explorer, method: str, what: str) -> int:
    if not isinstance(place, int | np.integer) or not 0 <= place < count:  # a user's explorer
        raise ValueError(
            f"{type(explorer).__name__}.{method} must return the {what}, 0 to {count - 1}, "
            f"got {place!r}"
        )
    return int(place)


def least_pulled(moment: Moment) -> int:
    """Return the arm picked least often so far, which cycles through the arms in order."""
    return moment.pulls.index(min(moment.pulls))


def explore(moment: Moment, explorer: Explorer, burn_in: int) -> Pick:
    """Return the arm to try: each arm ``burn_in`` times, then the rule's pick."""
    n_arms = len(moment.pulls)
    if isinstance(explorer, DrawingExplorer):
        early = moment.step <= burn_in * n_arms
        chances = np.full(n_arms, 1 / n_arms) if early else explorer.propensities(moment)
        arm = _drawn(chances, moment)
        return Pick(arm, "burn-in, drawn" if early else explorer.reason, float(chances[arm]))
    if min(moment.pulls) < burn_in:
        return Pick(least_pulled(moment), "burn-in")
    pick = _checked(explorer.pick(moment), n_arms, explorer, "pick", "position of an arm")
    known = explorer.propensities(moment)
    return Pick(pick, explorer.reason, None if known is None else float(known[pick]))
