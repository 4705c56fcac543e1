"""Lists page by page are the list at once, whatever the names and the size of the pages."""

import random
from itertools import product
from typing import Any

import pytest

from tests.api.harness import CLUSTER, Harness, node, pod, problem
from tests.store.paging import NAMES, SCOPES
from tests.store.test_events import event

DNS_NAMES = tuple(name for name in NAMES if not name.endswith(".") and len(name) < 64)
LABELS = tuple(name for name in DNS_NAMES if "." not in name)
"""Names that a namespace may have."""
QUOTA = {"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": {"pods": "999"}}}
GROUP = {
    "apiVersion": "scheduling.x-k8s.io/v1alpha1",
    "kind": "PodGroup",
    "spec": {"minMember": 2},
}
REPLICA_SET = {"apiVersion": "apps/v1", "kind": "ReplicaSet"}
KEYS = [*product(SCOPES[:3], DNS_NAMES[:4]), *(("a", name) for name in DNS_NAMES[4:])]

PAGES_MAX = 100

Key = tuple[str, str]


def named(manifest: dict[str, Any], namespace: str, name: str) -> dict[str, Any]:
    return {**manifest, "metadata": {"namespace": namespace, "name": name}}


@pytest.fixture
async def filled(over_each_store: Harness) -> Harness:
    """Every kind with names that are near to one another, stored in no order."""
    items = [node(name) for name in DNS_NAMES]
    for namespace, name in KEYS:
        items.append(pod(name, namespace, schedulerName="other"))
        items += [named(kind, namespace, name) for kind in (QUOTA, GROUP, REPLICA_SET)]
    namespaces = {*LABELS, *SCOPES}
    items += [{"kind": "Namespace", "metadata": {"name": name}} for name in namespaces]
    random.Random(1).shuffle(items)
    answer = await over_each_store.client.post(
        f"{CLUSTER}/apply", json={"kind": "List", "items": items}
    )
    assert answer.status_code == 200, answer.text
    told = [event(name, namespace=namespace) for namespace, name in KEYS]
    await over_each_store.store.events.add(1, told)
    return over_each_store


async def page(harness: Harness, path: str, **query: Any) -> tuple[list[Key], str | None]:
    answer = await harness.client.get(f"{CLUSTER}/{path}", params=query)
    assert answer.status_code == 200, answer.text
    body = answer.json()
    keys = [
        (item["metadata"].get("namespace", ""), item["metadata"]["name"]) for item in body["items"]
    ]
    return keys, body["metadata"].get("continue")


async def pages(harness: Harness, path: str, **query: Any) -> list[list[Key]]:
    """All pages of a list; following `continue` comes to an end."""
    found, token = [], None
    while True:
        more = {} if token is None else {"continue": token}
        keys, token = await page(harness, path, **query, **more)
        found.append(keys)
        assert len(found) <= PAGES_MAX, "the pages have no end"
        if token is None:
            return found


LISTS = {
    "nodes": len(DNS_NAMES),
    "namespaces": len({*LABELS, *SCOPES}),
    "pods": len(KEYS),
    "resourcequotas": len(KEYS),
    "podgroups": len(KEYS),
    "replicasets": len(KEYS),
    "events": len(KEYS),
    "namespaces/a/pods": len(DNS_NAMES),
    "namespaces/a-0/pods": 4,
    "namespaces/a/resourcequotas": len(DNS_NAMES),
    "namespaces/a/podgroups": len(DNS_NAMES),
    "namespaces/a/replicasets": len(DNS_NAMES),
    "namespaces/a/events": len(DNS_NAMES),
}


async def test_pages_of_every_size_are_the_list_of_every_kind(filled: Harness) -> None:
    """Each page but the last is full, and the last one is not empty."""
    for path, count in LISTS.items():
        [whole] = await pages(filled, path)
        assert len(whole) == count, path
        assert whole == sorted(whole), path
        for size in (1, 3, count - 1, count):
            found = await pages(filled, path, limit=size)
            assert [key for keys in found for key in keys] == whole, (path, size)
            assert [len(keys) for keys in found[:-1]] == [size] * (len(found) - 1), (path, size)
            assert found[-1], (path, size)


async def test_filtered_pages_are_the_filtered_list(filled: Harness) -> None:
    """Pages are full also where most of what is read does not pass."""
    wanted = [key for key in sorted(KEYS) if key[1] != "a"]
    for path, selector in (("pods", "metadata.name!=a"), ("events", "involvedObject.name!=a")):
        [whole] = await pages(filled, path, fieldSelector=selector)
        assert len(whole) == len(wanted)
        for size in (1, 3, len(whole)):
            found = await pages(filled, path, fieldSelector=selector, limit=size)
            assert [key for keys in found for key in keys] == whole
            assert all(len(keys) == size for keys in found[:-1])


async def test_a_list_goes_on_where_what_its_page_ended_with_is_gone(filled: Harness) -> None:
    path = "namespaces/a/pods"
    [present] = await pages(filled, path)
    while len(present) > 2:
        keys, token = await page(filled, path, limit=2)
        assert keys == present[:2]
        await filled.client.delete(f"{CLUSTER}/{path}/{keys[1][1]}")
        left, _ = await page(filled, path, **{"continue": token})
        assert left == present[2:]
        present = [keys[0], *left]


async def test_a_token_is_good_for_its_own_list_alone(filled: Harness) -> None:
    for path in LISTS:
        _, token = await page(filled, path, limit=1)
        assert token is not None
        for other in LISTS:
            if other != path:
                answer = await filled.client.get(f"{CLUSTER}/{other}", params={"continue": token})
                assert problem(answer, 400) == "MalformedRequest", (path, other)
