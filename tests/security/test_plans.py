"""Plans of a tenant: of what others have it is told no more than by placements."""

from typing import Any

import pytest

from service.api.auth.redaction import OTHER
from service.model.core.access import EVERYBODY, Grant, Principal
from tests.api.harness import CLUSTER, Harness, problem
from tests.builders import HOST, matching, node, pod
from tests.security.callers import Callers, by

ZONE = "zone"
SHOP = by("shop")
LOST = {"op": "RemoveNodes", "topology": {"key": ZONE, "values": ["a"]}}
DISPLACED = {"type": "Place", "displaced": True}
MAY_BE = f"(it may be {OTHER})"


@pytest.fixture
async def tenants(harness: Harness) -> Harness:
    """Two tenants, each with a pod in zone a; the bank's other pod keeps the shop's away from b-1."""
    shop = Principal("shop", (Grant("scheduler", "default", "shop"),))
    Callers(shop, EVERYBODY).call(harness)
    await harness.configure(placePendingPods=False, restrictAllNamespacesAntiAffinity=False)
    for name in ("a-1", "b-1"):
        made = node(name).label({ZONE: name[0], HOST: name})
        await harness.put(f"nodes/{name}", made)
    apart = pod("vault", "bank").require_anti_affinity(
        HOST, matching(app="web"), namespaces=["shop"]
    )
    for each in (
        pod("till", "bank").on("a-1"),
        apart.on("b-1"),
        pod("web", "shop").label(app="web").on("a-1"),
        pod("other", "shop").on("a-1"),
    ):
        metadata = each["metadata"]
        await harness.put(f"namespaces/{metadata['namespace']}/pods/{metadata['name']}", each)
    return harness


async def asked(harness: Harness, body: dict[str, Any], caller: dict[str, str] = SHOP) -> Any:
    return await harness.client.post(f"{CLUSTER}/plans", json=body, headers=caller)


async def test_pods_of_another_tenant_are_planned_and_only_counted(tenants: Harness) -> None:
    body = {"changes": [LOST], "goal": DISPLACED, "explain": "Summary"}
    everything = (await asked(tenants, body, {})).json()
    assert {each["name"] for each in everything["steps"]} == {"till", "other"}
    seen = await asked(tenants, body)
    assert "bank" not in seen.text
    assert "vault" not in seen.text
    told = seen.json()
    assert [each["name"] for each in told["steps"]] == ["other"]
    assert (told["stepsTotal"], told["otherSteps"]) == (1, 1)
    assert (everything["before"]["pods"], told["before"]["pods"]) == (4, 2)
    [web] = told["unplaced"]
    assert MAY_BE in web["message"]
    assert any(MAY_BE in each for each in web["explanation"]["reasons"]["InterPodAffinity"])
    assert "otherUnplaced" not in told


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        ({"op": "RemovePods", "namespace": "bank", "names": ["vault"]}, "changes[0]"),
        ({"op": "RemovePods", "namespace": "bank", "selector": {}}, "changes[0]"),
        ({"op": "PutPods", "pods": [pod("mine", "bank")]}, "changes[0].pods[0]"),
        ({"op": "SetNamespaceLabels", "names": ["bank"], "labels": {}}, "changes[0]"),
    ],
)
async def test_what_another_tenant_has_is_not_changed_by_name(
    tenants: Harness, change: dict[str, Any], detail: str
) -> None:
    answer = await asked(tenants, {"changes": [change]})
    assert problem(answer, 403) == "Forbidden"
    assert detail in answer.json()["detail"]


async def test_what_another_tenant_has_is_not_selected(tenants: Harness) -> None:
    for selection in ({"selector": {}}, {"topology": LOST["topology"]}):
        told = (await asked(tenants, {"changes": [{"op": "RemovePods", **selection}]})).json()
        assert told["changed"] == [2]
    everything = await asked(tenants, {"changes": [{"op": "RemovePods", "selector": {}}]}, {})
    assert everything.json()["changed"] == [4]
    labels = {"op": "SetNamespaceLabels", "selector": {}, "labels": {"team": "red"}}
    await tenants.put("namespaces/bank", {"metadata": {"name": "bank"}})
    assert (await asked(tenants, {"changes": [labels]})).json()["changed"] == [0]


async def test_pods_are_placed_only_where_the_caller_may_place(tenants: Harness) -> None:
    for goal, field in (
        ({"pods": [pod("mine", "bank")]}, "goal.pods[0]"),
        ({"podRefs": [{"namespace": "bank", "name": "till"}]}, "goal.podRefs[0]"),
        ({"template": pod("mine", "bank"), "replicas": 2}, "goal.template"),
    ):
        answer = await asked(tenants, {"goal": {"type": "Place", **goal}})
        assert problem(answer, 403) == "Forbidden"
        assert field in answer.json()["detail"]


async def test_a_pod_of_another_tenant_is_never_told_to_go(tenants: Harness) -> None:
    await tenants.client.delete(f"{CLUSTER}/nodes/a-1")
    await tenants.put("namespaces/shop/pods/web-2", pod("web-2", "shop").label(app="web"))
    path = f"{CLUSTER}/namespaces/shop/pods/web-2/repairs"
    everything = (await tenants.client.get(path)).json()
    vault = {"op": "RemovePods", "namespace": "bank", "names": ["vault"]}
    [added], [gone] = (each["changes"] for each in everything["repairs"])
    assert (added["op"], gone) == ("AddNodes", vault)
    seen = await tenants.client.get(path, headers=SHOP)
    assert "vault" not in seen.text
    assert [each["changes"] for each in seen.json()["repairs"]] == [[added]]
    goal = {"type": "Fit", "podRef": {"namespace": "shop", "name": "web-2"}}
    as_plan = await tenants.client.post(f"{CLUSTER}/plans", json={"goal": goal}, headers=SHOP)
    assert as_plan.json()["repairs"] == seen.json()["repairs"]
    assert "vault" not in as_plan.text
    assert MAY_BE in seen.json()["message"]


async def test_a_plan_with_other_settings_takes_the_right_to_configure(tenants: Harness) -> None:
    """Settings keep tenants apart: a plan without them would tell about the pods of others."""
    body = {
        "changes": [LOST, {"op": "SetConfig", "config": {"limitedResources": []}}],
        "goal": {"type": "Place", "pods": [pod("probe", "shop")]},
    }
    refused = await asked(tenants, body)
    assert problem(refused, 403) == "Forbidden"
    assert "changes[1].op" in refused.json()["detail"]
    assert (await asked(tenants, body, {})).status_code == 200
