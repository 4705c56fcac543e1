"""Exports from memory: what the tables have, at one revision, whatever changes meanwhile."""

from typing import Any

import msgspec
import pytest

from tests.api.harness import CLUSTER, Harness, node, pod
from tests.builders import claim, service
from tests.security.test_budget import Reader

NEVER_TRIED = {"schedulerName": "other"}


async def fill(harness: Harness) -> None:
    """Objects of many kinds, put in an order that is not that of their keys."""
    items: list[Any] = [node(f"n{number}", zone="a") for number in (3, 1, 2)]
    items += [pod(f"p{number}", nodeName="n1", **NEVER_TRIED) for number in (12, 3, 7)]
    items += [pod("waits", namespace, **NEVER_TRIED) for namespace in ("b", "a")]
    items += [claim("data"), service("web", app="web")]
    quota = {"spec": {"hard": {"pods": "9"}}, "metadata": {"name": "q", "namespace": "shop"}}
    items += [{"kind": "ResourceQuota", **quota}]
    body = {"kind": "List", "items": items}
    answer = await harness.client.post(f"{CLUSTER}/apply", json=body)
    assert answer.status_code == 200, answer.text


@pytest.fixture
def object_by_object(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exports from memory are sent object by object."""
    monkeypatch.setattr("service.api.reads.export.BATCH_ROWS", 1)


async def test_an_export_from_memory_is_byte_for_byte_that_from_the_tables(
    over_each_store: Harness, monkeypatch: pytest.MonkeyPatch
):
    await fill(over_each_store)
    from_memory = await over_each_store.client.get(f"{CLUSTER}/export")

    async def nothing(*_: object) -> None: ...

    monkeypatch.setattr("service.scheduler.scheduler.Scheduler.loop_here", nothing)
    from_tables = await over_each_store.client.get(f"{CLUSTER}/export")

    assert from_memory.content == from_tables.content
    assert from_memory.headers["etag"] == from_tables.headers["etag"]
    items = from_memory.json()["items"]
    assert [each["metadata"]["name"] for each in items if each["kind"] == "Pod"] == [
        *("waits", "waits", "p12", "p3", "p7")
    ]
    assert len(items) >= 11


async def test_what_changes_while_an_export_is_sent_is_not_in_it(
    harness: Harness, object_by_object: None
):
    await fill(harness)
    before = (await harness.client.get(f"{CLUSTER}/export")).json()
    reader = Reader(harness, f"{CLUSTER}/export", 1)
    await reader.paused.wait()
    await harness.put_node("n9")
    await harness.put_node("n2", zone="b")
    await harness.client.delete(f"{CLUSTER}/namespaces/a/pods/waits")
    await harness.put_pod("p3", nodeName="n3", **NEVER_TRIED)
    reader.go_on.set()
    await reader.task

    assert reader.complete
    assert msgspec.json.decode(reader.answered) == before
    after = (await harness.client.get(f"{CLUSTER}/export")).json()
    assert int(after["metadata"]["resourceVersion"]) > int(before["metadata"]["resourceVersion"])
    assert after["items"] != before["items"]


async def test_an_export_begins_before_most_of_it_was_looked_at(
    harness: Harness, object_by_object: None, monkeypatch: pytest.MonkeyPatch
):
    """The first byte need not wait for the pods, however many there are."""
    await fill(harness)
    looked_at = list[str]()

    async def noting(candidates: Any, is_wanted: Any) -> Any:
        looked_at.extend(each.manifest.kind for each in candidates)
        return [sorted(filter(is_wanted, candidates), key=lambda each: each.manifest.name)]

    monkeypatch.setattr("service.api.reads.export.sorted_runs", noting)
    reader = Reader(harness, f"{CLUSTER}/export", 1)
    await reader.paused.wait()
    assert "Pod" not in looked_at
    reader.go_on.set()
    await reader.task
    assert "Pod" in looked_at
