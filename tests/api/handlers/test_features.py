"""Features that a cluster switches off and on again, over HTTP (KEP-2249, roll-out and roll-back)."""

import json
from typing import Any

import httpx

from service.model.pods.annotated_rules import ANNOTATION
from tests.api.handlers.test_quota import put_quota
from tests.api.harness import CLUSTER, Harness, pod, problem
from tests.builders import IGNORED_DURING_EXECUTION as IGNORED, PREFERRED, matching, term
from tests.waiting import once

RED = matching(team="red")
APART = term("host", matching(app="web"), namespaceSelector=RED)
WITHOUT = term("host", matching(app="web"))
FIELD = f"spec.affinity.podAntiAffinity.{IGNORED}[0].namespaceSelector"
SCOPE = "CrossNamespacePodAffinity"


def apart(rule: dict[str, Any] = APART) -> dict[str, Any]:
    """A pod that wants no pods of its application on its node, in other namespaces either."""
    return pod("web", affinity={"podAntiAffinity": {IGNORED: [rule]}})


async def switch(harness: Harness, *, on: bool) -> None:
    features = {"PodAffinityNamespaceSelector": on}
    answer = await harness.client.patch(CLUSTER, json={"config": {"features": features}})
    assert answer.status_code == 200, answer.text
    assert answer.json()["config"]["features"] == features


async def prepared(harness: Harness) -> None:
    """One node, on which a pod of a red namespace runs."""
    await harness.configure(placePendingPods=False)
    await harness.put_node("n1", host="n1")
    await harness.put("namespaces/red", {"metadata": {"name": "red", "labels": {"team": "red"}}})
    await harness.put("namespaces/red/pods/there", pod("there", "red", nodeName="n1"))


async def stored_terms(harness: Harness) -> list[dict[str, Any]]:
    read = await harness.client.get(f"{CLUSTER}/namespaces/shop/pods/web")
    terms: list[dict[str, Any]] = read.json()["spec"]["affinity"]["podAntiAffinity"][IGNORED]
    return terms


async def feasible(harness: Harness) -> list[str]:
    """The nodes on which the stored pod can go."""
    read = await harness.client.get(f"{CLUSTER}/namespaces/shop/pods/web/explanation")
    nodes: list[str] = read.json()["feasible"]
    return nodes


def warned(answer: httpx.Response) -> list[tuple[str, str]]:
    return [(each["field"], each["code"]) for each in answer.json().get("warnings", [])]


async def test_a_field_that_is_switched_off_is_dropped_from_new_pods_with_a_warning(
    over_each_store: Harness,
) -> None:
    """P01: by PUT, by apply, and in a placement, which finds the same pod again."""
    await prepared(over_each_store)
    await switch(over_each_store, on=False)
    put = await over_each_store.put("namespaces/shop/pods/web", apart())
    assert warned(put) == [(FIELD, "FeatureOff")]
    assert await stored_terms(over_each_store) == [WITHOUT]
    again = await over_each_store.put("namespaces/shop/pods/web", apart())
    assert again.json()["metadata"]["resourceVersion"] == put.json()["metadata"]["resourceVersion"]
    placed = await over_each_store.place(apart())
    assert [each["outcome"] for each in placed["results"]] == ["Placed"]
    assert [each["field"] for each in placed["warnings"]] == [f"pods[0].{FIELD}"]
    await over_each_store.client.delete(f"{CLUSTER}/namespaces/shop/pods/web")
    listed = {"kind": "List", "items": [apart()]}
    applied = await over_each_store.client.post(f"{CLUSTER}/apply", json=listed)
    assert warned(applied) == [(f"items[0].{FIELD}", "FeatureOff")]
    assert await stored_terms(over_each_store) == [WITHOUT]


async def test_replicas_of_a_template_are_warned_about_once(harness: Harness) -> None:
    await prepared(harness)
    await switch(harness, on=False)
    asked = {"template": apart(), "replicas": 2, "onUnschedulable": "Queue"}
    answer = await harness.client.post(f"{CLUSTER}/placements", json=asked)
    assert warned(answer) == [(f"template.{FIELD}", "FeatureOff")]
    for name in ("web-0", "web-1"):
        read = await harness.client.get(f"{CLUSTER}/namespaces/shop/pods/{name}")
        assert "namespaceSelector" not in str(read.json()["spec"])


async def test_a_field_that_is_switched_off_stays_in_an_annotation_with_a_warning(
    harness: Harness,
) -> None:
    await prepared(harness)
    await switch(harness, on=False)
    rules = {"affinity": {"podAntiAffinity": {IGNORED: [WITHOUT, APART]}}}
    sent = apart()
    sent["metadata"]["annotations"] = {ANNOTATION: json.dumps(rules)}
    inside = f"affinity.podAntiAffinity.{IGNORED}[1].namespaceSelector"
    put = await harness.put("namespaces/shop/pods/web", sent)
    assert warned(put) == [
        (FIELD, "FeatureOff"),
        (f"metadata.annotations[{ANNOTATION}].{inside}", "FeatureOff"),
    ]
    assert put.json()["metadata"]["annotations"] == sent["metadata"]["annotations"]
    assert await stored_terms(harness) == [WITHOUT]


async def test_a_field_is_dropped_from_terms_of_all_lists(harness: Harness) -> None:
    await prepared(harness)
    await switch(harness, on=False)
    weighted = {"weight": 1, "podAffinityTerm": APART}
    lists = {IGNORED: [WITHOUT, APART], PREFERRED: [weighted]}
    sent = pod("web", affinity={"podAffinity": lists, "podAntiAffinity": lists})
    answer = await harness.put("namespaces/shop/pods/web", sent)
    assert [field for field, code in warned(answer) if code == "FeatureOff"] == [
        f"spec.affinity.{side}.{rest}.namespaceSelector"
        for side in ("podAffinity", "podAntiAffinity")
        for rest in (f"{IGNORED}[1]", f"{PREFERRED}[0].podAffinityTerm")
    ]
    assert "namespaceSelector" not in str(answer.json()["spec"])


async def test_a_field_that_is_switched_off_stays_in_pods_that_have_it(
    over_each_store: Harness,
) -> None:
    """P01: a PUT and a PATCH keep it, though it is not read."""
    await prepared(over_each_store)
    await over_each_store.put("namespaces/shop/pods/web", apart())
    await switch(over_each_store, on=False)
    labelled = apart()
    labelled["metadata"]["labels"]["a"] = "b"
    put = await over_each_store.put("namespaces/shop/pods/web", labelled)
    assert warned(put) == [(FIELD, "FeatureOff")]
    path = f"{CLUSTER}/namespaces/shop/pods/web"
    patched = await over_each_store.client.patch(path, json={"metadata": {"labels": {"c": "d"}}})
    assert patched.status_code == 200
    assert await stored_terms(over_each_store) == [APART]
    using = await over_each_store.client.get(f"{CLUSTER}/pods?uses=namespaceSelector")
    assert [each["metadata"]["name"] for each in using.json()["items"]] == ["web"]


async def test_a_field_that_is_switched_off_is_not_read_until_it_is_switched_on_again(
    over_each_store: Harness,
) -> None:
    """P02: on, off, on, without a restart."""
    await prepared(over_each_store)
    await over_each_store.put("namespaces/shop/pods/web", apart())
    for on, nodes in ((True, []), (False, ["n1"]), (True, []), (False, ["n1"])):
        await switch(over_each_store, on=on)
        assert await feasible(over_each_store) == nodes
    await over_each_store.put("namespaces/shop/pods/own", pod("own", nodeName="n1"))
    assert await feasible(over_each_store) == []  # without a selector it is about its own namespace


async def test_a_pod_whose_rule_is_not_read_is_placed_by_itself(harness: Harness) -> None:
    """P02: who waits because of the rule need not be asked for."""
    await prepared(harness)
    await harness.put("namespaces/shop/pods/web", apart())
    await harness.client.patch(CLUSTER, json={"config": {"placePendingPods": True}})
    await switch(harness, on=False)

    async def node_name() -> str | None:
        read = await harness.client.get(f"{CLUSTER}/namespaces/shop/pods/web")
        name: str | None = read.json()["spec"].get("nodeName")
        return name

    assert await once(node_name) == "n1"


async def test_placed_pods_repel_nobody_by_a_rule_that_is_not_read(harness: Harness) -> None:
    """P02: the other direction."""
    await prepared(harness)
    await harness.put("nodes/n1", {"metadata": {"name": "n1", "labels": {"host": "n1"}}})
    owner = pod("owner", affinity=apart()["spec"]["affinity"], nodeName="n1")
    await harness.put("namespaces/shop/pods/owner", owner)
    comer = pod("comer", "red")
    refused = {}
    for on in (True, False):
        await switch(harness, on=on)
        asked = {"pods": [comer], "dryRun": True, "explain": "Full"}
        answer = await harness.client.post(f"{CLUSTER}/placements", json=asked)
        (result,) = answer.json()["results"]
        refused[on] = "InterPodAffinity" in result["explanation"]["filters"]
    assert refused == {True: True, False: False}


async def test_admission_does_not_read_what_is_switched_off(harness: Harness) -> None:
    """P02: a rule about all namespaces is one about its own."""
    await prepared(harness)
    await harness.configure(placePendingPods=False, trustedNamespaces=["shop"])
    wide = term("zone", matching(app="db"), namespaceSelector={})
    await harness.put("namespaces/shop/pods/web", apart(wide))
    asked = {"podRefs": [{"namespace": "shop", "name": "web"}], "dryRun": True}
    outcomes = []
    for on in (True, False):
        features = {"PodAffinityNamespaceSelector": on}
        await harness.configure(placePendingPods=False, features=features)
        answer = await harness.client.post(f"{CLUSTER}/placements", json=asked)
        outcomes.append(answer.json()["results"][0]["outcome"])
    assert outcomes == ["Denied", "Placed"]


async def test_a_scope_that_is_switched_off_is_tolerated_in_old_quotas_only(
    over_each_store: Harness,
) -> None:
    """P03: a new quota with the scope is refused, and so is one that gets it."""
    path = f"{CLUSTER}/namespaces/shop/resourcequotas"
    scoped: dict[str, Any] = {"hard": {"pods": "0"}, "scopes": [SCOPE]}
    await put_quota(over_each_store, "old", {"pods": "0"}, scopes=[SCOPE])
    await put_quota(over_each_store, "plain", {"pods": "9"})
    await switch(over_each_store, on=False)
    changed = {"spec": scoped | {"hard": {"pods": "1"}}}
    assert (await over_each_store.client.put(f"{path}/old", json=changed)).status_code == 200
    expressions = [{"scopeName": SCOPE, "operator": "Exists"}]
    selected = {"hard": {"pods": "0"}, "scopeSelector": {"matchExpressions": expressions}}
    for name, spec, field in (
        ("new", scoped, "spec.scopes[0]"),
        ("plain", scoped, "spec.scopes[0]"),
        ("new", selected, "spec.scopeSelector.matchExpressions[0].scopeName"),
    ):
        refused = await over_each_store.client.put(f"{path}/{name}", json={"spec": spec})
        assert problem(refused, 422) == "InvalidManifest"
        assert [each["field"] for each in refused.json()["errors"]] == [field]
    await switch(over_each_store, on=True)
    assert (
        await over_each_store.client.put(f"{path}/new", json={"spec": scoped})
    ).status_code == 201


async def test_a_switch_changes_nothing_for_who_does_not_use_the_feature(
    harness: Harness,
) -> None:
    """P04: on is the default, and a pod without the field is stored and explained alike."""
    await prepared(harness)
    config = (await harness.client.get(CLUSTER)).json()["config"]
    assert config["features"] == {"PodAffinityNamespaceSelector": True}
    explanations = []
    for on in (True, False):
        await switch(harness, on=on)
        put = await harness.put("namespaces/shop/pods/web", apart(WITHOUT))
        assert warned(put) == []
        path = f"{CLUSTER}/namespaces/shop/pods/web/explanation"
        explanations.append((await harness.client.get(path)).json())
    assert explanations[0] == explanations[1]


async def test_an_unknown_feature_is_refused(harness: Harness) -> None:
    for features, field in (
        ({"Other": True}, "Other"),
        ({"PodAffinityNamespaceSelector": 1}, None),
    ):
        refused = await harness.client.patch(CLUSTER, json={"config": {"features": features}})
        assert problem(refused, 422) == "InvalidManifest"
        name = field or "PodAffinityNamespaceSelector"
        assert [each["field"] for each in refused.json()["errors"]] == [f"config.features.{name}"]
