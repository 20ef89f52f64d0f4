"""The templates of exported code, filled in."""

from __future__ import annotations

from importlib.resources import files
from string import Template

from contextgap.export.c.naming import DEFAULT_PREFIX, named

# Replaced by the export's id, which depends on the text around it.
EXPORT_ID = "@EXPORT_ID@"


def fill(name: str, prefix: str = DEFAULT_PREFIX, **values: object) -> str:
    """Return the template ``name``.in with its ``$names`` replaced, and its names prefixed."""
    from contextgap import __version__

    text = (files("contextgap.export.c") / "templates" / f"{name}.in").read_text("utf-8")
    template = Template(named(text, prefix))
    return template.substitute(values, version=__version__, export_id=EXPORT_ID)
