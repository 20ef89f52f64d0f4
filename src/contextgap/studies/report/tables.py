"""Tables as HTML: numbers are rounded for reading and sorted by their exact values."""

from __future__ import annotations

import math
from html import escape
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pandas import DataFrame, Series

_NOTHING = "–"


def table_html(table: DataFrame, caption: str) -> str:
    """Return a table, without its index, whose headings are buttons that sort it."""
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    if not len(table):
        return f'<table>{title}<tbody><tr><td class="empty">no rows</td></tr></tbody></table>'
    numeric = [_is_numeric(table.iloc[:, place]) for place in range(table.shape[1])]
    head = "".join(map(_heading, map(str, table.columns), numeric))
    rows = "\n".join(
        f"<tr>{''.join(map(_cell, row, numeric))}</tr>"
        for row in table.itertuples(index=False, name=None)
    )
    return (
        f'<div class="wide"><table class="sortable">{title}\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody></table></div>"
    )


def three_digits(value: Any) -> str:
    """Return a value as text, real numbers with three significant digits.

    Examples
    --------
    >>> [three_digits(value) for value in (0.0021549, 1.0, 1950, 12345.6, 3.14159e-7, True)]
    ['0.00215', '1.00', '1950', '12300', '3.14e-07', 'yes']
    """
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, Integral) or not isinstance(value, Real):
        return _NOTHING if _is_missing(value) else str(value)
    number = float(value)
    if not np.isfinite(number):
        return _NOTHING if np.isnan(number) else ("∞" if number > 0 else "−∞")
    if number != 0 and not 1e-5 <= abs(number) < 1e6:
        return f"{number:.2e}"
    rounded = float(f"{number:.2e}")  # first, as 0.9996 has two decimals when rounded, not three
    power = 0 if rounded == 0 else math.floor(math.log10(abs(rounded)))
    return f"{rounded:.{max(0, 2 - power)}f}"


def _is_missing(value: Any) -> bool:
    # pandas' NA and NaT, and None, are the values that do not equal themselves or say so.
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _is_numeric(column: Series[Any]) -> bool:
    values = [value for value in column if not _is_missing(value)]
    return bool(values) and all(
        isinstance(value, Real) and not isinstance(value, bool) for value in values
    )


def _heading(name: str, numeric: bool) -> str:
    kind = ' class="number"' if numeric else ""
    return f'<th scope="col" aria-sort="none"{kind}><button>{escape(name)}</button></th>'


def _cell(value: Any, numeric: bool) -> str:
    text = escape(three_digits(value))
    if not numeric:
        return f"<td>{text}</td>"
    # The exact value, so that rows that look the same sort correctly.
    known = not _is_missing(value) and not np.isnan(float(value))
    exact = f' data-value="{float(value)!r}"' if known else ""
    return f'<td class="number"{exact}>{text}</td>'
