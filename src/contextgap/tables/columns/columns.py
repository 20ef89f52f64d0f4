"""The columns of a table of contexts, by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from contextgap.tables.columns.cells import is_gap
from contextgap.tables.columns.inference import guess_kind
from contextgap.tables.columns.kinds import Kind, read_kind
from contextgap.tables.columns.raw import raw_cells


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

    @classmethod
    def from_table(cls, table: Any, /, **given: Any) -> Columns:
        """Return what the columns of a table seem to hold, but for those given.

        Parameters
        ----------
        table
            A DataFrame. Gaps are allowed in the columns that have some.
        given
            Kinds by name, for columns that are not what they seem.
        """
        raw = raw_cells(table)
        if raw.names is None or raw.single:
            raise TypeError(f"table must be a DataFrame, got {table!r}")
        unknown = [name for name in given if name not in raw.names]
        if unknown:
            raise ValueError(f"there is no column {unknown[0]!r} in the table; it has {raw.names}")
        return cls(
            {
                name: _allowing(read_kind(name, given[name]), column)
                if name in given
                else guess_kind(name, column)
                for name, column in zip(raw.names, raw.cells, strict=True)
            }
        )

    def with_gaps(self, names: Iterable[str]) -> Columns:
        """Return the same columns, some of which may have gaps from now on.

        Parameters
        ----------
        names
            Which of them.
        """
        unknown = [name for name in names if name not in self._kinds]
        if unknown:
            raise ValueError(f"there is no context column {unknown[0]!r}; there are {list(self)}")
        return Columns({**self, **{name: replace(self[name], gaps=True) for name in names}})

    def __getitem__(self, name: str) -> Kind:
        return self._kinds[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def __repr__(self) -> str:
        inside = ", ".join(f"{name!r}: {kind}" for name, kind in self._kinds.items())
        return f"Columns({{{inside}}})"


def _allowing(kind: Kind, column: Sequence[Any]) -> Kind:
    """Return a kind that allows gaps if a column has some."""
    return replace(kind, gaps=True) if any(map(is_gap, column)) else kind
