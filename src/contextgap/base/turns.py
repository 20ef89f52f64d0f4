"""Methods that several threads may call but that run one at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def synchronized(method: Callable[P, R]) -> Callable[P, R]:
    """Make a method wait while another thread runs any such method of the same object.

    The object keeps a reentrant lock as ``_lock``.
    """

    @wraps(method)
    def alone(*args: P.args, **kwargs: P.kwargs) -> R:
        with vars(args[0])["_lock"]:
            return method(*args, **kwargs)

    return alone
