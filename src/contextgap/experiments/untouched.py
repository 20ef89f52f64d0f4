"""The learner as users get it: no setting, scales learnt from the rewards, beside two yardsticks.

The paper's studies tune settings on held-out data. A user has none, so here nothing is given. The
yardsticks are *full information*, the same learner told the rewards of all arms at every context,
and the *best single arm*, known in hindsight.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from contextgap.base.arrays import IntArray
from contextgap.experiments.compare import read_methods
from contextgap.experiments.study import Pair
from contextgap.experiments.tasks import Result, Task, execute
from contextgap.learner import Learner
from contextgap.methods import Method
from contextgap.problems import Problem
from contextgap.problems.extras import study_import

if TYPE_CHECKING:
    from pandas import DataFrame

FULL, SINGLE = "full information", "best single arm"
YARDSTICKS = (FULL, SINGLE)


def compare_untouched(
    rounds: Sequence[Pair],
    *,
    methods: Iterable[Any] | Mapping[str, Any],
    checkpoints: Sequence[int],
    yardsticks: Sequence[str] = YARDSTICKS,
    seeds: Sequence[int] | None = None,
    **how: Any,
) -> DataFrame:
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
    seeds
        One per pair; 0, 1, ... by default.
    how
        For ``execute``: ``executor``, ``store``, ``progress``.

    Returns
    -------
    records
        One row per method or yardstick, repetition and checkpoint: ``method``, ``repetition``,
        ``checkpoint``, ``average_regret``, ``worst_regret``, and the ``seconds`` of the whole run.
    """
    chosen = read_methods(methods)
    numbers = list(range(len(rounds)) if seeds is None else seeds)
    entries: list[tuple[str, Any, dict[str, Any]]] = [
        (label, explore_once, {"method": method}) for label, method in chosen.items()
    ]
    entries += [(label, _YARDSTICKS[label], {}) for label in yardsticks]
    places = [
        (label, repetition, Task(function, {
            "explore": explore,
            "exploit": exploit,
            "checkpoints": list(checkpoints),
            "seed": numbers[repetition],
            **own,
        }))
        for label, function, own in entries
        for repetition, (explore, exploit) in enumerate(rounds)
    ]  # fmt: skip
    results = execute([task for _, _, task in places], **how)
    rows = [
        {"method": label, "repetition": repetition, **reached, "seconds": result["seconds"]}
        for (label, repetition, _), result in zip(places, results, strict=True)
        for reached in result["reached"]
    ]
    return study_import("pandas").DataFrame(rows)


def explore_once(
    explore: Problem, exploit: Problem, method: Method, checkpoints: Sequence[int], seed: int
) -> Result:
    """Return the regret of deploying after each number of steps."""
    learner = Learner(explore.n_arms, method=method, seed=seed)
    reached = []
    for step, (context, heard) in enumerate(
        zip(explore.contexts, explore.observations, strict=True), 1
    ):
        arm = learner.ask(context)
        learner.tell(context, arm, heard[arm])
        if step in checkpoints:
            reached.append(_reached(step, exploit, learner.recommend(exploit.contexts)))
    return {"reached": reached}


def full_information(
    explore: Problem, exploit: Problem, checkpoints: Sequence[int], seed: int
) -> Result:
    """Return the regret of deploying after all arms were observed at every context so far."""
    reached = []
    for step in checkpoints:
        learner = Learner(explore.n_arms, method="uniform", seed=seed)
        contexts = np.repeat(explore.contexts[:step], explore.n_arms, axis=0)
        arms = np.tile(np.arange(explore.n_arms), min(step, len(explore)))
        learner.fit(contexts, arms, explore.observations[:step].ravel())
        reached.append(_reached(step, exploit, learner.recommend(exploit.contexts)))
    return {"reached": reached}


def best_single_arm(
    explore: Problem, exploit: Problem, checkpoints: Sequence[int], seed: int
) -> Result:
    """Return the regret of always deploying the arm that is best for that."""
    del explore, seed
    arm = int(exploit.regret_table.mean(axis=0).argmin())
    picks = np.full(len(exploit), arm)
    return {"reached": [_reached(step, exploit, picks) for step in checkpoints]}


_YARDSTICKS = {FULL: full_information, SINGLE: best_single_arm}


def _reached(step: int, exploit: Problem, picks: IntArray) -> Result:
    regret = exploit.regret(np.asarray(picks, dtype=np.intp))
    return {
        "checkpoint": step,
        "average_regret": float(regret.mean()),
        "worst_regret": float(regret.max()),
    }
