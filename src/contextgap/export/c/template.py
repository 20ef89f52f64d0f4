"""The C text that does not depend on the policy, with places for what does."""

from __future__ import annotations

from importlib.resources import files
from string import Template


def fill(name: str, **values: object) -> str:
    """Return a template with its ``$names`` replaced.

    Parameters
    ----------
    name
        File in the folder of templates, without ``.in``.
    **values
        What to put in the places.
    """
    text = (files("contextgap.export.c") / "templates" / f"{name}.in").read_text("utf-8")
    return Template(text).substitute(values)
