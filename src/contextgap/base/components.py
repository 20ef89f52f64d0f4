"""What classes are made of, and what is called by name.

Kernels, widths, explorers, recommenders and methods are frozen dataclasses of plain values. One
mechanism turns each into a small dictionary and back, so files hold no code and results can carry
their settings as columns.

Explorers, methods, kernels and problems of users are named as "package.module:name", the form of
entry points in ``pyproject.toml``, in Python and on the command line. Extras are imported by name,
and arguments may have old names.
"""

from __future__ import annotations

import difflib
import importlib
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cached_property, wraps
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, ParamSpec, Self, TypeVar

from contextgap.base import checks

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


FORM = "package.module:name"
C = TypeVar("C", bound=type)


def study_import(module: str, extra: str = "study") -> Any:
    """Return ``module``, or raise an error that says which extra brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(
            f"this needs {package}, which could not be imported ({error}); "
            f"pip install 'contextgap[{extra}]' brings it"
        ) from error


def renamed(**names: str) -> Callable[[C], C]:
    """Let a class take arguments by their old names too, which are given with the new ones."""

    def decorate(kind: C) -> C:
        init: Any = kind.__init__  # type: ignore[misc]  # of a class that is not subclassed further

        @wraps(init)
        def with_old_names(self: Any, *args: Any, **kwargs: Any) -> None:
            for old, new in names.items():
                if old in kwargs:
                    said = f"{old}= is now called {new}="
                    warnings.warn(said, DeprecationWarning, stacklevel=2)
                    kwargs[new] = kwargs.pop(old)
            init(self, *args, **kwargs)

        kind.__init__ = with_old_names  # type: ignore[misc]  # as above
        return kind

    return decorate


def is_path(text: Any) -> bool:
    if not isinstance(text, str):
        return False
    module, colon, name = text.partition(":")
    return bool(colon) and all(
        part.isidentifier() for part in [*module.split("."), *name.split(".")]
    )


def load(path: str) -> Any:
    """Return what "package.module:name" names, where ``name`` may have dots.

    Errors are one line that begins with the path. A module found nowhere else is looked for in the
    current folder, which then stays on ``sys.path`` so that worker processes find it, too.
    """
    if not is_path(path):
        raise ValueError(f"{path!r} must have the form {FORM}")
    module_name, _, name = path.partition(":")
    found: Any = _module(path, module_name)
    for part in name.split("."):
        if not hasattr(found, part):
            near = difflib.get_close_matches(part, [n for n in dir(found) if n[0] != "_"], 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ImportError(f"{path}: {module_name} has no {part!r}{hint}")
        found = getattr(found, part)
    return found


def read(argument: str, value: Any, kinds: type | tuple[type, ...], example: str) -> Any:
    """Return ``value``, one of ``kinds``, or what "package.module:name" names, a class called."""
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    if isinstance(value, str):
        path, value = value, load(value)
        if isinstance(value, type) and issubclass(value, kinds):
            value = _called(path, value)
        argument = f"{argument} {path}"
    if not isinstance(value, kinds):
        checks.instance(argument, value, kinds[0], example)
    return value


def _module(path: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # The module itself, or a package it lies in, must be missing; not one that it imports.
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _failed(path, name, error) from error
    except Exception as error:  # the user's module may raise anything
        raise _failed(path, name, error) from error
    here = os.getcwd()
    if here in sys.path:
        raise ImportError(f"{path}: there is no module {name} in {here} or on Python's path")
    sys.path.append(here)
    importlib.invalidate_caches()
    try:
        return _module(path, name)
    except ImportError:
        sys.path.remove(here)
        raise


def _failed(path: str, name: str, error: Exception) -> ImportError:
    said = " ".join(str(error).split())
    return ImportError(f"{path}: importing {name} failed: {type(error).__name__}: {said}")


def _called(path: str, kind: type) -> Any:
    try:
        return kind()
    except TypeError as error:
        raise TypeError(
            f"{path}: {kind.__name__}() cannot be made without arguments ({error}); "
            "name an object instead, such as one assigned in its module"
        ) from None
