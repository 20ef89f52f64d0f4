"""What terminals and notebooks show: progress bars, and small tables for ``_repr_html_``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from html import escape
from itertools import zip_longest
from time import perf_counter
from typing import Any, overload

_OFTEN = 0.1  # seconds between two drawings of a bar
_WIDTH = 20  # letters


class ProgressBar:
    """A bar that shows how far long work is, in a terminal or a notebook; elsewhere nothing.

    It goes wherever ``progress`` is called with the numbers of finished and of all pieces. Where
    ``progress`` is called with the name of a phase, as in ``learn_from``, the class itself names
    the bar of each phase by it; a bar adds it to its own name.

    .. versionadded:: 0.2

    Parameters
    ----------
    phase
        What is being done; written before the bar.

    Examples
    --------
    >>> bar = cg.ProgressBar("measuring")
    >>> for done in range(3):
    ...     bar(done, 3)
    """

    def __init__(self, phase: str = "working") -> None:
        self._phase = phase
        self._draw: Callable[[str, bool], None] | None = None
        self._begun = self._drawn = 0.0

    @overload
    def __call__(self, done: str) -> ProgressBar: ...

    @overload
    def __call__(self, done: int, total: int) -> None: ...

    def __call__(self, done: int | str, total: int = 0) -> ProgressBar | None:
        """Show that so many of all pieces are finished; for a phase's name, return its bar."""
        if isinstance(done, str):
            return ProgressBar(f"{self._phase}: {done}")
        now = perf_counter()
        if self._draw is None:
            self._draw, self._begun, self._drawn = _canvas(), now, 0.0
        if done >= total or now - self._drawn >= _OFTEN:
            self._drawn = now
            self._draw(self._text(done, total, now - self._begun), done >= total)
        if done >= total:
            self._draw = None  # another round of work gets another bar
        return None

    def _text(self, done: int, total: int, seconds: float) -> str:
        full = _WIDTH * min(done, total) // total if total else _WIDTH
        text = f"{self._phase} {'█' * full}{'░' * (_WIDTH - full)} {done}/{total} {_clock(seconds)}"
        left = seconds * (total - done) / done if 0 < done < total else None
        return text if left is None else f"{text}, {_clock(left)} left"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}"


def _canvas() -> Callable[[str, bool], None]:
    """Return what draws a text where the one before stood."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if hasattr(shell, "kernel"):
        return _in_notebook()
    return _in_terminal if sys.stderr.isatty() else lambda text, last: None  # noqa: ARG005  # nothing is shown


def _in_notebook() -> Callable[[str, bool], None]:
    from IPython.display import display

    shown: list[Any] = []

    def draw(text: str, last: bool) -> None:  # noqa: ARG001  # the last one stays anyway
        data = {"text/plain": text}
        if shown:
            shown[0].update(data, raw=True)
        else:
            handle = display(data, raw=True, display_id=True)  # type: ignore[no-untyped-call]  # IPython's
            shown.append(handle)

    return draw


def _in_terminal(text: str, last: bool) -> None:
    clear = "\r\x1b[K"
    print(f"{clear}{text}", end="\n" if last else "", file=sys.stderr, flush=True)  # noqa: T201


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
