"""Properties that are computed once."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self, TypeVar, overload

T = TypeVar("T")


class lazy(cached_property[T]):  # noqa: N801  # used as property is
    """``functools.cached_property`` without its lock.

    Before Python 3.12, that lock lets one thread at a time compute a property, of all objects of
    the class together: beliefs at different contexts would wait for each other.
    """

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> T: ...
    def __get__(self, instance: object, owner: type[Any] | None = None) -> Self | T:
        if instance is None:
            return self
        values, name = vars(instance), str(self.attrname)
        if name not in values:
            values[name] = self.func(instance)
        value: T = values[name]
        return value
