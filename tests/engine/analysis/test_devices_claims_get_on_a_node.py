"""Devices are found exactly where brute force finds some, and what is found is its first way."""

from itertools import islice
from typing import Any

import pytest
from hypothesis import event, given, settings, strategies as st
from hypothesis.strategies import DrawFn

from service.engine import Cluster, allocations_on, explain
from service.model.devices.device import DeviceID
from tests.builders import GPU, device, device_claim, device_class, node, pod, resource_slice
from tests.engine import objects
from tests.reference.devices import SELECTORS, Devices, alternatives, preference

Manifest = dict[str, Any]
NODES = [node("n1").label(rack="r1"), node("n2").label(rack="r2")]
NUMA = f"{GPU}/numa"
WAYS_MAX = 50_000
"""Only so many ways are looked at, if there are more."""


def one_of(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


@st.composite
def slices(draw: DrawFn) -> Manifest:
    where = draw(one_of("n1", "n1", "n2", "all", "r1"))
    devices = []
    for number in range(draw(st.integers(1, 4))):
        name = draw(one_of(f"{where}-{number}", f"{where}-{number}", "same"))
        made = device(name, model=draw(one_of("a", "b")), numa=draw(st.integers(0, 1)))
        made["capacity"] = {"memory": {"value": draw(one_of("10Gi", "40Gi"))}}
        devices.append(made)
    unique = list({each["name"]: each for each in devices}.values())
    pool = {
        "name": draw(one_of(where, where, "shared")),
        "generation": draw(one_of(1, 1, 1, 2)),
        "resourceSliceCount": draw(one_of(1, 1, 1, 2)),
    }
    expression = {"key": "rack", "operator": "In", "values": ["r1"]}
    reached = {
        "all": {"allNodes": True},
        "r1": {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
    }.get(where, {"nodeName": where})
    made = resource_slice(None, *unique, pool=pool, **reached)
    return made.named(draw(one_of("s1", "s2", "s3", "s4")))


@st.composite
def asked(draw: DrawFn, *, admin: bool) -> Manifest:
    expressions = draw(st.lists(one_of(*SELECTORS), max_size=2).filter(_possible))
    fields: Manifest = {
        "deviceClassName": draw(one_of("any", "a")),
        "selectors": [{"cel": {"expression": each}} for each in expressions],
    }
    match draw(st.integers(0, 5)):
        case 0:
            fields["allocationMode"] = "All"
        case 1:
            fields["count"] = 3
        case 2 | 3:
            fields["count"] = 2
    return fields | ({"adminAccess": True} if admin and not draw(st.integers(0, 3)) else {})


def _possible(expressions: list[str]) -> bool:
    return 'device.driver == "nic.example.com"' not in expressions or len(expressions) == 1


@st.composite
def claims(draw: DrawFn) -> Manifest:
    requests = []
    for number in range(draw(st.integers(1, 2))):
        name = f"r{number}"
        if draw(st.integers(0, 2)):
            requests.append({"name": name, "exactly": draw(asked(admin=True))})
            continue
        several = [draw(asked(admin=False)) | {"name": f"s{index}"} for index in range(2)]
        requests.append({"name": name, "firstAvailable": several})
    constraints = draw(
        st.lists(
            one_of(
                {"matchAttribute": NUMA},
                {"matchAttribute": f"{GPU}/model", "requests": ["r0"]},
            ),
            max_size=2,
        )
    )
    return {"requests": requests, "constraints": constraints}


CLASSES = [
    device_class("any"),
    device_class("a", f'device.attributes["{GPU}"].model == "a"'),
]


class Drawn:
    """A cluster under change, with what brute force needs of it."""

    def __init__(self) -> None:
        config = {"kubernetes": "1.37"}
        self.engine: Cluster = objects.cluster(config, [], [*NODES], [], [*CLASSES])
        self.slices: dict[str, Manifest] = {}
        self.used: dict[str, list[DeviceID]] = {}

    def put_slice(self, made: Manifest) -> None:
        self.slices[made["metadata"]["name"]] = made
        self.engine.put_object(objects.kept(made))

    def delete_slice(self, name: str) -> None:
        del self.slices[name]
        self.engine.delete_object("ResourceSlice", "", name)

    def use(self, name: str, devices: list[DeviceID]) -> None:
        """Have a claim that was given these devices."""
        results = [
            {"request": "r", "driver": each.driver, "pool": each.pool, "device": each.device}
            for each in devices
        ]
        status = {"allocation": {"devices": {"results": results}}}
        self.used[name] = devices
        self.engine.put_object(objects.kept(device_claim(name) | {"status": status}))

    def free(self, name: str) -> None:
        del self.used[name]
        self.engine.delete_object("ResourceClaim", "default", name)

    def reference(self) -> Devices:
        used = {tuple(each) for devices in self.used.values() for each in devices}
        return Devices([*NODES], list(self.slices.values()), [*CLASSES], used)


def check(drawn: Drawn, wanted: list[Manifest], number: int) -> list[DeviceID]:
    """Compare the engine with brute force, for one pod on each node; return what it is given."""
    made = pod(f"p{number}")
    for index, each in enumerate(wanted):
        claim = device_claim(f"c{number}-{index}")
        claim["spec"] = {"devices": each}
        drawn.engine.put_object(objects.kept(claim))
        made = made.devices(f"c{number}-{index}", name=f"d{index}")
    waiting, reference = objects.pod(made), drawn.reference()
    explanation, found = explain(drawn.engine, waiting), []
    feasible, worth = explanation.feasible, {}
    for name in ("n1", "n2"):
        ways = list(islice(reference.ways(name, wanted), WAYS_MAX))
        told = allocations_on(drawn.engine, waiting, name)
        assert (told is not None) is bool(ways) is (name in feasible)
        event("given" if ways else "not given")
        if told is None:
            continue
        given_here = [[(g.request, tuple(g.device)) for g in each.grants] for each in told]
        assert given_here == ways[0]
        worth[name] = preference(wanted, ways[0])
        prefers_the_first(reference, name, wanted, given_here)
        found = [g.device for each in told for g in each.grants if not g.admin_access]
    assert explanation.scores.get("DynamicResources") == normalized(worth)
    for index in range(len(wanted)):
        drawn.engine.delete_object("ResourceClaim", "default", f"c{number}-{index}")
    return found


def normalized(worth: dict[str, int]) -> dict[str, int] | None:
    """The scores of nodes by what their ways are worth; none if that is nothing."""
    best = max(worth.values(), default=0)
    return {name: 100 * each // best for name, each in worth.items()} if best else None


def prefers_the_first(
    reference: Devices, name: str, wanted: list[Manifest], told: list[list[tuple[str, Any]]]
) -> None:
    """Of one claim with one request, what is met is the first alternative that can be."""
    if len(wanted) > 1 or len(wanted[0]["requests"]) > 1:
        return
    (request,) = wanted[0]["requests"]
    for full_name, each in alternatives(request):
        alone = {**wanted[0], "requests": [{"name": request["name"], "exactly": each}]}
        if next(reference.ways(name, [alone]), None) is not None:
            assert {request for request, _ in told[0]} == {full_name}
            return


@settings(max_examples=60)
@given(st.data())
def test_devices_are_found_where_brute_force_finds_some(data: st.DataObject):
    """The same engine is asked after each change, and what it knew before must not mislead it."""
    drawn = Drawn()
    several = data.draw(
        st.lists(st.lists(claims(), min_size=1, max_size=2), min_size=2, max_size=2)
    )
    for number in range(4):
        for made in data.draw(st.lists(slices(), max_size=3 if number else 5)):
            drawn.put_slice(made)
        if drawn.slices and data.draw(st.integers(0, 3)) == 0:
            drawn.delete_slice(data.draw(one_of(*sorted(drawn.slices))))
        given_now = check(drawn, data.draw(one_of(*several)), number)
        if drawn.used and data.draw(st.booleans()):
            drawn.free(data.draw(one_of(*sorted(drawn.used))))
        if given_now and data.draw(st.booleans()):
            drawn.use(f"used-{number}", given_now)


EVERYTHING = {
    "requests": [
        {
            "name": "r",
            "exactly": {"deviceClassName": "any", "selectors": [], "allocationMode": "All"},
        }
    ]
}


def scene(*made: Manifest, claim: Manifest | None = None, version: str = "1.37") -> Cluster:
    cluster = objects.cluster({"kubernetes": version}, [], [*NODES], [], [*CLASSES, *made])
    asking = device_claim("c")
    asking["spec"] = {"devices": claim or EVERYTHING}
    cluster.put_object(objects.kept(asking))
    return cluster


def reasons(cluster: Cluster) -> dict[str, list[str]]:
    return explain(cluster, objects.pod(pod("p").devices("c"))).filters.get("DynamicResources", {})


def part(name: str, node_name: str, *devices: str, **pool: Any) -> Manifest:
    whole = {"name": "pool", "generation": 1, "resourceSliceCount": 1} | pool
    return resource_slice(node_name, *map(device, devices), pool=whole).named(name)


UPDATED = "claim default/c, request r: asks for all devices, but a resource pool is currently being updated"
NOT_ALL = "cannot allocate all claims"


@pytest.mark.parametrize(
    ("made", "n1", "n2"),
    [
        ([part("s1", "n1", "a", resourceSliceCount=2)], UPDATED, NOT_ALL),
        ([part(f"s{n}", f"n{n}", "a", resourceSliceCount=2) for n in (1, 2)], None, None),
        ([part("s1", "n1", "a"), part("s2", "n2", "b", generation=2)], None, None),
        (
            [
                part("s1", "n1", "a", resourceSliceCount=2),
                part("s2", "n2", "b", generation=2),
            ],
            NOT_ALL,
            None,
        ),
        (
            [part("s1", "n1", "a", resourceSliceCount=2)] * 1
            + [part("s2", "n1", "a", resourceSliceCount=2)],
            "claim default/c, request r: asks for all devices, but a resource pool is currently invalid",
            NOT_ALL,
        ),
    ],
    ids=["incomplete", "over two nodes", "newer elsewhere", "obsolete", "a name twice"],
)
def test_pools_that_are_being_changed(made: list[Manifest], n1: str | None, n2: str | None):
    told = {"n1": n1, "n2": n2}
    expected = {name: [reason] for name, reason in told.items() if reason is not None}
    assert reasons(scene(*made)) == expected


def test_one_device_of_an_invalid_pool_is_not_given_either():
    made = [part(f"s{n}", "n1", "a", resourceSliceCount=2) for n in (1, 2)]
    cluster = scene(
        *made, claim={"requests": [{"name": "r", "exactly": {"deviceClassName": "any"}}]}
    )
    assert reasons(cluster) == {
        "n1": ["invalid resource pools were encountered"],
        "n2": [NOT_ALL],
    }


def test_devices_of_features_that_are_off_are_not_given():
    sliced = resource_slice("n1", device("a") | {"consumesCounters": [{"counterSet": "x"}]})
    waiting = resource_slice("n2", device("a") | {"bindingConditions": ["ready"]})
    assert reasons(scene(sliced, waiting, version="1.35")) == {"n1": [NOT_ALL], "n2": [NOT_ALL]}
    shared = resource_slice("n1", device("a"), sharedCounters=[{"name": "x", "counters": {}}])
    assert reasons(scene(shared, part("s2", "n2", "b"), version="1.35")) == {"n1": [NOT_ALL]}


def test_a_selector_without_an_answer_refuses_the_node_with_the_error():
    expression = f'device.attributes["{GPU}"].absent == "x"'
    selecting = {"deviceClassName": "any", "selectors": [{"cel": {"expression": expression}}]}
    cluster = scene(
        part("s1", "n1", "a"), claim={"requests": [{"name": "r", "exactly": selecting}]}
    )
    (told,) = reasons(cluster)["n1"]
    assert told.startswith("claim default/c: selector #0: CEL runtime error: ")
    assert "absent" in told


def test_a_search_ends_after_so_many_steps():
    """No way exists, and what tells the devices apart keeps the search from seeing that at once."""
    many = [device(f"d{n}", numa=n) for n in range(12)]
    claim = {
        "requests": [{"name": "r", "exactly": {"deviceClassName": "any", "count": 6}}],
        "constraints": [{"matchAttribute": NUMA}],
    }
    cluster = scene(resource_slice("n1", *many), claim=claim)
    assert reasons(cluster)["n1"] == [NOT_ALL]
    cluster.configure(objects.config({"deviceSearchSteps": 3}))
    assert reasons(cluster)["n1"] == ["timed out trying to allocate devices"]


def test_more_devices_than_a_claim_can_have():
    ask = {
        "requests": [
            {"name": f"r{n}", "exactly": {"deviceClassName": "any", "count": 20}} for n in (1, 2)
        ]
    }
    assert reasons(scene(claim=ask))["n1"] == [
        "claim default/c: number of requested devices 40 exceeds the claim limit of 32"
    ]


def test_pods_without_claims_are_told_nothing_of_devices():
    cluster = scene(part("s1", "n1", "a"))
    assert cluster.class_of(objects.pod(pod("p"))).devices is None
    told = explain(cluster, objects.pod(pod("p")))
    assert "DynamicResources" not in told.filters
    assert told.feasible == ["n1", "n2"]


def test_a_request_leaves_a_device_to_another_that_can_use_no_other():
    choosy = {"cel": {"expression": f'device.attributes["{GPU}"].model == "a"'}}
    requests = [
        {"name": "any", "exactly": {"deviceClassName": "any"}},
        {"name": "choosy", "exactly": {"deviceClassName": "any", "selectors": [choosy]}},
    ]
    devices = [device("d0", model="a"), device("d1", model="b")]
    cluster = scene(resource_slice("n1", *devices), claim={"requests": requests})
    (told,) = allocations_on(cluster, objects.pod(pod("p").devices("c")), "n1")
    assert [(each.request, each.device.device) for each in told.grants] == [
        ("any", "d1"),
        ("choosy", "d0"),
    ]
