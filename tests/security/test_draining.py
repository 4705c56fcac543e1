"""Who may drain: whoever may change nodes and evict pods of all namespaces; and who sees a drain."""

from typing import Any

import pytest

from tests.api.conftest import MakeHarness
from tests.api.harness import CLUSTER, Harness, problem

BOOTSTRAP = "an-administrators-token-of-32-characters"
PLAN = {
    "metadata": {"name": "mine"},
    "spec": {"goal": {"type": "Drain", "nodes": {"names": ["n1"]}}, "state": "Paused"},
}


MOVES = {"spec": {"goal": {"type": "Rebalance"}, "state": "Paused"}}
_KIND = {"apiVersion": "moorage.dev/v1alpha1", "kind": "Plan"}


@pytest.fixture
async def guarded(make_harness: MakeHarness) -> Harness:
    harness = await make_harness(token=BOOTSTRAP)
    harness.client.headers["authorization"] = f"Bearer {BOOTSTRAP}"
    await harness.put_node("n1")
    return harness


async def token_of(harness: Harness, **grant: str) -> dict[str, str]:
    name = "-".join(grant.values())
    answer = await harness.client.put(f"/v1/principals/{name}", json={"grants": [grant]})
    assert answer.is_success, answer.text
    issued = await harness.client.post(f"/v1/principals/{name}/tokens", json={})
    return {"authorization": f"Bearer {issued.json()['token']}"}


@pytest.mark.parametrize(
    ("grant", "drains", "moves"),
    [
        ({"role": "editor"}, False, True),
        ({"role": "observer"}, False, False),
        ({"role": "orchestrator", "namespace": "shop"}, False, False),
        ({"role": "orchestrator"}, True, True),
        ({"role": "admin"}, True, True),
    ],
)
async def test_a_plan_is_made_by_who_may_do_what_it_does(
    guarded: Harness,
    grant: dict[str, str],
    drains: bool,  # noqa: FBT001 - what is expected
    moves: bool,  # noqa: FBT001
) -> None:
    headers = await token_of(guarded, **grant)
    asked: list[tuple[str, str, Any, bool]] = [
        ("POST", "nodes/n1/drain", {}, drains),
        ("PUT", "plans/mine", PLAN, drains),
        ("POST", "apply", {"kind": "List", "items": [{**PLAN, **_KIND}]}, drains),
        ("PUT", "plans/moves", MOVES, moves),
    ]
    for method, path, body, may in asked:
        answer = await guarded.client.request(
            method, f"{CLUSTER}/{path}", json=body, headers=headers
        )
        if may:
            assert answer.is_success, answer.text
        else:
            assert problem(answer, 403) == "Forbidden"
    plans = (await guarded.client.get(f"{CLUSTER}/plans")).json()["items"]
    assert len(plans) == 2 * drains + moves


async def test_plans_name_pods_of_everybody_so_only_who_reads_all_sees_them(
    guarded: Harness,
) -> None:
    await guarded.put("plans/mine", PLAN)
    tenant = await token_of(guarded, role="reader", namespace="shop")
    answer = await guarded.client.get(f"{CLUSTER}/plans", headers=tenant)
    assert answer.json()["items"] == []
    answer = await guarded.client.get(f"{CLUSTER}/plans/mine", headers=tenant)
    assert answer.status_code in {403, 404}
    reader = await token_of(guarded, role="reader")
    answer = await guarded.client.get(f"{CLUSTER}/plans", headers=reader)
    assert [each["metadata"]["name"] for each in answer.json()["items"]] == ["mine"]


async def test_who_may_evict_but_not_change_nodes_can_still_stop_a_drain(guarded: Harness) -> None:
    """That takes nothing away from anybody."""
    await guarded.put("plans/mine", PLAN)
    editor = await token_of(guarded, role="editor")
    answer = await guarded.client.post(f"{CLUSTER}/plans/mine/cancel", json={}, headers=editor)
    assert answer.status_code == 200
    changed = {"spec": {"goal": {"nodes": {"names": ["n1", "n2"]}}}}
    answer = await guarded.client.patch(f"{CLUSTER}/plans/mine", json=changed, headers=editor)
    assert problem(answer, 403) == "Forbidden"
    answer = await guarded.client.delete(f"{CLUSTER}/plans/mine", headers=editor)
    assert answer.status_code == 200
