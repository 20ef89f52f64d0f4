"""What classes are made of: components that describe themselves, lazy properties, locks.

Kernels, widths, explorers, recommenders and methods are frozen dataclasses of plain values. One
mechanism turns each into a small dictionary and back, so files hold no code and results can carry
their settings as columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, ParamSpec, Self, TypeVar

LATER = {"later": True}
"""Metadata of a field that earlier releases did not have: descriptions leave out its default."""


class UnknownComponentError(ValueError):
    """A description names a class that has not been defined or imported."""


class Component:
    """A component made of plain values, known by its class name."""

    _known: ClassVar[dict[str, type[Component]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        Component._known[_name(cls)] = cls

    def describe(self) -> dict[str, Any]:
        """Return the component as a dictionary of plain values; ``build`` reverses it."""
        if not is_dataclass(self):
            raise TypeError(
                f"{type(self).__name__} cannot be described in a file: "
                "make it a dataclass whose fields are numbers, strings, tuples or other components"
            )
        values, owner = {}, type(self).__name__
        for field in fields(self):
            value = getattr(self, field.name) if field.init else field.default
            if field.init and not (field.metadata == LATER and value == field.default):
                values[field.name] = _plain(value, f"{owner}.{field.name}")
        return {"type": _name(type(self)), **values}

    @classmethod
    def _build(cls, values: Mapping[str, Any]) -> Self:
        return cls(**{name: _rich(value) for name, value in values.items()})


def build(description: Mapping[str, Any]) -> Component:
    """Return the component that ``describe`` described; nothing is imported or executed for it."""
    values = dict(description)
    name = values.pop("type", None)
    kind = Component._known.get(name) if isinstance(name, str) else None
    if kind is None:
        module = str(name).rpartition(".")[0] or "the module that defines it"
        raise UnknownComponentError(f"unknown component {name!r}: import {module} before loading")
    return kind._build(values)


def _name(kind: type) -> str:
    inside = kind.__module__.startswith("contextgap.")
    return kind.__name__ if inside else f"{kind.__module__}.{kind.__qualname__}"


def _plain(value: Any, owner: str) -> Any:
    if isinstance(value, Component):
        return value.describe()
    if isinstance(value, tuple):
        return [_plain(item, owner) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(
        f"{owner} cannot be described in a file: "
        f"it holds a {type(value).__name__}, not plain values"
    )


def _rich(value: Any) -> Any:
    if isinstance(value, Mapping):
        return build(value)
    if isinstance(value, list):
        return tuple(_rich(item) for item in value)
    return value


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
