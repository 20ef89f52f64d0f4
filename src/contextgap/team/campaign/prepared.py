"""Statements that run often: compiled once, and given to the driver without further ado.

SQLAlchemy spends ten times as long around such a statement as the database spends on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
        self._errors: Any = dialect.loaded_dbapi.Error

    def run(self, connection: Connection, **values: Any) -> None:
        """Run the statement."""
        self._execute(connection, values)

    def run_all(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Run the statement with each of several rows of values."""
        if len(rows) == 1:
            self._execute(connection, rows[0])
        else:
            self._execute(connection, rows, many=True)

    def rows(self, connection: Connection, **values: Any) -> list[Any]:
        """Return the rows that the statement finds."""
        return self._execute(connection, values, read=True)

    def _arguments(self, values: Mapping[str, Any]) -> Any:
        given = {**self._fixed, **values} if self._fixed else values
        return given if self._order is None else [given[name] for name in self._order]

    def _execute(
        self, connection: Connection, values: Any, *, many: bool = False, read: bool = False
    ) -> list[Any]:
        """Give the statement to the driver; what goes wrong is raised as SQLAlchemy would do."""
        raw = connection.connection
        cursor = raw.cursor()
        try:
            if many:
                cursor.executemany(self._text, [self._arguments(row) for row in values])
            else:
                cursor.execute(self._text, self._arguments(values))
            return list(cursor.fetchall()) if read else []
        except self._errors as error:
            lost = self._dialect.is_disconnect(error, raw.driver_connection, cursor)
            if lost:
                connection.invalidate(error)
            raise DBAPIError.instance(
                self._text,
                values,
                error,
                self._errors,
                connection_invalidated=lost,
                dialect=self._dialect,
            ) from error
        finally:
            cursor.close()
