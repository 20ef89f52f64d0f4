"""What learning from sums over rows needs of a learner: scales from a sample, then a policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.learner.learner import Learner
from contextgap.models import Dictionary, Observations, Statistics, dictionary_of, summed_model
from contextgap.policy.fallback import Fallback
from contextgap.policy.policy import Policy
from contextgap.policy.scoring import AllRows
from contextgap.tables.columns import Number
from contextgap.tables.contexts import ContextSchema
from contextgap.tables.schema import Coding, TableSchema


def set_columns(learner: Learner, codings: Sequence[Coding]) -> None:
    """Have a new learner read contexts in this way; columns of plain numbers stay what they are."""
    plain = all(each.kind == Number() for each in codings)
    if not plain or learner._schema.table is not None:
        learner._schema = ContextSchema.of(TableSchema(tuple(codings)))


def schema_of_all(learner: Learner) -> ContextSchema:
    """Return how contexts are read, with rewards told of all levels that are known."""
    table = learner._schema.table
    if table is not None:
        learner._schema = ContextSchema.of(table.all_told())
    return learner._schema


def sign_of(learner: Learner) -> float:
    """Return what rewards are multiplied by: −1 for costs."""
    return learner._rules.sign


def support_of(learner: Learner) -> Dictionary:
    """Return support points chosen among a learner's contexts."""
    return dictionary_of(learner._model, _points(learner))


def _points(learner: Learner) -> int:
    if learner._points is None:
        raise ValueError("exact beliefs rest on every row; sums need support points")
    return learner._points


def summed_policy(
    learner: Learner,
    kept: IntArray,
    dictionary: Dictionary,
    sums: Mapping[int, Statistics],
    reward_sum: float,
    outermost: tuple[FloatArray, IntArray, FloatArray],
    chances: FloatArray | None,
    fallback: Any = None,
    tolerance: float | None = None,
    card_rows: int | None = None,
) -> Policy:
    """Return a policy of sums over many rows, of which the learner was told a sample.

    ``kept`` are the places of those told that are a uniform sample of all rows: ``card_rows`` of
    them are left out for the score card, whose averages of arms and of what was logged rest on all
    rows. ``outermost`` are rows that extend their range, and ``chances`` the propensities of those
    kept.
    """
    log = _part(learner._model.observed, kept)
    counts = [sums[arm].count if arm in sums else 0 for arm in range(log.n_arms)]
    log.stands_for(counts)
    model = summed_model(learner._model, log, dictionary, sums, reward_sum, _points(learner))
    learner._model = model
    policy = learner._policy(model)
    if fallback is not None:
        layout = policy.state.schema.layout
        seen = np.concatenate([log.contexts, outermost[0]])
        codes = 0 if layout is None else layout.categories
        safe = Fallback.of(fallback, tolerance, policy.arms, seen, codes)
        policy = Policy(replace(policy.state, fallback=safe))
    direct, robust = model.averages(policy.state.active, sums)
    rows = sum(counts)
    everything = AllRows(rows, reward_sum / rows, direct, None if chances is None else robust)
    card = policy.scored(chances, card_rows, everything)
    log.extend(*outermost)
    log.stands_for(counts)
    return Policy(replace(policy.state, card=card))


def _part(log: Observations, places: IntArray) -> Observations:
    """Return some of a log's observations."""
    part = Observations(log.n_arms)
    part.extend(log.contexts[places], log.arms[places], log.rewards[places])
    if log.has_eligible:
        eligible = log.eligible(places)
        part.note_eligible(0, [tuple(np.flatnonzero(row).tolist()) for row in eligible])
    return part
