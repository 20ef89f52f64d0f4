"""Where the parts of a split begin and end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from numbers import Integral
from typing import Any

from contextgap.base import checks


def part_ends(sizes: Sequence[Any], rows: int, name: str) -> list[int]:
    """Return 0 and the end of each consecutive part; ``name`` is for errors.

    A size is a whole number of rows or a fraction, below 1, of all rows.
    """
    if not sizes:
        raise ValueError("split needs at least one size, such as split(0.7, 0.3)")
    # Exact sums: a part of k rows has k rows wherever the fractions before it end.
    shares = [_share(size, rows) for size in sizes]
    ends = [math.floor(end + Fraction(1, 2)) for end in accumulate(shares, initial=Fraction(0))]
    if ends[-1] > rows:
        listed = " + ".join(map(str, sizes))
        raise ValueError(f"split asks for {ends[-1]} rows ({listed}), but {name!r} has {rows}")
    for size, (start, end) in zip(sizes, pairwise(ends), strict=True):
        if start == end:
            raise ValueError(f"split leaves no row for the part {size} of {rows} rows")
    return ends


def _share(size: Any, rows: int) -> Fraction:
    if isinstance(size, Integral):
        return Fraction(checks.whole("a split size", size, least=1))
    fraction = checks.real("a split size", size, "a number of rows or a fraction below 1")
    if not 0 < fraction < 1:
        raise ValueError(
            f"a split size must be a whole number of rows or a fraction below 1, got {size!r}"
        )
    return Fraction(fraction) * rows
