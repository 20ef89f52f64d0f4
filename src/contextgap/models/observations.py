"""The log of everything observed, in order and by arm."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from contextgap.base.arrays import FloatArray, IntArray, Rows
from contextgap.base.checks import Mask


class Observations:
    """Contexts, arms and rewards in the order in which they were told."""

    def __init__(self, n_arms: int) -> None:
        self._contexts = Rows(0)
        self._arms = Rows(dtype=np.intp)
        self._rewards = Rows()
        self._places = [Rows(dtype=np.intp) for _ in range(n_arms)]
        self._eligible = EligibleLog()
        self._propensities = Rows()  # NaN, or nothing at the end, where they are unknown
        self._noise = Rows()  # nothing at the end where there is none
        self._limits = Rows()  # NaN, or nothing at the end, where rewards are not censored
        self._costs = Rows()  # NaN, or nothing at the end, where they were not told
        # Observations that are not kept any more, by arm; only a thinned log has any.
        self._forgotten: list[int] = []

    def __len__(self) -> int:
        return len(self._rewards.view)

    @property
    def contexts(self) -> FloatArray:
        """Every observed context, shape (n, d)."""
        return self._contexts.view

    @property
    def arms(self) -> IntArray:
        """The index of the arm of every observation."""
        return self._arms.view

    @property
    def rewards(self) -> FloatArray:
        """Every observed reward."""
        return self._rewards.view

    @property
    def dimension(self) -> int:
        """Numbers per context; 0 before the first."""
        return int(self.contexts.shape[1])

    @property
    def n_arms(self) -> int:
        """Number of arms, retired ones included."""
        return len(self._places)

    def count(self, arm: int) -> int:
        """Return the number of observations of an arm, those not kept any more included."""
        gone = self._forgotten[arm] if self._forgotten else 0
        return len(self._places[arm].view) + gone

    @property
    def forgotten_by_arm(self) -> IntArray:
        """How many observations of each arm are not kept any more."""
        return np.array(self._forgotten or [0] * self.n_arms, dtype=np.intp)

    @property
    def forgotten(self) -> int:
        """How many observations are not kept any more."""
        return sum(self._forgotten)

    def places(self, arm: int) -> IntArray:
        """Return the places of an arm's observations among all."""
        return self._places[arm].view

    def by_arm(self, first: int | None = None) -> tuple[list[FloatArray], list[FloatArray]]:
        """Return every arm's contexts and every arm's rewards, of the first observations or all."""
        places = self.places_by_arm(first)
        return [self.contexts[own] for own in places], [self.rewards[own] for own in places]

    def places_by_arm(self, first: int | None = None) -> list[IntArray]:
        """Return the places of every arm's observations in the same order."""
        most = len(self) if first is None else first
        return [own.view[: np.searchsorted(own.view, most)] for own in self._places]

    def noise_by_arm(self, first: int | None = None) -> list[FloatArray] | None:
        """Return the noise of every arm's rewards in the same order; None if there is none."""
        if not self.has_noise:
            return None
        return [self.noise[own] for own in self.places_by_arm(first)]

    @property
    def has_eligible(self) -> bool:
        """Whether it was ever said which arms were eligible."""
        return bool(self._eligible)

    @property
    def has_propensities(self) -> bool:
        """Whether any propensity is known."""
        return len(self._propensities.view) > 0

    def eligible(self, places: IntArray) -> Mask:
        """Return which arms were eligible at some observations, all where nothing was said."""
        return self._eligible.mask(places, self.n_arms)

    def note_eligible(self, first: int, sets: Sequence[Eligible]) -> None:
        """Remember which arms were eligible at observations number ``first`` and after."""
        if any(each is not None for each in sets):
            self._eligible.note(first, sets)

    @property
    def propensities(self) -> FloatArray | None:
        """The probability with which each observed arm was picked; None unless all are known."""
        known = self._propensities.view
        return known if 0 < len(known) == len(self) and not np.isnan(known).any() else None

    def note_propensities(self, first: int, chances: Sequence[float | None]) -> None:
        """Remember with which probability arms were picked, from observation ``first`` on."""
        if any(each is not None for each in chances):
            self._propensities.extend(np.full(first - len(self._propensities.view), np.nan))
            self._propensities.extend(np.array(chances, dtype=np.float64))

    @property
    def has_noise(self) -> bool:
        """Whether any reward has noise of its own, as censored ones do."""
        return len(self._noise.view) > 0

    @property
    def noise(self) -> FloatArray:
        """The variance of every reward's noise besides the ridge."""
        return _filled(self._noise.view, len(self), 0.0)

    @property
    def limits(self) -> FloatArray:
        """What censored rewards are at most, NaN for others; infinite where told again since.

        The reward and the noise of a censored one are those of an observation that says about as
        much; ``censoring`` has them.
        """
        return _filled(self._limits.view, len(self), np.nan)

    @property
    def censored(self) -> IntArray:
        """The places of censored rewards."""
        return np.flatnonzero(~np.isnan(self._limits.view))

    def note_limits(self, first: int, limits: FloatArray) -> None:
        """Remember what censored rewards are at most, from observation ``first`` on."""
        if not np.isnan(limits).all():
            self._limits.extend(np.full(first - len(self._limits.view), np.nan))
            self._limits.extend(limits)

    def has_censored(self, contexts: FloatArray, arms: IntArray) -> bool:
        """Return whether a reward of one of these arms at its context was censored."""
        places = self.censored
        if not len(places):
            return False
        known, own = self.contexts[places], self.arms[places]
        pairs = zip(contexts, arms, strict=True)
        return any(((known == x).all(axis=1) & (own == arm)).any() for x, arm in pairs)

    def supersede(self, first: int) -> None:
        """Let observations from ``first`` on take the place of runs that were cut off earlier.

        A censored reward says nothing any more, its limit being infinite, once the reward of the
        same arm at the same context is known, or to be lower.
        """
        limits, places = self.limits.copy(), self.censored
        for place in range(first, len(self)):
            same = (self.contexts[places] == self.contexts[place]).all(axis=1)
            same &= (self.arms[places] == self.arms[place]) & (places < place)
            same &= np.isnan(limits[place]) | (limits[places] >= limits[place])
            limits[places[same]] = np.inf
        self._limits = Rows.of(limits)

    @property
    def has_costs(self) -> bool:
        """Whether the cost of any trial was told."""
        return len(self._costs.view) > 0

    @property
    def costs(self) -> FloatArray:
        """What every trial cost, NaN where that was not told."""
        return _filled(self._costs.view, len(self), np.nan)

    def note_costs(self, first: int, costs: FloatArray) -> None:
        """Remember what trials cost, from observation ``first`` on."""
        if not np.isnan(costs).all():
            self._costs.extend(np.full(first - len(self._costs.view), np.nan))
            self._costs.extend(costs)

    def restated(self, places: IntArray, rewards: FloatArray, noise: FloatArray) -> Self:
        """Return a log in which some rewards and their noise are others."""
        other, values, variances = self.snapshot(), self.rewards.copy(), self.noise.copy()
        values[places], variances[places] = rewards, noise
        other._rewards, other._noise = Rows.of(values), Rows.of(variances)
        return other

    def take_notes_from(self, other: Observations) -> None:
        """Take over what was said besides rewards from a log of the same observations."""
        self._eligible = other._eligible.snapshot()
        self._propensities = Rows.of(other._propensities.view)
        self._limits = Rows.of(other._limits.view)
        self._costs = Rows.of(other._costs.view)

    def add_arm(self) -> None:
        """Add an arm without observations, with the next index."""
        self._places.append(Rows(dtype=np.intp))

    def append(self, context: FloatArray, arm: int, reward: float, noise: float = 0.0) -> None:
        """Add one observation."""
        if not len(self):
            self._contexts = Rows(len(context))
        if noise:
            self._noise.extend(np.zeros(len(self) - len(self._noise.view)))
            self._noise.append(noise)
        self._places[arm].append(len(self))
        self._contexts.append(context)
        self._arms.append(arm)
        self._rewards.append(reward)

    def extend(
        self,
        contexts: FloatArray,
        arms: IntArray,
        rewards: FloatArray,
        noise: FloatArray | None = None,
    ) -> None:
        """Add many observations."""
        if not len(self):
            self._contexts = Rows(contexts.shape[1])
        if noise is not None and noise.any():
            self._noise.extend(np.zeros(len(self) - len(self._noise.view)))
            self._noise.extend(noise)
        for arm in np.unique(arms):
            self._places[arm].extend(len(self) + np.flatnonzero(arms == arm))
        self._contexts.extend(contexts)
        self._arms.extend(arms)
        self._rewards.extend(rewards)

    def truncate(self, size: int) -> None:
        """Forget all observations from number ``size`` on, also a half-added one."""
        for rows in (self._contexts, self._arms, self._rewards):
            rows.truncate(size)
        for own in self._places:
            own.truncate(int(np.searchsorted(own.view, size)))
        self._eligible.truncate(size)
        for notes in (self._propensities, self._noise, self._limits, self._costs):
            notes.truncate(min(size, len(notes.view)))

    def snapshot(self) -> Self:
        """Return a copy that later observations do not show in."""
        other = type(self)(0)
        other._contexts, other._arms, other._rewards = (
            Rows.of(rows.view) for rows in (self._contexts, self._arms, self._rewards)
        )
        other._places = [Rows.of(own.view) for own in self._places]
        other._noise = Rows.of(self._noise.view)
        other.take_notes_from(self)
        other._forgotten = list(self._forgotten)
        return other

    def changed(self, change: Callable[[FloatArray], FloatArray]) -> Self:
        """Return a log of the same observations at other contexts."""
        other = self.snapshot()
        other._contexts = Rows.of(change(self.contexts))
        return other

    def since(self, first: int) -> Self:
        """Return a log of the observations from number ``first`` on, with all notes."""
        other = type(self)(self.n_arms)
        other.extend(self.contexts[first:], self.arms[first:], self.rewards[first:])
        # Notes may end before the observations do.
        for name in ("_noise", "_limits", "_propensities", "_costs"):
            vars(other)[name] = Rows.of(vars(self)[name].view[first:])
        other._eligible = self._eligible.snapshot(first)
        return other

    def thinned(self, most: int = 8192) -> Self:
        """Return a log of at most so many observations, chosen at random, and of the outermost.

        Counts, and the range of every number of a context, do not change; which arms were
        eligible is not kept. Nothing can be added to it.
        """
        if len(self) <= most:
            return self.snapshot()
        rng = np.random.default_rng(len(self))
        places = rng.choice(len(self), most, replace=False)
        outermost = [self.contexts.argmin(axis=0), self.contexts.argmax(axis=0)]
        kept = np.unique(np.concatenate([places, *outermost]))
        other = type(self)(self.n_arms)
        other.extend(self.contexts[kept], self.arms[kept], self.rewards[kept], self.noise[kept])
        other.note_limits(0, self.limits[kept])
        other.note_costs(0, self.costs[kept])
        if self.propensities is not None:
            other._propensities = Rows.of(self.propensities[kept])
        other._forgotten = [self.count(arm) - other.count(arm) for arm in range(self.n_arms)]
        return other

    def stands_for(self, counts: Sequence[int]) -> None:
        """Say how many observations of each arm there were, of which these are a sample."""
        kept = [len(own) for own in self._places]
        self._forgotten = [count - own for count, own in zip(counts, kept, strict=True)]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the log as arrays, for a file."""
        told = {"contexts": self.contexts, "rewards": self.rewards, "sequence": self.arms}
        if self.has_propensities:
            told["propensities"] = self._propensities.view
        said = {"noise": self._noise, "limits": self._limits, "costs": self._costs}
        for name, notes in said.items():
            if len(notes.view):
                told[name] = notes.view
        return {**told, **self._eligible.arrays(self.n_arms)}

    @classmethod
    def restored(
        cls,
        arrays: Mapping[str, NDArray[Any]],
        n_arms: int,
        forgotten: NDArray[Any] | None = None,
    ) -> Self:
        """Return the log that ``arrays`` was called on; raise ``ValueError`` if it is invalid."""
        contexts, rewards, arms = (arrays[x] for x in ("contexts", "rewards", "sequence"))
        if contexts.ndim != 2:
            raise ValueError(f"contexts have {contexts.ndim} dimensions, not 2")
        check_floats(contexts, contexts.shape)
        check_floats(rewards, (len(contexts),))
        if arms.shape != rewards.shape or arms.dtype.kind != "i":
            raise ValueError("the sequence of arms does not match the rewards")
        if len(arms) and not (arms.min() >= 0 and arms.max() < n_arms):
            raise ValueError("the sequence of arms names an arm that does not exist")
        other = cls(n_arms)
        other.extend(contexts, arms.astype(np.intp), rewards)
        other._eligible = EligibleLog.restored(arrays, other.arms, n_arms)
        if "propensities" in arrays:
            chances = arrays["propensities"]
            known = chances[~np.isnan(chances)] if chances.dtype == np.float64 else chances
            if chances.ndim != 1 or len(chances) > len(other) or known.dtype != np.float64:
                raise ValueError("the propensities do not match the observations")
            if not ((known > 0) & (known <= 1)).all():
                raise ValueError("a propensity is not above 0 and at most 1")
            other._propensities = Rows.of(chances)
        if "noise" in arrays:
            noise = arrays["noise"]
            check_floats(noise, (min(len(noise), len(other)),))
            if noise.min(initial=0.0) < 0:
                raise ValueError("the noise of a reward is negative")
            other._noise = Rows.of(noise)
        if "limits" in arrays:
            limits = arrays["limits"]
            check_floats(np.nan_to_num(limits, nan=0.0), (min(len(limits), len(other)),))
            other._limits = Rows.of(limits)
            if (other.noise[other.censored] <= 0).any():
                raise ValueError("a censored reward has no noise")
        if "costs" in arrays:
            costs = arrays["costs"]
            check_floats(np.nan_to_num(costs, nan=1.0), (min(len(costs), len(other)),))
            if not (np.nan_to_num(costs, nan=1.0) > 0).all():
                raise ValueError("the cost of a trial is not positive")
            other._costs = Rows.of(costs)
        if forgotten is not None and forgotten.any():
            if forgotten.shape != (n_arms,) or forgotten.dtype.kind != "i" or forgotten.min() < 0:
                raise ValueError("the numbers of observations not kept do not match the arms")
            other._forgotten = [int(count) for count in forgotten]
        return other


def _filled(notes: FloatArray, count: int, other: float) -> FloatArray:
    """Return notes about the first of so many observations, with another value for the rest."""
    if len(notes) == count:
        return notes
    return np.concatenate([notes, np.full(count - len(notes), other)])


def check_floats(values: NDArray[Any], shape: tuple[int, ...]) -> None:
    """Raise ``ValueError`` unless an array from a file has finite floats and the expected shape."""
    if values.dtype != np.float64 or values.shape != shape or not np.isfinite(values).all():
        found = f"{values.dtype} {values.shape}"
        raise ValueError(f"expected finite floats of shape {shape}, got {found}")


# Indices of arms, ascending; None where nothing was said and every arm counts as eligible.
Eligible: TypeAlias = tuple[int, ...] | None


class EligibleLog:
    """The eligible arms of every observation; each different set is kept once.

    ``sequence`` holds the number of a set for each observation, −1 for none. It may be shorter than
    the observations: nothing was said about those behind it.
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, ...], int] = {}  # of the sets, in order
        self._sequence = Rows(dtype=np.intp)

    def __bool__(self) -> bool:
        return len(self._sequence) > 0

    def note(self, first: int, sets: Sequence[Eligible]) -> None:
        """Remember the sets of observations number ``first``, ``first`` + 1, ..."""
        known = self._numbers
        found = [-1 if each is None else known.setdefault(each, len(known)) for each in sets]
        self._sequence.extend(np.full(first - len(self._sequence), -1, dtype=np.intp))
        self._sequence.extend(np.array(found, dtype=np.intp))

    def truncate(self, size: int) -> None:
        """Forget the sets of all observations from number ``size`` on."""
        self._sequence.truncate(min(size, len(self._sequence)))

    def mask(self, places: IntArray, n_arms: int) -> Mask:
        """Return which arms were eligible at some observations, shape (places, arms)."""
        # The last row, which −1 stands for, is that of observations without a set.
        table = np.vstack([self._table(n_arms), np.ones(n_arms, dtype=bool)])
        sequence = np.full(max(len(self._sequence), int(places.max(initial=-1)) + 1), -1)
        sequence[: len(self._sequence)] = self._sequence.view
        return np.asarray(table[sequence[places]])

    def snapshot(self, first: int = 0) -> Self:
        """Return a copy, from observation ``first`` on, that later ones do not show in."""
        other = type(self)()
        other._numbers, other._sequence = dict(self._numbers), Rows.of(self._sequence.view[first:])
        return other

    def arrays(self, n_arms: int) -> dict[str, NDArray[Any]]:
        """Return the log as arrays, for a file; none if nothing was said."""
        if not self:
            return {}
        return {"eligible": self._table(n_arms), "eligible_sequence": self._sequence.view}

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray[Any]], arms: IntArray, n_arms: int) -> Self:
        """Do as ``Observations.restored``; ``arms`` are those that were observed."""
        other = cls()
        there = {"eligible", "eligible_sequence"} & set(arrays)
        if not there:
            return other
        if len(there) == 1:
            raise ValueError("the sets of eligible arms are not complete")
        table, sequence = arrays["eligible"], arrays["eligible_sequence"]
        if table.dtype != np.bool_ or table.ndim != 2 or table.shape[1] != n_arms:
            raise ValueError("the sets of eligible arms do not match the arms")
        if sequence.ndim != 1 or sequence.dtype.kind != "i" or len(sequence) > len(arms):
            raise ValueError("the sequence of eligible arms does not match the observations")
        if len(sequence) and not (sequence.min() >= -1 and sequence.max() < len(table)):
            raise ValueError("the sequence of eligible arms names a set that does not exist")
        other._numbers = {
            tuple(np.flatnonzero(row).tolist()): number for number, row in enumerate(table)
        }
        if len(other._numbers) != len(table):
            raise ValueError("a set of eligible arms is there twice")
        other._sequence = Rows.of(sequence.astype(np.intp))
        places = np.arange(len(sequence))
        if not other.mask(places, n_arms)[places, arms[: len(sequence)]].all():
            raise ValueError("an arm was observed where it was not eligible")
        return other

    def _table(self, n_arms: int) -> Mask:
        table = np.zeros((len(self._numbers), n_arms), dtype=bool)
        for row, each in zip(table, self._numbers, strict=True):
            row[list(each)] = True
        return table
