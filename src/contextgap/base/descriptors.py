"""Properties that are computed once or completed at a prompt, and thread-safe methods."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")


class lazy(cached_property[T]):  # noqa: N801  # used as property is
    """``functools.cached_property`` without its lock.

    Before Python 3.12, all objects of a class wait for it while one computes a property.
    """

    if not TYPE_CHECKING:  # the types are those of the base class

        def __get__(self, instance: object, owner: type | None = None) -> Any:
            if instance is None:
                return self
            values = vars(instance)
            if self.attrname not in values:
                values[self.attrname] = self.func(instance)
            return values[self.attrname]


if TYPE_CHECKING:
    completed = property
else:

    class completed:  # noqa: N801  # used as property is
        """A property of labels or columns, such as ``learner.counts["<Tab>``.

        IPython reads no ``property`` while one types, because it might do anything. These are
        quick and change nothing, so they are another kind of descriptor.
        """

        def __init__(self, read: Callable[[Any], Any]) -> None:
            self._read = read
            self.__doc__ = read.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, thing: object | None, owner: type) -> Any:
            return self if thing is None else self._read(thing)

        def __set__(self, thing: object, value: object) -> NoReturn:
            kind = type(thing).__name__
            raise AttributeError(f"{self._name!r} of a {kind} cannot be set")


def synchronized(method: Callable[P, T]) -> Callable[P, T]:
    """Make a method thread-safe by the object's reentrant lock, ``_lock``."""

    @wraps(method)
    def alone(*args: P.args, **kwargs: P.kwargs) -> T:
        with vars(args[0])["_lock"]:
            return method(*args, **kwargs)

    return alone
