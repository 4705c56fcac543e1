"""Clocks jump by hours, forwards and backwards, under servers and under PostgreSQL."""

import asyncio
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from service.server.local_server import LocalServer, temporary_folder
from service.store.embedded import EmbeddedPostgres
from service.store.embedded.binaries import ENVIRONMENT
from tests.concurrency.callers import read_history
from tests.concurrency.checker import check
from tests.concurrency.faults.site import Site, start_all
from tests.concurrency.racing import (
    SETUP,
    TOKEN,
    assert_every_answer_is_stored,
    broken_groups,
    load,
)
from tests.processes import copy_data

LIBRARIES = sorted(map(str, Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")))
JUMPS = ("+2h", "-3h", "+0", "+26h", "-20m")


class WallClock:
    """What libfaketime tells a process is the time; the monotonic clock stays as it is."""

    def __init__(self, path):
        self._path = path
        self.jump("+0")

    def jump(self, offset):
        # At once: a process that reads an empty file ends.
        new = self._path.with_suffix(".new")
        new.write_text(offset)
        new.chmod(0o644)
        new.replace(self._path)

    @property
    def environment(self):
        return {
            "LD_PRELOAD": LIBRARIES[0],
            "FAKETIME_TIMESTAMP_FILE": str(self._path),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DONT_RESET": "1",
        }


@pytest.mark.skipif(not LIBRARIES, reason="clock jumps: libfaketime is not installed")
async def test_no_answer_is_lost_or_given_twice_when_clocks_jump(monkeypatch, ready_made):
    with temporary_folder() as folder, ExitStack() as stack:
        clocks = [WallClock(folder / f"clock-{i}") for i in range(3)]
        for name, value in clocks[0].environment.items():
            monkeypatch.setitem(ENVIRONMENT, name, value)
        copy_data(ready_made, folder / "data")
        postgres = EmbeddedPostgres(folder / "data")
        await asyncio.to_thread(stack.enter_context, postgres)
        common = {"MOORAGE_TOKEN": TOKEN, "MOORAGE_DATABASE_URL": postgres.url}
        servers = [
            LocalServer(folder, environment=common | clock.environment) for clock in clocks[1:]
        ]
        await start_all(servers, stack)
        await asyncio.to_thread(load, servers[0].url)
        site = Site(folder, servers)

        async def jump(_):
            for offset in JUMPS:
                for clock in clocks:
                    clock.jump(offset)
                    await site.acknowledged(time.monotonic())

        calls = await site.place_while(jump)
        await site.place_again()
        history = await read_history(postgres.url, site.calls, granted=SETUP)
        await asyncio.to_thread(stack.close)
    assert_every_answer_is_stored(history)
    assert list(broken_groups(history)) == []
    assert check(history, placements_every=max(1, len(history.changes) // 300)) == []
    # The time of commits never runs backwards, and the jumps were real.
    times = [commit.at for commit in history.commits]
    assert times == sorted(times)
    assert (times[-1] - times[0]).total_seconds() > 25 * 3600
    assert all(call.outcome == "ok" for call in calls)
