"""What many ends in one request do is what the same ends do one by one: state, quotas and log."""

import json
from typing import Any

from hypothesis import HealthCheck, given, settings, strategies as st

from tests.api.conftest import MakeHarness
from tests.api.harness import CLUSTER, Harness, node, pod

APPS = st.sampled_from(["web", "db"])
NAMESPACES = st.sampled_from(["shop", "bank"])
NODES = st.sampled_from(["n1", "n2", None])
PHASES = st.sampled_from(["Pending", "Running", "Succeeded", "Failed"])
FILTERS = st.sampled_from(
    [
        "labelSelector=app%3Dweb",
        "labelSelector=app!%3Dweb",
        "nodeName=n1",
        "nodeName=",
        "phase=Succeeded",
        "fieldSelector=status.phase!%3DPending",
        "labelSelector=app%3Dweb&nodeName=n2",
    ]
)
STATUSES = st.dictionaries(
    st.sampled_from(["hostIP", "startTime", "reason", "message"]),
    st.sampled_from([None, "10.0.0.1", "2026-05-04T10:00:00Z"]),
    max_size=2,
)
SPECS = st.lists(st.tuples(APPS, NAMESPACES, NODES, PHASES), min_size=4, max_size=10)
QUOTA = {"kind": "ResourceQuota", "spec": {"hard": {"pods": "100", "requests.cpu": "100"}}}


@st.composite
def ends(draw: st.DrawFn) -> list[tuple[str, Any]]:
    """Filters of deletions, and reports on pods of which some are gone or never were."""
    reports = st.lists(st.tuples(st.integers(0, 9), PHASES, STATUSES), min_size=1, max_size=6)
    kinds = st.one_of(
        st.tuples(st.just("filter"), FILTERS),
        st.tuples(st.just("reports"), reports),
        st.tuples(st.just("lines"), st.lists(st.integers(0, 9), min_size=1, max_size=4)),
    )
    return draw(st.lists(kinds, min_size=3, max_size=8))


def place_of(index: int, specs: list[tuple[Any, ...]]) -> tuple[str, str]:
    namespace = specs[index][1] if index < len(specs) else "shop"
    return namespace, f"p{index}"


def pods_of(specs: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    made = []
    for index, (app, namespace, node_name, phase) in enumerate(specs):
        spec = {"nodeName": node_name} if node_name else {"schedulerName": "nobody"}
        manifest = pod(f"p{index}", namespace, **spec)
        manifest["metadata"]["labels"] = {"app": app}
        made.append(manifest | {"status": {"phase": phase}})
    return made


async def begin(harness: Harness, specs: list[tuple[Any, ...]]) -> None:
    quotas = [QUOTA | {"metadata": {"name": "q", "namespace": each}} for each in ("shop", "bank")]
    items = [*quotas, node("n1"), node("n2"), *pods_of(specs)]
    answer = await harness.client.post(f"{CLUSTER}/apply", json={"kind": "List", "items": items})
    assert answer.status_code == 200, answer.text


async def in_bulk(harness: Harness, specs: list[tuple[Any, ...]], end: tuple[str, Any]) -> None:
    kind, what = end
    if kind == "filter":
        answer = await harness.client.delete(f"{CLUSTER}/pods?{what}")
    elif kind == "lines":
        answer = await harness.client.post(
            f"{CLUSTER}/apply",
            content=b"\n".join(_deletion(*place_of(index, specs)) for index in what),
            headers={"content-type": "application/x-ndjson"},
        )
    else:
        items = [
            {
                "namespace": place_of(index, specs)[0],
                "name": f"p{index}",
                "status": {"phase": phase} | more,
            }
            for index, phase, more in what
        ]
        answer = await harness.client.post(f"{CLUSTER}/pods/statuses", json={"items": items})
    assert answer.status_code == 200, answer.text


def _deletion(namespace: str, name: str) -> bytes:
    named = {"kind": "Pod", "metadata": {"namespace": namespace, "name": name}}
    return json.dumps({"delete": named}).encode()


async def one_by_one(harness: Harness, specs: list[tuple[Any, ...]], end: tuple[str, Any]) -> None:
    kind, what = end
    if kind == "reports":
        for index, phase, more in what:
            namespace, name = place_of(index, specs)
            path = f"{CLUSTER}/namespaces/{namespace}/pods/{name}"
            await harness.client.patch(path, json={"status": {"phase": phase} | more})
        return
    if kind == "lines":
        chosen = [place_of(index, specs) for index in what]
    else:
        listed = (await harness.client.get(f"{CLUSTER}/pods?{what}")).json()["items"]
        chosen = [(each["metadata"]["namespace"], each["metadata"]["name"]) for each in listed]
    for namespace, name in chosen:
        await harness.client.delete(f"{CLUSTER}/namespaces/{namespace}/pods/{name}")


async def outcome(harness: Harness) -> tuple[Any, ...]:
    """State, quotas and log, without identifiers and times, which differ by chance."""
    pods = (await harness.client.get(f"{CLUSTER}/pods")).json()["items"]
    quotas = (await harness.client.get(f"{CLUSTER}/resourcequotas")).json()["items"]
    page = await harness.store.log.read(1, 0, None, 10_000)
    log = [
        (each.verb, each.created, each.node_name, _plain(json.loads(each.body)))
        for each in page.changes
    ]
    return [_plain(each) for each in pods], [each["status"] for each in quotas], log


def _plain(manifest: dict[str, Any]) -> dict[str, Any]:
    metadata = manifest.get("metadata", {})
    return manifest | {
        "metadata": {k: v for k, v in metadata.items() if k not in ("uid", "creationTimestamp")}
    }


@given(specs=SPECS, asked=ends())
@settings(
    max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
async def test_ends_in_bulk_are_single_ends(
    make_harness: MakeHarness, specs: list[tuple[Any, ...]], asked: list[tuple[str, Any]]
) -> None:
    bulk, single = await make_harness(), await make_harness()
    for harness, make in ((bulk, in_bulk), (single, one_by_one)):
        await begin(harness, specs)
        for end in asked:
            await make(harness, specs, end)
    assert await outcome(bulk) == await outcome(single)
