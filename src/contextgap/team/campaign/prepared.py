"""Statements that run often: compiled once, and given to the driver without further ado.

SQLAlchemy spends ten times as long around such a statement as the database spends on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Dialect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql import ClauseElement


class Prepared:
    """One statement, for connections whose transaction has begun.

    Parameters
    ----------
    statement
        A statement all of whose values that change are named.
    dialect
        That of the database.
    columns
        For statements that insert or update: the columns that they are given.
    """

    def __init__(
        self, statement: ClauseElement, dialect: Dialect, columns: Iterable[str] | None = None
    ) -> None:
        names = None if columns is None else list(columns)
        compiled: Any = statement.compile(dialect=dialect, column_keys=names)
        self._text: str = str(compiled)
        self._fixed = {name: v for name, v in compiled.params.items() if v is not None}
        self._order: Sequence[str] | None = compiled.positiontup
        self._dialect = dialect

    def run(self, connection: Connection, **values: Any) -> None:
        """Run the statement."""
        with self._cursor(connection, values) as cursor:
            cursor.execute(self._text, self._arguments(values))

    def run_all(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Run the statement with each of several rows of values."""
        with self._cursor(connection, rows) as cursor:
            cursor.executemany(self._text, [self._arguments(row) for row in rows])

    def rows(self, connection: Connection, **values: Any) -> list[Any]:
        """Return the rows that the statement finds."""
        with self._cursor(connection, values) as cursor:
            cursor.execute(self._text, self._arguments(values))
            return list(cursor.fetchall())

    def _arguments(self, values: Mapping[str, Any]) -> Any:
        given = {**self._fixed, **values}
        return given if self._order is None else [given[name] for name in self._order]

    @contextmanager
    def _cursor(self, connection: Connection, values: Any) -> Iterator[Any]:
        """Yield a cursor; what goes wrong with it is raised as SQLAlchemy would raise it."""
        dialect, raw = self._dialect, connection.connection
        errors: Any = dialect.loaded_dbapi.Error
        cursor = raw.cursor()
        try:
            yield cursor
        except errors as error:
            lost = dialect.is_disconnect(error, raw.driver_connection, cursor)
            if lost:
                connection.invalidate(error)
            known = DBAPIError.instance(
                self._text, values, error, errors, connection_invalidated=lost, dialect=dialect
            )
            raise known from error
        finally:
            cursor.close()
