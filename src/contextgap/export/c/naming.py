"""What the exported files and the names in them are called.

Templates have the prefix ``contextgap``. Another one lets several policies be linked into one
program.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

DEFAULT_PREFIX = "contextgap"
# C99 tells names of functions apart by 31 characters, of which "_recommend_" takes the rest.
_LONGEST_PREFIX = 20
_LONGEST_NAME = 63  # characters by which C99 tells other names apart


class FileNames(NamedTuple):
    """The names of an export's three files."""

    header: str
    source: str
    self_test: str

    @classmethod
    def of(cls, prefix: str) -> FileNames:
        """Return the names of the files of an export with this prefix."""
        return cls(f"{prefix}_policy.h", f"{prefix}_policy.c", f"{prefix}_selftest.c")


def check_prefix(prefix: str) -> str:
    """Return a prefix if names in C may begin with it, or raise."""
    if not isinstance(prefix, str):
        raise TypeError(f"prefix must be text, got {prefix!r}")
    if not re.fullmatch(f"[a-z][a-z0-9_]{{0,{_LONGEST_PREFIX - 1}}}", prefix):
        raise ValueError(
            f"prefix must be at most {_LONGEST_PREFIX} of a-z, 0-9 and _, a letter first, "
            f"got {prefix!r}"
        )
    return prefix


def named(text: str, prefix: str) -> str:
    """Return code of a template with another prefix; it must hold no text of the user's."""
    return text.replace("contextgap_", f"{prefix}_").replace("CONTEXTGAP_", f"{prefix.upper()}_")


class Identifiers:
    """Names in C made from a user's text, each given once."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = set(taken)

    def new(self, *parts: str) -> str:
        """Return a name made of these parts, with a number at its end if it was given before."""
        whole = "_".join(parts)
        name, turn = whole[:_LONGEST_NAME], 1
        while name in self._taken:
            turn += 1
            name = f"{whole[: _LONGEST_NAME - len(str(turn)) - 1]}_{turn}"
        self._taken.add(name)
        return name


def plain_word(text: str) -> str:
    """Return the letters and digits of a text, with _ for all that is between; perhaps none."""
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")
    return re.sub(r"[^A-Za-z0-9]+", "_", ascii_text).strip("_")
