"""Repairs over HTTP: what would have to change so that a pod fits, as really changing it shows."""

from typing import Any

from tests.api.harness import CLUSTER, Harness, node, problem

WEB = f"{CLUSTER}/namespaces/shop/pods/web"


async def repairs(harness: Harness, **params: Any) -> dict[str, Any]:
    answer = await harness.client.get(f"{WEB}/repairs", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


TAINTS = [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]


def sized(name: str, cpu: str, **spec: Any) -> dict[str, Any]:
    return {**node(name), "spec": spec, "status": {"allocatable": {"cpu": cpu, "pods": "9"}}}


async def waiting(harness: Harness, **spec: Any) -> None:
    """A pod that asks for two cores."""
    await harness.configure(placePendingPods=False)
    requests = {"requests": {"cpu": "2"}}
    containers = [{"name": "main", "image": "web", "resources": requests}]
    await harness.put_pod("web", containers=containers, **spec)


async def test_after_the_changes_of_a_repair_the_pod_gets_the_node_that_was_told(
    harness: Harness,
) -> None:
    await waiting(harness)
    await harness.put("nodes/small", sized("small", "1"))
    await harness.put("nodes/large", sized("large", "8", taints=TAINTS))
    told = await repairs(harness)
    assert told["complete"]
    assert not told["fits"]
    assert "0/2 nodes are available" in told["message"]
    lower, tolerate, untaint = told["repairs"]
    assert lower["changes"] == [{"op": "LowerRequest", "resource": "cpu", "from": "2", "to": "1"}]
    assert lower["places"] == "small"
    assert tolerate["changes"][0]["toleration"]["key"] == "gpu"
    assert untaint["changes"] == [{"op": "SetTaints", "names": ["large"], "taints": []}]
    assert len((await repairs(harness, limit=1))["repairs"]) == 1

    await harness.put("nodes/large", sized("large", "8", taints=untaint["changes"][0]["taints"]))
    after = await repairs(harness)
    assert after["fits"]
    assert after["repairs"] == []
    assert after["message"] is None
    body = {"podRefs": [{"namespace": "shop", "name": "web"}]}
    placed = (await harness.client.post(f"{CLUSTER}/placements", json=body)).json()
    assert placed["results"][0]["nodeName"] == untaint["places"]


async def test_a_pod_in_the_way_is_named_with_no_more_than_have_to_go(harness: Harness) -> None:
    await waiting(harness)
    await harness.put("nodes/only", sized("only", "3"))
    for name, cpu in (("big", "2"), ("little", "1")):
        resources = {"requests": {"cpu": cpu}}
        containers = [{"name": "main", "image": "web", "resources": resources}]
        await harness.put_pod(name, containers=containers, nodeName="only")
    told = await repairs(harness)
    assert {"op": "RemovePods", "namespace": "shop", "names": ["big"]} in [
        change for each in told["repairs"] for change in each["changes"]
    ]
    assert all(len(each["changes"]) == 1 for each in told["repairs"])


async def test_a_pod_that_would_not_be_tried_has_no_repairs(harness: Harness) -> None:
    await harness.put("nodes/small", sized("small", "1"))
    await waiting(harness, schedulingGates=[{"name": "example.com/wait"}])
    told = await repairs(harness)
    assert not told["fits"]
    assert told["repairs"] == []
    assert "gate" in told["message"].lower()


async def test_bounds_that_make_no_sense_are_refused(harness: Harness) -> None:
    await harness.configure()
    for params in ({"changesMax": 0}, {"changesMax": 5}, {"limit": 101}, {"limit": "all"}):
        answer = await harness.client.get(f"{WEB}/repairs", params=params)
        assert problem(answer, 400) == "MalformedRequest"
    assert problem(await harness.client.get(f"{WEB}/repairs"), 404) == "NotFound"
