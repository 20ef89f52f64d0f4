"""The contract of models: what the rewards seen so far say about every arm at a context.

In the models of this library every arm is a kernel ridge regression, equivalently a
Gaussian-process posterior: with contexts X and rewards y, K = k(X, X) and k = k(X, x) (section 4.1
of "Simple Regret Minimization for Contextual Bandits", which this library follows throughout),

    mean(x) = m + kᵀ(K + ridge·I)⁻¹(y − m)        std²(x) = k(x, x) − kᵀ(K + ridge·I)⁻¹k

where m is the prior mean, 0 in the paper. No code outside this package knows more about a model
than this module says.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.components import lazy
from contextgap.kernels import Kernel
from contextgap.models.observations import Observations

# Contexts of picks whose reward is still to come, by arm, oldest first. A model counts each as an
# observation whose reward equals its expectation: that leaves means and shrinks variances.
Pending: TypeAlias = Mapping[int, Sequence[FloatArray]]
NOTHING_PENDING: Pending = MappingProxyType({})
MANY_PENDING = 8  # that models count at once from here on, and not one by one
MOST_POOLED = 2**24  # numbers that are kept for contexts one of which is to be tried


class Posterior(NamedTuple):
    """What a model knows about some arms at some contexts.

    Parameters
    ----------
    mean, std
        Shape (arms,) for one context, (contexts, arms) for several.
    information_gain
        ½ ln det(I + K/ridge) of each arm, broadcastable against ``mean``; rewards told with noise
        have it added to their ridge.
    ridge
        The regularisation the posterior was computed with.
    n_arms
        How many regressions there are: guarantees for all of them at once share their failure
        probability. It is the number of arms, retired ones and those not asked about included; 1
        where arms share what they learn.
    covariance
        Posterior covariances of the arms, shape (arms, arms) for one context, (contexts, arms,
        arms) for several; None where arms have nothing in common.
    differences
        Where arms share: how many arms and differences of two arms there are, A·(A + 1)/2, each of
        which has an interval; 0 where arms have nothing in common.
    """

    mean: FloatArray
    std: FloatArray
    information_gain: FloatArray
    ridge: float
    n_arms: int
    covariance: FloatArray | None = None
    differences: int = 0


class LookAhead(NamedTuple):
    """What trying an arm at the current context would teach about reference contexts.

    Parameters
    ----------
    mean
        Posterior means, shape (references + 1, arms); the last row is the current context.
    move
        If an arm were tried here, its mean at a reference would move by this times a standard
        normal: their posterior covariance over √(variance here + ridge). Shape (references + 1,
        arms); where arms share what they learn, (references + 1, arms tried, arms moved).
    """

    mean: FloatArray
    move: FloatArray


class LeftOut(NamedTuple):
    """Posteriors at observed contexts without the rewards observed there, and errors of those."""

    posterior: Posterior  # shape (rows, arms)
    error: FloatArray  # each reward minus its prediction from the others


class Bounds(NamedTuple):
    """Exact means, and bounds on standard deviations that are cheap to compute."""

    mean: FloatArray  # shape (contexts, arms), as are the bounds
    least: FloatArray
    most: FloatArray
    slack: FloatArray  # a bound on the rounding error of each context's means


class Support(NamedTuple):
    """The plain arrays that determine one arm's posterior: what exports see of a model.

    With k the kernel values between a context x and the points,

        mean = prior + weights·k        std² = k(x, x) − Σ sign·|L⁻¹k|²

    over the signed triangular factors L. One factor with sign 1 is an exact posterior; inducing
    points need a second one with sign −1.
    """

    points: FloatArray  # contexts, shape (n, d)
    weights: FloatArray  # of the kernel values in a mean
    factors: tuple[tuple[int, FloatArray], ...]  # signs, and the rows of L one after the other
    information_gain: float  # ½ ln det(I + K/ridge)
    # L⁻¹(rewards − prior) of the only factor, if its leading parts and those of L are the
    # posteriors after fewer observations; None for models that do not keep their history.
    innovations: FloatArray | None = None
    noise: FloatArray | None = None  # of each reward with the ridge; None where it is the ridge


class SharedSupport(NamedTuple):
    """The plain arrays that determine the posterior of arms that share what they learn.

    With k the kernel values between a context x and the points, B the correlations of arms and
    s_a = B[a, arm of each point],

        v_a = L⁻¹(s_a∘k)        mean_a = prior + innovations·v_a
        covariance of a and b = B[a, b]·k(x, x) − v_a·v_b
    """

    points: FloatArray  # contexts, shape (n, d)
    whose: IntArray  # the arm observed at each point, as a column of ``alike``
    alike: FloatArray  # correlations of the arms asked about with all arms, shape (arms, columns)
    among: FloatArray  # correlations of the arms asked about, shape (arms, arms)
    factor: FloatArray  # the rows of L one after the other
    innovations: FloatArray  # L⁻¹(rewards − prior)
    information_gain: float  # ½ ln det(I + K/ridge)


class History(NamedTuple):
    """The posteriors of all steps from one step on."""

    states: list[Posterior]  # by arm: its posteriors in order, arrays of shape (states, contexts)
    steps: IntArray  # row t: which of its states each arm is in t steps later
    covariance: FloatArray | None = None  # where arms share, shape (steps, contexts, arms, arms)

    def at(self, step: int) -> Posterior:
        """Return the posterior of all arms at one of the steps, contexts by arms."""
        now = zip(self.states, self.steps[step], strict=True)
        rows = [(each.mean[i], each.std[i], each.information_gain[i]) for each, i in now]
        mean, std, gain = (np.stack(values, axis=-1) for values in zip(*rows, strict=True))
        covariance = None if self.covariance is None else self.covariance[step]
        first = self.states[0]
        return first._replace(mean=mean, std=std, information_gain=gain[0], covariance=covariance)


class Predictor:
    """What a model says about some arms at many contexts; valid until the model changes."""

    def __init__(self, model: Model, arms: Sequence[int]) -> None:
        self.model = model
        self.arms = arms

    def posterior(self, contexts: FloatArray, among: int = 0) -> Posterior:
        """Return the posterior at contexts, which are some of ``among`` asked about in all."""
        del among
        return self.model.posterior(contexts, self.arms)

    def means(self, contexts: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Return means and a bound on each context's rounding error; None if they are not cheap."""
        del contexts
        return None

    def bounds(self, contexts: FloatArray) -> Bounds | None:
        """Return means and bounds on standard deviations; None where they would not save time."""
        del contexts
        return None


class Pooled:
    """The posterior of some arms at contexts, one of which is to be tried; valid until a change.

    Reference points are places among these contexts, or contexts of shape (r, d).
    """

    def __init__(
        self, model: Model, contexts: FloatArray, arms: Sequence[int], pending: Pending
    ) -> None:
        self.model = model
        self.contexts = contexts
        self.arms = arms
        self.pending = pending

    @lazy
    def posterior(self) -> Posterior:
        """The posterior at the contexts."""
        return self.model.posterior(self.contexts, self.arms, self.pending)

    def means(self, reference: IntArray | FloatArray) -> FloatArray:
        """Return the means at reference points."""
        if is_places(reference):
            return self.posterior.mean[reference]
        return self.model.posterior(self.at(reference), self.arms, self.pending).mean

    def moves(self, arm: int, reference: IntArray | FloatArray) -> FloatArray:
        """Return how far trying one of the arms at the contexts would move means, as a model."""
        covariances, steps = self.covariances(arm, reference), self.steps[:, arm]
        return covariances / (steps if covariances.ndim == 2 else steps[:, None])

    def covariances(self, arm: int, reference: IntArray | FloatArray) -> FloatArray:
        """Return posterior covariances with one of the arms at the contexts.

        Those of the arm itself at the references, shape (references, contexts); where arms share
        what they learn, of each arm there, with the arms last.
        """
        points, tried = self.at(reference), self.arms[arm]
        moves = self.model.moves(self.contexts, tried, points, self.pending)
        if moves.ndim == 2:
            return moves * self.steps[:, arm]
        return moves[..., list(self.arms)] * self.steps[:, arm, None]

    @lazy
    def steps(self) -> FloatArray:
        """√(variance + ridge) of rewards at the contexts, shape (contexts, arms)."""
        return np.sqrt(np.maximum(self.posterior.std**2 + self.model.ridge, self.floors))

    @property
    def floors(self) -> FloatArray:
        """What the squares of these steps are at least, for rounding."""
        return np.zeros((len(self.contexts), len(self.arms)))

    def at(self, reference: IntArray | FloatArray) -> FloatArray:
        """Return reference points as contexts."""
        given = self.contexts[reference] if is_places(reference) else reference
        return np.asarray(given, dtype=np.float64)


def is_places(reference: IntArray | FloatArray) -> bool:
    """Whether reference points are given as places among known contexts."""
    return reference.dtype.kind == "i"


class Follower:
    """The posterior at some points, kept up to date as rewards come; here computed anew."""

    model: Model

    def __init__(self, model: Model, points: FloatArray | None = None) -> None:
        self.model = model
        self._points = np.empty((0, 0)) if points is None else points
        self._seen = 0

    def steps(self, arms: Sequence[int]) -> Iterator[Posterior]:
        """Yield the posterior after each reward not taken in yet; without a history, the last."""
        since, self._seen = self._seen, len(self.model)
        if not isinstance(self.model, KeepsHistory):
            yield self.posterior(arms)
            return
        history = self.model.history(self._points, arms, since)
        for step in range(1, len(history.steps)):
            yield history.at(step)

    def posterior(self, arms: Sequence[int]) -> Posterior:
        """Take in everything observed so far; return the posterior at the points."""
        return self.model.posterior(self._points, arms)

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
        model, here = self.model, context[None]
        points = np.vstack([self._contexts_of(reference).reshape(-1, len(context)), here])
        mean = model.posterior(points, arms, pending).mean
        moves = [model.moves(here, arm, points, pending)[:, 0] for arm in arms]
        move = np.stack(moves, axis=1)
        return LookAhead(mean, move[..., list(arms)] if move.ndim == 3 else move)

    def _contexts_of(self, reference: IntArray | FloatArray) -> FloatArray:
        given = self.model.observed.contexts[reference] if is_places(reference) else reference
        return np.asarray(given, dtype=np.float64)


class Model(ABC):
    """Posteriors of several arms that share a kernel and a ridge.

    ``arms`` are indices; ``contexts`` have shape (m, d); a ``context`` has shape (d,). The prior
    mean is a number, or ``"auto"`` for the average reward seen.
    """

    kind: ClassVar[str]  # its name in files
    version: ClassVar[int] = 1  # version of its arrays in files
    related: ClassVar[bool] = False  # whether a reward of one arm says something about others
    shares: ClassVar[bool] = False  # whether it does so by covariances of arms
    implies: ClassVar[bool] = False  # whether it implies what others would have paid
    common_support: ClassVar[bool] = False  # whether all arms' supports have the same points
    approximate: ClassVar[bool] = False  # whether it is another posterior than guarantees rest on
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
    def observe(self, context: FloatArray, arm: int, reward: float, noise: float = 0.0) -> None:
        """Take in one reward, with a variance of its noise that is added to the ridge."""

    @abstractmethod
    def observe_many(
        self,
        contexts: FloatArray,
        arms: IntArray,
        rewards: FloatArray,
        noise: FloatArray | None = None,
    ) -> None:
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

    def of_own_rewards(self) -> Model:
        """Return the model without implied rewards; this one where rewards imply no others."""
        return self

    def predictor(self, arms: Sequence[int]) -> Predictor:
        """Return what answers at many contexts, faster where it can; valid until a change."""
        return Predictor(self, arms)

    def follow(self, points: FloatArray | None = None) -> Follower:
        """Return an object that keeps the posterior at points up to date; the caller owns it."""
        return Follower(self, points)

    def pooled(
        self, contexts: FloatArray, arms: Sequence[int], pending: Pending = NOTHING_PENDING
    ) -> Pooled:
        """Return the posterior at contexts one of which is to be tried; valid until a change."""
        return Pooled(self, contexts, arms, pending)

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
    def left_out(self, places: IntArray, visits: IntArray, arms: Sequence[int]) -> LeftOut:
        """Return posteriors at observed contexts, without the rewards observed there.

        ``places`` are the observations in question; ``visits`` says how many observations of the
        same arm at the same context to leave out with each.
        """

    def cavities(self, places: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of observed expected rewards, each without its own reward."""
        log, (mean, variance) = self.observed, np.empty((2, len(places)))
        for arm in np.unique(log.arms[places]).tolist():
            own = np.flatnonzero(log.arms[places] == arm)
            left = self.left_out(places[own], np.ones(len(own), dtype=np.intp), [arm])
            mean[own] = left.posterior.mean[:, 0]
            variance[own] = np.square(left.posterior.std[:, 0])
        return mean, variance

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
        """Return a copy that later observations do not change; factors are shared, not copied."""

    def for_deployment(self) -> Model:
        """Return the model that policies rest on; for most models, this one."""
        return self

    def learnt(self) -> Model:
        """Return the model that ``for_deployment`` was called on; for most models, this one."""
        return self

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
