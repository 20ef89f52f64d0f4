"""Properties whose keys are completed at a prompt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NoReturn, Self, TypeVar, overload

T = TypeVar("T")


class completed(Generic[T]):  # noqa: N801  # used as property is
    """A property of labels or columns, such as ``learner.counts["<Tab>``.

    IPython looks into no ``property`` while one types, because it might do anything. These are
    quick and change nothing, so they are another kind of descriptor.
    """

    def __init__(self, read: Callable[[Any], T]) -> None:
        self._read = read
        self.__doc__ = read.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, thing: None, owner: type) -> Self: ...
    @overload
    def __get__(self, thing: object, owner: type) -> T: ...
    def __get__(self, thing: object | None, owner: type) -> Self | T:
        return self if thing is None else self._read(thing)

    def __set__(self, thing: object, value: object) -> NoReturn:
        kind = type(thing).__name__
        raise AttributeError(f"{self._name!r} of a {kind} is told by it and cannot be set")
