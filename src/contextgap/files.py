"""The ``.cgap`` container: a JSON header and plain arrays in one zip, written atomically.

::

    header.json          {"format": "contextgap", "version": 1, "kind": "policy", ...}
    NAME.npy             one member per array, numpy's own format, no pickled objects

Every member carries a CRC, so truncated and altered files are refused, and nothing in a file is
ever executed.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from typing import Any

from numpy.lib import format as npy
from numpy.typing import NDArray

from contextgap.parts import UnknownPartError
from contextgap.saving import whole_file

FORMAT = "contextgap"
VERSION = 1


class FileFormatError(ValueError):
    """A file that is not what was asked for: foreign, damaged, or of another version."""


def write(
    path: str | os.PathLike[str],
    kind: str,
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> None:
    """Write a container; a killed write leaves an older file at ``path`` whole."""
    text = json.dumps({"format": FORMAT, "version": VERSION, "kind": kind, **header}, indent=1)
    with whole_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as container:
        container.writestr("header.json", text)
        for name, array in arrays.items():
            with container.open(f"{name}.npy", "w", force_zip64=True) as member:
                npy.write_array(member, array, allow_pickle=False)


def read(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return header and arrays of a container, or raise ``FileFormatError`` saying why not."""
    path = os.fspath(path)
    try:
        with zipfile.ZipFile(path) as container:
            header = json.loads(container.read("header.json"))
            _check_header(path, header, kind)
            arrays = {}
            for name in container.namelist():
                if name.endswith(".npy"):
                    with container.open(name) as member:
                        arrays[name.removesuffix(".npy")] = npy.read_array(
                            member, allow_pickle=False
                        )
                        if member.read(1):  # reading to the end is what verifies the CRC
                            raise ValueError(f"{name} is longer than it says")
    except (FileFormatError, FileNotFoundError, PermissionError):
        raise
    except KeyError:
        raise FileFormatError(f"{path} is a zip archive but not a contextgap file") from None
    except Exception as error:  # parsers of foreign bytes raise almost anything
        raise FileFormatError(f"{path} is not a contextgap file, or is damaged: {error}") from None
    return header, arrays


def _check_header(path: Any, header: Any, kind: str) -> None:
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise FileFormatError(f"{path} is a zip archive but not a contextgap file")
    if header.get("version") != VERSION:
        raise FileFormatError(
            f"{path} has format version {header.get('version')!r}; this release reads {VERSION}: "
            "load it with the contextgap release that wrote it"
        )
    if header.get("kind") != kind:
        found = str(header.get("kind"))
        raise FileFormatError(
            f"{path} holds a {found}, not a {kind}; use {found.capitalize()}.load"
        )


def damaged(path: Any, error: Exception) -> FileFormatError:
    """Return the error for a container that opens but whose content does not fit together."""
    if isinstance(error, UnknownPartError):
        return FileFormatError(f"{path}: {error}")
    return FileFormatError(f"{path} is damaged: {type(error).__name__}: {error}")
