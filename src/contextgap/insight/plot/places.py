"""Where values of a column are drawn, and what is said about all other columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from contextgap.policy.explanation import in_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LONGEST = 80  # letters in a title


def places(values: Sequence[Any], ordered: bool) -> list[Any]:
    """Return where values are drawn: numbers, times, or for levels 0, 1, 2 and so on."""
    if not ordered:
        return list(range(len(values)))
    return [_on_a_line(value) for value in values]


def place_of(value: Any, values: Sequence[Any], ordered: bool) -> Any:
    """Return where one more value is drawn; None if it has no place."""
    if ordered:
        return None if value is None else _on_a_line(value)
    return values.index(value) if value in values else None


def _on_a_line(value: Any) -> Any:
    return datetime.fromisoformat(value) if isinstance(value, str) else value


def write_levels(ax: Axes, axis: str, values: Sequence[Any]) -> None:
    """Write levels at their places on an axis."""
    names = ["missing" if value is None else str(value) for value in values]
    getattr(ax, f"set_{axis}ticks")(range(len(names)), names)
    if axis == "x" and sum(map(len, names)) > 50:
        ax.tick_params(axis="x", rotation=45)


def elsewhere(context: Any, *shown: str) -> str:
    """Return in words what all columns are, but for those shown."""
    if not isinstance(context, Mapping):
        context = {f"column {place}": value for place, value in enumerate(context)}
    others = {name: value for name, value in context.items() if name not in shown}
    said = f"at {in_words(others)}" if others else ""
    return said if len(said) <= _LONGEST else said[: _LONGEST - 1] + "…"
