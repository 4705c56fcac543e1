"""The disk is full: commits fail, servers say so, nothing is lost, and with room again all goes on."""

import asyncio
import contextlib
import subprocess

import asyncpg
import pytest

from service.server.local_server import is_ready, temporary_folder
from service.store.embedded import EmbeddedPostgres
from tests.concurrency.faults.site import connect, site
from tests.concurrency.racing import CALLERS
from tests.waiting import once

DISK_BYTES = 320_000_000
PIECE = bytes(1 << 16)


@contextlib.contextmanager
def small_disk():
    """An empty folder with a limit of its own."""
    with temporary_folder() as folder:
        options = f"size={DISK_BYTES},mode=0711"
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        mounted = subprocess.run(command, capture_output=True, check=False)
        if mounted.returncode:
            pytest.skip("full disk: a small tmpfs may not be mounted here")
        try:
            yield folder
        finally:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(path):
    with contextlib.suppress(OSError), path.open("ab", buffering=0) as file:
        while file.write(PIECE):
            pass


async def answers(data_dir):
    """Whether PostgreSQL still answers reads."""
    connection = await connect(EmbeddedPostgres(data_dir).url)
    try:
        return await connection.fetchval("SELECT count(*) FROM head") > 0
    finally:
        await connection.close()


async def ask_for_more_log(data_dir):
    """PostgreSQL panics where it has no room for a new file of its log."""
    postgres = EmbeddedPostgres(data_dir)
    for _ in range(20):
        with contextlib.suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            connection = await connect(postgres.url)
            try:
                await connection.execute("SELECT pg_logical_emit_message(true, 'full', 'disk')")
                await connection.execute("SELECT pg_switch_wal()")
            finally:
                connection.terminate()


@pytest.mark.slow
async def test_a_full_disk_refuses_commits_until_there_is_room_again(ready_made):
    async def fill_until_refused(site):
        filler = site.data_dir.parent / "filler"

        async def none_is_ready():
            """PostgreSQL runs, and gives some room back now and then."""
            await asyncio.to_thread(fill, filler)
            ready = [await asyncio.to_thread(is_ready, each.url) for each in site.servers]
            return not any(ready)

        await once(none_is_ready)
        assert await answers(site.data_dir)

        async def enough_are_refused():
            await ask_for_more_log(site.data_dir)
            return sum(each.outcome != "ok" for each in site.calls) >= CALLERS

        await once(enough_are_refused)
        filler.unlink()

        async def all_are_ready():
            ready = [await asyncio.to_thread(is_ready, each.url) for each in site.servers]
            return all(ready)

        await once(all_are_ready)

    patience = {"request_timeout_seconds": "2"}
    async with site(disk=small_disk(), quiet=True, ready_made=ready_made, **patience) as made:
        calls = await made.place_while(fill_until_refused)
    refused = {each.status for each in calls if each.outcome != "ok"}
    assert refused
    assert refused <= {"StorageUnavailable", "OutcomeUnknown", "Overloaded"}
    assert sum(each.outcome == "ok" for each in calls) > CALLERS
