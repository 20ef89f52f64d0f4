"""Trials with numbers, and the loop that makes them, measures them and learns from them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from contextgap.base import checks, files
from contextgap.base.bars import ProgressBar
from contextgap.base.labels import Label
from contextgap.learner.state import LearnerState, Running
from contextgap.learner.stopping import StoppingRule
from contextgap.tables.contexts import row_of

if TYPE_CHECKING:
    from contextgap.learner.learner import Learner


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
    """Make the trials of a plan, at most ``workers`` at once."""
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
