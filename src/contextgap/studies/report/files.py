"""Figures as files and as text, byte for byte reproducible."""

from __future__ import annotations

import os
import re
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_RESOLUTION = 200
# What colours that have a role are called in the page's style.
_ROLES = {
    "#000000": "currentColor",
    "#222222": "currentColor",
    "#ffffff": "var(--paper)",
    "#d9d9d9": "var(--grid)",
}
# Neither the day nor links to vocabularies.
_NO_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}


def save(figure: Figure, folder: str | os.PathLike[str], name: str) -> tuple[Path, Path]:
    """Write a figure as SVG and as PNG.

    Parameters
    ----------
    figure
        What to write.
    folder
        Where; made if it does not exist.
    name
        The files' name without its ending.

    Returns
    -------
    paths
        The SVG and the PNG.
    """
    if not name or Path(name).name != name:
        raise ValueError(f"name must be a file name without folders, got {name!r}")
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    paths = place / f"{name}.svg", place / f"{name}.png"
    paths[0].write_text(svg_text(figure), encoding="utf-8", newline="\n")
    figure.savefig(paths[1], dpi=_RESOLUTION, metadata={"Software": None})
    return paths


def svg_text(figure: Figure) -> str:
    """Return a figure as an SVG document.

    Letters are outlines: they look the same everywhere, and labels that were placed by their
    measured size stay where they are on machines without the font.
    """
    text = StringIO()
    with matplotlib.rc_context({"svg.fonttype": "path", "svg.hashsalt": "contextgap"}):
        figure.savefig(text, format="svg", metadata=_NO_METADATA)
    return text.getvalue()


def _themed(found: re.Match[str]) -> str:
    """A colour that the page's style may replace, for dark pages."""
    colour = found.group()
    return _ROLES.get(colour, f"var(--c-{colour[1:]}, {colour})")


def inline_svg(figure: Figure | Path, prefix: str, label: str) -> str:
    """Return a figure, or an SVG file of one, as an element for a page that has others.

    The prefix goes before every identifier, so that figures on one page do not take each other's
    letters and clip paths. The label is what readers who do not see the figure are told, already
    escaped for an attribute.
    """
    text = figure.read_text(encoding="utf-8") if isinstance(figure, Path) else svg_text(figure)
    text = re.sub("(?<=: )#[0-9a-f]{6}", _themed, text[text.index("<svg") :])
    text = re.sub(r'(\sid="|href="#|url\(#)', rf"\g<1>{prefix}", text)
    return text.replace("<svg", f'<svg role="img" aria-label="{label}"', 1).rstrip()
