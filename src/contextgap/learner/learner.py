"""Learner: explore with ask and tell, recommend at any time, freeze a policy to deploy."""

from __future__ import annotations

import copy
import math
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from threading import RLock
from typing import TYPE_CHECKING, Any, Concatenate, NoReturn, ParamSpec, Self, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from contextgap.base import checks, display
from contextgap.base.arrays import FloatArray, IntArray, frozen
from contextgap.base.checks import (
    Label,
    Mask,
    check_new_label,
    label_array,
    read_eligible,
    read_labels,
)
from contextgap.base.components import completed, synchronized
from contextgap.base.files import File
from contextgap.beliefs import Decision, Width
from contextgap.kernels import Kernel
from contextgap.kernels.categories import check_categories
from contextgap.kernels.stationary import scipy_cdist
from contextgap.learner import arguments
from contextgap.learner.arguments import (
    CostModel,
    Cutoffs,
    best_cutoffs,
    cost_of_a_tenth,
    first_cutoff,
    read_cost,
    read_told_costs,
)
from contextgap.learner.arguments import Pick as TimedPick
from contextgap.learner.state import (
    Asked,
    LearnerState,
    Pending,
    Searching,
    View,
    new_state,
    random_source,
    resumed_state,
)
from contextgap.learner.trials import Plan, ReferenceWatch, StoppingRule, Trial, explore_on
from contextgap.methods.explorers import Explorer, Moment, Pick, ReferenceReader, explore
from contextgap.methods.explorers.base import any_context, choose_context
from contextgap.methods.method import Method
from contextgap.models import (
    MANY_PENDING,
    MOST_REPLAYED,
    POINTS,
    AgeingModel,
    Batch,
    Eligible,
    Follower,
    Observations,
    first_guess,
    grown_model,
    larger_model,
    stand_in,
)
from contextgap.models.tuning import AmortisedSearch, Hyperparameters, Tuning
from contextgap.policy.answers import read_propensities
from contextgap.policy.policy import Policy
from contextgap.policy.state import Card, Stateful
from contextgap.tables.columns import Columns
from contextgap.tables.contexts import (
    ContextSchema,
    Encoded,
    Intake,
    Usual,
    level_of_user,
    row_of,
    warn_of_arms,
    warn_of_doubts,
)

P = ParamSpec("P")
T = TypeVar("T")
_NOTHING = "there is no reward yet, so nothing is known about any arm"
# Operations of the search for hyperparameters per reward told: those of one or two Cholesky
# factorisations of a matrix of 1000 rows.
_PER_REWARD = 4e8
_ROUNDS = 2  # in which hyperparameters are learnt again from better stand-ins for censored rewards
_FEWEST = 40  # rewards before exploring may stop, where hyperparameters are learnt from them


class _OfPolicies:
    """An attribute that learners do not have, and that users search for."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, thing: object, owner: type) -> NoReturn:
        raise AttributeError(
            f"a Learner has no {self._name!r}; a policy has it: learner.freeze().{self._name}"
        )


def _as_deployed(
    answer: Callable[Concatenate[Policy, P], T],
) -> Callable[Concatenate[Learner, P], T]:
    """Return a method of learners that answers as the policy does that would be deployed now."""

    @wraps(answer)
    def of_learner(self: Learner, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self._lock:
            if not len(self.state.model):
                said = f"{_NOTHING}; the answer is the first of equals"
                warnings.warn(said, stacklevel=level_of_user())
            return answer(Policy(self.state.deployed()), *args, **kwargs)

    return of_learner


class Learner(Stateful):
    """Learns which arm is best at each context.

    Call ``ask`` and ``tell`` in any order and with any delay, and ``recommend`` at any time:
    exploration and deployment may alternate without notice. Learners are
    thread-safe, and every ``ask`` and ``tell`` is atomic: one that fails changes nothing.

    Parameters
    ----------
    arms
        Labels of any hashable type; an int n means 0, 1, ..., n − 1. Files and campaigns can
        store text, numbers, booleans, None, and tuples of these.
    kernel
        Similarity of contexts. ``Gaussian.from_contexts`` fits one to a sample of contexts. By
        default kernel, ridge and prior mean are learnt from rewards of any unit.
    ridge
        Regularisation: the variance of the noise. With a given kernel, 0.05 by default.
    method
        A name from ``METHODS``, a ``Method``, an explorer alone (deployed by the highest mean), or
        one of your own as ``"package.module:name"``; ``"auto"`` for the best that we know, which is
        ``"gain-or-gap"``.
    width
        How standard deviations become confidence intervals. By default the half width is one
        standard deviation with a given kernel, as in the paper, else two.
    burn_in
        Pulls of every arm, one after the other, before the method takes over. If the kernel is
        learnt, it is at least what the first tuning needs.
    prior_mean
        Mean reward where nothing was observed: a number, or ``"auto"`` for the average reward seen
        so far. With a given kernel, 0 by default.
    seed
        Makes everything random reproducible.
    retune
        When to learn hyperparameters, a little at every ``tell``: ``"growing"`` whenever there are
        1.4 times as many rewards as the last time, ``"doubling"`` twice as many, which is faster,
        and ``"never"`` only by ``tune``. By default ``"growing"`` without a kernel, else
        ``"never"``.
    sharing
        How similar arms are: the correlation between the expected rewards of two arms at
        the same context, from 0 (independent) to below 1. A reward of one arm then also informs
        about the others, and a step takes time quadratic in the number of all observations.
        With a given kernel, 0 by default. Without, it is learnt, and used where it is clearly
        better, up to 3000 rewards; 0 prevents that.
    features
        What describes each arm, such as a dose or a material: a mapping from arms to rows, a
        DataFrame indexed by arm, or rows in the order of ``arms``, with cells as in tables of
        contexts. Arms with similar features then share what they learn, ``sharing`` being the
        correlation of arms with the same features (0.9 by default where a kernel is given).
    columns
        What the columns of contexts hold, as ``Columns`` or a mapping; by default inferred from the
        first table. Columns not named are left out of contexts. A list of names says only how
        columns are called: contexts may then be arrays in that order as well as tables.
    reward
        ``"minimize"`` if rewards are costs, times or errors, to be kept low. Means and intervals
        are then those of the costs. ``"maximize"`` by default.
    points
        The largest number of inducing points, for all arms together, that replace observations
        once an arm has twice as many, or earlier where few points explain all contexts. A step then
        takes constant time; beliefs become close approximations, without a guarantee. None keeps
        exact beliefs; memory and time then grow with the square of the number of observations.
        Beliefs also stay exact where arms share, rewards age, or a rule looks back over all steps.
    half_life
        For rewards that drift: after how many rewards, of all arms together, the expected reward
        at a context has a correlation of one half with its earlier value. Old rewards count less
        and less, and intervals widen again. ``"auto"`` learns it, and uses it where the evidence
        for drift is clear. None is for rewards that do not drift. With a number, arms do not share.
    costs
        The cost of a trial of each arm, in any unit, as a mapping: gain-based and gap-based rules
        then compare arms by gain per cost. Costs that depend on the context go to ``tell(...,
        cost=...)`` and are predicted; given both, predictions start from these.
    cutoff
        The longest time that a run may take, where rewards are times (``reward="minimize"``).
        ``ask(..., cutoff=True)`` then also returns how long to let each run go on. By default a
        trial costs its time.

    See Also
    --------
    Campaign : The same loop, kept in a database.
    Policy : What ``freeze`` returns.

    Examples
    --------
    >>> import numpy as np
    >>> learner = Learner(["left", "right"], seed=0)
    >>> for x in np.linspace(-1, 1, 40):
    ...     arm = learner.ask([x])
    ...     learner.tell([x], arm, -x if arm == "left" else x)
    >>> learner.recommend([[-0.5], [0.5]])
    array(['left', 'right'], dtype=object)
    """

    state: LearnerState
    """All that the learner knows now."""

    def __init__(
        self,
        arms: Any,
        *,
        kernel: Kernel | None = None,
        ridge: float | None = None,
        method: str | Method | Explorer = "auto",
        width: Width | None = None,
        burn_in: int = 1,
        prior_mean: float | str | None = None,
        seed: int | None = None,
        retune: str | None = None,
        sharing: float | None = None,
        features: Any = None,
        columns: Columns | Mapping[str, Any] | Sequence[str] | None = None,
        reward: str = "maximize",
        points: int | None = POINTS,
        half_life: float | str | None = None,
        costs: Mapping[Label, float] | None = None,
        cutoff: float | None = None,
    ) -> None:
        state = new_state(
            read_labels(arms),
            kernel=kernel,
            ridge=ridge,
            method=method,
            width=width,
            burn_in=burn_in,
            prior_mean=prior_mean,
            seed=seed,
            retune=retune,
            sharing=sharing,
            features=features,
            columns=columns,
            reward=reward,
            points=points,
            half_life=half_life,
            costs=costs,
            cutoff=cutoff,
        )
        self._begin(state)
        scipy_cdist()  # now, and not in the middle of a loop

    def _begin(self, state: LearnerState) -> None:
        self.state = state
        self._places = {label: place for place, label in enumerate(state.labels)}
        self._rng = random_source(state.random)
        self._usual = Usual()
        self._references = ReferenceReader()
        self._followed: Follower | None = None
        self._costs: CostModel | None = None
        self._watches: WeakKeyDictionary[StoppingRule, ReferenceWatch] = WeakKeyDictionary()
        self._lock = RLock()

    @classmethod
    def from_state(cls, state: LearnerState) -> Self:
        """Return a learner that continues from a state and takes over its model.

        .. versionadded:: 0.3

        Parameters
        ----------
        state
            The ``state`` of another learner.

        Examples
        --------
        >>> other = cg.Learner.from_state(learner.state)
        >>> other.recommend([0.5, 0.0])
        'right'
        """
        learner = cls.__new__(cls)
        learner._begin(state)
        return learner

    @classmethod
    def resume(
        cls,
        policy: Policy,
        *,
        seed: int | None = None,
        retune: str | None = None,
        points: int | None = POINTS,
        costs: Mapping[Label, float] | None = None,
        cutoff: float | None = None,
    ) -> Self:
        """Return a learner that explores on with what a policy knows.

        Arms, columns, method, hyperparameters and every reward are those of the learner that froze
        it, with the costs that were told. Pending picks and a fallback are not kept, nor can arms
        be added that have features. The file of a policy with inducing points holds at most 8192
        rewards, chosen at random, and then the learner knows these.

        .. versionadded:: 0.3

        Parameters
        ----------
        policy
            What ``freeze`` returned, also from a file. A compressed one holds no rewards.
        seed
            Makes everything random reproducible.
        retune
            When to learn hyperparameters, as for a new learner; by default ``"growing"`` if the
            policy's were learnt, unless arms have features, else ``"never"``.
        points
            How many inducing points there may be, as for a new learner.
        costs, cutoff
            As for a new learner: policies do not hold them.

        See Also
        --------
        freeze : Make a policy.

        Examples
        --------
        >>> from contextgap import Gaussian
        >>> learner = Learner(["a", "b"], kernel=Gaussian(1.0), seed=0)
        >>> learner.fit([[0.0], [1.0]], ["a", "b"], [1.0, 2.0])
        Learner(2 arms, gain-or-gap, Gaussian(bandwidth=1.0), 2 observations)
        >>> later = Learner.resume(learner.freeze(), seed=1)
        >>> later.tell([0.5], "a", 1.5)
        >>> later.counts
        {'a': 2, 'b': 1}
        """
        checks.instance("policy", policy, Policy, "learner.freeze()")
        how = {"seed": seed, "retune": retune, "points": points, "costs": costs, "cutoff": cutoff}
        return cls.from_state(resumed_state(policy.state, **how))

    @synchronized
    def forget(self, *, before: int | None = None, keep: int | None = None) -> None:
        """Drop the oldest rewards, as if they had never been observed.

        Hyperparameters, pending picks and what was ``spent`` are kept. An arm left with fewer
        rewards than the burn-in is tried again before the method takes over.

        .. versionadded:: 0.3

        Parameters
        ----------
        before
            The number of the first reward to keep, counted from 0 in order of arrival.
        keep
            Instead of ``before``: how many of the latest rewards to keep.

        Examples
        --------
        >>> from contextgap import Gaussian
        >>> learner = Learner(["a", "b"], kernel=Gaussian(1.0))
        >>> learner.tell([[0.0], [1.0], [2.0]], ["a", "b", "a"], [1.0, 2.0, 3.0])
        >>> learner.forget(keep=2)
        >>> learner.counts
        {'a': 1, 'b': 1}
        """
        count = len(self.state.model)
        if (before is None) == (keep is None):
            raise TypeError("forget takes one of before= and keep=")
        if before is not None:
            first = checks.whole("before", before, least=0)
            if first >= count:
                raise ValueError(
                    f"before must be below the number of rewards told, {count}, got {before!r}; a "
                    "learner that is to know nothing is a new one"
                )
        else:
            first = max(0, count - checks.whole("keep", keep, least=1))
        if first:
            with self._atomic():
                self.state = self.state.since(first)

    @synchronized
    def restore(self, state: LearnerState) -> None:
        """Return to an earlier state of this learner: undo all later calls.

        .. versionadded:: 0.3

        Parameters
        ----------
        state
            The value of ``learner.state`` at that time. No arm may have been added since.

        Examples
        --------
        >>> before = learner.state
        >>> learner.tell([0.2, 0.1], "left", -0.2)
        >>> learner.restore(before)
        >>> sum(learner.counts.values())
        40
        """
        self.state = state
        state.model.rewind(state.mark)
        self._places = {label: place for place, label in enumerate(state.labels)}
        self._rng.bit_generator.state = state.random
        self._followed = self._costs = None
        self._watches.clear()

    def __getstate__(self) -> dict[str, Any]:
        # Watches are a cache, and hold weak references, which cannot be pickled; nor can locks.
        with self._lock:
            left_out = ("_watches", "_lock")
            return {name: value for name, value in vars(self).items() if name not in left_out}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._watches, self._lock = WeakKeyDictionary(), RLock()

    if not TYPE_CHECKING:  # a type checker finds missing attributes itself
        explain = _OfPolicies()
        certificate = _OfPolicies()

    def __copy__(self) -> Self:
        return copy.deepcopy(self)  # a copy that shared the model would change this one

    def _repr_html_(self) -> str:
        found = "given" if self.tuning is None else f"learnt: {self.tuning.chosen}"
        title = f"Learner, {self.method.name}; {self.pending} picks pending; "
        title += f"hyperparameters {found}"
        return display.table(title, ["arm", "rewards"], list(self.counts.items()))

    @property
    def pending(self) -> int:
        """The number of picks whose reward has not arrived yet."""
        return len(self.state.pending)

    @property
    def spent(self) -> float:
        """The total cost of all trials with a reward, forgotten ones included.

        A trial costs what ``tell`` was given, else the cost of its arm, else 1.

        .. versionadded:: 0.3
        """
        return self.state.spent

    @property
    def information_gain(self) -> dict[Label, float]:
        """½ ln det(I + K/ridge) of each arm: how much has been learnt about it.

        An upper bound on it where observations are represented by inducing points.
        """
        gains = self.state.model.information_gain(self.state.active)
        return dict(zip(self.arms, gains.tolist(), strict=True))

    @completed
    def columns(self) -> Columns | None:
        """What each column of a context holds; None before the first, and for arrays.

        .. versionadded:: 0.2
        """
        return self.state.schema.kinds

    @property
    def tuning(self) -> Tuning | None:
        """The report of the last tuning; None before the first.

        .. versionadded:: 0.2
        """
        return self.state.tuning

    @synchronized
    def ask(
        self,
        contexts: Any = None,
        *,
        pool: Any = None,
        arms: Any = None,
        once: bool = False,
        index: bool = False,
        cutoff: bool = False,
        **unknown: Any,
    ) -> Any:
        """Return the arm to try; from a pool, also the context to try it at.

        Picks whose reward has not arrived yet count as made: they shrink the variance at their
        contexts, so that a batch, or a slow experiment, does not repeat the same trial.

        Parameters
        ----------
        contexts
            One context (1-D), or several to be tried as a batch (2-D or a DataFrame).
        pool
            Instead of ``contexts``: a table of contexts (2-D or a DataFrame) to choose one from.
            Gap-based rules choose the one with the largest regret bound, the knowledge gradient the
            one with the highest expected gain over the pool, others one at random. None is chosen
            again before half of the pool has been tried.
        arms
            The eligible arms, all by default: labels in any order; for several contexts also one
            collection of labels per row, or a boolean array of shape (rows, arms) in the order of
            ``learner.arms``. The pick is made, burn-in included, as if there were no others; its
            reward is later logged with them.
        once
            With a pool: never return a context and an arm that were told before or are pending,
            for trials whose result is always the same.
        index
            With a pool: return the position of the row chosen in place of the row.
        cutoff
            Return how long to let each run go on as well, as a ``Pick`` of an arm and a cutoff, at
            most the learner's: short while that decides, longer where it pays. Arms are compared
            by gain per expected time. Of a run that was cut off, tell the time that it had as
            ``censored``. It may go on later, or be repeated for longer: the new result replaces the
            earlier one.
        unknown
            Any other name is an error.

        Returns
        -------
        arm
            A label for one context; an array of labels, one per row, for several. For a pool, the
            row chosen, as it was given, and a label. With ``cutoff`` a ``Pick``, or a list of them.

        See Also
        --------
        tell : Take in the reward.
        trial : The same, with a number by which to tell the reward.
        run : The whole loop.
        decide : What ``ask`` would pick, and why.
        recommend : The arm to deploy.

        Examples
        --------
        >>> arm = learner.ask([0.2, 0.1])
        >>> learner.tell([0.2, 0.1], arm, measure([0.2, 0.1], arm))
        >>> context, arm = learner.ask(pool=contexts)
        >>> learner.ask(contexts[:3]).shape
        (3,)
        """
        if cutoff and (pool is not None or self.state.cutoff is None):
            raise TypeError("cutoff=True needs contexts, not a pool, and Learner(..., cutoff=...)")
        if unknown:
            name = next(iter(unknown))
            hint = "; call ask(context) or ask(contexts=...)" if name == "context" else ""
            raise TypeError(f"ask has no argument {name!r}{hint}")
        if pool is not None:
            if contexts is not None:
                raise TypeError("contexts must be left out where pool= gives those to choose from")
            return self._ask_from(pool, arms, once, index)
        if once or index:
            raise TypeError("once= and index= are about a pool; give pool= too, or leave them out")
        if contexts is None:
            raise TypeError("contexts must be numbers, got None; or give pool= to choose one from")
        intake = self._read(contexts)
        arguments.check_sizes(self.kernel, intake.rows)
        eligible = self._eligible(arms, len(intake.rows), intake.single)
        pending, picks, limits = self.state.pending.copy(), [], []
        view = self._view(intake.schema, pending)
        if len(intake.rows) > MANY_PENDING:
            view.batch = Batch(view.model, intake.rows, view.active, pending.by_arm)
        with self._atomic():
            for row, context in enumerate(intake.rows):
                there = view if eligible is None else view.among(eligible[row])
                moment = there.moment(context, row)
                times = self._cutoffs(moment) if cutoff else None
                pick = self._pick(moment)
                picks.append(there.active[pick.arm])
                if times is not None:
                    limits.append(float(times.cutoffs[pick.arm]))
                among = None if eligible is None else there.active
                pending.add(context, picks[-1], Asked(among, pick.propensity))
                if view.batch is not None:
                    view.batch.add(row, picks[-1])
            self._asked(pending, intake.schema)
        if cutoff:
            labels = [self.state.labels[place] for place in picks]
            timed = list(map(TimedPick, labels, limits))
            return timed[0] if intake.single else timed
        if intake.single:
            return self.state.labels[picks[0]]
        return label_array(self.arms, np.searchsorted(self.state.active, picks))

    @synchronized
    def trial(
        self,
        context: Any = None,
        *,
        pool: Any = None,
        arms: Any = None,
        metadata: Any = None,
        cutoff: bool = False,
    ) -> Trial:
        """Return the arm to try at a context, as a trial with a number.

        Follow it with ``tell(trial, reward)`` or ``trial.cancel()``.

        .. versionadded:: 0.3

        Parameters
        ----------
        context
            One context.
        pool
            Instead of ``context``: a table of contexts one of which is chosen, as by ``ask``.
        arms
            The labels of the eligible arms, all by default.
        metadata
            Notes of yours, as a mapping; ``trial.metadata`` is a copy.
        cutoff
            Whether ``trial.cutoff`` says how long to let the trial run, as with ``ask``.

        See Also
        --------
        ask : The same without a number.
        pending_trials : Those whose reward is still to come.

        Examples
        --------
        >>> trial = learner.trial([0.2, 0.1])
        >>> learner.tell(trial, measure(trial.context, trial.arm))
        >>> trial.number
        40
        """
        if context is not None and not self._read(context).single:
            raise ValueError("trial takes one context; pass a 1-D context or one row")
        noted = dict(metadata or {})
        found, limit = self.ask(context, pool=pool, arms=arms, cutoff=cutoff), None
        if cutoff:
            found, limit = found
        context, arm = (context, found) if pool is None else found
        pending, number = self.state.pending.copy(), self.state.trials
        pending.number(self._place(arm), number)
        self.state = replace(self.state, pending=pending, trials=number + 1)
        return Trial(number, arm, context, noted, self, limit)

    @property
    def pending_trials(self) -> tuple[Trial, ...]:
        """The trials whose reward has not arrived yet, including those of a loaded learner.

        .. versionadded:: 0.3
        """
        state, waiting = self.state, self.state.pending.trials()
        where = [state.schema.decode(context[None])[0] for _, _, context in waiting]
        return tuple(
            Trial(number, state.labels[arm], context, {}, self)
            for (number, arm, _), context in zip(waiting, where, strict=True)
        )

    def run(
        self,
        measure: Callable[[Any, Label], float | Mapping[str, Any] | None],
        *,
        contexts: Any = None,
        pool: Any = None,
        n: int | None = None,
        until: StoppingRule | None = None,
        executor: Executor | None = None,
        workers: int | None = None,
        callbacks: Sequence[Callable[[Learner, Trial, float | None], Any]] = (),
        save: str | os.PathLike[str] | None = None,
        progress: bool = True,
    ) -> Self:
        """Explore: choose arms, measure rewards and learn from them; return the learner.

        If the run is interrupted, or ``measure`` fails, the learner keeps all rewards measured so
        far and cancels the trials under way. With ``save``, the same call continues an interrupted
        run, even in another process.

        .. versionadded:: 0.3

        Parameters
        ----------
        measure
            Called with a context, as it was given, and an arm. It returns the reward, or a mapping
            with what ``tell`` takes beside it, such as ``{"reward": 0.5, "cost": 12.0}``. None
            cancels the trial.
        contexts
            A table of contexts, in the order in which they are met.
        pool
            Instead of ``contexts``: a table from which the context of each trial is chosen.
        n
            How many trials to make at most; by default one at each of ``contexts``.
        until
            A rule that ends the run as soon as ``done(until)``, such as
            ``StoppingRule(budget=100)``.
        executor
            Where to measure: None here, one after the other; or any ``concurrent.futures.Executor``
            for several at once. Arms are chosen here.
        workers
            How many trials are under way at once in an executor; by default one per core.
        callbacks
            Each is called with the learner, a trial and its reward after every reward. One that
            returns True ends the run.
        save
            A file to keep the learner in, written after every reward. If it holds an interrupted
            run, that goes on: trials that were under way are measured again.
        progress
            Whether to show a bar, in a terminal or a notebook.

        See Also
        --------
        ask : Choose one arm.
        trial : Choose one arm, and get a number for it.

        Examples
        --------
        >>> learner = cg.Learner(["left", "right"], seed=0)
        >>> learner.run(measure, contexts=contexts, n=10, progress=False).counts
        {'left': 5, 'right': 5}
        """
        plan = Plan(self, contexts, pool, n, until, save)
        explore_on(self, measure, plan, executor, workers, callbacks, progress)
        return self

    @synchronized
    def tell(
        self,
        contexts: Any,
        arms: Any,
        rewards: Any = None,
        *,
        eligible: Any = None,
        noise: Any = None,
        censored: Any = None,
        cost: Any = None,
    ) -> None:
        """Take in rewards of trials, asked for or not, in any order and after any delay.

        Parameters
        ----------
        contexts
            One context, or several; or what ``trial`` returned, followed by the reward alone.
        arms
            The label of the arm tried, or one per context.
        rewards
            The reward, or one per context.
        eligible
            The arms that could have been tried, that tried included, for ``score`` to choose among.
            By default those that ``ask`` was given for the same context and arm, else all.
        noise
            The known standard error of the reward, or one per context; 0 by default. It comes in
            addition to the noise that the learner assumes or learns (``ridge``).
        censored
            Whether the reward is censored, or one truth value per context: the true reward is at
            most the given one; the true cost at least, as for a run that was cut off.
        cost
            What the trial cost, or one number per context; it is predicted by context and arm for
            trials to come. By default what is known of the arm, or 1.

        See Also
        --------
        ask : Choose the arm.
        fit : Take in a whole log.

        Examples
        --------
        >>> learner.tell([0.2, 0.1], "right", 0.2)
        >>> learner.tell(contexts[:2], ["left", "left"], [0.3, 0.9], noise=0.1)
        >>> learner.tell([0.9, 0.1], "left", -0.5, censored=True)
        >>> sum(learner.counts.values())
        44
        """
        if isinstance(contexts, Trial):
            if rewards is not None:
                raise TypeError(
                    "tell takes a trial and its reward, or a context, an arm and a reward"
                )
            (place, context), rewards = self._waiting(contexts), arms
            contexts, arms = Encoded(context, self.state.schema), self.state.labels[place]
        self._tell(contexts, arms, rewards, eligible, noise, censored, cost)

    def _waiting(self, trial: Trial) -> tuple[int, FloatArray]:
        """Return the arm and the context of a pending trial, which is the next to be found."""
        if trial.learner is not self:
            raise ValueError(
                f"trial {trial.number} belongs to another learner; pending_trials lists this one's"
            )
        pending = self.state.pending.copy()
        if (found := pending.bring_forward(trial.number)) is None:
            raise ValueError(
                f"trial {trial.number} is not pending: its reward was told, or it was cancelled"
            )
        self.state = replace(self.state, pending=pending)
        return found

    def _tell(
        self,
        contexts: Any,
        arms: Any,
        rewards: Any,
        eligible: Any,
        noise: Any,
        censored: Any,
        costs: Any,
        propensities: Any = None,
        *,
        log: bool = False,
    ) -> None:
        self._check_order(contexts, arms)
        intake = self._read(contexts)
        places, values, said = self._read_told(intake, arms, rewards, eligible)
        cut = arguments.read_censored(censored, len(values), single=intake.single)
        errors = arguments.read_noise(noise, cut, len(values), single=intake.single)
        called = "costs" if log else "cost"
        if self.state.cutoff is not None:
            if len(values) and values.min() <= 0:
                raise ValueError(
                    f"rewards must be times above 0 where there is a cutoff, got {values.min():g}"
                )
            if costs is None and self.state.costs is None:
                costs = float(values[0]) if intake.single else values
        paid = read_told_costs(costs, len(values), single=intake.single, called=called)
        chances = read_propensities(propensities, len(values))
        state = self.state
        if not len(values):
            return
        arguments.check_sizes(self.kernel, intake.rows, values)
        if not len(state.model) and not intake.single:
            guessed = state.schema.kinds is None
            named, numbers = intake.schema.columns, intake.rows
            warn_of_doubts(contexts, named, values, places, guessed=guessed, numbers=numbers)
            if log:  # arms may well be told one after the other
                warn_of_arms(state.labels, np.bincount(places, minlength=len(state.labels)))
        else:
            self._usual.check(intake.rows, state.model.observed.contexts, intake.schema)
        with self._atomic():
            told = arguments.Told(
                places, state.rules.sign * values, np.square(errors), cut, said, paid
            )
            self._take_in(intake, told, chances, finish=log)

    @synchronized
    def fit(
        self,
        contexts: Any,
        arms: Any,
        rewards: Any,
        *,
        eligible: Any = None,
        noise: Any = None,
        censored: Any = None,
        propensities: Any = None,
        costs: Any = None,
    ) -> Self:
        """Take in logged data, in addition to earlier rewards; return the learner.

        With a given kernel, the posterior is the same as after one ``tell`` per row, except for
        inducing points, which are chosen knowing all rows. Where hyperparameters are learnt, they
        are learnt once, from all rows.

        Parameters
        ----------
        contexts
            Contexts, 2-D or a DataFrame.
        arms
            The label of the arm tried, one per context.
        rewards
            The rewards, one per context.
        eligible, noise, censored
            The arms that could have been tried, the standard errors of rewards, and which rewards
            are censored, as for ``tell``.
        propensities
            The probability with which each arm was chosen, for ``score``; None if unknown.
        costs
            What the trials cost, one number per context, as ``cost`` of ``tell``.

        See Also
        --------
        tell : Take in rewards one at a time.
        learn_from : Learn from files of any length.

        Examples
        --------
        >>> arms = ["left", "right"] * 20
        >>> rewards = [measure(*trial) for trial in zip(contexts, arms)]
        >>> learner = cg.Learner(["left", "right"], kernel=cg.Gaussian(0.5))
        >>> learner.fit(contexts, arms, rewards).recommend([0.5, 0.0])
        'right'
        """
        self._check_order(contexts, arms)
        if self._read(contexts).single:
            raise ValueError(
                "contexts must be a table (2-D), got one context (1-D); "
                "contexts of one number each are x[:, None], and tell takes a single context"
            )
        self._tell(
            contexts, arms, rewards, eligible, noise, censored, costs, propensities, log=True
        )
        return self

    @synchronized
    def tune(self, criterion: str = "evidence") -> Self:
        """Learn bandwidths, ridge, prior mean and reward scale; return the learner.

        Observations are kept, and the posterior is recomputed with the settings found. A kernel
        that was given keeps its kind. Without one, the kind of model is chosen too: a Gaussian or a
        Matérn kernel, with or without a linear trend, a linear model, or a constant for each arm if
        contexts seem to make no difference. ``tuning`` says what was chosen and why. It replaces a
        search that is under way.

        Tuning reads the rewards, so bounds are no longer guaranteed: certificates are heuristic
        from then on.

        Parameters
        ----------
        criterion
            ``"evidence"``: the settings under which the rewards are most probable (marginal
            likelihood); ``"loo"``: those which predict every reward best from the arm's others.

        See Also
        --------
        tuning : The report.

        Examples
        --------
        >>> learner = cg.Learner(2, kernel=cg.Linear())
        >>> learner.fit(contexts[:10], [0, 1] * 5, contexts[:10, 0]).tune().tuning.rewards
        10
        """
        state, log = self.state, self.state.model.observed
        if len(log) < 2:
            raise ValueError(f"tune needs at least 2 rewards to learn from, got {len(log)}")
        self.state = state.tuned(log, *self._learnt(state, log, criterion))
        return self

    @synchronized
    def decide(self, context: Any, *, arms: Any = None) -> Decision:
        """Return what ``ask`` would pick, with means and intervals of all arms; changes nothing.

        Intervals and gaps use observed rewards only. Pending picks may change the pick;
        ``pending_std`` holds the standard deviations that it used.

        Parameters
        ----------
        context
            One context.
        arms
            The labels of the eligible arms, all by default; the decision is about them alone.

        See Also
        --------
        ask : Make the pick.
        Policy.decide : The arm to deploy, and why.

        Examples
        --------
        >>> decision = learner.decide([0.5, 0.0])
        >>> decision.leader, decision.challenger
        ('right', 'left')
        """
        intake = self._read(context)
        if not intake.single:
            raise ValueError(
                "decide explains one context: a 1-D array, a dictionary or table.iloc[0]; "
                "beliefs and recommend take many rows"
            )
        eligible, pending = self._eligible(arms, 1, True), self.state.pending
        view = self._view(intake.schema, pending, eligible)
        moment = view.moment(intake.rows[0])
        moment.rng = copy.deepcopy(self._rng)
        pick, reason, propensity = self._pick(moment)
        labels, sign = tuple(self.state.labels[i] for i in view.active), self.state.rules.sign
        belief = view.told(intake.rows[0])
        decision = Decision.of(belief, labels, pick, reason, sign, propensity)
        if not pending:
            return decision
        return replace(decision, pending=len(pending), pending_std=frozen(moment.belief.std))

    @synchronized
    def add_arm(self, label: Label, features: Any = None, cost: float | None = None) -> None:
        """Add an arm; it gets its burn-in before the method takes over again.

        Parameters
        ----------
        label
            A new label.
        features
            Its features, where arms have them; it then starts from what similar arms taught.
        cost
            What a trial of it costs, where costs of arms are known; by default the geometric mean
            of the others.

        See Also
        --------
        remove_arm : Stop choosing an arm.

        Examples
        --------
        >>> learner.add_arm("up")
        >>> learner.arms
        ('left', 'right', 'up')
        >>> learner.ask([0.2, 0.1])
        'up'
        """
        check_new_label(label, self.state.labels)
        self._add_arm(label, features, cost)

    def _add_arm(self, label: Label, given: Any, cost: float | None = None) -> None:
        costs = self.state.costs
        if costs is not None:
            usual = math.exp(np.log(costs).mean())
            costs = (*costs, usual if cost is None else read_cost("cost", cost))
        elif cost is not None:
            raise ValueError(f"cost must be given for all arms or for none; only {label!r} has one")
        state, features = self.state, self.state.features
        if (given is None) != (features is None):
            told = "has none" if given is None else f"got {given!r}, but no other arm has any"
            raise ValueError(f"features must be given for all arms or for none; {label!r} {told}")
        features = None if features is None else features.with_arm(given)
        if label in self._places:
            known = "is there already" if label in self.arms else "was removed; its data are kept"
            raise ValueError(f"the arm {label!r} {known}; choose another label")
        if features is None:
            state.model.add_arm()
        else:
            state.model.add_arm(features.rows[-1].tolist())
        place = self._places[label] = len(state.labels)
        self.state = replace(
            state,
            labels=(*state.labels, label),
            active=(*state.active, place),
            features=features,
            searching=None,
            costs=costs,
        )

    @synchronized
    def remove_arm(self, label: Label) -> None:
        """Never choose an arm again; its rewards are kept.

        Examples
        --------
        >>> learner.remove_arm("left")
        >>> learner.arms
        ('right',)
        """
        place, active = self._place(label), self.state.active
        if place not in active:
            raise ValueError(f"the arm {label!r} was removed already")
        if len(active) == 1:
            raise ValueError(f"the arm {label!r} is the only one left; add another first")
        self.state = replace(self.state, active=tuple(i for i in active if i != place))

    def expect(self, *args: Any, **kwargs: Any) -> None:
        """The name of ``add_pending`` before."""
        warnings.warn("expect is now called add_pending", DeprecationWarning, stacklevel=2)
        self.add_pending(*args, **kwargs)

    @synchronized
    def add_pending(
        self, contexts: Any, arms: Any, *, eligible: Any = None, propensities: Any = None
    ) -> None:
        """Count picks as pending that were made elsewhere, by hand or by another process.

        .. versionadded:: 0.3

        Parameters
        ----------
        contexts
            One context, or several.
        arms
            The label of the arm picked, or one per context.
        eligible
            The arms that could have been picked, as for ``tell``.
        propensities
            The probability with which each was picked, None where it is not known; their rewards,
            once told, are logged with them.

        See Also
        --------
        ask : Choose an arm and count it as pending.
        cancel : Stop counting a pick as pending.

        Examples
        --------
        >>> learner.add_pending([0.2, 0.1], "left")
        >>> learner.pending
        1
        """
        intake = self._read(contexts)
        rewards = 0.0 if intake.single else np.zeros(len(intake.rows))
        places, _, said = self._read_told(intake, arms, rewards, eligible)
        arguments.check_sizes(self.kernel, intake.rows)
        chances = arguments.read_chances(propensities, len(intake.rows))
        pending = self.state.pending.copy()
        for row, place in enumerate(places):
            among = None if said is None else said[row]
            pending.add(intake.rows[row], int(place), Asked(among, chances[row]))
        self.state = replace(self.state, pending=pending).adopting(intake.schema)

    @synchronized
    def cancel(self, context: Any, arm: Label = None) -> None:
        """Cancel the oldest pending pick of an arm at a context; its reward will never come.

        .. versionadded:: 0.2

        Parameters
        ----------
        context
            One context; or a trial, alone.
        arm
            The label of the arm picked there.

        See Also
        --------
        drop_pending : Cancel all pending picks.

        Examples
        --------
        >>> arm = learner.ask([0.2, 0.1])
        >>> learner.cancel([0.2, 0.1], arm)
        >>> learner.pending
        0
        """
        if isinstance(context, Trial):
            place, row = self._waiting(context)
            self._forget(row, place)
            return
        intake = self._read(context)
        if not intake.single:
            raise ValueError("cancel takes one context; pass a 1-D context or one row")
        if not self._forget(intake.rows[0], self._place(arm)):
            raise ValueError(f"there is no pending pick of the arm {arm!r} at the context")

    def _forget(self, context: FloatArray, arm: int) -> bool:
        """Forget the oldest pending pick of an arm at a context; return whether there is one."""
        pending = self.state.pending.copy()
        found = pending.find(context, arm)
        if found is not None:
            pending.take(arm, found)
            self.state = replace(self.state, pending=pending)
        return found is not None

    @synchronized
    def drop_pending(self) -> None:
        """Cancel all pending picks; their rewards will never come.

        Examples
        --------
        >>> arms = learner.ask(contexts[:3])
        >>> learner.drop_pending()
        >>> learner.pending
        0
        """
        self.state = replace(self.state, pending=Pending())

    recommend = _as_deployed(Policy.recommend)
    beliefs = _as_deployed(Policy.beliefs)
    means = _as_deployed(Policy.means)
    rank = _as_deployed(Policy.rank)

    @synchronized
    def score(
        self,
        propensities: Any = None,
        *,
        fallback: Label | None = None,
        tolerance: float | None = None,
        rows: int | None = None,
    ) -> Card:
        """Return a score card: an estimate of how good deploying now would be.

        Every reward is left out of what predicts it and decides at its context, among the arms that
        were eligible there; ``Card`` says what is reported. Of a long log, the default leaves out
        as many rewards, evenly spread, as take about 10 seconds, counted in operations so that the
        same log has the same card on every machine. Averages of all rows stand in for the rest, and
        the standard errors say how well.

        .. versionadded:: 0.2

        Parameters
        ----------
        propensities
            The probability with which each logged arm was chosen, in the order in which
            the rewards arrived; the value's estimate then does not depend on the model being right.
            By default those logged with the picks, if every reward was asked for and its arm drawn
            with a known probability, as by ``"proportional-response"``.
        fallback, tolerance
            Those of the policy to be frozen, as for ``freeze``.
        rows
            How many rewards to predict leave-one-out at most.

        See Also
        --------
        Policy.card : The card of a frozen policy.

        Examples
        --------
        >>> card = learner.score()
        >>> card.best_single_arm, card.gain.value > 0
        ('right', True)
        """
        policy = self._policy(self._finished(), None, fallback, tolerance)
        return policy.score(propensities, rows=rows)

    @synchronized
    def freeze(
        self,
        card: Card | None = None,
        *,
        fallback: Label | None = None,
        tolerance: float | None = None,
        points: int | None = None,
    ) -> Policy:
        """Return the current decision rule; the learner may continue to learn.

        A search for hyperparameters that is under way is finished for the policy; the learner's own
        search goes on. Freezing needs at least one reward, or a fallback.

        Parameters
        ----------
        card
            A card that ``score`` returned, to keep with the policy; by default it computes its own.
        fallback, tolerance
            A safe arm and the largest bound at which another is returned, as for
            ``Policy.with_fallback``.
        points
            Where observations are represented by inducing points, the policy may have so many of
            them, such as 2048. All observations are then gone through once more, if that brings the
            policy closer to exact beliefs.

        See Also
        --------
        resume : Explore on from a policy.
        score : Estimate how good the policy is.

        Examples
        --------
        >>> policy = learner.freeze()
        >>> policy.recommend([0.5, 0.0])
        'right'
        >>> safe = learner.freeze(fallback="left", tolerance=0.1)
        """
        if not len(self.state.model) and fallback is None:
            raise ValueError(f"{_NOTHING}; tell rewards first (ask returns arms to try)")
        if card is not None:
            checks.instance("card", card, Card, "learner.score()")
        state = self._finished()
        if points is None:
            model = state.model.snapshot()
        else:
            model = larger_model(state.model, checks.whole("points", points, least=1))
        policy = self._policy(replace(state, model=model), card, fallback, tolerance)
        return Policy(policy.state.made_now())

    @synchronized
    def settled(self, rule: StoppingRule) -> float:
        """Return the share of a rule's reference contexts with a certificate within its tolerance.

        It may fall when hyperparameters are learnt anew: certificates that rested on the old ones
        are replaced by others, which may be wider. Of a rule that has a budget alone, it is the
        share of the budget that is spent.

        Parameters
        ----------
        rule
            What is wanted. Asking after every ``tell`` costs one small update each time.

        See Also
        --------
        done : Whether the rule is met.

        Examples
        --------
        >>> rule = cg.StoppingRule(0.5, reference=contexts)
        >>> learner.settled(rule)
        1.0
        """
        checks.instance("rule", rule, StoppingRule, "StoppingRule(0.1, reference=contexts)")
        if rule.reference is None:
            return min(1.0, self.spent / (rule.budget or math.inf))
        return rule.settled(self._bounds_at(rule))

    def _bounds_at(self, rule: StoppingRule) -> FloatArray:
        state, policy, watch = self.state, self.state.policy(), self._watches.get(rule)
        reference, eligible = rule.contexts_for(state.schema), rule.eligible(self.arms)
        # Levels of categories that were unknown when the rule was first asked for may be known now.
        same = watch is not None and np.array_equal(watch.contexts, reference)
        # What earlier rewards said about now changes as they age.
        same = same and not isinstance(state.model, AgeingModel)
        if watch is None or watch.model is not state.model or not same:
            recommender = policy.rules.method.recommender
            watch = ReferenceWatch(state.model, reference, recommender, self.width)
            self._watches[rule] = watch
        return watch.bound(state.active, state.rules.burn_in, policy.seed, eligible)

    @synchronized
    def done(self, rule: StoppingRule) -> bool:
        """Return whether exploring may stop.

        Every arm that is eligible at a reference context must have had its burn-in, and the rule's
        share of reference contexts a certificate within its tolerance, or, if the rule says so,
        their mean certificate must be within it. Where hyperparameters are learnt, 40
        rewards are needed too: fewer may happen to be alike, and make certificates far too narrow.
        The answer may change back when hyperparameters are learnt anew, as ``settled`` may fall.
        Or the rule's budget is spent, or would be once the trials under way are told.

        See Also
        --------
        settled : How far the rule is met.
        run : Explores until a rule is met.

        Examples
        --------
        >>> rule = cg.StoppingRule(0.5, reference=contexts)
        >>> learner.done(rule)
        True
        """
        checks.instance("rule", rule, StoppingRule, "StoppingRule(0.1, reference=contexts)")
        if rule.budget is not None and self.spent + self._under_way() >= rule.budget:
            return True
        if rule.reference is None:
            return False
        state, bound = self.state, self._bounds_at(rule)
        enough = rule.met(bound)
        eligible, used = rule.eligible(self.arms), np.array(state.active)
        used = used if eligible is None else used[eligible.any(axis=0)]
        enough = enough and (state.next_tune is None or len(state.model) >= _FEWEST)
        return enough and min(map(state.model.observed.count, used)) >= state.rules.burn_in

    def _under_way(self) -> float:
        """Return what pending picks will cost, about."""
        total = 0.0
        for arm, contexts in self.state.pending.by_arm.items():
            costs = self._typical_costs(np.array(contexts), [arm])
            total += len(contexts) if costs is None else float(costs.sum())
        return total

    @synchronized
    def _save(self, path: File) -> None:
        # A loaded learner has no followed points; without them both continue identically.
        self._followed = None
        self.state.write(path)

    @classmethod
    def _load(cls, path: File) -> Self:
        return cls.from_state(LearnerState.read(path))

    def _read_told(
        self, intake: Intake, arms: Any, rewards: Any, eligible: Any
    ) -> tuple[IntArray, FloatArray, list[Eligible] | None]:
        if intake.single:
            places = np.array([self._place(arms)])
            values = np.array([checks.reward("rewards", rewards)])
        else:
            places, values = arguments.read_outcomes(len(intake.rows), arms, rewards, self._place)
        active, single = self.state.active, intake.single
        said = arguments.read_told_eligible(
            eligible, self.state.labels, active, places, single=single
        )
        return places, values, said

    def _take_in(
        self,
        intake: Intake,
        told: arguments.Told,
        given: FloatArray | None,
        *,
        finish: bool,
    ) -> None:
        places, values = told.arms, told.rewards
        state = self.state.adopting(intake.schema)
        schema, renaming = state.schema.telling(intake.rows)
        rows = intake.rows if renaming is None else renaming(intake.rows)
        pending = state.pending if renaming is None else state.pending.changed(renaming)
        pending = pending.copy()
        asked, rounded = pending.answer(rows, places)
        if rounded:
            warnings.warn(
                f"{rounded} of {len(rows)} contexts told equal that of a pending pick of the same "
                "arm only when rounded; they count as its answer. Tell contexts with all digits",
                stacklevel=level_of_user(),
            )
        chances = [each.propensity for each in asked] if given is None else given.tolist()
        sets = [each.eligible for each in asked] if told.eligible is None else told.eligible
        model, count, noise, cut = state.model, len(state.model), told.noise, told.censored
        at_once = self._learns_at_once(len(values), finish=finish)
        limits = np.where(cut, values, np.nan)
        if cut.any() and len(values) == 1:
            here = model.posterior(rows[0], [int(places[0])])
            values, noise = stand_in(values, here.mean, np.square(here.std), model.ridge)
        again = state.cutoff is not None and model.observed.has_censored(rows, places)
        several = (len(values) > 1 and cut.any()) or again
        own = noise if noise.any() else None
        if at_once or several:  # the model is about to be replaced: only the log needs to grow
            log = model.observed.snapshot()
            log.extend(rows, places, values, own)
        else:
            model = grown_model(model, rows, places, values, state.points, own)
            log = model.observed
        log.note_eligible(count, sets)
        log.note_propensities(count, chances)
        log.note_limits(count, limits)
        log.note_costs(count, told.costs)
        if state.cutoff is not None and several:
            log.supersede(count)
        if several:
            log = first_guess(log)
        state = replace(state, model=model, schema=schema, pending=pending)
        if at_once:
            self.state = state.tuned(log, *self._learnt(state, log))
        else:
            state = state.settled(log) if several else state
            self.state = self._searched(state, len(values))

    def _learns_at_once(self, new: int, *, finish: bool) -> bool:
        """Return whether hyperparameters are learnt before so many new rewards are taken in."""
        state, count = self.state, len(self.state.model)
        if new == 1 or state.next_tune is None:
            return False
        # However few, rewards that come in bulk may be all there will ever be.
        if not (state.kernel_given or state.rules.tuned_on_rewards):
            return True
        due = count + new >= state.next_tune
        return due and (finish or count + new >= state.growth * max(count, 1))

    def _searched(self, state: LearnerState, new: int) -> LearnerState:
        log, searching = state.model.observed, state.searching
        if searching is None:
            if not self._is_time_to_tune(len(log), new):
                return state
            searching = Searching(state.search(log, last=state.tuning), 0.0)
        operations = searching.operations + new * _PER_REWARD
        found = self._result(searching.search, operations)
        if found is not None:
            return state.tuned(log, *found)
        return replace(state, searching=Searching(searching.search, operations))

    def _is_time_to_tune(self, count: int, new: int) -> bool:
        state = self.state
        # A single reward has no very long log gone through again: hyperparameters are known.
        if state.next_tune is None or (new == 1 and count > MOST_REPLAYED):
            return False
        return count >= state.next_tune

    def _result(
        self, search: AmortisedSearch, operations: float
    ) -> tuple[Hyperparameters, Tuning] | None:
        """Return what a search found, None if it takes more; a log that is replayed has its own."""
        return search.result(operations)

    def _found(self, search: AmortisedSearch) -> tuple[Hyperparameters, Tuning]:
        found = self._result(search, math.inf)
        if found is None:
            raise RuntimeError("the search for hyperparameters has no end")
        return found

    def _learnt(
        self, state: LearnerState, log: Observations, criterion: str = "evidence"
    ) -> tuple[Hyperparameters, Tuning]:
        """Return hyperparameters of a log, learnt again with better stand-ins for its rewards."""
        found = self._found(state.search(log, criterion))
        for _ in range(_ROUNDS if len(log.censored) else 0):
            log = state.tuned(log, *found).model.observed
            found = self._found(state.search(log, criterion, last=found[1]))
        return found

    def _finished(self) -> LearnerState:
        state = self.state
        if state.searching is None:
            return state.settled() if len(state.model.observed.censored) else state
        return state.tuned(state.model.observed.snapshot(), *self._found(state.searching.search))

    def _asked(self, pending: Pending, schema: ContextSchema) -> None:
        random = self._rng.bit_generator.state
        self.state = replace(self.state, pending=pending, random=random).adopting(schema)

    @contextmanager
    def _atomic(self) -> Iterator[None]:
        """Undo everything that was changed if an error or an interrupt ends the call."""
        state = self.state
        try:
            yield
        except BaseException:
            self.restore(state)
            raise

    def _read(self, contexts: Any, called: str = "contexts") -> Intake:
        state = self.state
        intake = state.schema.read(contexts, called, learning=True)
        if intake.schema is not state.schema:
            self.kernel.check_dimension(intake.rows.shape[1])
            if state.kernel_given and intake.schema.layout is not None:
                check_categories(self.kernel, intake.schema.layout.categories)
            if (given := state.rules.method.explorer.given_contexts) is not None:
                self._references(given, intake.schema)
        return intake

    def _check_order(self, contexts: Any, arms: Any) -> None:
        """Raise if the arm or arms were given in place of the contexts."""
        first = contexts[0] if isinstance(contexts, list | tuple) and contexts else contexts
        second = arms[0] if isinstance(arms, list | tuple) and arms else arms
        given = self._is_arm(contexts) or self._is_arm(first)
        if given and not (self._is_arm(arms) or self._is_arm(second)):
            raise TypeError(
                f"contexts must be contexts, got the arm {first!r}; "
                "the order is context, arm, reward"
            )

    def _is_arm(self, thing: Any) -> bool:
        try:
            return thing in self._places
        except TypeError:  # nothing hashable
            return False

    def _place(self, label: Any) -> int:
        try:
            return self._places[label]
        except (KeyError, TypeError):
            raise ValueError(f"arms must be among {list(self._places)}, got {label!r}") from None

    def _ask_from(self, pool: Any, arms: Any, once: bool, index: bool) -> tuple[Any, Label]:
        intake = self._read(pool, called="pool")
        if intake.single or not len(intake.rows):
            raise ValueError("pool must be a table of contexts (2-D) with at least one row")
        arguments.check_sizes(self.kernel, intake.rows)
        eligible, pending = self._eligible(arms, 1, True), self.state.pending.copy()
        view = self._view(intake.schema, pending, eligible)
        left = self._left(intake.rows, view.active) if once else None
        rows = np.arange(len(intake.rows)) if left is None else np.flatnonzero(left.any(axis=1))
        if not len(rows):
            raise ValueError("every arm was tried at every context of the pool; none is left")
        rules, pulls = self.state.rules, view.pulls()
        burning_in = min(pulls) < rules.burn_in
        if burning_in and left is not None:
            # A context where the arm whose turn it is was not tried, if there is one.
            open_to_it = np.flatnonzero(left[:, pulls.index(min(pulls))])
            rows = open_to_it if len(open_to_it) else rows
        rows = self._unvisited(intake.rows, rows)
        with self._atomic():
            chosen = view.pool(intake.rows[rows])
            explorer = rules.method.explorer
            row = rows[any_context(chosen) if burning_in else choose_context(chosen, explorer)]
            there = view if left is None else view.among(left[row])
            pick = self._pick(there.moment(intake.rows[row]))
            place = there.active[pick.arm]
            among = None if eligible is None else view.active
            pending.add(intake.rows[row], place, Asked(among, pick.propensity))
            self._asked(pending, intake.schema)
        return int(row) if index else row_of(pool, row), self.state.labels[place]

    def _unvisited(self, pool: FloatArray, rows: IntArray) -> IntArray:
        """Return the rows never visited while less than half of the pool was, then all rows."""
        # Hyperparameters that are wrong at first, a long bandwidth with much noise, ask for the
        # same few contexts again and again, and these never contradict them.
        log, pending = self.state.model.observed, self.state.pending
        visited = {x.tobytes() for x in log.contexts}
        visited |= {x.tobytes() for own in pending.by_arm.values() for x in own}
        new = np.array([x.tobytes() not in visited for x in pool])
        among = rows[new[rows]]
        return among if 2 * new.sum() > len(pool) and len(among) else rows

    def _left(self, rows: FloatArray, active: Sequence[int]) -> Mask:
        """Return which arms were neither told nor picked at each of several contexts."""
        log, pending = self.state.model.observed, self.state.pending
        tried = {(x.tobytes(), arm) for x, arm in zip(log.contexts, log.arms.tolist(), strict=True)}
        tried |= {(x.tobytes(), arm) for arm, own in pending.by_arm.items() for x in own}
        return np.array([[(x.tobytes(), arm) not in tried for arm in active] for x in rows])

    def _eligible(self, arms: Any, rows: int, single: bool) -> Mask | None:
        return read_eligible(arms, self.arms, rows, single=single)

    def _view(self, schema: ContextSchema, pending: Pending, eligible: Mask | None = None) -> View:
        state = self.state
        view = View(
            model=state.model,
            pending=pending,
            active=state.active,
            width=state.rules.width,
            rng=self._rng,
            follower=self._follower,
            read=lambda given: self._references(given, schema),
            costs=self._typical_costs,
        )
        return view if eligible is None else view.among(eligible[0])

    def _follower(self) -> Follower:
        model = self.state.model
        if self._followed is None or self._followed.model is not model:
            self._followed = model.follow()
        return self._followed

    def _typical_costs(self, contexts: FloatArray, arms: Sequence[int]) -> FloatArray | None:
        if self._costs is None or self._costs.model is not self.state.model:
            self._costs = CostModel(self.state.model)
        return self._costs.typical(contexts, arms, self.state.costs)

    def _cutoffs(self, moment: Moment) -> Cutoffs:
        """Return how long arms may run; they are compared by what that is expected to take."""
        state, most, log = self.state, self.state.cutoff or math.inf, self.state.model.observed
        cut = ~np.isnan(log.limits)
        told = -np.where(cut, log.limits, log.rewards)
        if cut.all() or min(moment.pulls) < state.rules.burn_in:
            first = first_cutoff(float(told[np.isfinite(told)].max(initial=0.0)), most)
            return Cutoffs(*np.full((2, len(moment.pulls)), first))
        times = best_cutoffs(moment.belief, moment.ridge, most, float(told[~cut].min()) / 2)
        if state.costs is None and not (times.expected == times.expected[0]).all():
            moment.costs = times.expected
        return times

    def _pick(self, moment: Moment) -> Pick:
        rules = self.state.rules
        return explore(moment, rules.method.explorer, rules.burn_in)

    def _policy(
        self,
        state: LearnerState,
        card: Card | None,
        fallback: Label | None,
        tolerance: float | None,
    ) -> Policy:
        spending = (state.spent, cost_of_a_tenth(state)) if state.priced else None
        policy = Policy(replace(state.deployed(), card=card, spending=spending))
        if fallback is not None:
            safe = policy.with_fallback(fallback, tolerance=tolerance)
            return Policy(replace(safe.state, card=card))
        if tolerance is not None:
            raise TypeError(f"tolerance needs a fallback to answer, got tolerance={tolerance!r}")
        return policy
