"""Objects that are kept for the rules of scheduling: every kind of them, through every operation."""

import pytest

from service.model.registry.kinds import DECLARED_KINDS
from tests.api.following import watched
from tests.api.harness import CLUSTER, Harness, problem
from tests.kept_kinds import KINDS, kept, path_of


@pytest.mark.parametrize("kind", KINDS)
async def test_an_object_is_created_read_listed_changed_and_deleted(
    over_each_store: Harness, kind: str
) -> None:
    client, path = over_each_store.client, f"{CLUSTER}/{path_of(kind)}"
    created = await client.put(path, json=kept(kind) | {"mine": {"kept": [None]}})
    assert created.status_code == 201, created.text
    read = (await client.get(path)).json()
    assert read == created.json()
    assert read["mine"] == {"kept": [None]}
    assert (read["kind"], read["apiVersion"]) == (kind, DECLARED_KINDS[kind].api_version)
    assert read["metadata"]["uid"]
    assert read["metadata"]["creationTimestamp"]
    for collection in {path.rpartition("/")[0], f"{CLUSTER}/{DECLARED_KINDS[kind].plural}"}:
        listed = (await client.get(collection, params={"labelSelector": "!tier"})).json()
        assert (listed["kind"], listed["items"]) == (f"{kind}List", [read])
    patched = await client.patch(path, json={"metadata": {"labels": {"tier": "front"}}})
    assert patched.json()["metadata"]["labels"] == {"tier": "front"}
    assert patched.json()["metadata"]["uid"] == read["metadata"]["uid"]
    deleted = await client.delete(path)
    assert deleted.json() == patched.json()
    assert problem(await client.get(path), 404) == "NotFound"


async def test_all_are_applied_watched_exported_and_pruned(over_each_store: Harness) -> None:
    client = over_each_store.client
    items = [kept(kind) for kind in KINDS]
    answer = await client.post(f"{CLUSTER}/apply", json={"kind": "List", "items": items})
    assert answer.json()["created"] == len(KINDS), answer.text
    again = await client.post(f"{CLUSTER}/apply", json={"kind": "List", "items": items})
    assert again.json()["unchanged"] == len(KINDS)
    exported = (await client.get(f"{CLUSTER}/export")).json()["items"]
    assert {each["kind"] for each in exported} >= set(KINDS)
    pruned = await client.post(
        f"{CLUSTER}/apply", params={"prune": ",".join(KINDS)}, json={"kind": "List", "items": []}
    )
    assert pruned.json()["deleted"] == len(KINDS)
    events = [each for each in await watched(over_each_store) if each.data["kind"] in KINDS]
    assert [each.type for each in events] == ["ADDED"] * len(KINDS) + ["DELETED"] * len(KINDS)
    assert {each.data["kind"] for each in events} == set(KINDS)


async def test_a_namespace_goes_with_the_objects_that_are_kept_in_it(harness: Harness) -> None:
    namespaced = [kind for kind in KINDS if DECLARED_KINDS[kind].namespaced]
    await harness.put("namespaces/shop", {"metadata": {"name": "shop"}})
    for kind in namespaced:
        await harness.put(path_of(kind), kept(kind))
    assert (await harness.client.delete(f"{CLUSTER}/namespaces/shop")).status_code == 200
    exported = (await harness.client.get(f"{CLUSTER}/export")).json()["items"]
    assert not {each["kind"] for each in exported} & set(namespaced)


@pytest.mark.parametrize("kind", KINDS)
async def test_an_object_of_another_version_or_name_is_refused(harness: Harness, kind: str) -> None:
    sent = kept(kind, name="other") | {"apiVersion": "example.com/v1"}
    answer = await harness.client.put(f"{CLUSTER}/{path_of(kind)}", json=sent)
    assert problem(answer, 422) == "InvalidManifest"
    assert {each["field"] for each in answer.json()["errors"]} == {"apiVersion", "metadata.name"}
