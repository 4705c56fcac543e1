"""A claim that names no class gets the default one, as Kubernetes' admission gives it."""

from typing import Any

import pytest

from tests.builders import Manifest, claim, node, pod, storage_class, volume
from tests.scheduler.world import World, world

DEFAULT = "storageclass.kubernetes.io/is-default-class"
BETA_DEFAULT = "storageclass.beta.kubernetes.io/is-default-class"
BETA_CLASS = "volume.beta.kubernetes.io/storage-class"


def default(name: str, key: str = DEFAULT, created: str | None = None) -> Manifest:
    made = storage_class(name)
    made["metadata"] |= {"annotations": {key: "true"}}
    if created is not None:
        made["metadata"] |= {"creationTimestamp": created}
    return made


def unclassed(name: str = "data", annotations: Manifest | None = None, **fields: Any) -> Manifest:
    made = claim(name, **fields)
    if not fields:
        del made["spec"]["storageClassName"]
    if annotations:
        made["metadata"]["annotations"] = annotations
    return made


async def class_of(w: World, name: str = "data") -> str | None:
    stored = await w.stored("PersistentVolumeClaim", "default", name)
    return stored["spec"].get("storageClassName")


@pytest.mark.parametrize("key", [DEFAULT, BETA_DEFAULT])
async def test_a_claim_without_a_class_gets_the_default_and_its_pod_a_volume(key: str):
    async with world() as w:
        await w.apply(node("n1"), storage_class("other"), default("local", key), volume("disk"))
        await w.apply(unclassed())
        assert await class_of(w) == "local"
        answer = await w.place(pod("db").claim("data"))
        assert answer.results[0].outcome == "Placed"


@pytest.mark.parametrize(
    "named",
    [
        unclassed(storageClassName="other"),
        unclassed(storageClassName=""),
        unclassed(annotations={BETA_CLASS: "other"}),
    ],
    ids=["another", "none", "another, by annotation"],
)
async def test_a_claim_that_says_of_its_class_keeps_what_it_says(named: Manifest):
    async with world() as w:
        await w.apply(default("local"), named)
        assert await class_of(w) == named["spec"].get("storageClassName")


async def test_of_several_defaults_the_newest_counts_and_then_the_first_by_name():
    async with world() as w:
        await w.apply(
            default("old", created="2026-01-01T00:00:00Z"),
            default("b", created="2026-02-01T00:00:00Z"),
            default("a", created="2026-02-01T00:00:00Z"),
        )
        await w.apply(unclassed())
        assert await class_of(w) == "a"


async def test_a_claim_keeps_its_class_when_another_becomes_the_default():
    async with world() as w:
        await w.apply(default("old", created="2026-01-01T00:00:00Z"))
        await w.apply(unclassed())
        await w.apply(default("new", created="2026-02-01T00:00:00Z"))
        await w.apply(unclassed(), unclassed("later"))
        assert [await class_of(w), await class_of(w, "later")] == ["old", "new"]


async def test_a_claim_keeps_its_class_when_there_is_no_default_any_more():
    async with world() as w:
        await w.apply(default("old"))
        await w.apply(unclassed())
        await w.apply(storage_class("old"))
        await w.apply(unclassed())
        assert await class_of(w) == "old"


async def test_a_claim_that_has_a_volume_without_a_class_stays_without():
    async with world() as w:
        bound = unclassed()
        bound["spec"]["volumeName"] = "disk"
        await w.apply(bound)
        await w.apply(default("local"), bound)
        assert await class_of(w) is None


async def test_a_claim_that_was_written_before_there_was_a_default_gets_it_when_written_again():
    async with world() as w:
        await w.apply(storage_class("local"), unclassed())
        assert await class_of(w) is None
        await w.apply(default("local"))
        await w.apply(unclassed())
        assert await class_of(w) == "local"


async def test_a_claim_that_an_api_server_has_admitted_stays_as_it_is():
    observed = unclassed()
    observed["metadata"]["uid"] = "6c0f3b1c-5a1c-4b7e-9d54-000000000001"
    async with world() as w:
        await w.apply(default("local"), observed)
        assert await class_of(w) is None
