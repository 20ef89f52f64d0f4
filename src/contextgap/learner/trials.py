"""When to stop, trials, and the loop that makes them."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from contextgap.base import checks, files
from contextgap.base.arrays import FloatArray
from contextgap.base.checks import Label, Mask, groups, read_eligible
from contextgap.base.display import ProgressBar
from contextgap.beliefs import Belief, Width
from contextgap.learner.state import LearnerState, Running
from contextgap.methods.recommenders import Recommender, SmallestGapInHistory
from contextgap.methods.recommenders.history import LookBack
from contextgap.models import Model
from contextgap.policy.answers import GivenEvidence
from contextgap.tables.contexts import ContextSchema, read_table, row_of

if TYPE_CHECKING:
    from contextgap.learner.learner import Learner


@dataclass(frozen=True, eq=False)
class StoppingRule:
    """Stop when a share of reference contexts has a certificate within the tolerance.

    With a width that guarantees its intervals, such as ``TheoremWidth``, the simple regret at
    those contexts is within the tolerance, with the width's probability. With ``average`` it is the
    mean certificate over the reference contexts that must be within the tolerance. Then the
    policy's value, its expected reward averaged over them, is at most that much below the best
    possible value.

    Parameters
    ----------
    tolerance
        The simple regret that may be left.
    share
        The share of the reference contexts, above 0 and at most 1.
    reference
        Contexts that stand for those to be deployed on, a table as the learner takes them.
    arms
        The arms that will be eligible there, all by default: labels, or one collection of labels
        per row, or a boolean array, as ``Policy.recommend`` takes them. Certificates are then among
        these arms, and arms that are eligible nowhere need no burn-in.
    average
        Compare the mean certificate with the tolerance; ``share`` is not used then.
    budget
        Stop as soon as so much is spent, whatever is certified; without a reference, then alone.

    See Also
    --------
    Learner.done : Whether a rule is met.
    Learner.run : Explores until a rule is met.

    Examples
    --------
    >>> import contextgap as cg
    >>> rule = cg.StoppingRule(budget=10)
    >>> learner = cg.Learner(["a", "b"], costs={"a": 1, "b": 4})
    >>> learner.run(lambda context, arm: 0.0, contexts=[[0.0]] * 20, until=rule).spent
    10.0
    """

    tolerance: float = 0.0
    share: float = 0.95
    reference: Any = field(default=None, repr=False)
    arms: Any = field(default=None, repr=False)
    average: bool = False
    budget: float | None = None
    given: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        tolerance = checks.at_least("tolerance", self.tolerance, 0, "a simple regret")
        share = checks.positive("share", self.share, "0.95 is usual")
        if share > 1:
            raise ValueError(f"share must be at most 1, got {self.share!r}")
        checks.truth("average", self.average)
        # As it was given, for columns with names or types, which a learner reads by its own.
        given = copy.deepcopy(self.reference)
        checks.settle(self, tolerance=tolerance, share=share, given=given)
        if self.budget is not None:
            checks.settle(self, budget=checks.positive("budget", self.budget, "the sum of costs"))
        elif given is None:
            raise TypeError("reference must be contexts to certify, got None; or give a budget")
        if given is not None and (intake := read_table(given, "reference")) is not None:
            checks.settle(self, reference=intake.rows)

    def contexts_for(self, schema: ContextSchema) -> FloatArray:
        """Return the reference contexts as a learner with this schema sees them."""
        return schema.read(self.given, called="reference contexts", learning=True).rows

    def eligible(self, labels: Sequence[Label]) -> Mask | None:
        return read_eligible(self.arms, labels, len(self.reference), single=False)

    def settled(self, bound: FloatArray) -> float:
        """Return the share of contexts whose bound is within the tolerance."""
        return float((bound <= self.tolerance).mean())

    def met(self, bound: FloatArray) -> bool:
        if self.average:
            return float(bound.mean()) <= self.tolerance
        return self.settled(bound) >= self.share


class ReferenceWatch:
    """Certificates at contexts of shape (m, d), updated with every reward, by eligible arms."""

    def __init__(
        self, model: Model, reference: FloatArray, recommender: Recommender, width: Width
    ) -> None:
        self.model = model
        self.contexts = reference
        self._of = partial(_Watch, model, recommender=recommender, width=width)
        self._watches: dict[bytes, _Watch] = {}

    def bound(
        self, active: tuple[int, ...], burn_in: int, seed: int, eligible: Mask | None
    ) -> FloatArray:
        """Take in new rewards and return max(0, gap of the arm to deploy) at every context."""
        count, bound = len(self.contexts), np.empty(len(self.contexts))
        everything = np.arange(count), np.arange(len(active))
        for rows, columns in [everything] if eligible is None else groups(eligible):
            key = rows.tobytes()
            if key not in self._watches:
                self._watches[key] = self._of(self.contexts[rows])
            among = tuple(active[column] for column in columns)
            bound[rows] = self._watches[key].bound(
                among, columns.tolist(), burn_in * len(among), seed
            )
        return bound


@dataclass(eq=False)
class _Watch:
    model: Model
    contexts: FloatArray
    recommender: Recommender
    width: Width
    look_back: LookBack | None = None
    seen: int = 0
    active: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        self.follower = self.model.follow(self.contexts)

    def bound(
        self, active: tuple[int, ...], columns: Sequence[int], burn_in_end: int, seed: int
    ) -> FloatArray:
        """Take in new rewards; ``columns`` are the places of the arms among all of them."""
        rule = self.recommender
        if isinstance(rule, SmallestGapInHistory):
            self._look(rule, active, burn_in_end)
        belief = Belief(self.follower.posterior(active), self.width)
        if self.look_back is not None and self.look_back.empty:
            self.look_back.add(belief)
        about = belief, self.contexts, len(active), seed, columns
        evidence = GivenEvidence(*about, lambda _: cast(LookBack, self.look_back).choice())
        return np.maximum(rule.choose(evidence).gap, 0.0)

    def _look(self, rule: SmallestGapInHistory, active: tuple[int, ...], burn_in_end: int) -> None:
        """Update the look-back with every step since the last call."""
        if self.look_back is None or active != self.active:
            self.look_back = LookBack(rule.last)  # gaps to other arms are not comparable
            self.active = active
        first = self.seen + 1
        for step, posterior in enumerate(self.follower.steps(active), first):
            if step >= burn_in_end:
                self.look_back.add(Belief(posterior, self.width))
        self.seen = len(self.model)


@dataclass(frozen=True, eq=False)
class Trial:
    """An arm to try at a context; ``learner.tell(trial, reward)`` records its reward.

    .. versionadded:: 0.3

    Parameters
    ----------
    number
        Its number among the trials of the learner, from 0.
    arm
        The arm to try.
    context
        The context to try it at, as you gave it.
    metadata
        Notes of yours. Files do not keep them.
    learner
        The learner that it belongs to.
    cutoff
        When to stop the run, with ``trial(..., cutoff=True)``. Files do not keep it.

    See Also
    --------
    Learner.trial : Makes one.

    Examples
    --------
    >>> trial = learner.trial([0.2, 0.1], metadata={"operator": "Ada"})
    >>> trial.arm in learner.arms, trial.metadata
    (True, {'operator': 'Ada'})
    """

    number: int
    arm: Label
    context: Any
    metadata: dict[str, Any]
    learner: Learner = field(repr=False)
    cutoff: float | None = None

    def cancel(self) -> None:
        """Cancel the trial, because its reward will never come.

        Examples
        --------
        >>> trial = learner.trial([0.2, 0.1])
        >>> trial.cancel()
        >>> learner.pending
        0
        """
        self.learner.cancel(self)


class Plan:
    """Which trials a run makes, and where it is kept."""

    def __init__(
        self,
        learner: Learner,
        contexts: Any,
        pool: Any,
        n: int | None,
        until: StoppingRule | None,
        save: Any,
    ) -> None:
        if (contexts is None) == (pool is None):
            raise TypeError("run needs contexts= to meet in order, or pool= to choose from")
        if n is None and contexts is None and until is None:
            raise TypeError("run over a pool never ends; give n= or until=")
        if until is not None:
            checks.instance("until", until, StoppingRule, "StoppingRule(0.1, reference=contexts)")
        most = None if contexts is None else len(contexts)
        self.most = most if n is None else checks.whole("n", n, least=0)
        if most is not None and (self.most or 0) > most:
            raise ValueError(f"n must be at most the number of contexts, {most}, got {n}")
        self.contexts, self.pool, self.until, self.save = contexts, pool, until, save
        if save is not None:
            files.check_output(save)
            if os.path.exists(save):
                self._take_over(learner)
        state = learner.state
        self.running = state.running or Running(state.trials, len(state.model))
        if save is not None:
            learner.state = replace(state, running=self.running)

    def _take_over(self, learner: Learner) -> None:
        """Let the learner go on from the file of an interrupted run, if it is this run's."""
        state, rewards = LearnerState.read(self.save), len(learner.state.model)
        if state.running is None:
            raise ValueError(
                f"{self.save} holds a learner whose run is finished; Learner.load loads it, or "
                "name another file"
            )
        began, saved = state.running.rewards, len(state.model)
        if state.labels != learner.state.labels or rewards not in (began, saved):
            raise ValueError(
                f"{self.save} holds a run of {list(state.labels)} that began with {began} rewards "
                f"and has {saved}; this learner has {rewards}, so it is another: name another file"
            )
        learner.restore(state)

    def waiting(self, learner: Learner) -> list[Trial]:
        trials = [each for each in learner.pending_trials if each.number >= self.running.first]
        if self.contexts is None:
            return trials
        rows = [row_of(self.contexts, each.number - self.running.first) for each in trials]
        return [replace(each, context=row) for each, row in zip(trials, rows, strict=True)]

    def next(self, learner: Learner) -> Trial | None:
        made = learner.state.trials - self.running.first
        if self.most is not None and made >= self.most:
            return None
        if self.contexts is None:
            return learner.trial(pool=self.pool)
        return learner.trial(row_of(self.contexts, made))

    def done(self, learner: Learner) -> bool:
        return self.until is not None and learner.done(self.until)

    def progress(self, learner: Learner) -> tuple[int, int]:
        """Return how much is done, and of how much: trials, or certified reference contexts."""
        if self.most is None and self.until is not None:
            return round(100 * learner.settled(self.until)), 100
        state, first = learner.state, self.running.first
        left = sum(number >= first for number, _, _ in state.pending.trials())
        return state.trials - first - left, self.most or 0


class _Here(Executor):
    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


def explore_on(
    learner: Learner,
    measure: Callable[[Any, Label], float | Mapping[str, Any] | None],
    plan: Plan,
    executor: Executor | None,
    workers: int | None,
    callbacks: Sequence[Callable[[Learner, Trial, float | None], Any]],
    progress: bool,
) -> None:
    if executor is None and workers is not None:
        raise TypeError(f"workers= is about an executor, got workers={workers!r} without one")
    at_once = os.cpu_count() or 1 if workers is None else checks.whole("workers", workers, least=1)
    at_once, pool = (1, _Here()) if executor is None else (at_once, executor)
    bar = ProgressBar("exploring") if progress else lambda _done, _total: None
    under_way: dict[Future[Any], Trial] = {}
    waiting, ended = plan.waiting(learner), plan.done(learner)
    try:
        while True:
            while not ended and len(under_way) < at_once:
                trial = waiting.pop(0) if waiting else plan.next(learner)
                if trial is None:
                    break
                under_way[pool.submit(measure, trial.context, trial.arm)] = trial
            if not under_way:
                break
            finished = wait(under_way, return_when=FIRST_COMPLETED).done
            for each in sorted(finished, key=lambda future: under_way[future].number):
                trial, reward, about = under_way[each], each.result(), dict[str, Any]()
                if isinstance(reward, Mapping):
                    about = dict(reward)
                    reward = about.pop("reward", None)
                if reward is None:
                    trial.cancel()
                else:
                    learner.tell(trial, reward, **about)
                del under_way[each]
                if plan.save is not None:
                    learner.save(plan.save)
                called = [callback(learner, trial, reward) for callback in callbacks]
                ended = ended or any(found is True for found in called)
            ended = ended or plan.done(learner)
            bar(*plan.progress(learner))
    finally:
        for future in under_way:
            future.cancel()
        for trial in plan.waiting(learner):
            trial.cancel()
        learner.state = replace(learner.state, running=None)
    if plan.save is not None:
        learner.save(plan.save)
