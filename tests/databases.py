"""Makes databases for tests and campaigns, mostly as copies of one that has all migrations applied."""

import asyncio
import contextlib
import itertools
import os
import threading
from collections.abc import Coroutine, Iterator
from typing import Any

import asyncpg
from sqlalchemy.engine import URL, make_url

from service.store.db.connector import data_source_name
from tests.waiting import WAIT_SECONDS


class Databases:
    """Makes and drops databases over one connection, from tests with and without an event loop."""

    def __init__(self, url: str, template: str) -> None:
        self.template = template
        self._url = make_url(url)
        self._numbers = itertools.count(1)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._connection = self._run(_connect(self._url))

    def execute(self, statement: str) -> None:
        self._run(self._connection.execute(statement))

    def copy_template(self, name: str) -> None:
        """Copy the template, which has all migrations applied."""
        self._copy(self.template, name)

    def _copy(self, original: str, name: str) -> None:
        """Copy a database file by file; PostgreSQL's default, page by page, takes four times as long."""
        self.execute(f"CREATE DATABASE {name} TEMPLATE {original} STRATEGY FILE_COPY")

    @contextlib.contextmanager
    def empty(self) -> Iterator[str]:
        """A database without tables, for as long as the context lasts."""
        name = self.new_name()
        self.execute(f"CREATE DATABASE {name}")
        try:
            yield self.url(name)
        finally:
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    @contextlib.contextmanager
    def fresh(self) -> Iterator[str]:
        """A database with all migrations applied, for as long as the context lasts."""
        with self.copied(self.template) as url:
            yield url

    @contextlib.contextmanager
    def copied(self, original: str) -> Iterator[str]:
        """A copy of a database that nobody is connected to, for as long as the context lasts."""
        name = self.new_name()
        self._copy(original, name)
        try:
            yield self.url(name)
        finally:
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def exists(self, name: str) -> bool:
        query = "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)"
        return bool(self._run(self._connection.fetchval(query, name)))

    def named(self, beginning: str) -> list[str]:
        query = "SELECT datname FROM pg_database WHERE starts_with(datname, $1)"
        return [row["datname"] for row in self._run(self._connection.fetch(query, beginning))]

    def url(self, name: str) -> str:
        return self._url.set(database=name).render_as_string(hide_password=False)

    def new_name(self) -> str:
        return f"test_{os.getpid()}_{next(self._numbers)}"

    def close(self) -> None:
        self._run(self._connection.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=WAIT_SECONDS)


async def _connect(url: URL) -> asyncpg.Connection:
    return await asyncpg.connect(data_source_name(url.render_as_string(hide_password=False)))
