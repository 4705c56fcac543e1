"""Many ends in one request: deletions by filter and by line, and reports of the status of many pods."""

import json
from typing import Any

import pytest
from typing_extensions import override

from service.model.core.errors import StorageUnavailable
from service.model.log.commit import CommitRequest
from service.model.log.results import CommitResult
from service.runtime.clock import SystemClock
from service.runtime.ids import RandomIds
from tests.api.conftest import MakeHarness
from tests.api.harness import CLUSTER, Harness, node, pod, problem
from tests.support.memory_store.log import MemoryLog
from tests.support.memory_store.store import MemoryStore

SHOP = f"{CLUSTER}/namespaces/shop/pods"
APPLY = f"{CLUSTER}/apply"
STATUSES = f"{CLUSTER}/pods/statuses"
NDJSON = {"content-type": "application/x-ndjson"}


def lines(*items: object) -> bytes:
    return b"\n".join(json.dumps(item).encode() for item in items)


def labelled(name: str, app: str, namespace: str = "shop", **spec: Any) -> dict[str, Any]:
    made = pod(name, namespace, **spec)
    made["metadata"]["labels"] = {"app": app}
    return made


async def apply(harness: Harness, *items: object) -> None:
    answer = await harness.client.post(APPLY, json={"kind": "List", "items": list(items)})
    assert answer.status_code == 200, answer.text


async def names(harness: Harness, path: str = f"{CLUSTER}/pods") -> list[str]:
    answer = await harness.client.get(path)
    return [item["metadata"]["name"] for item in answer.json()["items"]]


async def deleted(harness: Harness, path: str, **headers: str) -> dict[str, Any]:
    answer = await harness.client.delete(path, headers=headers)
    assert answer.status_code == 200, answer.text
    assert str(answer.json()["revision"]) == answer.headers["moorage-revision"]
    return answer.json()


async def stream(harness: Harness, path: str, *items: object, **headers: str) -> list[dict]:
    answer = await harness.client.post(path, content=lines(*items), headers=NDJSON | headers)
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


async def reported(harness: Harness, *items: object) -> list[dict]:
    answer = await harness.client.post(STATUSES, json={"items": list(items)})
    assert answer.status_code == 200, answer.text
    return answer.json()["results"]


def report(name: str, phase: str = "Running", **more: Any) -> dict[str, Any]:
    return {"namespace": "shop", "name": name, "status": {"phase": phase}, **more}


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("labelSelector=app%3Dweb", ["d", "e"]),
        ("labelSelector=app!%3Dweb", ["a", "b", "c"]),
        ("nodeName=n1", ["b", "c", "d", "e"]),
        ("nodeName=", ["a", "d"]),
        ("phase=Running", ["a", "b", "c", "e"]),
        ("fieldSelector=metadata.namespace%3Dother", ["a", "b", "d"]),
        ("labelSelector=app%3Dweb&nodeName=", ["a", "d", "e"]),
        ("all=true", []),
    ],
)
async def test_what_passes_the_filters_is_deleted(
    over_each_store: Harness, query: str, left: list[str]
) -> None:
    running = labelled("d", "db", nodeName="n2") | {"status": {"phase": "Running"}}
    await apply(
        over_each_store,
        labelled("a", "web", nodeName="n1"),
        labelled("b", "web"),
        labelled("c", "web", "other"),
        running,
        labelled("e", "db", "other"),
    )
    gone = {"a", "b", "c", "d", "e"} - set(left)
    answer = await deleted(over_each_store, f"{CLUSTER}/pods?{query}")
    assert {each["name"] for each in answer["results"]} == gone
    assert {each["result"] for each in answer["results"]} <= {"Deleted"}
    assert (answer["deleted"], answer["remaining"]) == (len(gone), 0)
    assert sorted(await names(over_each_store)) == left


async def test_a_namespace_s_path_deletes_in_that_namespace_only(harness: Harness) -> None:
    await apply(harness, labelled("a", "web"), labelled("b", "web", "other"))
    answer = await deleted(harness, f"{SHOP}?all=true")
    assert [(each["namespace"], each["name"]) for each in answer["results"]] == [("shop", "a")]
    assert await names(harness) == ["b"]


async def test_everything_is_deleted_only_on_purpose(harness: Harness) -> None:
    await apply(harness, labelled("a", "web"), node("n1"))
    for path in (SHOP, f"{CLUSTER}/pods", f"{CLUSTER}/nodes", f"{SHOP}?all=false", f"{SHOP}?all=1"):
        assert problem(await harness.client.delete(path), 400) == "MalformedRequest"
    for path in (f"{SHOP}?labelSelector=a,,b", f"{SHOP}?phase=Asleep", f"{SHOP}?limit=0"):
        assert problem(await harness.client.delete(path), 400) == "MalformedRequest"
    assert (await harness.client.delete(f"{CLUSTER}/namespaces?all=true")).status_code == 405
    assert await names(harness) == ["a"]
    assert (await deleted(harness, f"{CLUSTER}/nodes?all=true"))["deleted"] == 1


async def test_preconditions_are_for_single_objects(harness: Harness) -> None:
    await apply(harness, labelled("a", "web"))
    body = {"preconditions": {"uid": "u"}}
    answer = await harness.client.request("DELETE", f"{SHOP}?all=true", json=body)
    assert problem(answer, 422) == "InvalidManifest"
    assert answer.json()["errors"][0]["field"] == "preconditions"
    assert await names(harness) == ["a"]


async def test_commits_are_whole_and_the_answer_says_which(make_harness: MakeHarness) -> None:
    harness = await make_harness(apply_lines_per_commit=2, apply_objects_max=5)
    await apply(harness, *(labelled(f"p{index}", "web", nodeName="n1") for index in range(5)))
    await apply(harness, *(labelled(f"p{index}", "web", nodeName="n1") for index in (5, 6)))
    before = (await harness.client.get(CLUSTER)).json()["revision"]
    answer = await deleted(harness, f"{SHOP}?labelSelector=app")
    assert [each["deleted"] for each in answer["commits"]] == [2, 2, 1]
    assert [each["revision"] for each in answer["commits"]] == [before + 2, before + 4, before + 5]
    assert [each["revision"] for each in answer["results"]] == [before + n for n in range(1, 6)]
    assert (answer["deleted"], answer["remaining"]) == (5, 2)
    rest = await deleted(harness, f"{SHOP}?labelSelector=app&limit=1")
    assert (rest["deleted"], rest["remaining"]) == (1, 1)
    assert await names(harness) == ["p6"]


class FailingLog(MemoryLog):
    """Fails at one commit, counted from when a test sets `left`."""

    left = 1_000_000

    @override
    async def commit(self, cluster_id: int, request: CommitRequest) -> CommitResult:
        self.left -= 1
        if self.left == 0:
            raise StorageUnavailable("The database is away.")
        return await super().commit(cluster_id, request)


@pytest.mark.parametrize("key", ["", "once"])
async def test_a_deletion_that_ends_early_tells_what_was_committed(
    make_harness: MakeHarness, key: str
) -> None:
    store = MemoryStore(SystemClock().now, RandomIds().commit_id)
    store.log = failing = FailingLog(store.state)
    harness = await make_harness(store, apply_lines_per_commit=2)
    await apply(harness, *(labelled(f"p{index}", "web", nodeName="n1") for index in range(5)))
    failing.left = 2
    headers = {"idempotency-key": key} if key else {}
    answer = await deleted(harness, f"{SHOP}?all=true", **headers)
    assert (answer["deleted"], answer["remaining"]) == (2, 3)
    assert answer["problem"]["code"] == "StorageUnavailable"
    assert await names(harness) == ["p2", "p3", "p4"]
    successor = await make_harness(store, apply_lines_per_commit=2)  # the first one was killed, say
    again = await deleted(successor, f"{SHOP}?all=true", **headers)
    assert (again["deleted"], again["remaining"]) == (5 if key else 3, 0)
    if key:
        assert again["commits"][0] == answer["commits"][0]
    assert "problem" not in again
    assert await names(harness) == []
    await apply(harness, labelled("q", "web", nodeName="n1"))
    failing.left = 1
    refused = await harness.client.delete(f"{SHOP}?all=true")
    assert problem(refused, 503) == "StorageUnavailable"
    assert await names(harness) == ["q"]


async def test_a_key_gives_the_first_answer_again(over_each_store: Harness) -> None:
    await apply(over_each_store, labelled("a", "web"), labelled("b", "db"))
    path = f"{SHOP}?labelSelector=app%3Dweb"
    headers = {"idempotency-key": "k"}
    first = await over_each_store.client.delete(path, headers=headers)
    await apply(over_each_store, labelled("a", "web"))
    again = await over_each_store.client.delete(path, headers=headers)
    assert again.json()["results"] == first.json()["results"]
    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"
    assert await names(over_each_store) == ["a", "b"]
    other = await over_each_store.client.delete(
        f"{SHOP}?all=true", headers={"idempotency-key": "k"}
    )
    assert problem(other, 422) == "IdempotencyKeyReused"


async def test_what_cannot_be_deleted_stops_no_other(harness: Harness) -> None:
    await harness.configure(volumes="Honor")
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "used", "namespace": "shop"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fast",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "v1"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "storageClassName": "fast",
            "hostPath": {"path": "/v1"},
        },
    }
    storage_class = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "fast"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    free = claim | {"metadata": {"name": "free", "namespace": "shop"}}
    await apply(harness, node("n1"), storage_class, volume, claim, free)
    user = pod("a", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "used"}}])
    placed = await harness.place(user)
    assert placed["results"][0]["outcome"] == "Placed", placed
    path = f"{CLUSTER}/namespaces/shop/persistentvolumeclaims"
    answer = await deleted(harness, f"{path}?all=true")
    assert [(each["name"], each["result"]) for each in answer["results"]] == [
        ("free", "Deleted"),
        ("used", "Conflict"),
    ]
    assert "delete it first" in answer["results"][1]["message"]
    result = (await stream(harness, APPLY, {"delete": claim}))[0]
    assert (result["result"], result["name"]) == ("Conflict", "used")
    assert await names(harness, path) == ["used"]


async def test_lines_delete_what_is_meant(over_each_store: Harness) -> None:
    placed = [labelled(name, "web", nodeName="n1") for name in "abcd"]
    await apply(over_each_store, node("n1"), *placed)
    stored = (await over_each_store.client.get(f"{SHOP}/b")).json()
    other = {"kind": "Pod", "metadata": {"name": "c", "namespace": "shop", "uid": "another"}}
    stale = {"kind": "Pod", "metadata": {"name": "d", "namespace": "shop", "resourceVersion": "1"}}
    results = await stream(
        over_each_store,
        APPLY,
        {"delete": {"kind": "Pod", "metadata": {"name": "a", "namespace": "shop"}}},
        {"delete": stored},
        {"delete": other},
        {"delete": stale},
        {"delete": {"kind": "Pod", "metadata": {"name": "a", "namespace": "shop"}}},
        labelled("a", "db", nodeName="n1"),
        {"delete": {"kind": "Node", "metadata": {"name": "n1"}}},
        {"delete": {"kind": "Gizmo", "metadata": {"name": "g"}}},
        {"delete": {"kind": "Pod", "metadata": {}}, "kind": "Pod"},
        {"delete": "a"},
    )
    assert [(each["line"], each["result"]) for each in results] == [
        (1, "Deleted"),
        (2, "Deleted"),
        (3, "Conflict"),
        (4, "Conflict"),
        (5, "NotFound"),
        (6, "Created"),
        (7, "Deleted"),
        (8, "Invalid"),
        (9, "Invalid"),
        (10, "Invalid"),
    ]
    assert results[0]["revision"] + 1 == results[1]["revision"]
    assert (results[0]["kind"], results[0]["namespace"], results[0]["name"]) == ("Pod", "shop", "a")
    assert results[7]["errors"][0]["field"] == "delete.kind"
    assert await names(over_each_store) == ["a", "c", "d"]


async def test_reports_are_answered_one_by_one(over_each_store: Harness) -> None:
    await apply(
        over_each_store, node("n1"), *(labelled(name, "web", nodeName="n1") for name in "ab")
    )
    results = await reported(
        over_each_store,
        report("a"),
        report("absent"),
        report("b", uid="another"),
        report("b", resourceVersion="1"),
        report("a"),
        {"name": "b", "namespace": "shop", "status": "fine"},
        {"name": "b", "namespace": "shop", "status": {"phase": 3}},
        report("a", "Succeeded"),
        "b",
    )
    assert [(each["line"], each["result"]) for each in results] == [
        (1, "Changed"),
        (2, "NotFound"),
        (3, "Conflict"),
        (4, "Conflict"),
        (5, "Unchanged"),
        (6, "Invalid"),
        (7, "Invalid"),
        (8, "Changed"),
        (9, "Invalid"),
    ]
    assert results[5]["errors"][0]["field"] == "status"
    assert results[6]["errors"][0]["field"] == "status.phase"
    assert (results[6]["namespace"], results[6]["name"]) == ("shop", "b")
    stored = (await over_each_store.client.get(f"{SHOP}/a")).json()
    assert stored["status"]["phase"] == "Succeeded"
    assert stored["metadata"]["resourceVersion"] == str(results[7]["revision"])


async def test_reports_come_as_lines_in_several_commits(make_harness: MakeHarness) -> None:
    harness = await make_harness(apply_lines_per_commit=2)
    await apply(harness, *(labelled(name, "web", nodeName="n1") for name in "abc"))
    results = await stream(harness, STATUSES, report("a"), report("b"), report("c"))
    assert [each["result"] for each in results] == ["Changed"] * 3
    assert [each["line"] for each in results] == [1, 2, 3]


async def test_reports_keep_what_they_do_not_name(harness: Harness) -> None:
    placed = labelled("a", "web", nodeName="n1")
    placed["status"] = {
        "phase": "Pending",
        "hostIP": "10.0.0.1",
        "startTime": "2026-05-04T10:00:00Z",
    }
    await apply(harness, placed)
    await reported(
        harness, {"namespace": "shop", "name": "a", "status": {"phase": "Running", "hostIP": None}}
    )
    status = (await harness.client.get(f"{SHOP}/a")).json()["status"]
    assert status == {"phase": "Running", "startTime": "2026-05-04T10:00:00Z"}


async def test_reports_have_limits_and_keys(make_harness: MakeHarness) -> None:
    harness = await make_harness(apply_objects_max=2)
    await apply(harness, labelled("a", "web", nodeName="n1"))
    too_many = await harness.client.post(STATUSES, json={"items": [report("a")] * 3})
    assert problem(too_many, 422) == "InvalidManifest"
    unknown = await harness.client.post(STATUSES, json={"item": []})
    assert problem(unknown, 422) == "InvalidManifest"
    headers = {"idempotency-key": "k"}
    first = await harness.client.post(STATUSES, json={"items": [report("a")]}, headers=headers)
    again = await harness.client.post(STATUSES, json={"items": [report("a")]}, headers=headers)
    assert again.json() == first.json()
    assert first.json()["results"][0]["result"] == "Changed"


async def test_quotas_and_pending_pods_follow_ends_in_bulk(over_each_store: Harness) -> None:
    quota = {
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "shop"},
        "spec": {"hard": {"pods": "4"}},
    }
    await apply(over_each_store, quota, node("n1"))
    await over_each_store.place(*(labelled(f"p{index}", "web") for index in range(4)))
    waiting = await over_each_store.place(labelled("w", "db"), onUnschedulable="Queue")
    assert waiting["results"][0]["outcome"] == "Denied"
    await reported(over_each_store, report("p0", "Succeeded"))
    await deleted(
        over_each_store, f"{SHOP}?labelSelector=app%3Dweb&fieldSelector=metadata.name!%3Dp3"
    )
    path = f"{CLUSTER}/namespaces/shop/resourcequotas/q"
    used = (await over_each_store.client.get(path)).json()["status"]["used"]
    assert used == {"pods": "1"}
    placed = await over_each_store.place(labelled("w", "db"))
    assert placed["results"][0]["outcome"] in {"Placed", "AlreadyPlaced"}
