"""Small tables for notebooks, which show what ``_repr_html_`` returns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape
from typing import Any


def table(
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[Any]],
    marked: Collection[int] = (),
) -> str:
    """Return a table with a title; rows whose places are ``marked`` are bold."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(
        f"<tr>{''.join(_cell(cell, place in marked) for cell in row)}</tr>"
        for place, row in enumerate(rows)
    )
    caption = f'<caption style="text-align:left">{escape(title)}</caption>'
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any, bold: bool) -> str:
    is_number = isinstance(value, float | int) and not isinstance(value, bool)
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    shown = escape(text)
    side = "right" if is_number else "left"
    return f'<td style="text-align:{side}">{f"<b>{shown}</b>" if bold else shown}</td>'
