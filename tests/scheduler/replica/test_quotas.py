"""Quotas under races and undo: the sums that the ledger keeps are those that counting gives."""

import asyncio
from typing import Any

import msgspec
import pytest

from service.model.core.errors import Denied
from service.model.registry.manifests import TemplateCache, parse_any
from service.scheduler.protocol.intents import DeleteObject, PutObject, ReadComputed
from service.scheduler.replica.replica import Replica
from service.scheduler.replica.stored_kinds import ConfigManifest, load_manifest
from tests.builders import matching, node, pod
from tests.scheduler.world import Manifest, encoded, kinded, world
from tests.seeds import chance


def quota(name: str, namespace: str = "default", **spec: Any) -> Manifest:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec}


def used_in(answer: Any) -> dict[str, dict[str, str]]:
    return {each.name: msgspec.json.decode(each.body)["status"]["used"] for each in answer.objects}


@pytest.mark.parametrize("seed", range(10))
async def test_sixteen_creators_on_two_workers_never_overrun_a_quota(seed: int) -> None:
    async with world(workers=2, seed=seed) as w:
        await w.apply(node("n1"), quota("five", hard={"pods": "5", "requests.cpu": "2"}))

        async def create(number: int) -> bool:
            manifest = pod(f"p{number}").request(cpu="300m")
            if number % 2:
                answer = await w.place(manifest, worker=number % 4 // 2)
                return answer.results[0].outcome == "Placed"
            try:
                await w.ask(PutObject(manifest=w.pod(manifest)), worker=number % 4 // 2)
            except Denied as denied:
                return denied.reason != "QuotaExceeded"
            return True

        made = await asyncio.gather(*(create(number) for number in range(16)))
        assert sum(made) == 5
        for worker in (0, 1):
            answer = await w.ask(ReadComputed(kind="ResourceQuota"), worker=worker)
            assert used_in(answer) == {"five": {"pods": "5", "requests.cpu": "1500m"}}
        await w.assert_replicas_agree()


async def test_room_that_is_given_back_is_found_by_other_workers() -> None:
    async with world(workers=2) as w:
        await w.apply(node("n1"), quota("one", hard={"pods": "1"}))
        await w.place(pod("a"))
        assert (await w.place(pod("b"), worker=1)).results[0].reason == "QuotaExceeded"
        await w.ask(DeleteObject(kind="Pod", namespace="default", name="a"))
        assert (await w.place(pod("b"), worker=1)).results[0].outcome == "Placed"


async def test_a_read_of_quotas_waits_for_what_it_shows_to_be_committed() -> None:
    """P8: what is used is never told of pods that may not come to be."""
    async with world() as w:
        await w.apply(node("n1"), quota("one", hard={"pods": "9"}))
        gate = w.close_gate()
        placing = asyncio.create_task(w.place(pod("a")))
        await w.others()
        reading = asyncio.create_task(w.ask(ReadComputed(kind="ResourceQuota")))
        await w.others()
        assert not reading.done()
        w.open_gate(gate)
        await placing
        assert used_in(await reading) == {"one": {"pods": "1"}}


class Ledgers:
    """A replica that is changed at random, and another that is filled anew with the same."""

    def __init__(self, seed: int) -> None:
        self.random = chance(seed)
        self.templates = TemplateCache()
        self.replica = Replica(self.templates)

    def step(self) -> None:
        act = self.random.choice((self.pod, self.pod, self.pod, self.pod, self.node, self.other))
        act()

    def put(self, manifest: Manifest) -> None:
        self.replica.put(parse_any(encoded(kinded(manifest)), self.templates))

    def pod(self) -> None:
        name, namespace = f"p{self.random.randrange(6)}", self.random.choice(("default", "other"))
        if self.replica.get("Pod", namespace, name) and self.random.random() < 0.4:
            self.replica.delete("Pod", namespace, name)
            return
        made = pod(name).request(cpu=f"{self.random.randrange(4)}00m")
        if self.random.random() < 0.5:
            key = self.random.choice(("host", "zone", "nobody"))
            made = made.require_anti_affinity(key, matching(), namespaceSelector={})
        if self.random.random() < 0.5:
            made = made.on(f"n{self.random.randrange(4)}")
        if self.random.random() < 0.2:
            made = made.phase("Succeeded")
        made["metadata"]["namespace"] = namespace
        self.put(made)

    def node(self) -> None:
        name = f"n{self.random.randrange(4)}"
        if self.replica.get("Node", "", name) and self.random.random() < 0.4:
            self.replica.delete("Node", "", name)
            return
        zone = self.random.choice("ab")
        made = node(name).label(host=name, zone=zone).allocatable(cpu=str(self.random.randrange(9)))
        self.put(made)

    def other(self) -> None:
        if self.random.random() < 0.3:
            settings = {"opportunityCostBasis": self.random.choice(("Largest", "Average"))}
            body = msgspec.json.encode(settings)
            self.replica.put(load_manifest("Cluster", body, self.templates))
            return
        name, namespace = self.random.choice("qr"), self.random.choice(("default", "other"))
        if self.replica.get("ResourceQuota", namespace, name) and self.random.random() < 0.4:
            self.replica.delete("ResourceQuota", namespace, name)
            return
        hard = {"pods": "1", "count/pods": "1", "cpu": "1", "opportunity.cpu": "1"}
        scopes = self.random.choice(([], ["CrossNamespaceAffinity"]))
        hard = {"pods": "1", "cpu": "1", "opportunity.cpu": "1"} if scopes else hard
        self.put(quota(name, namespace, hard=hard, scopes=scopes))

    def usages(self) -> dict[tuple[str, str], dict[str, int]]:
        return told_by(self.replica)

    def counted(self) -> dict[tuple[str, str], dict[str, int]]:
        """The same from a replica that has seen nothing but the objects that there are."""
        fresh = Replica(self.templates)
        fresh.put(ConfigManifest(config=self.replica.config, body=b"{}"))
        for kind in ("Node", "Pod", "ResourceQuota"):
            for key in self.replica.keys(kind):
                stored = self.replica.get(kind, *key)
                assert stored is not None
                fresh.put(stored.manifest)
        return told_by(fresh)


def told_by(replica: Replica) -> dict[tuple[str, str], dict[str, int]]:
    keys = sorted(replica.keys("ResourceQuota"))
    return {key: replica.ledger.usage(*key).used for key in keys}


@pytest.mark.parametrize("seed", range(25))
def test_the_ledger_is_what_counting_gives_also_after_undo(seed: int) -> None:
    ledgers = Ledgers(seed)
    for _ in range(60):
        ledgers.step()
    for _ in range(12):
        before, mark = ledgers.usages(), ledgers.replica.mark()
        for _ in range(ledgers.random.randrange(8)):
            ledgers.step()
            if ledgers.random.random() < 0.5:
                assert ledgers.usages() == ledgers.counted()
        if ledgers.random.random() < 0.6:
            ledgers.replica.undo(mark)
            assert ledgers.usages() == before
        assert ledgers.usages() == ledgers.counted()
