"""The files of the page: no data, no names from elsewhere, nothing inline."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

ALLOWED = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'"
)
"""The content security policy of the page."""

HEADERS = {
    "Content-Security-Policy": ALLOWED,
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

_KINDS = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}


@cache
def assets() -> dict[str, tuple[bytes, str]]:
    """Return all files by name, each with its type."""
    folder = files("contextgap.team.service.page").joinpath("static")
    found = {}
    for file in folder.iterdir():
        kind = next((kind for end, kind in _KINDS.items() if file.name.endswith(end)), None)
        if kind is not None:
            found[file.name] = file.read_bytes(), f"{kind}; charset=utf-8"
    return found
