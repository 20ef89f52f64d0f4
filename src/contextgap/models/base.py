"""The contract of models: what the rewards seen so far say about every arm at a context.

In the models of this library every arm is a kernel ridge regression, equivalently a
Gaussian-process posterior: with contexts X and rewards y, K = k(X, X) and k = k(X, x) (section 4.1
of "Simple Regret Minimization for Contextual Bandits", which this library follows throughout),

    mean(x) = m + kᵀ(K + ridge·I)⁻¹(y − m)        std²(x) = k(x, x) − kᵀ(K + ridge·I)⁻¹k

where m is the prior mean, 0 in the paper. No code outside this package knows more about a model
than this module and ``answers`` say.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.kernels import Kernel
from contextgap.models.answers import (
    Bounds,
    History,
    LeftOut,
    LookAhead,
    Posterior,
    SharedSupport,
    Support,
)
from contextgap.models.observations import Observations

# Contexts of picks whose reward is still to come, by arm, oldest first. A model counts each as an
# observation whose reward equals its expectation: that leaves means and shrinks variances.
Pending: TypeAlias = Mapping[int, Sequence[FloatArray]]
NOTHING_PENDING: Pending = MappingProxyType({})


class Follower(ABC):
    """The posterior at some points, kept up to date as rewards come; the caller owns it."""

    model: Model

    @abstractmethod
    def steps(self, arms: Sequence[int]) -> Iterator[Posterior]:
        """Take in what was observed since the last call, one reward after the other.

        Yields the posterior at the points after each.
        """

    @abstractmethod
    def posterior(self, arms: Sequence[int]) -> Posterior:
        """Take in everything observed so far; return the posterior at the points."""

    @abstractmethod
    def look_ahead(
        self,
        context: FloatArray,
        arms: Sequence[int],
        reference: IntArray | FloatArray,
        pending: Pending = NOTHING_PENDING,
    ) -> LookAhead:
        """Follow reference points from now on; return what trying arms would teach about them.

        ``reference`` holds places of observed contexts, or contexts of shape (m, d).
        """


class Model(ABC):
    """Posteriors of several arms that share a kernel and a ridge.

    ``arms`` are indices; ``contexts`` have shape (m, d); a ``context`` has shape (d,).

    Parameters
    ----------
    kernel
        Similarity of contexts.
    ridge
        Regularisation.
    n_arms
        Number of arms to start with.
    prior_mean
        A number, or ``"auto"`` for the average reward seen.
    """

    kind: ClassVar[str]  # its name in files
    version: ClassVar[int] = 1  # version of its arrays in files
    shares: ClassVar[bool] = False  # whether a reward of one arm says something about others
    narrow_bounds: ClassVar[bool] = True  # whether ``bounds`` on deviations may decide anything
    common_support: ClassVar[bool] = False  # whether all arms' supports have the same points
    approximate: ClassVar[bool] = False  # whether its posterior is close to, but not, that above
    file_version: ClassVar[int] = 2  # the file format version that such files need
    kinds: ClassVar[dict[str, type[Model]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "kind" in vars(cls):
            Model.kinds[cls.kind] = cls

    def __init__(
        self, kernel: Kernel, ridge: float, n_arms: int, prior_mean: float | str = 0.0
    ) -> None:
        self.kernel = kernel
        self.ridge = ridge
        self.prior_mean = prior_mean
        self.observed = Observations(n_arms)

    def __len__(self) -> int:
        return len(self.observed)

    @property
    def n_arms(self) -> int:
        """Number of arms, retired ones included."""
        return self.observed.n_arms

    @property
    def numbers_per_context(self) -> int:
        """How many numbers a posterior at one more context takes while it is computed."""
        return len(self)

    def settings(self) -> dict[str, Any]:
        """Return what this kind of model is made with besides kernel, ridge and prior mean."""
        return {}

    def prior(self) -> float:
        """Return the prior mean as a number."""
        if isinstance(self.prior_mean, str):
            return float(self.observed.rewards.mean()) if len(self) else 0.0
        return self.prior_mean

    @abstractmethod
    def add_arm(self, features: Sequence[float] | None = None) -> None:
        """Add an arm without observations, with the next index."""

    @abstractmethod
    def observe(self, context: FloatArray, arm: int, reward: float) -> None:
        """Take in one reward."""

    @abstractmethod
    def observe_many(self, contexts: FloatArray, arms: IntArray, rewards: FloatArray) -> None:
        """Take in many rewards at once; the posterior is that of one ``observe`` for each."""

    @abstractmethod
    def mark(self) -> Any:
        """Return what ``rewind`` needs to return to this state."""

    @abstractmethod
    def rewind(self, mark: Any) -> None:
        """Undo all observations since ``mark``, also one that was interrupted half way."""

    @abstractmethod
    def information_gain(self, arms: Sequence[int]) -> FloatArray:
        """Return ½ ln det(I + K/ridge) of each arm."""

    @abstractmethod
    def posterior(
        self, contexts: FloatArray, arms: Sequence[int], pending: Pending = NOTHING_PENDING
    ) -> Posterior:
        """Return the posterior of arms at contexts, shape (m, d), or at one, shape (d,)."""

    def posterior_of(self, arms: Sequence[int]) -> Callable[[FloatArray], Posterior] | None:
        """Return what computes ``posterior`` at very many contexts, good until the model changes.

        None where ``posterior`` is as fast.
        """
        del arms
        return None

    @abstractmethod
    def moves(
        self,
        contexts: FloatArray,
        arm: int,
        points: FloatArray,
        pending: Pending = NOTHING_PENDING,
    ) -> FloatArray:
        """Return how far trying an arm at contexts would move means at points.

        As in ``LookAhead``: shape (points, contexts), or, where arms share what they learn,
        (points, contexts, all arms).
        """

    @abstractmethod
    def follow(self, points: FloatArray | None = None) -> Follower:
        """Return an object that keeps the posterior at points up to date; the caller owns it."""

    def bounds_of(self, arms: Sequence[int]) -> Callable[[FloatArray], Bounds] | None:
        """Return what computes ``bounds`` of some arms, good until the model changes."""
        del arms
        return None

    def means_of(
        self, arms: Sequence[int]
    ) -> Callable[[FloatArray], tuple[FloatArray, FloatArray]] | None:
        """Return what computes the means of some arms, and by how much these may be wrong.

        It is good until the model changes; None where ``bounds`` are as fast.
        """
        del arms
        return None

    def bounds(self, contexts: FloatArray, arms: Sequence[int]) -> Bounds | None:
        """Return means and cheap bounds on standard deviations; None if the model has none."""
        found = self.bounds_of(arms)
        return None if found is None else found(contexts)

    @abstractmethod
    def left_out(self, places: IntArray, visits: IntArray, arms: Sequence[int]) -> LeftOut:
        """Return posteriors at observed contexts, without the rewards observed there.

        ``places`` are the observations in question; ``visits`` says how many observations of the
        same arm at the same context to leave out with each.
        """

    @abstractmethod
    def sums(
        self, contexts: FloatArray, arms: Sequence[int], weights: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return what is known about Σ weight · (expected reward) over contexts and arms.

        ``weights`` has shape (k, contexts, arms). The first result is the posterior variance of
        each sum; the second, of shape (k, observations), is the change of its mean per unit of each
        reward.
        """

    def support_sizes(self, arms: Sequence[int]) -> list[int]:
        """Return how many points determine each arm's posterior."""
        return [self.observed.count(arm) for arm in arms]

    @abstractmethod
    def supports(self, arms: Sequence[int]) -> list[Support]:
        """Return the arrays that determine each arm's posterior."""

    def shared_support(self, arms: Sequence[int]) -> SharedSupport | None:
        """Return the arrays that determine all arms' posterior; None if they do not share."""
        del arms
        return None

    @abstractmethod
    def snapshot(self) -> Self:
        """Return a copy that later observations do not change."""

    def deployed(self) -> Model:
        """Return what a policy's file needs to hold: for most models, everything."""
        return self

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything observed and derived, for a file."""

    @abstractmethod
    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over what ``arrays`` returned; raise ``ValueError`` if it does not fit together."""


class KeepsHistory(ABC):
    """A model that can recompute every earlier posterior, which the exact look-back needs."""

    @abstractmethod
    def history(self, contexts: FloatArray, arms: Sequence[int], since: int) -> History:
        """Return the posteriors after ``since`` observations, one more, ..., all of them."""


class PlainFollower(Follower):
    """Computes the posterior anew every time, for models that have nothing to carry over."""

    def __init__(self, model: Model, points: FloatArray | None = None) -> None:
        self.model = model
        self._points = points
        self._seen = 0

    def steps(self, arms: Sequence[int]) -> Iterator[Posterior]:
        """Yield the posteriors since the last call, or the last if there is no history."""
        since, self._seen = self._seen, len(self.model)
        if not isinstance(self.model, KeepsHistory) or self._points is None:
            yield self.posterior(arms)
            return
        history = self.model.history(self._points, arms, since)
        for step in range(1, len(history.steps)):
            yield history.at(step)

    def posterior(self, arms: Sequence[int]) -> Posterior:
        if self._points is None:
            raise ValueError("no points are followed")
        return self.model.posterior(self._points, arms)

    def look_ahead(
        self,
        context: FloatArray,
        arms: Sequence[int],
        reference: IntArray | FloatArray,
        pending: Pending = NOTHING_PENDING,
    ) -> LookAhead:
        """Return what trying arms would teach about reference points and the context itself."""
        model, here = self.model, context[None]
        given = model.observed.contexts[reference] if reference.dtype.kind == "i" else reference
        points = np.vstack([np.asarray(given).reshape(-1, len(context)), here])
        mean = model.posterior(points, arms, pending).mean
        moves = [model.moves(here, arm, points, pending)[:, 0] for arm in arms]
        move = np.stack(moves, axis=1)
        return LookAhead(mean, move[..., list(arms)] if move.ndim == 3 else move)
