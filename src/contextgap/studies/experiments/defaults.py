"""The learner with default settings, which learns its hyperparameters, beside two yardsticks.

The paper's studies tune settings on held-out data. A user has none, so here nothing is given. The
yardsticks are *full information*, the same learner with the rewards of all arms at every context,
and the *best single arm*, chosen by the rewards it is evaluated on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.learner import Learner
from contextgap.methods.method import Method, read_method
from contextgap.studies.experiments.compare import Pair, Results, read_methods, tabulate
from contextgap.studies.experiments.tasks import Result, Task, execute_labelled
from contextgap.studies.problems import Problem

if TYPE_CHECKING:
    from pandas import DataFrame


FULL, SINGLE = "full information", "best single arm"
YARDSTICKS = (FULL, SINGLE)


def evaluate_defaults(
    rounds: Sequence[Pair],
    *,
    methods: Iterable[Any] | Mapping[str, Any],
    checkpoints: Sequence[int],
    yardsticks: Sequence[str] = YARDSTICKS,
    full_checkpoints: Sequence[int] | None = None,
    seeds: Sequence[int] | None = None,
    settings: Mapping[str, Any] | None = None,
    **how: Any,
) -> Results:
    """Explore and deploy with every method, without settings, on pairs of rows.

    Full information is fitted anew after each of ``full_checkpoints``, to the rewards of all arms,
    which takes long. ``settings`` are given to every learner; ``how`` is for ``execute``.
    """
    given = {} if settings is None else {"settings": dict(settings)}
    at = {"checkpoints": list(checkpoints)}
    # What is compared: a label, a function and the arguments that only it has.
    entries: list[tuple[str, Callable[..., Result], dict[str, Any]]] = [
        (label, explore_once, {"method": method, **at, **given})
        for label, method in read_methods(methods).items()
    ]
    unknown = [name for name in yardsticks if name not in YARDSTICKS]
    if unknown:
        raise ValueError(f"yardsticks must be among {YARDSTICKS}, got {unknown[0]!r}")
    if FULL in yardsticks:
        # One task per fit, so that workers share the longest part of the work evenly.
        each = checkpoints if full_checkpoints is None else full_checkpoints
        entries += [(FULL, full_information, {"checkpoints": [step], **given}) for step in each]
    if SINGLE in yardsticks:
        entries.append((SINGLE, best_single_arm, at))
    numbers = list(range(len(rounds)) if seeds is None else seeds)
    pairs = [
        {"explore": explore, "exploit": exploit, "seed": seed}
        for (explore, exploit), seed in zip(rounds, numbers, strict=True)
    ]
    places = [
        ({"method": label, "repetition": repetition}, Task(function, {**pair, **own}))
        for label, function, own in entries
        for repetition, pair in enumerate(pairs)
    ]
    return tabulate(execute_labelled(places, **how), "seconds")


def summarise_defaults(records: DataFrame) -> DataFrame:
    """Return each method's mean regret after the last step, with standard errors, best first."""
    last = records[records["checkpoint"] == records["checkpoint"].max()]
    by_method = last.groupby("method", sort=False)
    table: DataFrame = by_method[["average_regret", "worst_regret"]].mean()
    table.insert(1, "error", by_method["average_regret"].sem())
    uniform = table["average_regret"].get("uniform", np.nan)
    table["ratio_to_uniform"] = table["average_regret"] / (uniform or np.nan)
    return table.sort_values("average_regret", kind="stable").reset_index()


def marked(label: str) -> str:
    """Return a method's label, with a mark behind it if it is what "auto" stands for."""
    return f"{label} (default)" if label == read_method("auto").name else label


def same_rows(rounds: Sequence[Pair]) -> bool:
    """Whether several rounds explore the same rows in the same order, as logs in time order do."""
    first, *others = (explore.contexts for explore, _ in rounds)
    return bool(others) and all(np.array_equal(first, other) for other in others)


def explore_once(
    explore: Problem,
    exploit: Problem,
    method: str | Method,
    checkpoints: Sequence[int],
    seed: int,
    settings: Mapping[str, Any] | None = None,
) -> Result:
    """Return the regret after each number of steps, and how often each rank was tried."""
    learner = Learner(explore.n_arms, method=method, seed=seed, **(settings or {}))
    reached, arms = [], []
    for arm in explored(learner, explore.inputs, explore.observations):
        arms.append(arm)
        if len(arms) in checkpoints:
            reached.append(_reached(len(arms), exploit, learner.freeze().recommend(exploit.inputs)))
    ranks = explore.ranks[np.arange(len(arms)), arms]
    return {
        "reached": reached,
        "picks": np.bincount(ranks, minlength=explore.n_arms + 1)[1:].tolist(),
    }


def explored(learner: Learner, contexts: Iterable[Any], observations: FloatArray) -> Iterator[int]:
    """Ask, observe and tell at one context after the other; yield the index of each arm tried."""
    arms = learner.arms
    for context, rewards in zip(contexts, observations, strict=True):
        arm = learner.ask(context)
        place = arms.index(arm)
        learner.tell(context, arm, rewards[place])
        yield place


def full_information(
    explore: Problem,
    exploit: Problem,
    checkpoints: Sequence[int],
    seed: int,
    settings: Mapping[str, Any] | None = None,
) -> Result:
    """Return the regret of deploying after all arms were observed at every context so far."""
    reached = []
    for step in checkpoints:
        learner = Learner(explore.n_arms, method="uniform", seed=seed, **(settings or {}))
        contexts = explore.inputs[np.repeat(np.arange(min(step, len(explore))), explore.n_arms)]
        arms = np.tile(np.arange(explore.n_arms), min(step, len(explore)))
        learner.fit(contexts, arms, explore.observations[:step].ravel())
        reached.append(_reached(step, exploit, learner.freeze().recommend(exploit.inputs)))
    return {"reached": reached}


def best_single_arm(
    explore: Problem, exploit: Problem, checkpoints: Sequence[int], seed: int
) -> Result:
    """Return the regret of always deploying the arm that is best for that."""
    del explore, seed
    arm = int(exploit.regret_table.mean(axis=0).argmin())
    picks = np.full(len(exploit), arm)
    return {"reached": [_reached(step, exploit, picks) for step in checkpoints]}


def _reached(step: int, exploit: Problem, picks: IntArray) -> Result:
    regret = exploit.regret(np.asarray(picks, dtype=np.intp))
    return {
        "checkpoint": step,
        "average_regret": float(regret.mean()),
        "worst_regret": float(regret.max()),
    }
