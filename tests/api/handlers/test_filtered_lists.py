"""Lists with filters, which come from memory: exactly what the filter leaves of the full list, at any moment."""

import asyncio
from typing import Any

from hypothesis import HealthCheck, given, settings, strategies as st
from typing_extensions import override

from service.api.http.filters import filter_of_bodies, parse_filters
from service.model.core.strict_json import encode
from service.model.log.commit import CommitRequest
from service.model.log.results import CommitResult
from service.model.registry.manifests import TemplateCache, parse_any
from service.runtime.clock import SystemClock
from service.runtime.ids import RandomIds
from tests.api.conftest import MakeHarness
from tests.api.harness import CLUSTER, Harness, node, pod, problem
from tests.support.memory_store.log import MemoryLog
from tests.support.memory_store.state import MemoryState
from tests.support.memory_store.store import MemoryStore

PODS = f"{CLUSTER}/pods"
LABELS = st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["a", "b", ""]))
STATUSES = st.sampled_from([None, {}, {"phase": "Running"}, {"phase": "Failed"}, {"phase": ""}])
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "nodeName": st.sampled_from(["n1", "n2"]),
        "schedulerName": st.sampled_from(["mine", "default-scheduler"]),
    },
)
PARAMETERS = st.fixed_dictionaries(
    {},
    optional={
        "labelSelector": st.sampled_from(
            ["app=a", "app!=a", "app in (a,b),tier", "!tier", "app=", "tier notin (a)", " "]
        ),
        "fieldSelector": st.sampled_from(
            [
                "metadata.name=p1",
                "metadata.name!=p1,metadata.namespace=shop",
                "spec.nodeName=n1",
                "spec.nodeName!=n1",
                "spec.nodeName=n1,spec.nodeName=n2",
                "status.phase=Pending",
                "status.phase!=Running",
                "spec.schedulerName=mine",
            ]
        ),
        "nodeName": st.sampled_from(["n1", "n3", ""]),
        "phase": st.sampled_from(["Pending", "Running", "Failed"]),
    },
)
NUMBERS = st.integers(0, 5)


@st.composite
def manifests(draw: st.DrawFn) -> dict[str, Any]:
    made = pod(f"p{draw(NUMBERS)}", draw(st.sampled_from(["bank", "shop"])), **draw(SPECS))
    made["metadata"]["labels"] = draw(LABELS)
    status = draw(STATUSES)
    return made if status is None else made | {"status": status}


@given(sent=manifests(), parameters=PARAMETERS)
def test_a_filter_says_the_same_of_a_manifest_and_of_its_body(
    sent: dict[str, Any], parameters: dict[str, str]
) -> None:
    manifest = parse_any(encode(sent), TemplateCache())
    wanted = parse_filters("Pod", parameters)
    passes = filter_of_bodies("Pod", wanted)
    assert wanted.passes(manifest) == (passes is None or passes(manifest.render()))


def is_asked_for(item: dict[str, Any], parameters: dict[str, str]) -> bool:
    """What the parameters mean, written down anew."""
    metadata, spec = item["metadata"], item["spec"]
    labels, node_name = metadata.get("labels") or {}, spec.get("nodeName", "")
    phase = item.get("status", {}).get("phase") or "Pending"
    app, tier = labels.get("app"), labels.get("tier")
    told = {
        "app=a": app == "a",
        "app!=a": app != "a",
        "app in (a,b),tier": app in {"a", "b"} and tier is not None,
        "!tier": tier is None,
        "app=": app == "",
        "tier notin (a)": tier != "a",
        " ": True,
        "metadata.name=p1": metadata["name"] == "p1",
        "metadata.name!=p1,metadata.namespace=shop": metadata["name"] != "p1"
        and metadata["namespace"] == "shop",
        "spec.nodeName=n1": node_name == "n1",
        "spec.nodeName!=n1": node_name != "n1",
        "spec.nodeName=n1,spec.nodeName=n2": False,
        "status.phase=Pending": phase == "Pending",
        "status.phase!=Running": phase != "Running",
        "spec.schedulerName=mine": spec.get("schedulerName") == "mine",
    }
    return (
        all(
            told[parameters[name]]
            for name in ("labelSelector", "fieldSelector")
            if name in parameters
        )
        and parameters.get("nodeName", node_name) == node_name
        and parameters.get("phase", phase) == phase
    )


async def everything(harness: Harness, parameters: dict[str, str]) -> list[dict[str, Any]]:
    """The items of all pages."""
    items, more = [], {}
    while True:
        answer = await harness.client.get(PODS, params=parameters | more)
        assert answer.status_code == 200, answer.text
        items += answer.json()["items"]
        token = answer.json()["metadata"].get("continue")
        if token is None:
            return items
        more = {"continue": token}


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("apply"), st.lists(manifests(), min_size=1, max_size=4)),
        st.tuples(st.just("delete"), st.sampled_from(["app=a", "!tier"])),
        st.tuples(st.just("place"), NUMBERS),
        st.tuples(st.just("list"), PARAMETERS),
    ),
    min_size=4,
    max_size=12,
)


@given(steps=STEPS, asked=st.lists(PARAMETERS, min_size=3, max_size=6))
@settings(
    max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
async def test_a_filtered_list_is_the_filter_over_the_full_list(
    over_each_store: Harness, steps: list[tuple[str, Any]], asked: list[dict[str, str]]
) -> None:
    harness = over_each_store
    await harness.configure(placePendingPods=False)
    await harness.client.post(
        f"{CLUSTER}/apply", json={"kind": "List", "items": [node("n1"), node("n2")]}
    )
    for step, what in [*steps, *(("list", each) for each in asked)]:
        if step == "apply":
            lines = b"\n".join(map(encode, what))
            headers = {"content-type": "application/x-ndjson"}
            await harness.client.post(f"{CLUSTER}/apply", content=lines, headers=headers)
        elif step == "delete":
            await harness.client.delete(PODS, params={"labelSelector": what})
        elif step == "place":
            refs = [{"namespace": "shop", "name": f"p{what}"}]
            await harness.client.post(f"{CLUSTER}/placements", json={"podRefs": refs})
        else:
            full = (await harness.client.get(PODS)).json()
            expected = [item for item in full["items"] if is_asked_for(item, what)]
            listed = await harness.client.get(PODS, params=what)
            assert listed.json()["items"] == expected, what
            assert listed.json()["metadata"] == full["metadata"]
            assert await everything(harness, what | {"limit": "2"}) == expected


async def test_a_list_shows_what_another_process_was_told(make_harness: MakeHarness) -> None:
    store = MemoryStore(SystemClock().now, RandomIds().commit_id)
    one, other = await make_harness(store), await make_harness(store)
    await one.put_node("n1")
    for number in range(20):
        writer, reader = (one, other) if number % 2 else (other, one)
        await writer.put_pod(f"p{number}", nodeName="n1")
        listed = await reader.client.get(f"{PODS}?nodeName=n1")
        assert len(listed.json()["items"]) == number + 1


class HeldLog(MemoryLog):
    """Keeps commits from being made while `free` is not set."""

    def __init__(self, state: MemoryState) -> None:
        super().__init__(state)
        self.free, self.arrived = asyncio.Event(), asyncio.Event()
        self.free.set()

    @override
    async def commit(self, cluster_id: int, request: CommitRequest) -> CommitResult:
        self.arrived.set()
        await self.free.wait()
        return await super().commit(cluster_id, request)


async def test_a_list_shows_nothing_that_is_not_committed(make_harness: MakeHarness) -> None:
    store = MemoryStore(SystemClock().now, RandomIds().commit_id)
    store.log = held = HeldLog(store.state)
    harness = await make_harness(store)
    await harness.put_pod("a", nodeName="n1")
    for _ in range(2):  # the first list is read before, the second after the objects are kept
        held.free.clear()
        held.arrived.clear()
        change = asyncio.create_task(harness.put_pod("a", nodeName="n2"))
        await held.arrived.wait()
        on_one = (await harness.client.get(f"{PODS}?nodeName=n1")).json()["items"]
        on_two = (await harness.client.get(f"{PODS}?nodeName=n2")).json()["items"]
        held.free.set()
        await change
        assert ([item["spec"]["nodeName"] for item in on_one], on_two) == (["n1"], [])
        assert len((await harness.client.get(f"{PODS}?nodeName=n2")).json()["items"]) == 1
        await harness.put_pod("a", nodeName="n1")


async def test_a_list_of_a_cluster_that_was_made_anew_has_nothing_of_the_old_one(
    make_harness: MakeHarness,
) -> None:
    store = MemoryStore(SystemClock().now, RandomIds().commit_id)
    one, other = await make_harness(store), await make_harness(store)
    path = "/v1/clusters/c"
    for harness in (one, other):
        await harness.client.put(path, json={"config": {}})
        manifest = pod("a", nodeName="n1")
        await harness.client.put(f"{path}/namespaces/shop/pods/a", json=manifest)
        assert len((await one.client.get(f"{path}/pods?nodeName=n1")).json()["items"]) == 1
        await harness.client.delete(path)
    await other.client.put(path, json={"config": {}})
    assert (await one.client.get(f"{path}/pods?nodeName=n1")).json()["items"] == []


async def test_a_list_that_is_unchanged_is_not_sent_again(over_each_store: Harness) -> None:
    harness = over_each_store
    await harness.configure(placePendingPods=False)
    await harness.put_pod("a")
    for query in ("", "?nodeName=", "?limit=1"):
        first = await harness.client.get(PODS + query)
        headers = {"if-none-match": first.headers["etag"]}
        again = await harness.client.get(PODS + query, headers=headers)
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == first.headers["etag"]
        await harness.put_pod("a", schedulerName=f"other{len(query)}")
        changed = await harness.client.get(PODS + query, headers=headers)
        assert changed.status_code == 200
    wrong = await harness.client.get(PODS, headers={"if-none-match": "1042"})
    assert problem(wrong, 400) == "MalformedRequest"
