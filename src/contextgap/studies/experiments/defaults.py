"""The learner with default settings, which learns its hyperparameters, beside two yardsticks.

The paper's studies tune settings on held-out data. A user has none, so here nothing is given. The
yardsticks are *full information*, the same learner with the rewards of all arms at every context,
and the *best single arm*, chosen by the rewards it is evaluated on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.names import study_import
from contextgap.learner import Learner
from contextgap.methods.method import Method, read_method
from contextgap.studies.experiments.compare import Pair, Results, read_methods
from contextgap.studies.experiments.tasks import Result, Task, execute
from contextgap.studies.problems import Problem

if TYPE_CHECKING:
    from pandas import DataFrame


FULL, SINGLE = "full information", "best single arm"
YARDSTICKS = (FULL, SINGLE)
_Entry: TypeAlias = tuple[str, Callable[..., Result], dict[str, Any]]


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

    Parameters
    ----------
    rounds
        Pairs of rows to explore and rows to deploy on, one per repetition.
    methods
        Names from ``METHODS``, methods, explorers, or "package.module:name" of your own; a mapping
        gives them labels.
    checkpoints
        Numbers of steps after which to deploy.
    yardsticks
        Which of "full information" and "best single arm" to add.
    full_checkpoints
        Numbers of steps after which full information is deployed, if not ``checkpoints``: it is
        fitted anew after each, to the rewards of all arms, which takes long.
    seeds
        One per pair; 0, 1, ... by default.
    settings
        What to give to every learner all the same, such as ``kernel``, ``ridge`` and ``width``.
    how
        For ``execute``: ``executor``, ``store``, ``progress``.

    Returns
    -------
    results
        ``records`` with one row per method or yardstick, repetition and checkpoint: ``method``,
        ``repetition``, ``checkpoint``, ``average_regret``, ``worst_regret``, and the ``seconds`` of
        the whole run; and the ``picks`` and ``timings`` of the methods.
    """
    entries = _entries(
        read_methods(methods),
        list(checkpoints),
        yardsticks,
        list(checkpoints if full_checkpoints is None else full_checkpoints),
        {} if settings is None else {"settings": dict(settings)},
    )
    numbers = list(range(len(rounds)) if seeds is None else seeds)
    places = [
        (label, repetition, Task(function, {
            "explore": explore, "exploit": exploit, "seed": numbers[repetition], **own,
        }))
        for label, function, own in entries
        for repetition, (explore, exploit) in enumerate(rounds)
    ]  # fmt: skip
    results = execute([task for _, _, task in places], **how)
    labels = [{"method": label, "repetition": repetition} for label, repetition, _ in places]
    return _tabulate(list(zip(labels, results, strict=True)))


def _entries(
    methods: Mapping[str, Method],
    checkpoints: list[int],
    yardsticks: Sequence[str],
    full_checkpoints: list[int],
    given: dict[str, Any],
) -> list[_Entry]:
    """Return what is compared: a label, a function and the arguments that only it has."""
    unknown = [name for name in yardsticks if name not in YARDSTICKS]
    if unknown:
        raise ValueError(f"yardsticks must be among {YARDSTICKS}, got {unknown[0]!r}")
    at = {"checkpoints": checkpoints}
    entries: list[_Entry] = [
        (label, explore_once, {"method": method, **at, **given})
        for label, method in methods.items()
    ]
    if FULL in yardsticks:
        # One task per fit, so that workers share the longest part of the work evenly.
        each = [{"checkpoints": [step], **given} for step in full_checkpoints]
        entries += [(FULL, full_information, own) for own in each]
    if SINGLE in yardsticks:
        entries.append((SINGLE, best_single_arm, at))
    return entries


def _tabulate(labelled: Sequence[tuple[dict[str, Any], Result]]) -> Results:
    pandas = study_import("pandas")
    explored = [(label, result) for label, result in labelled if "picks" in result]
    return Results(
        pandas.DataFrame(
            [
                {**label, **reached, "seconds": result["seconds"]}
                for label, result in labelled
                for reached in result["reached"]
            ]
        ),
        pandas.DataFrame(
            [
                {**label, "rank": rank, "count": count}
                for label, result in explored
                for rank, count in enumerate(result["picks"], 1)
            ]
        ),
        pandas.DataFrame([{**label, "seconds": result["seconds"]} for label, result in explored]),
    )


def summarise_defaults(records: DataFrame) -> DataFrame:
    """Return the regret after the last step, best first.

    Parameters
    ----------
    records
        From ``evaluate_defaults``.

    Returns
    -------
    table
        Columns ``method``; ``average_regret``, the mean over repetitions; ``error``, its standard
        error, not a number for a single repetition; ``worst_regret``; and ``ratio_to_uniform``,
        the average regret over that of uniform exploration, not a number without it.
    """
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
            reached.append(_reached(len(arms), exploit, learner.recommend(exploit.inputs)))
    ranks = explore.ranks[np.arange(len(arms)), arms]
    return {
        "reached": reached,
        "picks": np.bincount(ranks, minlength=explore.n_arms + 1)[1:].tolist(),
    }


def explored(learner: Learner, contexts: Iterable[Any], observations: FloatArray) -> Iterator[int]:
    """Ask, observe and tell at one context after the other; yield the index of each arm tried."""
    arms = learner.arms
    for context, heard in zip(contexts, observations, strict=True):
        arm = learner.ask(context)
        place = arms.index(arm)
        learner.tell(context, arm, heard[place])
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
        reached.append(_reached(step, exploit, learner.recommend(exploit.inputs)))
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
