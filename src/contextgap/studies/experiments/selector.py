"""A selector to ship: learnt from few runs on all instances of a scenario."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from contextgap.base import checks, files
from contextgap.base.files import whole_file
from contextgap.methods.explorers import Explorer
from contextgap.methods.method import Method, read_method
from contextgap.policy import Policy
from contextgap.studies.experiments.selection import BUDGET_HINT, explore
from contextgap.studies.experiments.tasks import Progress
from contextgap.studies.problems import Scenario
from contextgap.studies.problems.algorithm_selection.instances import Instances, read_instances
from contextgap.studies.problems.algorithm_selection.preparation import Preparation

POLICY, DESCRIPTION = "selector.cgap", "selector.json"

_VERSION = 1  # of the description


@dataclass(frozen=True)
class Selection:
    """The solver for one instance.

    Losses are differences of reward: where performance is a time, log10 of how many times longer
    the selected solver takes than the best one.

    Parameters
    ----------
    instance
        The instance.
    solver
        The algorithm to run on it.
    expected_loss
        How much better the best solver is, in expectation: ``Policy.expected_regret``.
    bound
        How much better it may be: ``Policy.certificate``.
    """

    instance: str
    solver: str
    expected_loss: float
    bound: float


@dataclass(frozen=True, eq=False)
class Selector:
    """Picks a solver for instances by their raw features.

    The policy's own columns are prepared features, and called so, for raw ones not to be taken for
    them.

    Parameters
    ----------
    scenario
        The name of the scenario that it was learnt on.
    runtime
        Whether performance is a time, so that losses are log10 of a ratio of times.
    policy
        Which algorithm to run, given prepared features.
    preparation
        How raw features are prepared.
    """

    scenario: str
    runtime: bool
    policy: Policy
    preparation: Preparation

    def read(self, path: str | os.PathLike[str]) -> Instances:
        """Return the instances in a file, their features prepared.

        Parameters
        ----------
        path
            A .csv or .parquet file with a column for each feature, named as in the scenario. A cell
            that is empty or "?" is a gap. Where the scenario says how the steps of the feature
            computation ended, columns such as "probe failed" say it here, by 0 or 1. A column
            ``instance_id`` gives names; rows with the same name are repetitions, and averaged.
        """
        return read_instances(Path(path), self.preparation)

    def select(self, instances: Instances) -> list[Selection]:
        """Return the solver for each instance.

        Parameters
        ----------
        instances
            What ``read`` returned.
        """
        contexts, policy = instances.contexts, self.policy
        columns: tuple[Any, ...] = (
            instances.names,
            map(str, policy.recommend(contexts)),
            policy.expected_regret(contexts).tolist(),
            policy.certificate(contexts).bound.tolist(),
        )
        return [Selection(*row) for row in zip(*columns, strict=True)]

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write selector.cgap, the policy, and selector.json, all else.

        Parameters
        ----------
        folder
            Where to write; made if missing.
        """
        Path(folder).mkdir(parents=True, exist_ok=True)
        described = {
            "format": "contextgap selector",
            "version": _VERSION,
            "scenario": self.scenario,
            "runtime": self.runtime,
            "preparation": asdict(self.preparation),
        }
        self.policy.save(Path(folder) / POLICY)
        with whole_file(Path(folder) / DESCRIPTION, text=True) as file:
            file.write(json.dumps(described, indent=1, allow_nan=False) + "\n")

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Selector:
        """Read a selector.

        Parameters
        ----------
        folder
            Where ``save`` wrote it.
        """
        path, policy = Path(folder) / DESCRIPTION, Policy.load(Path(folder) / POLICY)
        text = path.read_bytes()
        with files.making_sense_of(path):
            described = json.loads(text)
            if described["version"] != _VERSION:
                raise ValueError(f"version {described['version']!r} is unknown to this release")
            preparation = Preparation.restored(described["preparation"])
            if policy.columns != prepared_columns(preparation):
                raise ValueError(f"it does not describe the columns of {POLICY} beside it")
            return cls(str(described["scenario"]), bool(described["runtime"]), policy, preparation)


def prepared_columns(preparation: Preparation) -> tuple[str, ...]:
    """Return what a selector's policy calls its columns."""
    return tuple(f"prepared {name}" for name in preparation.columns)


def learn_selector(
    scenario: Scenario,
    *,
    method: str | Method | Explorer = "auto",
    budget: float = 1,
    seed: int = 0,
    choose: bool = False,
    progress: Progress | None = None,
) -> Selector:
    """Learn one selector from runs on all instances of a scenario, by a learner without settings.

    Parameters
    ----------
    scenario
        Instances, algorithms and all their runs, as ``AlgorithmSelection(folder).load()`` gives it.
    method
        A name from ``METHODS``, or a method.
    budget
        Visits per instance, one run each; a fraction for a part of the instances.
    seed
        The order of the instances, and all that is random about the method.
    choose
        Whether the learner chooses which instance comes next.
    progress
        Called with the numbers of finished and of all visits, such as
        ``cg.ProgressBar("learning")``.
    """
    preparation = known_preparation(scenario)
    visits = checks.positive("budget", budget, BUDGET_HINT)
    named = replace(scenario, columns=prepared_columns(preparation))
    ((policy, _),) = explore(named, read_method(method), [visits], seed, choose, progress)
    return Selector(scenario.name, scenario.runtime, policy, preparation)


def known_preparation(scenario: Scenario) -> Preparation:
    """Return how a scenario's raw features were prepared, or raise if it does not say."""
    if scenario.preparation is None:
        raise ValueError(
            "scenario must know how its raw features were prepared, as what "
            "AlgorithmSelection(folder).load() returns does"
        )
    return scenario.preparation
