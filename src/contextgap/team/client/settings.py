"""Settings of learners as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from contextgap.base.components import Component
from contextgap.base.labels import read_labels
from contextgap.team.campaign.codec import contexts_json


def settings_json(settings: Mapping[str, Any], arms: Any) -> dict[str, Any]:
    """Return settings of ``Learner`` as JSON values; parts are described by their fields."""
    found = {name: _plain(value) for name, value in settings.items()}
    if settings.get("columns") is not None:
        found["columns"] = {name: _plain(kind) for name, kind in settings["columns"].items()}
    features = settings.get("features")
    if isinstance(features, Mapping):
        features = [features[label] for label in read_labels(arms)]
    if features is not None:
        found["features"] = contexts_json(features, "features")
    return found


def _plain(value: Any) -> Any:
    return value.describe() if isinstance(value, Component) else value
