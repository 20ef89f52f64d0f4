"""Takes the difference of two arms' posterior means apart, trial by trial and column by column.

A posterior mean is a weighted sum of what trials gave, so the parts of all trials sum up to the
difference exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from contextgap.base.arrays import FloatArray, evenly
from contextgap.base.labels import Label
from contextgap.models import Model
from contextgap.policy.explanation import Argument, Explanation
from contextgap.tables.contexts import ContextSchema

_SEEN = 64  # contexts from which a column takes other values


def explain(
    model: Model,
    schema: ContextSchema,
    labels: Sequence[Label],
    context: FloatArray,
    pair: tuple[int, int],
    most: int,
    sign: float,
) -> Explanation:
    """Return why the first arm of a pair is believed to be better than the second.

    ``context`` has shape (1, d); the sign is −1 for users who tell costs.
    """
    (variance,), (weights,) = model.sums(context, pair, np.array([[[1.0, -1.0]]]))
    difference = float(_difference(model, context, pair)[0])
    log, prior = model.observed, model.prior()
    parts = weights * (log.rewards - prior)
    order = [i for i in np.argsort(-np.abs(parts), kind="stable")[:most].tolist() if parts[i]]
    where = schema.decode(log.contexts[order]) if order else []
    trials = tuple(
        Argument(
            place=place,
            arm=labels[int(log.arms[place])],
            context=found,
            reward=sign * float(log.rewards[place]),
            weight=float(weights[place]),
            part=sign * float(parts[place]),
        )
        for place, found in zip(order, where, strict=True)
    )
    return Explanation(
        context=schema.decode(context)[0],
        arm=labels[pair[0]],
        against=labels[pair[1]],
        difference=sign * difference,
        std=math.sqrt(variance),
        trials=trials,
        others=len(model) - len(trials),
        rest=sign * difference - sum(each.part for each in trials),
        columns={
            name: sign * (difference - _elsewhere(model, context, pair, numbers))
            for name, numbers in schema.parts().items()
        },
    )


def _difference(model: Model, contexts: FloatArray, pair: tuple[int, int]) -> FloatArray:
    mean = model.posterior(contexts, pair).mean
    return mean[:, 0] - mean[:, 1]


def _elsewhere(
    model: Model, context: FloatArray, pair: tuple[int, int], numbers: Sequence[int]
) -> float:
    """Return the average difference if some numbers of a context are those of others."""
    seen = model.observed.contexts
    if not len(seen):
        return float(_difference(model, context, pair)[0])
    others = seen[evenly(np.arange(len(seen)), _SEEN)]
    changed = np.repeat(context, len(others), axis=0)
    changed[:, numbers] = others[:, numbers]
    return float(_difference(model, changed, pair).mean())
