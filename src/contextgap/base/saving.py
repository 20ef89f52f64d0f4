"""Atomic writing: an older file stays until the new one is complete."""

from __future__ import annotations

import os
import re
import socket
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any


@contextmanager
def whole_file(path: str | os.PathLike[str], *, text: bool = False) -> Iterator[IO[Any]]:
    """Yield a file that replaces the one at ``path`` if the block ends without an error.

    Text files are UTF-8 with line ends as written. Links are followed, the mode of an older file is
    kept, and anything but a regular file is refused. A temporary file that a killed process left
    behind is removed by the next process that writes the same file.
    """
    target = Path(os.path.realpath(path))
    mode = _mode(path, target)
    _remove_leftovers(target)
    try:
        handle, temporary = tempfile.mkstemp(".part", _prefix(target), target.parent)
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
        _remove(temporary)
        if error.errno is None or error.filename not in (None, temporary):
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None
    except BaseException:
        _remove(temporary)
        raise


def check_output(
    path: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str]] = ()
) -> None:
    """Raise, before any work, if nothing can be written at ``path`` or if it is one of the inputs.

    ``inputs`` are files that are read and would be lost.
    """
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
        return 0o666 & ~_umask()
    if stat.S_ISDIR(found):
        raise IsADirectoryError(f"{path} is a folder; name a file in it")
    if not stat.S_ISREG(found):
        raise OSError(f"{path} is not a regular file; name another to write to")
    return stat.S_IMODE(found)


def _prefix(target: Path) -> str:
    return f".{target.name}.{socket.gethostname()}-{os.getpid()}-"


def _remove_leftovers(target: Path) -> None:
    """Remove unfinished files of processes on this machine that no longer run."""
    host = re.escape(f".{target.name}.{socket.gethostname()}-")
    leftover = re.compile(rf"{host}(\d+)-.*\.part")
    with suppress(OSError):  # a folder that may not be read is no reason not to write
        for name in os.listdir(target.parent):
            found = leftover.fullmatch(name)
            if found and not _alive(int(found[1])):
                _remove(target.parent / name)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # it belongs to another user
    return True


def _remove(path: str | os.PathLike[str]) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
