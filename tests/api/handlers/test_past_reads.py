"""Reads at an earlier revision: exactly what was read then, as far as the log tells, and never a guess."""

from typing import Any

import msgspec
import pytest

from tests.api.harness import CLUSTER, Harness, node, pod, problem

PODS, NODES, NAMESPACES = f"{CLUSTER}/pods", f"{CLUSTER}/nodes", f"{CLUSTER}/namespaces"
LISTS = (
    *(PODS, NODES, NAMESPACES, f"{CLUSTER}/namespaces/shop/pods", f"{CLUSTER}/services"),
    f"{PODS}?labelSelector=app%3Dweb",
    f"{PODS}?nodeName=n1",
    f"{PODS}?fieldSelector=status.phase%3DRunning",
)


async def read(harness: Harness, path: str) -> dict[str, Any]:
    answer = await harness.client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


def at(path: str, revision: int) -> str:
    return f"{path}{'&' if '?' in path else '?'}revision={revision}"


async def compact(harness: Harness, keep: int) -> int:
    floor, rose = 0, True
    while rose:
        floor, rose = await harness.store.housekeeping.compact(1, keep_changes=keep, keep_seconds=0)
    return floor


async def story(harness: Harness) -> dict[int, dict[str, Any]]:
    """Change objects in every way, and return what each list was at each revision."""
    await harness.configure(placePendingPods=False)
    seen = dict[int, dict[str, Any]]()

    async def look() -> None:
        lists = {path: await read(harness, path) for path in LISTS}
        seen[int(lists[PODS]["metadata"]["resourceVersion"])] = lists

    await harness.put_node("n1")
    await harness.put_pod("a", nodeName="n1")
    await look()
    await harness.put_pod("b")
    await look()
    other = pod("a", nodeName="n1")
    other["metadata"]["labels"] = {"app": "db"}
    await harness.put("namespaces/shop/pods/a", other)
    await look()
    await harness.put("namespaces/shop/pods/b", pod("b") | {"status": {"phase": "Running"}})
    await look()
    await harness.client.delete(f"{CLUSTER}/namespaces/shop/pods/a")
    await look()
    await harness.put_pod("a", nodeName="n1")  # another one of the same name
    await look()
    items = [node("n2"), pod("c", nodeName="n2"), pod("d", "bank")]
    answer = await harness.client.post(f"{CLUSTER}/apply", json={"kind": "List", "items": items})
    assert answer.status_code == 200, answer.text
    await look()
    await harness.client.delete(f"{CLUSTER}/namespaces/bank")
    await harness.client.delete(f"{CLUSTER}/nodes/n1")
    await look()
    return seen


async def test_every_revision_is_read_as_it_was(over_each_store: Harness):
    seen = await story(over_each_store)
    for revision, lists in seen.items():
        for path, then in lists.items():
            assert await read(over_each_store, at(path, revision)) == then, (path, revision)
    assert len({msgspec.json.encode(lists) for lists in seen.values()}) == len(seen)


async def test_one_object_is_read_as_it_was(over_each_store: Harness):
    seen = await story(over_each_store)
    client, path = over_each_store.client, f"{CLUSTER}/namespaces/shop/pods/a"
    found = set[str]()
    for revision, lists in seen.items():
        then = [each for each in lists[PODS]["items"] if each["metadata"]["name"] == "a"]
        answer = await client.get(at(path, revision))
        if not then:
            assert problem(answer, 404) == "NotFound"
            assert f"at revision {revision}" in answer.json()["detail"]
            continue
        assert answer.json() == then[0]
        assert answer.headers["etag"] == f'"{then[0]["metadata"]["resourceVersion"]}"'
        assert int(answer.headers["moorage-revision"]) == max(seen)
        found.add(answer.text)
    assert len(found) == 3


async def test_pages_stay_at_their_revision(over_each_store: Harness):
    seen = await story(over_each_store)
    revision = min(seen, key=lambda each: (-len(seen[each][PODS]["items"]), each))
    path, found = at(f"{PODS}?limit=1", revision), list[Any]()
    while True:
        page = await read(over_each_store, path)
        assert page["metadata"]["resourceVersion"] == str(revision)
        found += page["items"]
        await over_each_store.put_pod(f"later-{len(found)}")
        if "continue" not in page["metadata"]:
            break
        path = f"{PODS}?limit=1&continue={page['metadata']['continue']}"
    assert found == seen[revision][PODS]["items"]
    other = await over_each_store.client.get(f"{path}&revision={revision + 1}")
    assert problem(other, 400) == "MalformedRequest"
    assert other.json()["errors"][0]["field"] == "revision"


async def test_a_revision_beyond_the_head_is_refused(over_each_store: Harness):
    for path in (PODS, f"{CLUSTER}/namespaces/shop/pods/a"):
        answer = await over_each_store.client.get(at(path, 999))
        assert problem(answer, 400) == "MalformedRequest"
        assert answer.json()["errors"][0]["field"] == "revision"
        assert "newer than the cluster's head" in answer.json()["detail"]


async def test_the_time_of_a_revision_is_that_of_its_commit(over_each_store: Harness):
    seen = await story(over_each_store)
    head, path = max(seen), f"{CLUSTER}/revisions"
    times = [(await read(over_each_store, at(path, each)))["at"] for each in sorted(seen)]
    assert times == sorted(times)
    assert "at" not in await read(over_each_store, path)
    floor = await compact(over_each_store, head - 2)
    assert "at" not in await read(over_each_store, at(path, floor))
    assert (await read(over_each_store, at(path, head)))["at"] == times[-1]
    assert problem(await over_each_store.client.get(at(path, head + 1)), 400) == "MalformedRequest"


async def test_the_oldest_readable_revision_is_exact_at_every_floor(over_each_store: Harness):
    seen = await story(over_each_store)
    head = max(seen)
    for keep in range(head - 1, -1, -1):
        floor = await compact(over_each_store, keep)
        told = await read(over_each_store, f"{CLUSTER}/revisions")
        assert told["revision"] == head
        assert told["oldestRevision"] >= max(told["oldestByKind"].values()) >= floor
        for path, kind in ((PODS, "Pod"), (NODES, "Node"), (NAMESPACES, "Namespace")):
            oldest = told["oldestByKind"][kind]
            for revision, lists in seen.items():
                answer = await over_each_store.client.get(at(path, revision))
                if revision >= oldest:
                    assert answer.json() == lists[path], (floor, path, revision)
                else:
                    assert problem(answer, 410) == "Compacted"
                    assert f"is {oldest}." in answer.json()["detail"]


@pytest.mark.parametrize("path", [PODS, f"{CLUSTER}/namespaces/shop/pods/old"])
async def test_what_the_log_has_lost_is_not_guessed(over_each_store: Harness, path: str):
    await over_each_store.put_pod("old", schedulerName="other")
    await over_each_store.put_node("n1")
    revision = int((await over_each_store.put_node("n2")).headers["moorage-revision"])
    await compact(over_each_store, 0)
    assert (await over_each_store.client.get(at(path, revision))).status_code == 200
    labelled = pod("old", schedulerName="other")
    labelled["metadata"]["labels"] = {"app": "new"}
    changed = await over_each_store.put("namespaces/shop/pods/old", labelled)
    answer = await over_each_store.client.get(at(path, revision))
    assert problem(answer, 410) == "Compacted"
    assert f"is {changed.headers['moorage-revision']}." in answer.json()["detail"]
    elsewhere = at(f"{CLUSTER}/namespaces/bank/pods", revision)
    assert (await read(over_each_store, elsewhere))["items"] == []


def explanation(name: str, revision: int | str) -> str:
    return f"{CLUSTER}/namespaces/shop/pods/{name}/explanation?revision={revision}"


async def placed_in_a_story(harness: Harness) -> dict[str, Any]:
    """Place pods, change the cluster in every way, and return what the placements explained."""
    await harness.configure(placePendingPods=False)
    for name, zone in (("n1", "a"), ("n2", "b")):
        await harness.put_node(name, zone=zone)
    spread = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    told = {}
    for names in (("a", "b", "c"), ("d",)):
        pods = [pod(name, topologySpreadConstraints=[spread]) for name in names]
        answer = await harness.place(*pods, explain="Full")
        told |= {each["name"]: each["explanation"] for each in answer["results"]}
        await harness.put_node("n1", zone="a", disk="ssd")
    await harness.configure(placePendingPods=False, hardPodAffinityWeight=7)
    await harness.client.delete(f"{CLUSTER}/nodes/n2")
    await harness.put_node("n3", zone="c")
    await harness.client.delete(f"{CLUSTER}/namespaces/shop/pods/a")
    return told


async def test_a_placement_is_explained_as_it_was_decided(over_each_store: Harness):
    told = await placed_in_a_story(over_each_store)
    assert len({msgspec.json.encode(each) for each in told.values()}) > 1
    for name in ("b", "c", "d"):
        path = f"{CLUSTER}/namespaces/shop/pods/{name}"
        revision = (await read(over_each_store, path))["metadata"]["resourceVersion"]
        assert await read(over_each_store, explanation(name, revision)) == told[name], name
    now = await read(over_each_store, f"{CLUSTER}/namespaces/shop/pods/d/explanation")
    assert now != told["d"]
    # The second replica is as it was: the same question gets the same answer.
    assert await read(over_each_store, explanation("d", revision)) == told["d"]


async def test_a_deleted_pod_is_explained_as_it_was_then(over_each_store: Harness):
    told = await placed_in_a_story(over_each_store)
    bound = (await read(over_each_store, f"{CLUSTER}/namespaces/shop/pods/b"))["metadata"]
    first = int(bound["resourceVersion"]) - 1
    assert await read(over_each_store, explanation("a", first)) == told["a"]
    answer = await over_each_store.client.get(explanation("a", first - 1))
    assert problem(answer, 404) == "NotFound"
    answer = await over_each_store.client.get(explanation("a", 999))
    assert problem(answer, 400) == "MalformedRequest"


async def test_what_is_lost_is_not_explained(over_each_store: Harness):
    await placed_in_a_story(over_each_store)
    bound = (await read(over_each_store, f"{CLUSTER}/namespaces/shop/pods/d"))["metadata"]
    await compact(over_each_store, 4)
    answer = await over_each_store.client.get(explanation("d", bound["resourceVersion"]))
    assert problem(answer, 410) == "Compacted"
