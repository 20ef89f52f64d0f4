"""Colours that all pictures share, and axes to draw on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's palette, which colour-blind readers can tell apart too.
GREY, BLUE, ORANGE, YELLOW = "#7f7f7f", "#0072B2", "#D55E00", "#F0E442"


def new_axes(width: float, height: float) -> Axes:
    """Return the axes of a new pyplot figure, which notebooks show."""
    from matplotlib import pyplot

    axes: Axes = pyplot.figure(figsize=(width, height), layout="constrained").add_subplot()
    return axes
