"""Colours that all pictures share, and axes to draw on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette, which colour-blind readers can tell apart too.
GREY, BLUE, ORANGE, YELLOW = "#7f7f7f", "#0072B2", "#D55E00", "#F0E442"
_ARMS = (BLUE, ORANGE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C564B", "#5D3A9B")


def colours(count: int) -> list[str]:
    """Return a colour per arm; from the ninth arm on they come again."""
    return [_ARMS[place % len(_ARMS)] for place in range(count)]


def new_figure(width: float, height: float) -> Figure:
    """Return a new pyplot figure, which notebooks show."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        name = (error.name or "").partition(".")[0]
        said = f"pictures need {name}; pip install 'contextgap[plot]' brings it"
        raise ImportError(said) from None
    return pyplot.figure(figsize=(width, height), layout="constrained")


def new_axes(width: float, height: float) -> Axes:
    """Return the axes of a new pyplot figure."""
    axes: Axes = new_figure(width, height).add_subplot()
    return axes
