"""The command line: thin; it parses, calls and prints."""

from __future__ import annotations


def main() -> None:
    """Run the command line, or say which extra it needs."""
    try:
        from contextgap.cli.app import app
    except ImportError as error:
        raise SystemExit(
            f"the command line needs {error.name}; pip install 'contextgap[study]' brings it"
        ) from None
    app()
