"""The trials that a policy rests on, as users know them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from contextgap.base.arrays import evenly
from contextgap.base.labels import Label
from contextgap.insight.contexts import read_policy


def trials(source: Any, most: int) -> list[tuple[Mapping[str, Any], Label]]:
    """Return contexts by column and the arms tried there, at most so many, evenly over time."""
    policy = read_policy(source)
    log, schema = policy.state.model.observed, policy.state.schema
    places, names = evenly(np.arange(len(log)), most), list(schema.parts())
    found = []
    for cells, arm in zip(schema.decode(log.contexts[places]), log.arms[places], strict=True):
        context = cells if isinstance(cells, Mapping) else dict(zip(names, cells, strict=True))
        found.append((context, policy.state.labels[int(arm)]))
    return found
