"""Digests of the user's own code, so that results of changed code are never reused.

What counts is the code that is loaded, not the file, which may have been edited since: a class with
its parents, and whatever functions, classes and plain constants of the user's own these refer to.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

_NOT_OWN = {"contextgap", *sys.stdlib_module_names}
_PLAIN = (bool, int, float, complex, str, bytes, type(None), tuple, frozenset)


def source_digest(kind: type) -> str | None:
    """Return a digest of a class's code as far as it is the user's own; None if none of it is."""
    parents = [each for each in kind.__mro__ if _root(each) not in _NOT_OWN]
    packages = {_root(each) for each in parents}
    texts: dict[str, str] = {}
    waiting: list[Any] = list(parents)
    while waiting:
        thing = waiting.pop()
        name = f"{thing.__module__}.{thing.__qualname__}"
        if name in texts:
            continue
        texts[name] = ""
        for function in _functions(thing):
            texts[name] += _text(function.__code__)
            for label, value in _referred(function):
                if isinstance(value, type | FunctionType):
                    if _is_own(value, packages):
                        waiting.append(value)
                else:
                    texts[name] += f"{label}={_constant(value)};"
        if isinstance(thing, type):
            for label, value in vars(thing).items():
                if not label.startswith("__"):  # some are set later, as when pickling
                    texts[name] += f"{label}={_constant(value)};"
    whole = "\n".join(f"{name}: {text}" for name, text in sorted(texts.items()))
    return hashlib.sha256(whole.encode()).hexdigest() if texts else None


def _root(thing: Any) -> str:
    return str(thing.__module__ or "builtins").partition(".")[0]


def _is_own(thing: Any, packages: set[str]) -> bool:
    """Whether code is in a package of the class's, or in one that was not installed."""
    root = _root(thing)
    if root in packages or root in _NOT_OWN:
        return root in packages
    file = getattr(sys.modules.get(root), "__file__", None)
    return file is not None and not {"site-packages", "dist-packages"} & {*Path(file).parts}


def _functions(thing: Any) -> Iterator[FunctionType]:
    """The functions of a class, whatever they are wrapped in, or the one that a function is."""
    members = vars(thing).values() if isinstance(thing, type) else [thing]
    for member in members:
        wrapped = [getattr(member, name, None) for name in ("__func__", "fget", "func")]
        for found in [member, *wrapped, getattr(member, "__wrapped__", None)]:
            if isinstance(found, FunctionType):
                yield found


def _referred(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """What a function's global and enclosing names stand for, modules' attributes included."""
    names = [name for code in _codes(function.__code__) for name in code.co_names]
    spaces: list[dict[str, Any]] = [function.__globals__]
    for name in names:
        value = function.__globals__.get(name)
        if isinstance(value, ModuleType) and value.__name__.partition(".")[0] not in _NOT_OWN:
            spaces.append(vars(value))
    for space in spaces:
        yield from ((name, space[name]) for name in names if name in space)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if cell != type(cell)():  # an empty one: it refers to what is not defined yet
            yield name, cell.cell_contents


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _text(code: CodeType) -> str:
    return "".join(
        f"{each.co_code.hex()}{each.co_names}{[_constant(c) for c in each.co_consts]}"
        for each in _codes(code)
    )


def _constant(value: Any) -> str:
    """A text that is the same in every process; empty for anything but a plain value."""
    if isinstance(value, frozenset):
        return str(sorted(map(_constant, value)))
    if isinstance(value, tuple):
        return str([_constant(item) for item in value])
    if isinstance(value, np.ndarray):
        return hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
    return repr(value) if isinstance(value, _PLAIN) else ""
