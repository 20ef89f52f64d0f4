"""What a graph says about itself: strings by key, JSON where structured."""

from __future__ import annotations

import json
from importlib.metadata import version

from contextgap.base.labels import encode_label
from contextgap.export.rule import DecisionRule, ExportError

PREFIX = "contextgap."


def describe(rule: DecisionRule, numbers: int) -> dict[str, str]:
    """Return a graph's metadata.

    Parameters
    ----------
    rule
        The policy that the graph holds.
    numbers
        How many numbers the graph's largest value holds per context, by which runners choose how
        many contexts to run at once.
    """
    try:
        labels = [encode_label(label) for label in rule.labels]
    except TypeError as error:
        raise ExportError(str(error)) from None
    structured = {
        "labels": labels,
        "columns": None if rule.columns is None else list(rule.columns),
        "dimension": rule.dimension,
        "recommender": rule.recommender.describe(),
        "kernel": rule.kernel.describe(),
        "probability": rule.probability,
        "numbers_per_context": numbers,
    }
    texts = {f"{PREFIX}{key}": json.dumps(value) for key, value in structured.items()}
    return {**texts, f"{PREFIX}version": version("contextgap")}
