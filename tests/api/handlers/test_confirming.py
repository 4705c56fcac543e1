"""A node asks whether a pod may still be started: its required rules are judged again, over HTTP."""

from typing import Any

import httpx
import pytest

from tests.api.harness import CLUSTER, Harness, pod, problem
from tests.builders import IGNORED_DURING_EXECUTION as IGNORED, matching, term

CONFIRM = f"{CLUSTER}/namespaces/shop/pods/web/binding:confirm"


async def seen(harness: Harness, **changes: Any) -> dict[str, Any]:
    """The binding of the pod as a node sees it now, but for these changes."""
    metadata = (await harness.client.get(CONFIRM.removesuffix("/binding:confirm"))).json()[
        "metadata"
    ]
    return {"uid": metadata["uid"], "revision": int(metadata["resourceVersion"])} | changes


async def confirm(harness: Harness, **changes: Any) -> httpx.Response:
    return await harness.client.post(CONFIRM, json=await seen(harness, **changes))


async def placed(harness: Harness, **spec: Any) -> None:
    """Place the pod on the only node."""
    await harness.put_node("n1", host="n1", zone="a")
    answer = await harness.place(pod("web", **spec))
    assert answer["results"][0]["outcome"] == "Placed"


async def test_a_binding_whose_rules_hold_is_confirmed_and_nothing_is_written(
    over_each_store: Harness,
) -> None:
    await placed(over_each_store, nodeSelector={"zone": "a"})
    binding = await seen(over_each_store)
    answer = await confirm(over_each_store, nodeName="n1")
    assert answer.status_code == 200, answer.text
    head = answer.json()["revision"]
    assert answer.headers["moorage-revision"] == str(head)
    assert answer.json() == {
        "revision": head,
        "namespace": "shop",
        "name": "web",
        "uid": binding["uid"],
        "nodeName": "n1",
    }
    assert (await over_each_store.client.get(CLUSTER)).json()["revision"] == head


def apart() -> dict[str, Any]:
    return {"podAntiAffinity": {IGNORED: [term("host", matching(app="web"))]}}


def near() -> dict[str, Any]:
    return {"podAffinity": {IGNORED: [term("host", matching(app="db"))]}}


def even() -> dict[str, Any]:
    return {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": matching(app="web"),
    }


async def test_a_node_that_lost_the_label_is_not_confirmed(harness: Harness) -> None:
    """M08: what the node has lost since the pod was placed is told before the pod starts."""
    await placed(harness, nodeSelector={"zone": "a"})
    await harness.put_node("n1", host="n1", zone="b")
    refused = await confirm(harness)
    assert problem(refused, 409) == "BindingViolated"
    assert refused.json()["errors"] == [
        {
            "field": "spec.nodeSelector",
            "message": "node(s) didn't match Pod's node affinity/selector",
            "value": None,
        }
    ]


async def test_pods_that_came_too_near_are_named(harness: Harness) -> None:
    """M08: rules about other pods are judged as well."""
    await placed(harness, affinity=apart())
    await harness.put_pod("other", nodeName="n1")
    (error,) = (await confirm(harness)).json()["errors"]
    assert error["field"] == f"spec.affinity.podAntiAffinity.{IGNORED}[0]"
    assert error["message"] == (
        "node(s) didn't match pod anti-affinity rules (in conflict with shop/other)"
    )


async def test_a_pod_without_the_pods_that_it_needs_is_not_confirmed(harness: Harness) -> None:
    await harness.put_node("n1", host="n1")
    database = pod("db", nodeName="n1")
    database["metadata"]["labels"] = {"app": "db"}
    await harness.put("namespaces/shop/pods/db", database)
    await harness.place(pod("web", affinity=near()))
    assert (await confirm(harness)).status_code == 200
    await harness.client.delete(f"{CLUSTER}/namespaces/shop/pods/db")
    (error,) = (await confirm(harness)).json()["errors"]
    assert error["field"] == f"spec.affinity.podAffinity.{IGNORED}[0]"


async def test_all_rules_that_do_not_hold_are_named_at_once(harness: Harness) -> None:
    await placed(harness, affinity=apart(), topologySpreadConstraints=[even()])
    await harness.put_node("n2", host="n2", zone="b")
    await harness.put_pod("other", nodeName="n1")
    refused = await confirm(harness)
    assert [each["field"] for each in refused.json()["errors"]] == [
        f"spec.affinity.podAntiAffinity.{IGNORED}[0]",
        "spec.topologySpreadConstraints[0]",
    ]


async def test_rules_of_other_pods_and_resources_are_not_judged(harness: Harness) -> None:
    await placed(harness)
    await harness.put_pod("other", nodeName="n1", affinity=apart())
    await harness.put_pod(
        "huge",
        nodeName="n1",
        containers=[{"name": "c", "resources": {"requests": {"cpu": "64"}}}],
    )
    assert (await confirm(harness)).status_code == 200


async def test_a_pod_that_changed_since_the_node_saw_it_is_not_confirmed(
    harness: Harness,
) -> None:
    await placed(harness)
    before = await seen(harness)
    changed = pod("web")
    changed["metadata"]["labels"] = {"app": "db"}
    await harness.put("namespaces/shop/pods/web", changed)
    refused = await harness.client.post(CONFIRM, json=before)
    assert problem(refused, 409) == "RevisionConflict"
    assert (await confirm(harness)).status_code == 200


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"uid": "another"}, "RevisionConflict"),
        ({"nodeName": "n2"}, "Conflict"),
        ({"revision": 2**62}, "RevisionConflict"),
    ],
)
async def test_a_node_that_saw_something_else_is_refused(
    harness: Harness, changes: dict[str, Any], code: str
) -> None:
    await placed(harness)
    assert problem(await confirm(harness, **changes), 409) == code


async def test_a_pod_that_waits_or_goes_or_whose_node_is_gone_is_not_confirmed(
    harness: Harness,
) -> None:
    await harness.configure(placePendingPods=False)
    await harness.put_pod("web")
    assert problem(await confirm(harness), 409) == "Conflict"
    await harness.client.delete(f"{CLUSTER}/namespaces/shop/pods/web")
    await placed(harness)
    await harness.client.delete(f"{CLUSTER}/nodes/n1")
    assert problem(await confirm(harness), 409) == "Conflict"
    await harness.put_node("n1")
    assert (await confirm(harness)).status_code == 200
    await harness.client.post(f"{CLUSTER}/namespaces/shop/pods/web/eviction")
    assert problem(await confirm(harness), 409) == "Conflict"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"revision": 1}, "uid"),
        ({"uid": "u"}, "revision"),
        ({"uid": "u", "revision": 0}, "revision"),
        ({"uid": "u", "revision": "1"}, "revision"),
        ({"uid": "u", "revision": 1, "node": "n1"}, "node"),
    ],
)
async def test_a_confirmation_names_uid_and_revision(
    harness: Harness, body: dict[str, Any], field: str
) -> None:
    await placed(harness)
    refused = await harness.client.post(CONFIRM, json=body)
    assert problem(refused, 422) == "InvalidManifest"
    assert [each["field"] for each in refused.json()["errors"]] == [field]


async def test_an_unknown_pod_is_not_confirmed(harness: Harness) -> None:
    answer = await harness.client.post(CONFIRM, json={"uid": "u", "revision": 1})
    assert problem(answer, 404) == "NotFound"
