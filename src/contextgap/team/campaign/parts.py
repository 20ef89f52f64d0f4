"""Files that are kept in parts, read as one without putting them together in memory."""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import IO, cast


class _Parts(io.RawIOBase):
    def __init__(self, parts: Sequence[bytes]) -> None:
        self._parts = parts
        self._starts = [0, *accumulate(map(len, parts))]  # and the end
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._starts[-1]}[whence]
        if base + offset < 0:
            raise ValueError(f"cannot go to place {base + offset} of a file")
        self._place = base + offset
        return self._place

    def read(self, size: int | None = -1, /) -> bytes:
        end = self._starts[-1]
        if size is not None and size >= 0:
            end = min(end, self._place + size)
        pieces = []
        while self._place < end:
            part = bisect_right(self._starts, self._place) - 1
            start = self._starts[part]
            pieces.append(self._parts[part][self._place - start : end - start])
            self._place += len(pieces[-1])
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def joined(parts: Sequence[bytes]) -> IO[bytes]:
    """Return the file that consists of these parts."""
    return cast(IO[bytes], _Parts(parts))
