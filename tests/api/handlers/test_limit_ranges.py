"""What the limit ranges of a namespace make of pods and claims that are created there."""

from typing import Any

import httpx
import msgspec
import pytest

from tests.api.harness import CLUSTER, Harness, pod, problem
from tests.kept_kinds import kept

Manifest = dict[str, Any]

UID = "8c1a5e0e-1111-4222-8333-000000000001"
USUAL: Manifest = {
    "type": "Container",
    "default": {"cpu": "2", "memory": "1Gi"},
    "defaultRequest": {"cpu": "1"},
}
FILLED = {
    "limits": {"cpu": "2", "memory": "1Gi"},
    "requests": {"cpu": "1", "memory": "1Gi"},
}


def silent(name: str = "web", **spec: Any) -> Manifest:
    """A pod whose container says nothing of what it needs."""
    return pod(name, **{"containers": [{"name": "c"}], **spec})


def asking(name: str = "web", **resources: Any) -> Manifest:
    """A pod with one container that asks for this."""
    return pod(name, containers=[{"name": "c", "resources": resources}])


async def limit(harness: Harness, *limits: Manifest, name: str = "usual") -> None:
    manifest = {"metadata": {"name": name}, "spec": {"limits": list(limits)}}
    await harness.put(f"namespaces/shop/limitranges/{name}", manifest)


async def put(harness: Harness, manifest: Manifest, plural: str = "pods") -> httpx.Response:
    path = f"{CLUSTER}/namespaces/shop/{plural}/{manifest['metadata']['name']}"
    return await harness.client.put(path, json=manifest)


async def resources(
    harness: Harness, name: str = "web", field: str = "containers"
) -> list[Manifest | None]:
    answer = await harness.client.get(f"{CLUSTER}/namespaces/shop/pods/{name}")
    return [each.get("resources") for each in answer.json()["spec"][field]]


async def test_containers_get_the_defaults(over_each_store: Harness) -> None:
    harness = over_each_store
    await limit(harness, USUAL)
    await harness.put_node("n1")
    inits = [{"name": "init"}, {"name": "side", "restartPolicy": "Always"}]
    await put(harness, silent("written", initContainers=inits))
    assert await resources(harness, "written") == [FILLED]
    assert await resources(harness, "written", "initContainers") == [FILLED] * 2
    answer = await harness.place(silent("a"), silent("b"), policy="AllOrNothing")
    assert [each["outcome"] for each in answer["results"]] == ["Placed"] * 2
    assert await resources(harness, "a") == [FILLED]
    elsewhere = silent() | {"metadata": {"name": "web", "namespace": "other"}}
    path = f"{CLUSTER}/namespaces/other/pods/web"
    stored = (await harness.client.put(path, json=elsewhere)).json()
    assert stored["spec"]["containers"] == [{"name": "c"}]


async def test_what_a_container_says_itself_comes_first(harness: Harness) -> None:
    await limit(harness, USUAL)
    await put(harness, asking(limits={"cpu": "1500m"}))
    assert await resources(harness) == [
        {
            "limits": {"cpu": "1500m", "memory": "1Gi"},
            "requests": {"cpu": "1500m", "memory": "1Gi"},
        }
    ]


async def test_bounds_are_defaults_where_there_are_no_others(harness: Harness) -> None:
    await limit(harness, {"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Gi"}})
    await put(harness, silent())
    assert await resources(harness) == [
        {"limits": {"cpu": "2"}, "requests": {"cpu": "2", "memory": "1Gi"}}
    ]


async def test_of_two_defaults_the_limit_range_that_comes_first_by_name_has_its_way(
    harness: Harness,
) -> None:
    await limit(harness, {"type": "Container", "default": {"cpu": "1"}}, name="b")
    await limit(harness, {"type": "Container", "default": {"cpu": "3"}}, name="a")
    await put(harness, silent())
    assert await resources(harness) == [{"limits": {"cpu": "3"}, "requests": {"cpu": "3"}}]


async def test_a_default_limit_below_the_request_makes_the_pod_invalid(harness: Harness) -> None:
    await limit(harness, USUAL)
    answer = await put(harness, asking(requests={"cpu": "3"}))
    assert problem(answer, 422) == "InvalidManifest"
    (error,) = answer.json()["errors"]
    assert error["field"] == "spec.containers[0].resources.requests[cpu]"


BOUNDS = {"min": {"cpu": "1"}, "max": {"cpu": "2"}, "maxLimitRequestRatio": {"cpu": "1.5"}}
OF_CONTAINERS: Manifest = {"type": "Container", **BOUNDS}
OF_PODS: Manifest = {"type": "Pod", **BOUNDS}
WHERE = "spec.containers[0].resources."


@pytest.mark.parametrize(
    ("bounds", "asked", "told"),
    [
        (
            OF_CONTAINERS,
            {"requests": {"cpu": "500m"}, "limits": {"cpu": "500m"}},
            f"{WHERE}requests[cpu]: minimum cpu usage per Container is 1, but request is 500m",
        ),
        (
            OF_CONTAINERS,
            {"limits": {"cpu": "3"}},
            f"{WHERE}limits[cpu]: maximum cpu usage per Container is 2, but limit is 3",
        ),
        (
            OF_CONTAINERS,
            {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
            (
                f"{WHERE}limits[cpu]: cpu max limit to request ratio per Container is 1.5, "
                "but provided ratio is 2.000000"
            ),
        ),
        (
            OF_PODS,
            {"limits": {"cpu": "3"}},
            "spec.containers: maximum cpu usage per Pod is 2, but limit is 3",
        ),
        (
            {"type": "Pod", "min": {"memory": "1Gi"}},
            {},
            "spec.containers: minimum memory usage per Pod is 1Gi.  No request is specified",
        ),
        (
            {"type": "Pod", "max": {"memory": "1Gi"}},
            {},
            "spec.containers: maximum memory usage per Pod is 1Gi.  No limit is specified",
        ),
    ],
)
async def test_a_pod_that_asks_for_too_little_or_too_much_is_denied(
    harness: Harness, bounds: Manifest, asked: Manifest, told: str
) -> None:
    await limit(harness, bounds)
    await harness.put_node("n1")
    answer = await put(harness, asking(**asked))
    assert problem(answer, 403) == "LimitRangeViolated"
    assert told in answer.json()["detail"].split("; ")
    result = (await harness.place(asking(**asked)))["results"][0]
    assert (result["outcome"], result["reason"]) == ("Denied", "LimitRangeViolated")
    assert told in result["message"].split("; ")


async def test_what_a_pod_asks_for_as_a_whole_counts_for_the_pod(harness: Harness) -> None:
    await limit(harness, {"type": "Pod", "max": {"cpu": "2"}})
    both = [{"name": name, "resources": {"limits": {"cpu": "2"}}} for name in ("a", "b")]
    assert problem(await put(harness, pod("web", containers=both)), 403) == "LimitRangeViolated"
    whole = {"limits": {"cpu": "2"}, "requests": {"cpu": "2"}}
    assert (await put(harness, pod("web", containers=both, resources=whole))).is_success


async def test_defaults_come_before_quotas_are_charged(harness: Harness) -> None:
    await limit(harness, USUAL)
    quota = {"metadata": {"name": "small"}, "spec": {"hard": {"limits.cpu": "3"}}}
    await harness.put("namespaces/shop/resourcequotas/small", quota)
    assert (await put(harness, silent("a"))).is_success
    answer = await put(harness, silent("b"))
    assert problem(answer, 403) == "QuotaExceeded"
    assert "requested: limits.cpu=2, used: limits.cpu=2" in answer.json()["detail"]


async def test_a_limit_range_is_for_new_pods_only(harness: Harness) -> None:
    await harness.configure(placePendingPods=False)
    await put(harness, silent())
    await limit(harness, USUAL, {"type": "Pod", "min": {"cpu": "3"}})
    await harness.put_node("n1")
    assert (await put(harness, silent())).is_success
    assert (await put(harness, silent(schedulingGates=[{"name": "later"}]))).is_success
    assert (await put(harness, silent())).is_success
    assert await resources(harness) == [None]
    refs = {"podRefs": [{"namespace": "shop", "name": "web"}]}
    answer = await harness.client.post(f"{CLUSTER}/placements", json=refs)
    assert answer.json()["results"][0]["outcome"] == "Placed"
    assert await resources(harness) == [None]


async def test_a_waiting_pod_that_gets_another_spec_is_judged_like_a_new_one(
    harness: Harness,
) -> None:
    await limit(harness, {"type": "Container", "max": {"cpu": "2"}})
    await put(harness, silent())
    assert problem(await put(harness, asking(limits={"cpu": "3"})), 403) == "LimitRangeViolated"
    change = {"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "3"}}}]}}
    path = f"{CLUSTER}/namespaces/shop/pods/web"
    patched = await harness.client.patch(path, json=change)
    assert problem(patched, 403) == "LimitRangeViolated"


async def test_a_resize_in_place_stays_within_the_bounds(harness: Harness) -> None:
    await limit(harness, {"type": "Container", "max": {"cpu": "2"}})
    await harness.put_node("n1")
    await harness.place(asking(limits={"cpu": "1"}))
    for cpu, status in (("3", 403), ("2", 200)):
        more = {"limits": {"cpu": cpu}, "requests": {"cpu": cpu}}
        change = {"spec": {"containers": [{"name": "c", "resources": more}]}}
        path = f"{CLUSTER}/namespaces/shop/pods/web"
        assert (await harness.client.patch(path, json=change)).status_code == status


async def test_a_pod_that_is_sent_again_without_the_defaults_is_the_same(
    harness: Harness,
) -> None:
    await limit(harness, USUAL)
    await harness.put_node("n1")
    await harness.place(silent())
    assert (await harness.place(silent()))["results"][0]["outcome"] == "AlreadyPlaced"
    assert (await put(harness, silent())).is_success
    assert await resources(harness) == [FILLED]


async def test_an_imported_pod_is_neither_changed_nor_refused(harness: Harness) -> None:
    """It was admitted where it was created, perhaps before there was a limit range."""
    await limit(harness, USUAL, {"type": "Pod", "min": {"cpu": "3"}})
    for number, spec in enumerate(({"nodeName": "n1"}, {})):
        sent = silent(f"imported-{number}", **spec)
        sent["metadata"]["uid"] = f"{UID[:-1]}{number}"
        assert (await put(harness, sent)).is_success
        assert await resources(harness, f"imported-{number}") == [None]


async def test_a_pod_that_was_created_on_a_node_gets_defaults_and_is_never_refused(
    harness: Harness,
) -> None:
    await limit(harness, USUAL, {"type": "Pod", "min": {"cpu": "3"}})
    assert (await put(harness, silent(nodeName="n1"))).is_success
    assert await resources(harness) == [FILLED]
    stated = {"requests": {"cpu": "3"}}
    greedy = pod("greedy", containers=[{"name": "c", "resources": stated}], nodeName="n1")
    assert (await put(harness, greedy)).is_success
    assert await resources(harness, "greedy") == [stated]


def claim(size: str, **metadata: Any) -> Manifest:
    requests = {"requests": {"storage": size}}
    return {"metadata": {"name": "data", **metadata}, "spec": {"resources": requests}}


@pytest.mark.parametrize(
    ("size", "told"),
    [
        ("11Gi", "maximum storage usage per PersistentVolumeClaim is 10Gi, but request is 11Gi"),
        ("1Mi", "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi"),
    ],
)
async def test_a_claim_to_too_much_or_too_little_is_denied(
    harness: Harness, size: str, told: str
) -> None:
    bounds = {"min": {"storage": "1Gi"}, "max": {"storage": "10Gi"}}
    await limit(harness, {"type": "PersistentVolumeClaim", **bounds})
    answer = await put(harness, claim(size), "persistentvolumeclaims")
    assert problem(answer, 403) == "LimitRangeViolated"
    assert answer.json()["detail"] == f"spec.resources.requests[storage]: {told}"
    assert (await put(harness, claim("5Gi"), "persistentvolumeclaims")).is_success
    grown = await put(harness, claim(size), "persistentvolumeclaims")
    assert problem(grown, 403) == "LimitRangeViolated"


async def test_a_claim_keeps_the_size_that_it_was_admitted_with(harness: Harness) -> None:
    await put(harness, claim("5Gi"), "persistentvolumeclaims")
    await limit(harness, {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}})
    labelled = claim("5Gi", labels={"app": "db"})
    assert (await put(harness, labelled, "persistentvolumeclaims")).is_success
    imported = claim("6Gi", uid=UID) | {"metadata": {"name": "imported", "uid": UID}}
    assert (await put(harness, imported, "persistentvolumeclaims")).is_success


async def test_a_simulation_has_the_limit_ranges_among_its_objects(harness: Harness) -> None:
    node = {"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "2500m", "pods": "9"}}}
    limit_range = kept("LimitRange") | {
        "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "1"}}]}
    }
    request = {
        "nodes": [node],
        "objects": [limit_range],
        "pods": [silent("there", nodeName="n1")],
        "place": [silent("a"), silent("b")],
    }
    answer = (await harness.client.post("/v1/simulations", json=request)).json()
    outcomes = [each["outcome"] for each in answer["results"]]
    assert outcomes == ["Placed", "Unschedulable"]


async def test_a_limit_range_that_goes_leaves_no_trace(harness: Harness) -> None:
    await limit(harness, USUAL)
    await harness.client.delete(f"{CLUSTER}/namespaces/shop/limitranges/usual")
    await put(harness, silent())
    assert await resources(harness) == [None]


NO_TEXTS = ({}, [], 1, True)


def of_type(type_: Any, name: str = "odd") -> Manifest:
    metadata = {"name": name, "namespace": "shop"}
    spec = {"limits": [{"type": type_, "max": {"cpu": "1"}}]}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": spec}


WRITES = {
    "POST": ("namespaces/shop/limitranges", ""),
    "PUT": ("namespaces/shop/limitranges/odd", ""),
    "apply": ("apply", "items[0]."),
}


async def test_a_type_has_to_be_text(over_each_store: Harness) -> None:
    for method, (path, prefix) in WRITES.items():
        for type_ in NO_TEXTS:
            sent = of_type(type_)
            body = {"apiVersion": "v1", "kind": "List", "items": [sent]} if prefix else sent
            answer = await over_each_store.client.request(
                "POST" if prefix else method, f"{CLUSTER}/{path}", json=body
            )
            assert problem(answer, 422) == "InvalidManifest"
            (error,) = answer.json()["errors"]
            told = (error["field"], error["message"])
            assert told == (f"{prefix}spec.limits[0].type", "must be a string")


async def test_a_line_whose_type_is_no_text_stops_no_other(over_each_store: Harness) -> None:
    sent = [
        of_type("Container", "before"),
        *(of_type(each) for each in NO_TEXTS),
        of_type("Pod", "after"),
    ]
    answer = await over_each_store.client.post(
        f"{CLUSTER}/apply",
        content=b"\n".join(map(msgspec.json.encode, sent)),
        headers={"content-type": "application/x-ndjson"},
    )
    assert answer.status_code == 200
    told = [msgspec.json.decode(line)["result"] for line in answer.content.splitlines()]
    assert told == ["Created", *["Invalid"] * len(NO_TEXTS), "Created"]
