"""Learners in files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from contextgap.base import checks, files
from contextgap.learner.features import ArmFeatures
from contextgap.learner.rewards import read_chances
from contextgap.learner.settings import read_points
from contextgap.models import Eligible, check_floats
from contextgap.models.tuning import Tuning
from contextgap.policy.state import (
    describe_rules,
    describe_state,
    file_version,
    read_seed,
    read_truth,
    restore_rules,
    restore_state,
)

if TYPE_CHECKING:
    from contextgap.learner.learner import Learner

L = TypeVar("L", bound="Learner")

_MOST_GROWTH = 1e6  # of rewards between two tunings; more is no setting


def write_learner(learner: Learner, path: files.File) -> None:
    """Write a learner with everything it needs to continue exactly as it would have."""
    # A loaded learner has no followed points; without them both continue identically.
    learner._followed = None
    model, schema = learner._model, learner._schema
    waiting = [(arm, x) for arm, contexts in learner._pending.by_arm.items() for x in contexts]
    eligible = [each for arm in learner._pending.by_arm for each in learner._pending.eligible[arm]]
    chances = [x for arm in learner._pending.by_arm for x in learner._pending.propensities[arm]]
    header = {
        **describe_rules(learner._rules),
        **describe_state(model, learner._labels, learner._active, schema),
        "random_state": learner._rng.bit_generator.state,
        "policy_seed": learner._policy_seed,
        "pending": [arm for arm, _ in waiting],
        "next_tune": learner._next_tune,
        "growth": learner._growth,
        "kernel_given": learner._kernel_given,
        "alone": learner._alone,
        "points": learner._points,
        **({"features": None} if learner._features is None else learner._features.describe()),
        "tuning": None if learner._tuning is None else learner._tuning.describe(),
    }
    if said := any(each is not None for each in eligible):
        header["pending_eligible"] = eligible
    if drawn := any(each is not None for each in chances):
        header["pending_propensities"] = chances
    contexts = np.array([x for _, x in waiting]).reshape(len(waiting), schema.dimension or 0)
    arrays = {**model.arrays(), "pending": contexts}
    files.write(
        path,
        "learner",
        header,
        arrays,
        file_version(model, schema, learner._rules, newer=said or drawn),
    )


def read_learner(kind: type[L], path: files.File) -> L:
    """Return the learner of a file, as an instance of ``kind``."""
    header, arrays = files.read(path, "learner")
    with files.making_sense_of(path):
        model, labels, active, schema = restore_state(header, arrays)
        learner = kind(labels)
        learner._rules = restore_rules(header)
        learner._model, learner._active, learner._schema = model, active, schema
        learner._rng.bit_generator.state = header["random_state"]
        if learner._rng.bit_generator.state != header["random_state"]:
            raise ValueError("the random state is invalid")
        learner._policy_seed = read_seed(header["policy_seed"])
        following = header["next_tune"]
        if following is not None:
            following = checks.whole("next_tune", following, least=1)
        learner._next_tune = following
        # Until release 0.2 scales were learnt whenever rewards had doubled.
        learner._growth = checks.at_least("growth", header.get("growth", 2.0), 1.0)
        if learner._growth > _MOST_GROWTH:
            raise ValueError(f"growth must be at most {_MOST_GROWTH}, got {learner._growth}")
        learner._kernel_given = read_truth("kernel_given", header["kernel_given"])
        # Files of release 0.1 know nothing about arms that share.
        learner._alone = read_truth("alone", header.get("alone", learner._kernel_given))
        # Learners of earlier files stay exact, as they were.
        learner._points = read_points(header.get("points"), learner.method.recommender)
        learner._features = ArmFeatures.restored(header, labels)
        told = model.settings().get("features", header.get("features"))
        if told != header.get("features"):
            raise ValueError("the features of the arms are not those that the model has")
        tuning = header.get("tuning")  # files of release 0.1 have none
        learner._tuning = None if tuning is None else Tuning.restored(tuning)
        waiting = [checks.whole("pending", arm, least=0) for arm in header["pending"]]
        check_floats(arrays["pending"], (len(waiting), schema.dimension or 0))
        if waiting and max(waiting) >= len(labels):
            raise ValueError("a pending pick names an arm that does not exist")
        eligible = header.get("pending_eligible", [None] * len(waiting))
        chances = read_chances(header.get("pending_propensities"), len(waiting))
        picks = zip(arrays["pending"], waiting, eligible, chances, strict=True)
        for context, arm, among, chance in picks:
            learner._pending.add(context, arm, _read_among(among, arm, len(labels)), chance)
    return learner


def _read_among(among: Any, arm: int, n_arms: int) -> Eligible:
    """Return the arms among which a pending pick was made."""
    if among is None:
        return None
    arms = tuple(checks.whole("pending_eligible", each, least=0) for each in among)
    if sorted(set(arms)) != list(arms) or arm not in arms or arms[-1] >= n_arms:
        raise ValueError("the eligible arms of a pending pick do not match the arms")
    return arms
