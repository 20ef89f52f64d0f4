"""Components that describe themselves.

Kernels, widths, explorers, recommenders and methods are frozen dataclasses of plain values. One
mechanism turns each into a small dictionary and back, so files hold no code and results can carry
their settings as columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, Self

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
