"""Statements of SQLAlchemy Core, compiled once and sent by the driver itself."""

from collections.abc import Callable
from typing import Any, cast

import asyncpg
from sqlalchemy import Dialect, Select
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg

from service.store.connections import Driver

_DIALECT: Dialect = cast(Callable[[], Dialect], PGDialect_asyncpg)()


class Query:
    """A statement with named parameters (`bindparam`).

    Going through SQLAlchemy for every call would take four times as long as the answer itself.
    """

    def __init__(self, statement: Select[Any]) -> None:
        compiled = statement.compile(dialect=_DIALECT)
        self._sql = str(compiled)
        self._names: list[str] = list(getattr(compiled, "positiontup", None) or ())
        self._constants: dict[str, object] = dict(compiled.params)

    async def fetch(self, connection: Driver, **values: object) -> list[asyncpg.Record]:
        """All rows; `values` are the parameters by name, any others being ignored."""
        given = self._constants | values
        return await connection.fetch(self._sql, *(given[name] for name in self._names))
