"""Small tables for notebooks, which show what ``_repr_html_`` returns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape
from itertools import zip_longest
from typing import Any

# Notebooks have styles of their own, light or dark: these say nothing about fonts or ink.
_BOX = "overflow-x:auto;margin:0 0 1em"
_TABLE = "border-collapse:collapse;font-variant-numeric:tabular-nums;min-width:min(100%,28em)"
_CAPTION = "text-align:left;font-weight:600;padding:.3em .6em"
_CELL = "padding:.25em .6em;border-bottom:1px solid #8886"


def table(
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[Any]],
    marked: Collection[int] = (),
) -> str:
    """Return a table with a title; rows whose places are ``marked`` are bold.

    Columns with numbers are aligned right. Without any name, there is no header.
    """
    sides = ["right" if any(map(_is_number, each)) else "left" for each in zip_longest(*rows)]
    sides += ["left"] * (len(header) - len(sides))
    caption = f'<caption style="{_CAPTION}">{escape(title)}</caption>'
    head = f"<thead>{_row(header, sides, 'th')}</thead>" if any(header) else ""
    body = "".join(_row(row, sides, "td", place in marked) for place, row in enumerate(rows))
    whole = f'<table style="{_TABLE}">{caption}{head}<tbody>{body}</tbody></table>'
    return f'<div style="{_BOX}" tabindex="0">{whole}</div>'


def _row(cells: Sequence[Any], sides: list[str], tag: str, bold: bool = False) -> str:
    row = []
    for cell, side in zip(cells, sides, strict=False):
        text = escape(f"{cell:.4g}" if isinstance(cell, float) else str(cell))
        kind = tag if text else "td"  # as headers must have a name
        shown = f"<b>{text}</b>" if bold else text
        row.append(f'<{kind} style="text-align:{side};{_CELL}">{shown}</{kind}>')
    return f"<tr>{''.join(row)}</tr>"


def _is_number(value: Any) -> bool:
    return isinstance(value, float | int) and not isinstance(value, bool)
