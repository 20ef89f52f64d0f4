"""Progress bars for terminals and notebooks."""

from __future__ import annotations

import sys
from collections.abc import Callable
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
