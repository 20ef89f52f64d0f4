"""Packages that only studies need, imported when first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def study_import(module: str, extra: str = "study") -> Any:
    """Return ``module``, or raise an error that says which extra brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(
            f"this needs {package}, which could not be imported ({error}); "
            f"pip install 'contextgap[{extra}]' brings it"
        ) from error
