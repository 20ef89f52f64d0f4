"""The ``.cgap`` container: a JSON header and plain arrays in one zip, written atomically.

::

    header.json          {"format": "contextgap", "version": 1, "kind": "policy", ...}
    NAME.npy             one member per array, numpy's own format, no pickled objects

Every member carries a CRC, so truncated and altered files are refused, and nothing in a file is
ever executed. Members carry no time, so that the same content always gives the same bytes.
"""

from __future__ import annotations

import json
import math
import os
import stat
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import TextIOBase
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from contextgap.base import checks
from contextgap.base.components import UnknownComponentError
from contextgap.base.saving import whole_file

File: TypeAlias = str | os.PathLike[str] | IO[bytes]
"""A path, or a binary file that is open already, such as ``io.BytesIO()``."""

FORMAT = "contextgap"
VERSIONS = (1, 2)  # that this release reads; what 0.1 would pass over needs 2


class FileFormatError(ValueError):
    """A file that is damaged, of another kind or version, or not one of contextgap's."""


def write(
    path: File,
    kind: str,
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    version: int = 1,
) -> None:
    """Write a container; if writing is interrupted, an older file at ``path`` stays intact."""
    _check_file(path)
    text = json.dumps({"format": FORMAT, "version": version, "kind": kind, **header}, indent=1)
    with _opened(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as container:
        container.writestr(zipfile.ZipInfo("header.json"), text)
        for name, array in arrays.items():
            member_info = zipfile.ZipInfo(f"{name}.npy")
            with container.open(member_info, "w", force_zip64=True) as member:
                npy.write_array(member, array, allow_pickle=False)


def _check_file(path: Any) -> None:
    named = isinstance(path, str | os.PathLike)
    if not named and (not hasattr(path, "seek") or isinstance(path, TextIOBase)):
        raise TypeError(f"path must be a path, or a binary file that is open, got {path!r}")


@contextmanager
def _opened(path: File) -> Iterator[IO[bytes]]:
    if isinstance(path, str | os.PathLike):
        with whole_file(path) as file:
            yield file
    else:
        yield path


def _size(path: File) -> int:
    if isinstance(path, str | os.PathLike):
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode):  # reading a device or a pipe may never end
            raise FileFormatError(f"{path} is not a regular file")
        return found.st_size
    size = path.seek(0, os.SEEK_END)
    path.seek(0)
    return size


def read(path: File, kind: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return header and arrays of a container, or raise ``FileFormatError`` with the reason."""
    _check_file(path)
    path = os.fspath(path) if isinstance(path, os.PathLike) else path
    try:
        size = _size(path)
        with zipfile.ZipFile(path) as container:
            _check_members(container.infolist(), size)
            text = container.read("header.json")
            header = json.loads(text, object_pairs_hook=checks.no_name_twice)
            _check_header(path, header, kind)
            arrays = {
                name.removesuffix(".npy"): _read_array(container, name)
                for name in container.namelist()
                if name != "header.json"
            }
    except (FileFormatError, FileNotFoundError, PermissionError):
        raise
    except MemoryError:
        raise not_enough_memory(path, size) from None
    except KeyError:
        raise FileFormatError(f"{path} is a zip archive but not a contextgap file") from None
    except Exception as error:  # parsers of foreign bytes raise almost anything
        raise FileFormatError(f"{path} is not a contextgap file, or is damaged: {error}") from None
    return header, arrays


def _check_members(members: list[zipfile.ZipInfo], size: int) -> None:
    """Refuse members that no release writes, or that claim more than the file can hold."""
    left, seen = size, set()
    for member in members:
        name = member.filename
        if name in seen:
            raise ValueError(f"its member {name!r} is there twice")
        if name != "header.json" and not name.endswith(".npy"):
            raise ValueError(f"it has an unknown member {name!r}")
        if member.compress_type != zipfile.ZIP_STORED:
            raise ValueError(f"its member {name!r} is compressed")
        seen.add(name)
        left -= member.file_size
        if left < 0:
            raise ValueError(f"its members, such as {name!r}, are larger than the whole file")


def _read_array(container: zipfile.ZipFile, name: str) -> NDArray[Any]:
    with container.open(name) as member:
        version = npy.read_magic(member)
        read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[version]
        shape, _, dtype = read(member)
        held = container.getinfo(name).file_size - member.tell()
        if dtype.hasobject or math.prod(shape) * dtype.itemsize != held:
            raise ValueError(f"{name} says it is {dtype} {shape}, and holds {held} bytes")
    with container.open(name) as member:
        array = npy.read_array(member, allow_pickle=False)
        if member.read(1):  # reading to the end is what verifies the CRC
            raise ValueError(f"{name} is longer than it says")
    return np.asarray(array)


def not_enough_memory(path: Any, size: int) -> MemoryError:
    """Return the error for a valid file that is too large for the available memory."""
    return MemoryError(
        f"{path} takes {2 * size / 1e6:.0f} MB of memory to load, more than is available"
    )


def _check_header(path: Any, header: Any, kind: str) -> None:
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise FileFormatError(f"{path} is a zip archive but not a contextgap file")
    if header.get("version") not in VERSIONS:
        raise FileFormatError(
            f"{path} has format version {header.get('version')!r}; this release reads "
            f"{' and '.join(map(str, VERSIONS))}: load it with the contextgap release that wrote it"
        )
    if header.get("kind") != kind:
        found = str(header.get("kind"))
        raise FileFormatError(
            f"{path} holds a {found}, not a {kind}; use {found.capitalize()}.load"
        )


@contextmanager
def making_sense_of(path: Any) -> Iterator[None]:
    """Turn errors inside the block into a ``FileFormatError`` that calls the file damaged."""
    try:
        yield
    except ImportError:  # scikit-learn, for its kernels
        raise
    except MemoryError:
        raise not_enough_memory(path, _size(path)) from None
    except UnknownComponentError as error:
        raise FileFormatError(f"{path}: {error}") from None
    except Exception as error:  # foreign bytes may raise almost anything
        raise FileFormatError(f"{path} is damaged: {type(error).__name__}: {error}") from None
