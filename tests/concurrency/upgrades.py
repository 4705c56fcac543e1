"""Upgrades under load: `python -m tests.concurrency.upgrades COMMIT…` begins with each commit's code and tables.

A commit's last migration has to be one that the present code can begin from.

Two servers of the old code place pods. While callers go on asking both, one server after the other
is stopped in good order and started again with the present code; the first of them migrates the
tables, and for a while old and new serve side by side. The end is that of every campaign of faults:
everything acknowledged is stored once, no rule is broken, and nothing is left open.
"""

import argparse
import asyncio
import sys
import time
from collections import Counter
from contextlib import AsyncExitStack, chdir
from pathlib import Path
from tempfile import TemporaryDirectory

from service.server.local_server import temporary_folder
from service.store.embedded import EmbeddedPostgres
from tests.concurrency.faults.site import Site, site
from tools.dump_release import extract
from tools.ledger import Campaign, add_ledger


async def upgrade_under_load(old: Path) -> Counter[str]:
    """Place pods throughout the upgrade of two servers from this code; count answers and placed pods.

    Raises AssertionError if anything is not as it has to be.
    """
    async with AsyncExitStack() as stack:
        postgres = EmbeddedPostgres(stack.enter_context(temporary_folder()) / "data")
        stack.push_async_callback(asyncio.to_thread, postgres.stop)
        url = await asyncio.to_thread(postgres.start)
        with chdir(old):
            made = await stack.enter_async_context(site(database_url=url, url=url))
        await made.place_while(_upgrade)
    placed = sum(call.pods_placed for call in made.calls)
    return Counter({**Counter(call.outcome for call in made.calls), "pods placed": placed})


async def _upgrade(made: Site) -> None:
    for server in made.servers:
        await asyncio.to_thread(server.stop)
        await asyncio.to_thread(server.start)
        await made.acknowledged(time.monotonic())


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.concurrency.upgrades",
        description="Upgrade servers under load; check what that leaves.",
    )
    parser.add_argument("commits", nargs="+", metavar="COMMIT", help="whose code is upgraded")
    add_ledger(parser)
    options = parser.parse_args()
    campaign, answered = Campaign("upgrades", options.ledger), Counter[str]()
    begun_from = f"from {', '.join(options.commits)}"
    for commit in options.commits:
        with (
            TemporaryDirectory(prefix="moorage-") as folder,
            campaign.telling_failure(begun_from),
        ):
            extract(commit, Path(folder))
            counts = asyncio.run(upgrade_under_load(Path(folder)))
        answered += counts
        print(f"{commit}: {dict(counts)}, nothing lost, doubled or broken", flush=True)
    campaign.add(
        seeds=begun_from,
        faults=2 * len(options.commits),
        placements=answered["pods placed"],
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
