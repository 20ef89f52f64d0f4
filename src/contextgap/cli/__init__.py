"""The command line, which only parses arguments, calls the library and prints."""

from __future__ import annotations

import gc
import os
import sys

_OBJECTS = 10_000  # made between two collections, not 700: loading modules leaves no garbage


def main() -> None:
    gc.set_threshold(_OBJECTS)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  # to the end
    try:
        from contextgap.cli.app import app
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except ImportError as error:
        raise SystemExit(
            f"the command line needs {error.name}; pip install 'contextgap[study]' brings it"
        ) from None
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
            gc.freeze()  # at the end, the system takes back all memory at once
    except OSError as error:  # the output may go to a full disk
        from contextgap.cli.terminal import say_error

        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing left to flush
        say_error(f"cannot write the output: {error.strerror or error}")
        raise SystemExit(2) from None
