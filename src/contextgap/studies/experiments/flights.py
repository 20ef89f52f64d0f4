"""Simulates many flights as tasks; their regret comes as one table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from contextgap.base.names import study_import
from contextgap.beliefs.widths import PosteriorWidth
from contextgap.kernels import Kernel
from contextgap.methods.method import Method
from contextgap.studies.experiments.compare import Entry
from contextgap.studies.experiments.fly import fly
from contextgap.studies.experiments.tasks import Result, Task, execute
from contextgap.studies.problems import Problem

if TYPE_CHECKING:
    from pandas import DataFrame


def fly_all(missions: Sequence[Problem], entries: Sequence[Entry], **how: Any) -> DataFrame:
    """Fly every mission with every entry; ``how`` is for ``execute``.

    A mission's place in the list is its seed. The table has one row per method, seed and orbit:
    average regret over the steps without feedback, beside that of the best single arm and of a
    random arm.
    """
    pandas = study_import("pandas")
    places = [(entry, seed) for entry in entries for seed in range(len(missions))]
    tasks = [
        Task(
            fly_once,
            {
                "mission": missions[seed],
                "method": entry.method,
                "kernel": entry.kernel,
                "ridge": entry.ridge,
                "scale": entry.scale,
                "seed": seed,
            },
        )
        for entry, seed in places
    ]
    tables = [
        pandas.DataFrame({"method": entry.label, "seed": seed, **result}).drop(columns="seconds")
        for (entry, seed), result in zip(places, execute(tasks, **how), strict=True)
    ]
    return pandas.concat(tables, ignore_index=True)


def fly_once(
    mission: Any, method: Method, kernel: Kernel, ridge: float, scale: float, seed: int
) -> Result:
    """Return one flight's regret by orbit."""
    trace = fly(mission, method, kernel=kernel, ridge=ridge, width=PosteriorWidth(scale), seed=seed)
    deployed = mission.orbit_number[trace.deployed]
    return {
        "orbit": trace.orbits.tolist(),
        "steps": [int((deployed == orbit).sum()) for orbit in trace.orbits],
        "average_regret": trace.average_regret.tolist(),
        "best_single": trace.best_single.tolist(),
        "random": trace.random.tolist(),
    }
