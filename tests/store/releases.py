"""Databases that released versions left behind, as `tools/dump_release.py` wrote them down."""

from pathlib import Path

import asyncpg

from service.store.db.connector import data_source_name

DUMPS = sorted((Path(__file__).parent / "schemas").glob("[0-9]*.sql"))

_TABLES = """
    SELECT relname::text FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname <> 'alembic_version'
"""

Contents = dict[str, list[dict[str, object]]]


async def restore(url: str, dump: str) -> None:
    """Fill an empty database with what a dump says."""
    connection = await asyncpg.connect(data_source_name(url))
    await connection.execute(dump)
    await connection.close()


async def contents(url: str) -> Contents:
    """All rows of all tables, in an order of their own."""
    connection = await asyncpg.connect(data_source_name(url))
    tables = [row["relname"] for row in await connection.fetch(_TABLES)]
    found = {name: await connection.fetch(f'SELECT * FROM "{name}"') for name in tables}
    await connection.close()
    return {name: sorted(map(dict, rows), key=repr) for name, rows in found.items()}


def of_columns_of(before: Contents, after: Contents) -> Contents:
    """What the tables and columns that were there before hold after an upgrade."""
    return {
        name: [
            {each: row[each] for each in (rows or after[name] or [{}])[0]} for row in after[name]
        ]
        for name, rows in before.items()
    }
