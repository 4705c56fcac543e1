"""What each Kubernetes version makes of devices that are partitioned, tainted, shared or awaited."""

from typing import Any

import pytest

from service.engine import Cluster, allocations_on, explain
from tests.builders import (
    GPU,
    Manifest,
    asking,
    device,
    device_claim,
    device_class,
    node,
    pod,
    resource_slice,
)
from tests.engine import objects

OLD, NEW = "1.35", ("1.36", "1.37")
NOT_ALL = "cannot allocate all claims"
COUNTED = f"{NOT_ALL}: devices that consume shared counters are not allocated"
AWAITED = f"{NOT_ALL}: devices with binding conditions are not allocated"
PARTITION = {"consumesCounters": [{"counterSet": "memory", "counters": {"memory": {"value": "1"}}}]}
CONDITIONS = {"bindingConditions": ["ready"]}
TAINT = {"key": "broken", "value": "fan", "effect": "NoSchedule"}
IN_RACK_1 = {"key": "rack", "operator": "In", "values": ["r1"]}
RACK_1 = {"nodeSelectorTerms": [{"matchExpressions": [IN_RACK_1]}]}
NODES = [node("n1").label(rack="r1"), node("n2").label(rack="r1"), node("n3").label(rack="r2")]


def cluster(version: str, *made: Manifest) -> Cluster:
    parts = [device_class(), *made]
    if not any(each["kind"] == "ResourceClaim" for each in made):
        parts.append(device_claim("c"))
    return objects.cluster({"kubernetes": version}, [], [*NODES], [], parts)


PLACED = pod("p").devices("c")


def told(built: Cluster) -> dict[str, str]:
    """The reason on each node where the claim gets no devices."""
    filters = explain(built, objects.pod(PLACED, incoming=True)).filters
    return {name: reason for name, (reason,) in filters.get("DynamicResources", {}).items()}


def given(built: Cluster, node_name: str) -> list[str]:
    """The devices that the claim would get on a node."""
    allocations = allocations_on(built, objects.pod(PLACED, incoming=True), node_name) or []
    return [grant.device.device for each in allocations for grant in each.grants]


def everywhere(*devices: Manifest) -> Manifest:
    return resource_slice(None, *devices, allNodes=True)


@pytest.mark.parametrize(("field", "reason"), [(PARTITION, COUNTED), (CONDITIONS, AWAITED)])
def test_devices_that_need_more_are_refused_by_name(field: Manifest, reason: str):
    made = everywhere(device("part") | field)
    assert told(cluster(OLD, made)) == dict.fromkeys(("n1", "n2", "n3"), NOT_ALL)
    for version in NEW:
        assert told(cluster(version, made)) == dict.fromkeys(("n1", "n2", "n3"), reason)


@pytest.mark.parametrize("version", [OLD, *NEW])
@pytest.mark.parametrize("field", [PARTITION, CONDITIONS])
def test_other_devices_are_given_instead(version: str, field: Manifest):
    built = cluster(version, everywhere(device("part") | field, device("whole")))
    assert told(built) == {}
    assert given(built, "n1") == ["whole"]


def test_a_refused_device_that_nobody_asked_for_is_not_named():
    selecting = asking(1, f'device.attributes["{GPU}"].model == "b"')
    made = everywhere(device("part", model="a") | PARTITION)
    built = cluster("1.37", made, device_claim("c", selecting))
    assert set(told(built).values()) == {NOT_ALL}


@pytest.mark.parametrize("version", [OLD, *NEW])
def test_slices_with_counters_hold_no_devices(version: str):
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 2}
    counters = [{"name": "memory", "counters": {"memory": {"value": "40Gi"}}}]
    held = resource_slice(None, sharedCounters=counters, pool=pool, allNodes=True).named("a")
    built = cluster(version, held, resource_slice("n1", device("whole"), pool=pool).named("b"))
    assert told(built) == {"n2": NOT_ALL, "n3": NOT_ALL}


def test_all_devices_are_not_given_without_those_that_are_refused():
    claim = device_claim("c", {"name": "all", "exactly": ALL})
    made = everywhere(device("a"), device("b") | PARTITION)
    assert told(cluster("1.36", made, claim)) == dict.fromkeys(("n1", "n2", "n3"), COUNTED)
    made = everywhere(device("a"), device("b") | CONDITIONS)
    assert told(cluster("1.36", made, claim)) == dict.fromkeys(("n1", "n2", "n3"), AWAITED)
    assert given(cluster(OLD, made, claim), "n1") == ["a"]


ALL = {"deviceClassName": GPU, "allocationMode": "All"}


@pytest.mark.parametrize(
    ("tolerations", "is_given"),
    [
        ([], False),
        ([{"key": "broken", "operator": "Exists"}], True),
        ([{"operator": "Exists"}], True),
        ([{"key": "broken", "value": "fan"}], True),
        ([{"key": "broken", "value": "disk"}], False),
        ([{"key": "other", "operator": "Exists"}], False),
        ([{"key": "broken", "operator": "Exists", "effect": "NoExecute"}], False),
        ([{"key": "broken", "operator": "Exists", "effect": "NoSchedule"}], True),
        ([{"value": "fan"}], True),
    ],
)
def test_a_taint_keeps_requests_away_that_do_not_tolerate_it(tolerations, is_given):
    claim = device_claim("c", asking(tolerations=tolerations))
    made = everywhere(device("a") | {"taints": [TAINT]})
    assert given(cluster(OLD, made, claim), "n1") == ["a"]
    for version in NEW:
        assert given(cluster(version, made, claim), "n1") == (["a"] if is_given else [])


@pytest.mark.parametrize(
    ("effect", "is_given"), [("NoSchedule", False), ("NoExecute", False), ("None", True)]
)
def test_some_effects_of_taints_keep_claims_away(effect, is_given):
    built = cluster("1.36", everywhere(device("a") | {"taints": [TAINT | {"effect": effect}]}))
    assert given(built, "n1") == (["a"] if is_given else [])


def test_a_tainted_device_is_passed_over_for_another():
    """Both are alike but for the taint, and the second one is still tried after the first failed."""
    choosy = asking(tolerations=[{"operator": "Exists"}], name="any")
    claim = device_claim("c", choosy, asking())
    built = cluster("1.37", everywhere(device("a"), device("b") | {"taints": [TAINT]}), claim)
    assert given(built, "n1") == ["b", "a"]


def test_alternatives_have_tolerations_of_their_own():
    first = {"name": "clean", "deviceClassName": GPU}
    second = first | {"name": "any", "tolerations": [{"operator": "Exists"}]}
    claim = device_claim("c", {"name": "gpu", "firstAvailable": [first, second]})
    tainted = device("a") | {"taints": [TAINT]}
    made = [resource_slice("n1", tainted), resource_slice("n2", device("a"))]
    explanation = explain(cluster("1.36", *made, claim), objects.pod(PLACED, incoming=True))
    assert explanation.scores["DynamicResources"] == {"n1": 87, "n2": 100}


def per_device(*devices: Manifest, **fields: Any) -> Manifest:
    return resource_slice(None, *devices, perDeviceNodeSelection=True, **fields)


def test_each_device_may_say_which_nodes_reach_it():
    made = per_device(
        device("one") | {"nodeName": "n1"},
        device("rack") | {"nodeSelector": RACK_1},
        device("all") | {"allNodes": True},
    )
    claim = device_claim("c", {"name": "all", "exactly": ALL})
    assert told(cluster(OLD, made)) == dict.fromkeys(("n1", "n2", "n3"), NOT_ALL)
    for version in NEW:
        built = cluster(version, made, claim)
        names = ("n1", "n2", "n3")
        assert [given(built, name) for name in names] == [
            ["one", "rack", "all"],
            ["rack", "all"],
            ["all"],
        ]


def test_a_claim_is_bound_to_the_nodes_of_its_device():
    selectors = {}
    for fields in ({"nodeName": "n1"}, {"nodeSelector": RACK_1}, {"allNodes": True}):
        built = cluster("1.36", per_device(device("a") | fields))
        (allocation,) = allocations_on(built, objects.pod(PLACED, incoming=True), "n1") or []
        (grant,) = allocation.grants
        selectors[next(iter(fields))] = grant.node_name, grant.node_selector
    assert selectors["nodeName"] == ("n1", None)
    assert selectors["allNodes"] == (None, None)
    name, selector = selectors["nodeSelector"]
    assert name is None
    assert selector is not None


def test_nodes_of_single_devices_follow_labels_and_nodes():
    built = cluster("1.36", per_device(device("rack") | {"nodeSelector": RACK_1}))
    assert told(built) == {"n3": NOT_ALL}
    built.put_node(objects.node(node("n3").label(rack="r1")))
    built.put_node(objects.node(node("n1").label(rack="r3")))
    assert told(built) == {"n1": NOT_ALL}
    built.put_object(objects.kept(per_device(device("one") | {"nodeName": "n1"})))
    assert told(built) == {"n2": NOT_ALL, "n3": NOT_ALL}


def test_names_are_compared_over_devices_that_a_node_does_not_reach():
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 2}
    one = per_device(
        device("a") | {"nodeName": "n1"}, device("b") | {"nodeName": "n2"}, pool=pool
    ).named("one")
    other = resource_slice("n1", device("b"), pool=pool).named("other")
    invalid = "invalid resource pools were encountered"
    assert told(cluster("1.36", one, other)) == {"n1": invalid, "n3": NOT_ALL}


def test_a_selector_of_several_terms_cannot_be_combined():
    several = {"nodeSelectorTerms": RACK_1["nodeSelectorTerms"] * 2}
    built = cluster("1.36", per_device(device("a") | {"nodeSelector": several}))
    assert told(built) == {
        "n1": TERMS,
        "n2": TERMS,
        "n3": NOT_ALL,
    }


TERMS = (
    "create NodeSelector for claim default/c: unsupported ResourceSlice.NodeSelector with 2 terms"
)


@pytest.mark.parametrize("version", NEW)
def test_claims_to_a_share_of_capacity_get_no_devices(version: str):
    claim = device_claim("c", asking(capacity={"requests": {"memory": "1Gi"}}))
    made = everywhere(device("a"))
    assert given(cluster(OLD, made, claim), "n1") == ["a"]
    reason = "claim default/c, request gpu: requests of capacity are not supported"
    assert set(told(cluster(version, made, claim)).values()) == {reason}


@pytest.mark.parametrize("version", [OLD, *NEW])
def test_claims_whose_attributes_must_differ_get_no_devices(version: str):
    claim = device_claim("c", constraints=[{"distinctAttribute": f"{GPU}/numa"}])
    reason = "claim default/c: constraints with distinctAttribute are not supported"
    built = cluster(version, everywhere(device("a", numa=1)), claim)
    assert set(told(built).values()) == {reason}


def test_a_device_may_bind_its_claim_to_the_node():
    names = {}
    for version in (OLD, "1.36"):
        built = cluster(version, everywhere(device("a") | {"bindsToNode": True}))
        (allocation,) = allocations_on(built, objects.pod(PLACED, incoming=True), "n2") or []
        names[version] = allocation.grants[0].node_name
    assert names == {OLD: None, "1.36": "n2"}


@pytest.mark.parametrize(
    ("conditions", "is_met"),
    [([], False), ([("ready", "False")], False), ([("ready", "True")], True)],
)
def test_pods_do_not_come_before_the_conditions_of_their_devices(conditions, is_met):
    key = {"driver": GPU, "pool": "shared", "device": "a"}
    reported = [{"type": name, "status": status} for name, status in conditions]
    status = {
        "allocation": {"devices": {"results": [{"request": "gpu", **key, **CONDITIONS}]}},
        "devices": [{**key, "conditions": reported}],
    }
    made = [everywhere(device("a") | CONDITIONS), device_claim("c") | {"status": status}]
    asked = objects.pod(PLACED, incoming=True)
    assert explain(cluster(OLD, *made), asked).feasible == ["n1", "n2", "n3"]
    explanation = explain(cluster("1.37", *made), asked)
    if is_met:
        assert explanation.feasible == ["n1", "n2", "n3"]
    else:
        assert explanation.prefilter is not None
        (reason,) = explanation.prefilter.reasons
        assert reason == (
            'resourceclaim "c" has binding conditions that are not met, and are not awaited'
        )


def test_a_cluster_that_gets_another_version_decides_by_that():
    built = cluster(OLD, everywhere(device("a") | {"taints": [TAINT]}))
    assert given(built, "n1") == ["a"]
    built.configure(objects.config({"kubernetes": "1.36"}))
    assert given(built, "n1") == []
    built.configure(objects.config({"kubernetes": OLD}))
    assert given(built, "n1") == ["a"]


def selected(*models: str, **fields: Any) -> Manifest:
    attribute = f'device.attributes["{GPU}"].model'
    expression = f"{attribute} in {[*models]}".replace("'", '"')
    return {"deviceClassName": GPU, "selectors": [{"cel": {"expression": expression}}], **fields}


@pytest.mark.parametrize(
    ("first", "old"),
    [
        (selected("b", count=2), ["a", "b"]),
        (selected("b", count=3), []),
        (selected("none", count=1), ["a"]),
        (selected("none", allocationMode="All"), []),
        (selected("b", "used", allocationMode="All"), []),
    ],
    ids=["two", "three", "one", "all of none", "all of some"],
)
def test_only_1_35_mixes_up_alternatives_that_ask_for_all_devices(first, old):
    """It goes on with the first alternative after one device, or takes the devices of that one."""
    models = {"a": "a", "a2": "a", "b": "b", "used": "used"}
    made = everywhere(*(device(name, model=model) for name, model in models.items()))
    result = {"request": "gpu", "driver": GPU, "pool": "shared", "device": "used"}
    status = {"allocation": {"devices": {"results": [result]}}}
    other = device_claim("other") | {"status": status}
    every = selected("a", allocationMode="All")
    alternatives = [{**first, "name": "first"}, {**every, "name": "every"}]
    claim = device_claim("c", {"name": "gpu", "firstAvailable": alternatives})
    for version in NEW:
        assert given(cluster(version, made, other, claim), "n1") == ["a", "a2"]
    assert given(cluster(OLD, made, other, claim), "n1") == old
