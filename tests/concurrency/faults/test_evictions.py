"""Evictions and quotas while workers and PostgreSQL are killed: A14 and A2 on real processes."""

import asyncio
import itertools
import os
import random
import statistics
import time
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from tests.builders import REQUIRED_DURING_EXECUTION, matching, node, pod, requirement
from tests.concurrency.callers import PATH, Caller, bearer
from tests.concurrency.faults.site import site
from tests.concurrency.racing import NODES, TOKEN, ZONES, kill_postgres, kill_worker
from tests.paths import ROOT
from tests.processes import PLAIN_HTTP
from tests.seeds import seed
from tests.waiting import once

PLANTING = Path(__file__).parent / "planting"
LASTING = {"execution": REQUIRED_DURING_EXECUTION}
QUOTA = 60
PLACERS = 6
EVICTED_MIN = 5
NEVER_MIND = timedelta(days=1)
CONFIG = {
    "affinityViolationGraceSeconds": 2,
    "evictionsPerMinute": 1000,
    "placePendingPods": False,
}


def node_manifest(index, chance):
    labels = {"zone": f"z{chance.randrange(ZONES)}", "host": f"n{index}"}
    made = node(f"n{index}").label(**labels, disk=chance.choice(("ssd", "ssd", "hdd")))
    return {"apiVersion": "v1", "kind": "Node"} | made.allocatable(pods="5000")


def pod_manifest(name, chance):
    made = pod(name).label(app=chance.choice(("a", "b")))
    match chance.randrange(4):
        case 0:
            return made.require_node(requirement("disk", "In", "ssd"), **LASTING)
        case 1:
            return made.require_affinity("zone", matching(app="a"), **LASTING)
        case 2:
            return made.label(app="c").require_anti_affinity("zone", matching(app="c"), **LASTING)
        case _:
            return made


class Crowd:
    """Callers who place pods, move nodes from zone to zone, and stop what was evicted."""

    def __init__(self, made):
        self.over = asyncio.Event()
        self.evicted = set()
        self.denied = 0
        self._made = made
        self._chance = random.Random(seed("crowd"))
        self._url = made.servers[0].url

    async def run(self, fault):
        callers = self._made.callers(PLACERS + 2)
        try:
            async with asyncio.TaskGroup() as group:
                for i, caller in enumerate(callers[:PLACERS]):
                    group.create_task(self._place(caller, i))
                group.create_task(self._move(callers[PLACERS]))
                stopping = group.create_task(self._stop(callers[PLACERS + 1]))
                await fault()
                await self._enough()
                self.over.set()
                await asyncio.wait({stopping})
        finally:
            await asyncio.gather(*(caller.close() for caller in callers))

    async def _enough(self):
        """Wait until both happened that the rules are about."""

        async def both():
            return self.denied and len(self.evicted) > EVICTED_MIN

        await once(both)

    async def _place(self, caller: Caller, index):
        number = 0
        while not self.over.is_set():
            number += 1
            manifest = pod_manifest(f"p{index}-{number}", self._chance)
            call = await caller.place([dict(manifest)])
            if call.outcome == "ok":
                reason = call.body["results"][0].get("reason")
                self.denied += reason == "QuotaExceeded"
            await asyncio.sleep(0.05)

    async def _move(self, caller: Caller):
        while not self.over.is_set():
            await caller.put(node_manifest(self._chance.randrange(NODES), self._chance))
            await asyncio.sleep(0.05)

    async def _stop(self, caller: Caller):
        """As an orchestrator does: confirm evictions, and now and then delete what it will."""
        while not self.over.is_set():
            for manifest in await self._items("pods") or ():
                metadata = manifest["metadata"]
                marked = "deletionTimestamp" in metadata
                self.evicted |= {metadata["uid"]} if marked else set()
                if marked or self._chance.random() < 0.1:
                    await caller.delete_pod("default", metadata["name"])
            await asyncio.sleep(0.05)

    async def calm(self):
        """Stop what is evicted, until no pod breaks a rule that would have it evicted.

        As long as an evicted pod is there, it breaks the rules of those that it was evicted for.
        """
        [caller] = self._made.callers(1)
        try:
            await once(lambda: self._is_calm(caller))
        finally:
            await caller.close()

    async def _is_calm(self, caller):
        broken, pods = await self._items("violations"), await self._items("pods")
        if broken is None or pods is None:
            return False
        there = [each["metadata"] for each in pods]
        evicted = {each["name"] for each in there if "deletionTimestamp" in each}
        if {each["name"] for each in broken if each["execution"] == "Required"} <= evicted:
            return True
        for name in evicted:
            await caller.delete_pod("default", name)
        return False

    async def _items(self, what):
        """None: there was no answer."""
        try:
            async with httpx.AsyncClient(headers=bearer(TOKEN), **PLAIN_HTTP) as client:
                answer = await client.get(f"{self._url}{PATH}/{what}")
        except httpx.HTTPError:
            return None
        return answer.json()["items"] if answer.is_success else None


async def set_up(made):
    """The settings and the quota; the revision after them."""
    chance, headers = random.Random(seed("nodes of the crowd")), bearer(TOKEN)
    items = [node_manifest(i, chance) for i in range(NODES)]
    items.append(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "room", "namespace": "default"},
            "spec": {"hard": {"pods": str(QUOTA)}},
        }
    )
    url = f"{made.servers[0].url}{PATH}"
    async with httpx.AsyncClient(headers=headers, **PLAIN_HTTP) as client:
        merge = {"Content-Type": "application/merge-patch+json"}
        patched = await client.patch(url, json={"config": CONFIG}, headers=merge)
        patched.raise_for_status()
        body = {"apiVersion": "v1", "kind": "List", "items": items}
        applied = await client.post(f"{url}/apply", json=body)
    return int(applied.raise_for_status().headers["Moorage-Revision"])


def longest_silence(calls):
    """For how long nobody was answered: for so long nobody may have looked at rules, either."""
    at = sorted(call.returned for call in calls if call.outcome == "ok")
    return timedelta(seconds=max(after - before for before, after in itertools.pairwise(at)))


def usual_wait(calls):
    """What an answer took in the middle: one about the time takes as long on a busy machine."""
    waits = [call.returned - call.called for call in calls if call.outcome == "ok"]
    return timedelta(seconds=statistics.median(waits))


async def database_time(made):
    async with made.connection() as connection:
        return await connection.fetchval("SELECT clock_timestamp()")


async def evict_while_killing(ready_made, *, by_the_clock):
    """Ends in the checker, as every site does.

    `by_the_clock`: whether it judges, too, how soon the service notices what time it is and what
    has changed, which takes the longer the more the machine has to do.
    """

    async def kill(made):
        await made.acknowledged(time.monotonic())
        await asyncio.to_thread(kill_worker, made.servers[0])
        await made.acknowledged(time.monotonic())
        await asyncio.to_thread(kill_postgres, made.data_dir)
        await made.acknowledged(time.monotonic())
        await asyncio.to_thread(kill_worker, made.servers[1])
        await made.acknowledged(time.monotonic())

    async with site(quiet=True, stays=False, ready_made=ready_made) as made:
        made.granted = await set_up(made)
        crowd = Crowd(made)
        await crowd.run(lambda: kill(made))
        await crowd.calm()
        made.told = {
            # Until the lease passes from a worker that died, nobody looks.
            "unseen": timedelta(seconds=10) + longest_silence(made.calls),
            "blur": timedelta(seconds=1) + usual_wait(made.calls),
            "ended": await database_time(made),
        }
        if not by_the_clock:
            made.told |= {"unseen": timedelta(), "blur": NEVER_MIND}


@pytest.mark.slow
async def test_nobody_is_evicted_in_vain_and_no_quota_overrun_whatever_is_killed(ready_made):
    await evict_while_killing(ready_made, by_the_clock=False)


@pytest.mark.exploration
async def test_graces_begin_when_rules_break_whatever_is_killed(ready_made):
    await evict_while_killing(ready_made, by_the_clock=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "told_as"),
    [("no_grace", "A14"), ("both_sides_evicted", "A14"), ("the_marked_are_evicted_again", "A7")],
)
async def test_the_checker_tells_of_wrong_evictions_by_real_processes(
    name, told_as, monkeypatch, ready_made
):
    monkeypatch.setenv("PYTHONPATH", f"{PLANTING}{os.pathsep}{ROOT}")
    monkeypatch.setenv("PLANTED_BUG", name)
    with pytest.raises(AssertionError, match=told_as):
        await evict_while_killing(ready_made, by_the_clock=True)
