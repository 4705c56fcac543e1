"""No field of a manifest is dropped in silence: it is honoured, refused, or answered with a warning."""

from typing import Any

import msgspec
import pytest

from service.model.core.field_warnings import WARNINGS, WARNINGS_MAX
from tests.api.harness import CLUSTER, Harness, node, pod, problem
from tests.builders import asking, device, device_claim, resource_slice

DISK = {"name": "data", "azureFile": {"shareName": "data-0"}}
"""A disk of which nothing is read, whatever the settings."""
AT = "spec.volumes[0].azureFile"
DEVICES = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "one"}]}
PODS = "namespaces/shop/pods"


def told(answer: Any) -> list[tuple[str, str]]:
    """The fields and codes of an answer's warnings."""
    return [(each["field"], each["code"]) for each in answer.get("warnings", [])]


PASSED_OVER: dict[str, tuple[dict[str, Any], str, str]] = {
    "a disk of which nothing is read": ({"volumes": [DISK]}, AT, "VolumesIgnored"),
    "a claim": (
        {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data-0"}}]},
        "spec.volumes[0].persistentVolumeClaim",
        "VolumesIgnored",
    ),
    "an ephemeral volume": (
        {"volumes": [{"name": "scratch", "emptyDir": {}}, {"name": "own", "ephemeral": {"a": 1}}]},
        "spec.volumes[1].ephemeral",
        "VolumesIgnored",
    ),
    "a disk": (
        {"volumes": [{"name": "disk", "gcePersistentDisk": {"pdName": "d"}}]},
        "spec.volumes[0].gcePersistentDisk",
        "VolumesIgnored",
    ),
    "a runtime class": (
        {"runtimeClassName": "gvisor"},
        "spec.runtimeClassName",
        "RuntimeClassIgnored",
    ),
    "a policy of preemption": (
        {"priority": 7, "preemptionPolicy": "PreemptLowerPriority"},
        "spec.preemptionPolicy",
        "PreemptionIgnored",
    ),
    "a foreign scheduler": ({"schedulerName": "theirs"}, "spec.schedulerName", "UnknownScheduler"),
}


@pytest.mark.parametrize("case", PASSED_OVER)
async def test_a_field_of_a_spec_that_is_not_read_is_answered_with_a_warning(
    harness: Harness, case: str
) -> None:
    spec, field, code = PASSED_OVER[case]
    await harness.configure(volumes="Ignore")
    answer = await harness.put(f"{PODS}/web-0", pod("web-0", **spec))
    (warning,) = answer.json()["warnings"]
    assert (warning["field"], warning["code"]) == (field, code)
    assert warning["message"] == WARNINGS[code].message
    assert answer.headers["warning"] == f'299 - "{field} {warning["message"]}"'


@pytest.mark.parametrize(
    "spec",
    [
        {"volumes": [{"name": "scratch", "emptyDir": {}}, {"name": "c", "configMap": {"name": "c"}}]},
        {"volumes": [], "resourceClaims": [], "runtimeClassName": None},
        {"preemptionPolicy": "PreemptLowerPriority", "priority": 0, "enableServiceLinks": True},
        {"preemptionPolicy": "Never", "priority": 7, "schedulerName": "default-scheduler"},
        {"nodeName": "node-1", "schedulerName": "theirs"},
    ],
)  # fmt: skip
async def test_what_is_honoured_or_means_nothing_to_scheduling_is_answered_without_a_word(
    harness: Harness, spec: dict[str, Any]
) -> None:
    answer = await harness.put(f"{PODS}/web-0", pod("web-0", **spec))
    assert "warnings" not in answer.json()
    assert "warning" not in answer.headers


async def test_claims_of_devices_are_honoured_refused_or_passed_over_as_the_cluster_says(
    harness: Harness,
) -> None:
    await harness.put_node("n1")
    manifest = pod("web-0", **DEVICES)
    path = f"{CLUSTER}/{PODS}/web-0"
    waiting = await harness.place(manifest)
    assert waiting["results"][0]["outcome"] == "Unschedulable"
    assert "warnings" not in waiting

    await harness.configure(deviceClaims="Refuse")
    refused = await harness.client.put(path, json=manifest)
    assert problem(refused, 403) == "DeviceClaimsRefused"
    assert refused.json()["detail"].startswith("spec.resourceClaims: ")
    (result,) = (await harness.place(manifest))["results"]
    assert (result["outcome"], result["reason"]) == ("Denied", "DeviceClaimsRefused")

    await harness.configure(deviceClaims="Ignore", volumes="Ignore", placePendingPods=False)
    answer = await harness.put(f"{PODS}/web-0", manifest)
    assert told(answer.json()) == [("spec.resourceClaims", "DeviceClaimsIgnored")]
    placed = await harness.place(manifest)
    assert placed["results"][0]["outcome"] == "Placed"
    assert told(placed) == [("pods[0].spec.resourceClaims", "DeviceClaimsIgnored")]


async def test_a_pod_with_devices_that_is_on_a_node_is_a_fact_and_only_warned_about(
    harness: Harness,
) -> None:
    await harness.configure(deviceClaims="Refuse")
    answer = await harness.put(f"{PODS}/web-0", pod("web-0", nodeName="n1", **DEVICES))
    assert told(answer.json()) == [("spec.resourceClaims", "DeviceClaimsIgnored")]


async def test_fields_of_devices_whose_features_are_off_are_warned_about(harness: Harness) -> None:
    await harness.configure(kubernetes="1.35")
    policy = {"value": "1", "requestPolicy": {"default": "1"}}
    shared = device("a") | {
        "taints": [{"key": "k", "effect": "NoExecute"}],
        "capacity": {"memory": policy},
    }
    answer = await harness.put("resourceslices/n1", resource_slice("n1", shared))
    assert told(answer.json()) == [
        ("spec.devices[0].taints", "DeviceFieldIgnored"),
        ("spec.devices[0].capacity[memory].requestPolicy", "DeviceFieldIgnored"),
    ]


PARTITIONED: tuple[list[dict[str, Any]], dict[str, Any]] = (
    [{"name": "memory", "counters": {"memory": {"value": "40Gi"}}}],
    {"consumesCounters": [{"counterSet": "memory", "counters": {"memory": {"value": "20Gi"}}}]},
)


async def test_versions_that_count_what_devices_share_do_not_warn_about_it(
    harness: Harness,
) -> None:
    counters, consumption = PARTITIONED
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 2}
    held = resource_slice("n1", sharedCounters=counters, pool=pool).named("counters")
    part = resource_slice("n1", device("a") | consumption, pool=pool)
    for version, is_read in (("1.35", False), ("1.36", True)):
        await harness.configure(kubernetes=version)
        answer = await harness.put("resourceslices/counters", held)
        ignored = [] if is_read else [("spec.sharedCounters", "DeviceFieldIgnored")]
        assert told(answer.json()) == ignored
        answer = await harness.put("resourceslices/n1", part)
        ignored = [] if is_read else [("spec.devices[0].consumesCounters", "DeviceFieldIgnored")]
        assert told(answer.json()) == ignored


async def test_versions_that_read_a_field_of_devices_do_not_warn_about_it(
    harness: Harness,
) -> None:
    made = device("a") | {"nodeName": "n1", "taints": [{"key": "k", "effect": "NoSchedule"}]}
    sliced = resource_slice(None, made, perDeviceNodeSelection=True)
    tolerant = device_claim("c", asking(tolerations=[{"key": "k"}]))
    fields = ("perDeviceNodeSelection", "devices[0].nodeName", "devices[0].taints")
    await harness.configure(kubernetes="1.35")
    answer = await harness.put("resourceslices/shared", sliced)
    assert told(answer.json()) == [(f"spec.{each}", "DeviceFieldIgnored") for each in fields]
    answer = await harness.put("namespaces/default/resourceclaims/c", tolerant)
    path = "spec.devices.requests[0].exactly.tolerations"
    assert told(answer.json()) == [(path, "DeviceFieldIgnored")]
    await harness.configure(kubernetes="1.36")
    assert told((await harness.put("resourceslices/shared", sliced)).json()) == []
    answer = await harness.put("namespaces/default/resourceclaims/c", tolerant)
    assert told(answer.json()) == []


async def test_what_is_never_allocated_is_stored_and_warned_about(harness: Harness) -> None:
    made = device("a") | {"bindingConditions": ["ready"]}
    asked = asking(capacity={"requests": {"memory": "10Gi"}})
    claim = device_claim("c", asked, constraints=[{"distinctAttribute": "x.example/numa"}])
    of_devices = "spec.devices.requests[0].exactly.capacity"
    of_claim = "spec.devices.constraints[0].distinctAttribute"
    for version, capacity in (("1.35", "DeviceFieldIgnored"), ("1.37", "DeviceNotAllocated")):
        await harness.configure(kubernetes=version)
        answer = await harness.put("resourceslices/n1", resource_slice("n1", made))
        assert told(answer.json()) == [("spec.devices[0].bindingConditions", "DeviceNotAllocated")]
        answer = await harness.put("namespaces/default/resourceclaims/c", claim)
        assert told(answer.json()) == [
            (of_claim, "DeviceNotAllocated"),
            (of_devices, capacity),
        ]


async def test_other_kinds_have_warnings_too(harness: Harness) -> None:
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "3", "services": "2"}}}
    answer = await harness.put("namespaces/shop/resourcequotas/q", quota)
    assert told(answer.json()) == [("spec.hard[services]", "QuotaNotCharged")]

    group = {"metadata": {"name": "g"}, "spec": {"minMember": 2, "minResources": {"cpu": "1"}}}
    answer = await harness.put("namespaces/shop/podgroups/g", group)
    assert told(answer.json()) == [("spec.minResources", "MinResourcesIgnored")]

    resized = pod("web-0") | {"status": {"resources": {"requests": {"cpu": "1"}}}}
    answer = await harness.put(f"{PODS}/web-0", resized)
    assert told(answer.json()) == []


async def test_a_patch_is_answered_like_a_put(harness: Harness) -> None:
    await harness.put_pod("web-0")
    path = f"{CLUSTER}/{PODS}/web-0"
    answer = await harness.client.patch(path, json={"spec": {"runtimeClassName": "gvisor"}})
    assert told(answer.json()) == [("spec.runtimeClassName", "RuntimeClassIgnored")]
    assert answer.headers["warning"].startswith('299 - "spec.runtimeClassName is not read')


async def test_an_answer_that_is_sent_back_as_it_is_stores_no_warnings(harness: Harness) -> None:
    await harness.configure(placePendingPods=False)
    written = (await harness.put(f"{PODS}/web-0", pod("web-0", volumes=[DISK]))).json()
    again = await harness.put(f"{PODS}/web-0", written)
    assert again.json() == written
    stored = (await harness.client.get(f"{CLUSTER}/{PODS}/web-0")).json()
    assert "warnings" not in stored
    await harness.put("nodes/n1", node("n1") | {"warnings": []})
    assert "warnings" not in (await harness.client.get(f"{CLUSTER}/nodes/n1")).json()


async def test_a_list_names_the_item_of_each_field(harness: Harness) -> None:
    classes = {
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 5,
        "globalDefault": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    items = [pod("web-0"), pod("web-1", volumes=[DISK]), classes]
    answer = await harness.client.post(f"{CLUSTER}/apply", json={"kind": "List", "items": items})
    assert told(answer.json()) == [
        (f"items[1].{AT}", "VolumesIgnored"),
        ("items[2].preemptionPolicy", "PreemptionIgnored"),
    ]
    assert answer.headers["warning"].count("299 - ") == 2


async def test_a_line_has_its_own_warnings(harness: Harness) -> None:
    lines = [pod("web-0"), pod("web-1", volumes=[DISK])]
    answer = await harness.client.post(
        f"{CLUSTER}/apply",
        content=b"\n".join(map(msgspec.json.encode, lines)),
        headers={"content-type": "application/x-ndjson"},
    )
    first, second = map(msgspec.json.decode, answer.content.splitlines())
    assert "warnings" not in first
    assert told(second) == [(AT, "VolumesIgnored")]


async def test_placements_bindings_and_simulations_tell_of_fields_that_they_pass_over(
    harness: Harness,
) -> None:
    await harness.configure(placePendingPods=False)
    await harness.put_node("n1")
    manifest = pod("web-0", volumes=[DISK])
    assert told(await harness.place(pod("plain"), manifest, dryRun=True)) == [
        (f"pods[1].{AT}", "VolumesIgnored")
    ]
    template = {"metadata": {"name": "web", "namespace": "shop"}, "spec": manifest["spec"]}
    request = {"template": template, "replicas": 3, "dryRun": True}
    answer = await harness.client.post(f"{CLUSTER}/placements", json=request)
    assert told(answer.json()) == [(f"template.{AT}", "VolumesIgnored")]

    await harness.put(f"{PODS}/web-0", manifest)
    request = {"podRefs": [{"namespace": "shop", "name": "web-0"}], "dryRun": True}
    answer = await harness.client.post(f"{CLUSTER}/placements", json=request)
    assert told(answer.json()) == [(f"podRefs[0].{AT}", "VolumesIgnored")]
    bound = await harness.client.post(
        f"{CLUSTER}/{PODS}/web-0/binding", json={"target": {"name": "n1"}}
    )
    assert told(bound.json()) == [(AT, "VolumesIgnored")]

    cluster = {"nodes": [node("n1")], "pods": [pod("there", volumes=[DISK])], "pod": manifest}
    answer = await harness.client.post("/v1/simulations", json=cluster)
    assert told(answer.json()) == [
        (f"pods[0].{AT}", "VolumesIgnored"),
        (f"pod.{AT}", "VolumesIgnored"),
    ]
    assert answer.headers["warning"].count("299 - ") == 2


async def test_a_repetition_under_an_idempotency_key_has_the_same_warnings(
    harness: Harness,
) -> None:
    await harness.put_node("n1")
    sent = {"json": {"pods": [pod("web-0", volumes=[DISK])]}, "headers": {"idempotency-key": "k"}}
    first, again = [await harness.client.post(f"{CLUSTER}/placements", **sent) for _ in range(2)]
    assert told(first.json()) == [(f"pods[0].{AT}", "VolumesIgnored")]
    assert (again.json(), again.headers["warning"]) == (first.json(), first.headers["warning"])


async def test_answers_and_headers_are_bounded(harness: Harness) -> None:
    count = WARNINGS_MAX + 20
    items = [pod(f"web-{number}", volumes=[DISK]) for number in range(count)]
    answer = await harness.client.post(f"{CLUSTER}/apply", json={"kind": "List", "items": items})
    *listed, last = answer.json()["warnings"]
    assert len(listed) == WARNINGS_MAX
    assert (last["code"], last["message"]) == ("MoreWarnings", "20 more warnings are not listed")
    header = answer.headers["warning"]
    assert len(header) <= 4096
    assert header.endswith('"')
    assert all(len(each) < 280 for each in header.split("299 - ")[1:])


async def test_many_fields_of_one_object_that_are_alike_are_one_warning(harness: Harness) -> None:
    answer = await harness.put(f"{PODS}/web-0", pod("web-0", volumes=[DISK, DISK, DISK]))
    (warning,) = answer.json()["warnings"]
    assert warning["field"] == AT
    assert warning["message"].endswith(" (3 like it)")


async def test_warnings_are_counted_by_code(harness: Harness) -> None:
    await harness.put(f"{PODS}/web-0", pod("web-0", volumes=[DISK], runtimeClassName="gvisor"))
    items = [pod("web-1", volumes=[DISK])]
    await harness.client.post(f"{CLUSTER}/apply", json={"kind": "List", "items": items})
    metrics = (await harness.client.get("/metrics")).text
    assert 'moorage_manifest_warnings_total{code="VolumesIgnored"} 2.0' in metrics
    assert 'moorage_manifest_warnings_total{code="RuntimeClassIgnored"} 1.0' in metrics


async def test_a_stored_pod_of_a_daemon_family_keeps_its_warnings(harness: Harness) -> None:
    """The specs differ only in the node that they name, so they are processed once."""

    def spec(name: str) -> dict[str, Any]:
        field = {"key": "metadata.name", "operator": "In", "values": [name]}
        terms = [{"matchFields": [field]}]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        return {"affinity": {"nodeAffinity": required}, "volumes": [DISK]}

    pods = [pod(f"daemon-{name}", **spec(name)) for name in ("n1", "n2", "n3")]
    for each in (*pods, pods[1]):
        answer = await harness.put(f"{PODS}/{each['metadata']['name']}", each)
        assert told(answer.json()) == [(AT, "VolumesIgnored")]


async def test_volumes_that_decide_where_a_pod_goes_are_no_reason_to_warn(harness: Harness):
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data-0"}}
    answer = await harness.put(f"{PODS}/web", pod("web", volumes=[claim, DISK]))
    assert told(answer.json()) == [("spec.volumes[1].azureFile", "VolumesIgnored")]


async def test_who_may_preempt_is_not_warned_where_pending_pods_do(harness: Harness) -> None:
    eager = pod("web-0", priority=5, preemptionPolicy="PreemptLowerPriority")
    for setting, codes in (("Never", ["PreemptionIgnored"]), ("Evict", [])):
        await harness.configure(queuePreemption=setting)
        body = (await harness.put(f"{PODS}/web-0", eager)).json()
        assert [each["code"] for each in body.get("warnings", [])] == codes


ZONE = "topology.kubernetes.io/zone"
NOWHERE = {
    "nodeSelector": {ZONE: "a"},
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["b"]}]}
                ]
            }
        }
    },
}
NEVER = (
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
)


async def test_a_rule_that_can_never_hold_is_told_on_writes_and_placements(
    harness: Harness,
) -> None:
    written = await harness.put("namespaces/shop/pods/web-0", pod("web-0", **NOWHERE))
    placed = await harness.place(pod("web-1", **NOWHERE))

    assert told(written.json()) == [(NEVER, "RuleNeverHolds")]
    assert told(placed) == [(f"pods[0].{NEVER}", "RuleNeverHolds")]
    assert placed["results"][0]["outcome"] != "Placed"


async def test_a_spread_constraint_that_leaves_out_its_own_pod_is_told_on_writes(
    harness: Harness,
) -> None:
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "others"}},
    }
    manifest = pod("web-0", topologySpreadConstraints=[constraint])

    written = await harness.put("namespaces/shop/pods/web-0", manifest)

    field = "spec.topologySpreadConstraints[0].labelSelector"
    assert told(written.json()) == [(field, "RuleLeavesOutItsPod")]
