"""`python -m tests.concurrency.failovers.running`: PostgreSQL that fails over, and two servers on it.

All on this machine, until Ctrl-C; nothing is kept.
"""

import argparse
import asyncio
import signal
import sys
from contextlib import ExitStack
from pathlib import Path

from service.server.local_server import LocalServer, temporary_folder
from tests.concurrency.failovers.replicated import Replicated, replicated
from tests.concurrency.faults.site import start_all

TOKEN = "for-this-run-on-this-machine-alone"


async def run(*, through_haproxy: bool) -> None:
    """Tell what runs where, and wait to be interrupted."""
    async with replicated(through_haproxy=through_haproxy) as made:
        environment = {"MOORAGE_DATABASE_URL": made.url(), "MOORAGE_TOKEN": TOKEN}
        with temporary_folder() as folder, ExitStack() as stack:
            servers = [LocalServer(Path(folder), environment=environment) for _ in range(2)]
            await start_all(servers, stack)
            print("\n".join(_told(made, servers)), flush=True)
            await _interrupted()


async def _interrupted() -> None:
    asked = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, asked.set)
    await asked.wait()


def _told(made: Replicated, servers: list[LocalServer]) -> list[str]:
    members = ", ".join(f"{each.name} {each.machine.address}" for each in made.members)
    return [
        f"PostgreSQL: {members}",
        f"MOORAGE_DATABASE_URL={made.url()}",
        *(f"server: {server.url}, with MOORAGE_TOKEN={TOKEN}" for server in servers),
        f"members: {' '.join(made.patronictl)} list",
        f"another primary: {' '.join(made.patronictl)} switchover --force moorage",
        "Ctrl-C ends it.",
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.concurrency.failovers.running",
        description="Run three PostgreSQLs under Patroni, and two servers on them.",
    )
    parser.add_argument("--haproxy", action="store_true", help="between servers and PostgreSQL")
    options = parser.parse_args()
    asyncio.run(run(through_haproxy=options.haproxy))
    return 0


if __name__ == "__main__":
    sys.exit(main())
