"""The columns of a table of contexts, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from contextgap.base.columns.kinds import Kind, read_kind


class Columns(Mapping[str, Kind]):
    """What the columns of a table hold.

    Parameters
    ----------
    columns
        Kinds by name, for names that are no Python words.
    kinds
        Kinds by name: "number", "category", "date", or ``Number``, ``Category``, ``Cyclic`` and
        ``Date`` with their settings.

    Examples
    --------
    >>> from contextgap import Cyclic
    >>> columns = Columns(country="category", hour=Cyclic(24))
    >>> list(columns)
    ['country', 'hour']
    """

    def __init__(self, columns: Mapping[str, Any] | None = None, /, **kinds: Any) -> None:
        given = {**(columns or {}), **kinds}
        if not given:
            raise ValueError("columns must name at least one column, got none")
        for name in given:
            if not isinstance(name, str):
                raise TypeError(f"columns must have names that are text, got {name!r}")
        self._kinds = {name: read_kind(name, kind) for name, kind in given.items()}

    def __getitem__(self, name: str) -> Kind:
        return self._kinds[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)

    def __repr__(self) -> str:
        inside = ", ".join(f"{name!r}: {kind}" for name, kind in self._kinds.items())
        return f"Columns({{{inside}}})"
