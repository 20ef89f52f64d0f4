"""The ``.cgap`` container: a JSON header and plain arrays in one zip.

::

    header.json          {"format": "contextgap", "version": 1, "kind": "policy", ...}
    NAME.npy             one member per array, numpy's own format, no pickled objects

Every member carries a CRC, so truncated and altered files are refused, and nothing in a file is
ever executed. Members carry no time, so that the same content always gives the same bytes; that of
a policy says when it was frozen.

All files are written atomically: an older one stays until the new one is complete.
"""

from __future__ import annotations

import json
import math
import os
import re
import socket
import stat
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from io import TextIOBase
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from contextgap.base import checks
from contextgap.base.components import UnknownComponentError

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


def _opened(path: File) -> AbstractContextManager[IO[bytes]]:
    return whole_file(path) if isinstance(path, str | os.PathLike) else nullcontext(path)


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


@contextmanager
def whole_file(path: str | os.PathLike[str], *, text: bool = False) -> Iterator[IO[Any]]:
    """Yield a file that replaces the one at ``path`` if the block ends without an error.

    Text files are UTF-8 with line ends as written. Links are followed, and the mode of an older
    file is kept. What a killed process left behind, the next one to write the file removes.
    """
    target = Path(os.path.realpath(path))
    mode = _mode(path, target)
    _remove_leftovers(target)
    try:
        prefix = f".{target.name}.{socket.gethostname()}-{os.getpid()}-"
        handle, temporary = tempfile.mkstemp(".part", prefix, target.parent)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
    try:
        how: dict[str, Any] = {"newline": "", "encoding": "utf-8"} if text else {}
        with os.fdopen(handle, "w" if text else "wb", **how) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except OSError as error:
        Path(temporary).unlink(missing_ok=True)
        if error.errno is None or error.filename not in (None, temporary):
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def check_output(
    path: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str]] = ()
) -> None:
    """Raise, before any work, if ``path`` cannot be written or is one of the inputs."""
    target = Path(os.path.realpath(path))
    _mode(path, target)
    if any(Path(os.path.realpath(each)) == target for each in inputs):
        raise ValueError(f"{path} is read here and would be replaced; name another file to write")


def _mode(path: str | os.PathLike[str], target: Path) -> int:
    """Return the mode for the new file; raise if no file can be written there."""
    if not target.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: there is no folder {target.parent}")
    try:
        found = target.stat().st_mode
    except FileNotFoundError:
        mask = os.umask(0)  # which can only be read by setting another one
        os.umask(mask)
        return 0o666 & ~mask
    if stat.S_ISDIR(found):
        raise IsADirectoryError(f"{path} is a folder; name a file in it")
    if not stat.S_ISREG(found):
        raise OSError(f"{path} is not a regular file; name another to write to")
    return stat.S_IMODE(found)


def _remove_leftovers(target: Path) -> None:
    """Remove unfinished files of processes on this machine that no longer run."""
    host = re.escape(f".{target.name}.{socket.gethostname()}-")
    leftover = re.compile(rf"{host}(\d+)-.*\.part")
    with suppress(OSError):  # a folder that may not be read is no reason not to write
        for name in os.listdir(target.parent):
            found = leftover.fullmatch(name)
            if found and not _alive(int(found[1])):
                (target.parent / name).unlink(missing_ok=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # it belongs to another user
    return True
