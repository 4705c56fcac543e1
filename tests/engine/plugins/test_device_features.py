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
AWAITED = f"{NOT_ALL}: devices with binding conditions are not allocated"
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


def test_devices_with_conditions_are_refused_by_name():
    made = everywhere(device("part") | CONDITIONS)
    assert told(cluster(OLD, made)) == dict.fromkeys(NAMES, NOT_ALL)
    for version in NEW:
        assert told(cluster(version, made)) == dict.fromkeys(NAMES, AWAITED)


@pytest.mark.parametrize("version", [OLD, *NEW])
def test_other_devices_are_given_instead(version: str):
    built = cluster(version, everywhere(device("part") | CONDITIONS, device("whole")))
    assert told(built) == {}
    assert given(built, "n1") == ["whole"]


def test_pools_with_conditions_are_used_after_all_others():
    awaited = everywhere(device("part") | CONDITIONS, device("first"))
    awaited["spec"]["pool"]["name"] = "a"
    other = everywhere(device("second"))
    other["spec"]["pool"]["name"] = "b"
    made = (awaited.named("a"), other.named("b"))
    assert given(cluster(OLD, *made), "n1") == ["first"]
    for version in NEW:
        assert given(cluster(version, *made), "n1") == ["second"]
        assert given(cluster(version, *made, claiming(2)), "n1") == ["second", "first"]


def test_a_refused_device_that_nobody_asked_for_is_not_named():
    claim = device_claim("c", asking(1, f'device.attributes["{GPU}"].model == "b"'))
    built = cluster("1.37", everywhere(device("part", model="a") | CONDITIONS), claim)
    assert set(told(built).values()) == {NOT_ALL}


def test_all_devices_are_not_given_without_those_that_are_refused():
    claim = device_claim("c", {"name": "all", "exactly": ALL})
    made = everywhere(device("a"), device("b") | CONDITIONS)
    assert told(cluster("1.36", made, claim)) == dict.fromkeys(NAMES, AWAITED)
    assert given(cluster(OLD, made, claim), "n1") == ["a"]


NAMES = ("n1", "n2", "n3")


def part(name: str, gigabytes: int, counter: str = "memory") -> Manifest:
    """A device that takes of the memory of a card."""
    counters = {counter: {"value": f"{gigabytes}Gi"}}
    return device(name) | {"consumesCounters": [{"counterSet": "card", "counters": counters}]}


def card(gigabytes: int, *devices: Manifest, node_name: str | None = None, **counters: str):
    """The slices of a pool: the memory of a card, and devices that share it."""
    pool = {"name": "card", "generation": 1, "resourceSliceCount": 2}
    amounts = {"memory": f"{gigabytes}Gi", **counters}
    held = {"name": "card", "counters": {name: {"value": each} for name, each in amounts.items()}}
    where = {} if node_name else {"allNodes": True}
    return [
        resource_slice(None, sharedCounters=[held], pool=pool, allNodes=True).named("held"),
        resource_slice(node_name, *devices, pool=pool, **where).named("parts"),
    ]


def in_use(name: str) -> Manifest:
    """A claim that has a device of the card."""
    result = {"request": "gpu", "driver": GPU, "pool": "card", "device": name}
    return device_claim("other") | {"status": {"allocation": {"devices": {"results": [result]}}}}


def claiming(count: int) -> Manifest:
    return device_claim("c", asking(count))


def test_parts_are_given_as_long_as_the_counters_suffice():
    made = card(40, part("whole", 40), part("half", 20), part("other-half", 20))
    for version in NEW:
        assert given(cluster(version, *made, claiming(1)), "n1") == ["whole"]
        assert given(cluster(version, *made, claiming(2)), "n1") == ["half", "other-half"]
        assert given(cluster(version, *made, claiming(3)), "n1") == []
    assert told(cluster(OLD, *made, claiming(1))) == dict.fromkeys(NAMES, NOT_ALL)


def test_parts_in_use_leave_less_for_others():
    made = card(40, part("whole", 40), part("half", 20), part("other-half", 20), device("free"))
    halved = cluster("1.36", *made, in_use("half"), claiming(1))
    assert given(halved, "n1") == ["other-half"]
    used = cluster("1.36", *made, in_use("whole"), claiming(1))
    assert given(used, "n1") == ["free"]
    used.delete_object("ResourceClaim", "default", "other")
    assert given(used, "n1") == ["whole"]


def test_parts_that_only_other_nodes_reach_count_too():
    made = card(40, part("here", 30), node_name="n1")
    pool = {"name": "card", "generation": 1, "resourceSliceCount": 3}
    for each in made:
        each["spec"]["pool"] = pool
    there = resource_slice("n2", part("there", 20), pool=pool).named("there")
    built = cluster("1.37", *made, there, claiming(1))
    assert (given(built, "n1"), given(built, "n2")) == (["here"], ["there"])
    built.put_object(objects.kept(in_use("there")))
    assert (given(built, "n1"), given(built, "n2")) == ([], [])


ANY_DRIVER = device_class(expression="true")


def of_driver(driver: str, *slices: Manifest) -> list[Manifest]:
    """The same slices, of another driver."""
    return [
        each.named(f"{driver}-{each['metadata']['name']}")
        | {"spec": each["spec"] | {"driver": driver}}
        for each in slices
    ]


def test_pools_of_one_name_and_two_drivers_are_one_pool_in_1_36():
    """There, what is left of the first driver's counters is compared with what both take."""
    ample = card(30, part("of-first", 10))
    scarce = of_driver("nic.example.com", *card(10, part("one", 10), part("other", 10)))
    other = of_driver("nic.example.com", *card(30, part("one", 10), part("other", 10)))
    made = (ANY_DRIVER, *ample, *scarce, claiming(3))
    assert given(cluster("1.36", *made), "n1") == ["of-first", "one", "other"]
    assert given(cluster("1.37", *made), "n1") == []
    made = (ANY_DRIVER, *card(20, part("of-first", 10)), *other, claiming(3))
    assert given(cluster("1.36", *made), "n1") == []
    assert given(cluster("1.37", *made), "n1") == ["of-first", "one", "other"]


def test_counters_of_another_driver_with_a_pool_of_the_same_name_are_not_read_in_1_36():
    held = card(10, part("one", 10), part("other", 10))
    held[0]["spec"]["sharedCounters"][0]["name"] = "port"
    for each in held[1]["spec"]["devices"]:
        each["consumesCounters"][0]["counterSet"] = "port"
    first, second = card(10, part("of-first", 10)), of_driver("nic.example.com", *held)
    made = (ANY_DRIVER, *first, *second, claiming(3))
    assert given(cluster("1.36", *made), "n1") == ["of-first", "one", "other"]
    assert given(cluster("1.37", *made), "n1") == []


def test_pools_with_counters_trouble_all_nodes_in_1_36():
    """There, every node sees sets of counters, also those of pools of which it reaches no device."""
    held, parts = card(40, part("a", 10), node_name="n1")
    late = {"name": "card", "generation": 1, "resourceSliceCount": 3}
    held["spec"] = {**held["spec"], "pool": late, "nodeName": "n1"}
    del held["spec"]["allNodes"]
    parts["spec"]["pool"] = late
    claim = device_claim("c", {"name": "all", "exactly": ALL})
    made = (held, parts, resource_slice("n2", device("whole")), claim)
    assert given(cluster("1.37", *made), "n2") == ["whole"]
    built = cluster("1.36", *made)
    mark = built.mark()
    assert given(built, "n2") == []
    assert "is currently being updated" in told(built)["n2"]
    built.put_object(objects.kept(resource_slice("n1", part("b", 10), pool=late).named("more")))
    assert (told(built), given(built, "n2")) == ({"n3": NOT_ALL}, ["whole"])
    built.undo(mark)
    assert "is currently being updated" in told(built)["n2"]
    twice = [{"name": "card", "counters": {}}] * 2
    built.put_object(objects.kept(resource_slice("n1", sharedCounters=twice, pool=late).named("m")))
    assert "is currently invalid" in told(built)["n2"]


def test_no_counter_of_the_pool_may_be_exceeded():
    """Somebody took more of another counter than there is: Kubernetes gives no partition then."""
    made = card(40, part("a", 10), part("b", 2, counter="engines"), engines="1Gi")
    assert given(cluster("1.36", *made, claiming(1)), "n1") == ["a"]
    assert given(cluster("1.36", *made, in_use("b"), claiming(1)), "n1") == []


def test_a_pool_with_wrong_counters_gives_no_devices():
    missing = card(40, part("a", 10, counter="engines"), device("free"))
    pool = {"name": "card", "generation": 1, "resourceSliceCount": 3}
    twice = card(40, part("a", 10), device("free"))
    for each in twice:
        each["spec"]["pool"] = pool
    again = resource_slice(None, pool=pool, allNodes=True).named("again")
    again["spec"]["sharedCounters"] = twice[0]["spec"]["sharedCounters"]
    for made in (missing, [*twice, again]):
        for version in NEW:
            reasons = told(cluster(version, *made))
            assert reasons == dict.fromkeys(NAMES, "invalid resource pools were encountered")
    assert given(cluster(OLD, *missing), "n1") == ["free"]


def test_parts_of_a_claim_with_admin_access_count():
    made = card(40, part("whole", 40), part("half", 20))
    claim = device_claim("c", asking(2, adminAccess=True))
    assert given(cluster("1.36", *made, claim), "n1") == []


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


@pytest.mark.parametrize("version", [OLD, *NEW])
@pytest.mark.parametrize(
    ("fields", "devices"),
    [
        ({"allocationMode": ""}, ["a"]),
        ({"allocationMode": None, "count": 0}, ["a"]),
        ({"allocationMode": "", "count": 2}, ["a", "b"]),
        ({"allocationMode": "ExactCount", "count": 0}, ["a"]),
        ({"allocationMode": "All", "count": 0}, ["a", "b"]),
        ({"allocationMode": "All", "count": None}, ["a", "b"]),
    ],
)
def test_an_empty_mode_and_a_count_of_0_are_the_defaults(
    version: str, fields: dict[str, Any], devices: list[str]
) -> None:
    """Go's types do not distinguish them from absent ones."""
    claim = device_claim("c", asking(**fields))
    built = cluster(version, everywhere(device("a"), device("b")), claim)
    assert given(built, "n1") == devices
