"""Where races happen: planners on one PostgreSQL, on equal terms, and processes that check."""

import asyncio
from argparse import Namespace
from collections.abc import AsyncIterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, asynccontextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from service.server.local_server import LocalServer, temporary_folder
from service.store.embedded import EmbeddedPostgres

TOKEN = "a-race-that-nobody-else-may-disturb"


class Stage(NamedTuple):
    """What a race needs."""

    planners: list[LocalServer]
    database_url: str
    data_dir: Path
    """Of PostgreSQL."""
    checkers: ProcessPoolExecutor


@asynccontextmanager
async def stage(options: Namespace, *, quiet: bool = False) -> AsyncIterator[Stage]:
    """Start `options.planners` servers that forward nothing to each other, and `options.checkers` processes."""
    with temporary_folder() as folder, ExitStack() as stack:
        postgres = stack.enter_context(EmbeddedPostgres(folder / "data"))
        environment = {
            "MOORAGE_TOKEN": TOKEN,
            "MOORAGE_DATABASE_URL": postgres.url,
            "MOORAGE_FORWARDING": "false",
        }
        planners = [
            LocalServer(folder / f"planner-{i}", environment=environment, quiet=quiet)
            for i in range(options.planners)
        ]
        for planner in planners:
            await asyncio.to_thread(stack.enter_context, planner)
        checkers = stack.enter_context(
            ProcessPoolExecutor(options.checkers, mp_context=get_context("spawn"))
        )
        yield Stage(planners, postgres.url, folder / "data", checkers)
