"""Trials as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from contextgap.team.campaign.trial import Trial

_ABOUT = ("state", "arm", "reward", "asked", "until", "told", "why", "by")


def context_cells(trial: Trial) -> dict[str, Any]:
    """Return a trial's context by column; columns without names are x0, x1, ...

    A column named as something else about a trial is prefixed with "context.", twice if another
    column is called so.
    """
    if isinstance(trial.context, Mapping):
        named = dict(trial.context)
    else:
        named = {f"x{place}": cell for place, cell in enumerate(trial.context)}
    cells = {}
    for name, cell in named.items():
        written = name
        while written in ("trial", *_ABOUT) or (written != name and written in named):
            written = f"context.{written}"
        cells[written] = cell
    return cells


def trials_frame(trials: Sequence[Trial]) -> Any:
    """Return trials as a DataFrame, one row each, indexed by their numbers."""
    import pandas as pd

    about = {name: [getattr(trial, name) for trial in trials] for name in _ABOUT}
    index = pd.Index([trial.id for trial in trials], name="trial", dtype="int64")
    frame = pd.DataFrame(about, index=index)
    frame["reward"] = frame["reward"].astype("float64")
    for name in ("asked", "until", "told"):
        frame[name] = pd.to_datetime(frame[name], utc=True)
    contexts = pd.DataFrame([context_cells(trial) for trial in trials], index=index)
    return frame.join(contexts)
