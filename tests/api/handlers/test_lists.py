"""Lists: order, pages, filters, export."""

import pytest

from tests.api.harness import AS_JSON, CLUSTER, Harness, node, pod, problem

PODS = f"{CLUSTER}/pods"


@pytest.fixture
async def filled(over_each_store: Harness) -> Harness:
    """Two nodes, and pods in two namespaces: placed, pending, finished."""
    items = [
        node("n1", zone="a", tier="web"),
        node("n2", zone="b"),
        pod("b", nodeName="n1"),
        pod("a", nodeName="n2"),
        {**pod("c"), "status": {"phase": "Running"}},
        pod("z", namespace="bank", schedulerName="mine"),
    ]
    items[2]["metadata"]["labels"] = {"app": "db", "tier": "back"}
    items[5]["spec"]["affinity"] = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "zone", "namespaceSelector": {}, "labelSelector": {}}
            ]
        }
    }
    await over_each_store.configure(placePendingPods=False)
    answer = await over_each_store.client.post(
        f"{CLUSTER}/apply", json={"kind": "List", "items": items}
    )
    assert answer.status_code == 200, answer.text
    return over_each_store


async def names(harness: Harness, query: str, path: str = PODS) -> list[str]:
    answer = await harness.client.get(f"{path}?{query}")
    assert answer.status_code == 200, answer.text
    return [item["metadata"]["name"] for item in answer.json()["items"]]


async def test_lists_have_kubernetes_shape(filled: Harness) -> None:
    answer = await filled.client.get(PODS)
    body = answer.json()
    assert (body["apiVersion"], body["kind"]) == ("v1", "PodList")
    assert body["metadata"] == {"resourceVersion": answer.headers["moorage-revision"]}
    assert answer.headers["etag"] == f'W/"{answer.headers["moorage-revision"]}"'
    keys = [(i["metadata"]["namespace"], i["metadata"]["name"]) for i in body["items"]]
    assert keys == [("bank", "z"), ("shop", "a"), ("shop", "b"), ("shop", "c")]
    assert all(item["metadata"]["resourceVersion"] for item in body["items"])


async def test_lists_of_one_namespace(filled: Harness) -> None:
    assert await names(filled, "", f"{CLUSTER}/namespaces/shop/pods") == ["a", "b", "c"]
    assert await names(filled, "", f"{CLUSTER}/namespaces/none/pods") == []


FILTERS = {
    "labelSelector=app%3Dweb": ["z", "a", "c"],
    "labelSelector=app==db,tier": ["b"],
    "labelSelector=app!%3Dweb": ["b"],
    "labelSelector=app in (db, x),tier notin (front)": ["b"],
    "labelSelector=!tier": ["z", "a", "c"],
    "labelSelector=": ["z", "a", "b", "c"],
    "fieldSelector=metadata.name=a": ["a"],
    "fieldSelector=metadata.namespace!=shop": ["z"],
    "fieldSelector=spec.nodeName=n1": ["b"],
    "fieldSelector=spec.nodeName=,spec.schedulerName=mine": ["z"],
    "fieldSelector=status.phase=Running": ["c"],
    "nodeName=n2": ["a"],
    "nodeName=": ["z", "c"],
    "phase=Running": ["c"],
    "phase=Pending": ["z", "a", "b"],
    "uses=namespaceSelector": ["z"],
    "labelSelector=app=web&phase=Pending&limit=1": ["z"],
}


@pytest.mark.parametrize("query", FILTERS)
async def test_filters(filled: Harness, query: str) -> None:
    assert await names(filled, query) == FILTERS[query]


async def test_filters_of_nodes(filled: Harness) -> None:
    nodes = f"{CLUSTER}/nodes"
    assert await names(filled, "labelSelector=zone in (a)", nodes) == ["n1"]
    assert await names(filled, "fieldSelector=spec.unschedulable=false", nodes) == ["n1", "n2"]


@pytest.mark.parametrize(
    "query",
    [
        "labelSelector=a=b=c",
        "labelSelector=a in b",
        "labelSelector=,",
        "fieldSelector=spec.containers=1",
        "fieldSelector=metadata.name",
        "phase=running",
        "uses=everything",
        "limit=-1",
        "limit=x",
        "limit=99999999999999999999",
        "limit=%D9%A3",
        "continue=xyz",
        "continue=W10",
        "continue=%00",
        "minRevision=-1",
        "watch=true",
    ],
)
async def test_bad_parameters_are_malformed(harness: Harness, query: str) -> None:
    assert problem(await harness.client.get(f"{PODS}?{query}"), 400) == "MalformedRequest"


async def test_node_filters_are_not_for_nodes(harness: Harness) -> None:
    for query in ("nodeName=n1", "fieldSelector=spec.nodeName=n1"):
        answer = await harness.client.get(f"{CLUSTER}/nodes?{query}")
        assert problem(answer, 400) == "MalformedRequest"


@pytest.mark.parametrize("query", ["limit=1", "limit=3", "limit=2&labelSelector=app"])
async def test_pages_together_are_the_list(filled: Harness, query: str) -> None:
    found, token, revisions = [], "", set()
    while token is not None:
        more = f"&continue={token}" if token else ""
        answer = await filled.client.get(f"{PODS}?{query}{more}")
        metadata = answer.json()["metadata"]
        revisions.add(metadata["resourceVersion"])
        found += [item["metadata"]["name"] for item in answer.json()["items"]]
        token = metadata.get("continue")
        await filled.put_node("elsewhere", turn=str(len(found)))
    assert found == ["z", "a", "b", "c"]
    assert len(revisions) == 1


@pytest.mark.parametrize("query", ["limit=4", "limit=4&labelSelector="])
async def test_a_page_that_holds_the_rest_has_none_after_it(filled: Harness, query: str) -> None:
    page = (await filled.client.get(f"{PODS}?{query}")).json()
    assert len(page["items"]) == 4
    assert "continue" not in page["metadata"]


async def test_a_long_list_is_streamed_in_batches(harness: Harness, monkeypatch) -> None:
    monkeypatch.setattr("service.api.resources.objects.routes.BATCH_ROWS", 2)
    for index in range(5):
        await harness.put_node(f"n{index}")
    assert await names(harness, "", f"{CLUSTER}/nodes") == [f"n{index}" for index in range(5)]


async def test_export_can_be_applied_again(filled: Harness) -> None:
    exported = await filled.client.get(f"{CLUSTER}/export")
    body = exported.json()
    assert body["kind"] == "List"
    assert body["metadata"]["resourceVersion"] == exported.headers["moorage-revision"]
    assert {item["kind"] for item in body["items"]} == {"Node", "Pod"}
    answer = await filled.client.post(f"{CLUSTER}/apply", content=exported.content, headers=AS_JSON)
    assert answer.status_code == 200, answer.text
    assert answer.json()["unchanged"] == len(body["items"])
    copy = await filled.client.put("/v1/clusters/copy", json={"config": {}})
    assert copy.status_code == 201
    answer = await filled.client.post(
        "/v1/clusters/copy/apply", content=exported.content, headers=AS_JSON
    )
    assert answer.json()["created"] == len(body["items"])
