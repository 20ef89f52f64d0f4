"""What is imported or called by name: extras, arguments by old names, and users' own objects.

These are named as "package.module:name", the form of entry points in ``pyproject.toml``. Explorers,
methods, kernels and problems are all read here, from Python and from the command line.
"""

from __future__ import annotations

import difflib
import importlib
import os
import sys
import warnings
from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any, TypeVar

from contextgap.base import checks

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
