"""Plans on small random clusters: each step holds by itself, and the replica is as it was."""

from collections.abc import Generator
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from msgspec.structs import replace

from service.model.core.errors import MoorageError, NotFound
from service.model.core.primitives import Taint
from service.model.registry.manifests import (
    PodManifest,
    TemplateCache,
    parse_any,
    parse_node,
    parse_pod,
)
from service.scheduler.decide.context import DecisionContext
from service.scheduler.decide.placing.placement_request import place_pods
from service.scheduler.plans.make_plan import make_plan
from service.scheduler.protocol.intents import MakePlan, PlacePods
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.placements import PodRef
from service.scheduler.protocol.plans import (
    AddNodes,
    CordonNodes,
    Domains,
    Drain,
    Place,
    PlanChange,
    Planned,
    PutPods,
    RemoveNodes,
    RemovePods,
    Selection,
    SetConfig,
    SetLabels,
    SetTaints,
)
from service.scheduler.replica.replica import Replica
from tests import strategies
from tests.reference import ReferenceCluster, admit
from tests.scheduler.world import CountedIds, encoded, kinded
from tests.seeds import examples

NODES = ("n1", "n2", "n3", "n4")
FEATURES = (*strategies.POD_FEATURES, "resources", "taints", "ports", "node-affinity")
SETTINGS = settings(
    max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
Manifest = dict[str, Any]
T = TypeVar("T")


class Small:
    """A small cluster, as the scheduler and as the reference have it."""

    def __init__(self, objects: list[Manifest], pods: list[Manifest]) -> None:
        self.templates = TemplateCache()
        self.replica = Replica(self.templates)
        self.reference = ReferenceCluster({})
        self.ids = CountedIds(1)
        self.pods = {
            (each["metadata"]["namespace"], each["metadata"]["name"]): each for each in pods
        }
        for each in objects:
            self.replica.put(parse_any(encoded(each), self.templates))
            self.reference.put_node(each) if each["kind"] == "Node" else (
                self.reference.put_namespace(each)
            )
        parsed = tuple(parse_pod(encoded(each), self.templates, to_place=True) for each in pods)
        for result in self.place(PlacePods(pods=parsed, without_groups=True)):
            if result.node_name is not None:
                self.reference.bind(self.pods[result.namespace, result.name], result.node_name)
        self.replica.settle_all()

    def context(self) -> DecisionContext:
        return DecisionContext(
            replica=self.replica,
            now="2026-01-01T00:00:00Z",
            templates=self.templates,
            ids=self.ids,
            limits=Limits(),
            attempts=1,
            hints={},
        )

    def place(self, intent: PlacePods) -> list[Any]:
        return ended(place_pods(self.context(), intent)).results

    def plan(self, *changes: PlanChange, **rest: Any) -> Planned:
        return ended(make_plan(self.context(), MakePlan(changes=changes, **rest)))


def ended(steps: Generator[None, None, T]) -> T:
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return stop.value


@st.composite
def clusters(draw: st.DrawFn) -> Small:
    world = draw(strategies.worlds(FEATURES))
    nodes = [draw(strategies.nodes(world, st.just(name))) for name in NODES]
    spaces = [
        strategies.namespace(name, draw(st.sampled_from(("red", None)))) for name in world.stored
    ]
    pods = [admit(draw(strategies.pods(world, f"p{number}"))) for number in range(8)]
    kinds = [("Namespace", spaces), ("Node", nodes)]
    objects = [{"apiVersion": "v1", "kind": kind, **each} for kind, all_ in kinds for each in all_]
    return Small(objects, pods)


def names() -> st.SearchStrategy[Selection]:
    chosen = st.lists(st.sampled_from(NODES), min_size=1, max_size=2, unique=True)
    return chosen.map(lambda names: Selection(names=tuple(names)))


def some_changes() -> st.SearchStrategy[list[PlanChange]]:
    added = parse_node(encoded(kinded(strategies_node("new"))))
    put = parse_pod(encoded(placed_pod("put", "n3")), TemplateCache())
    change: st.SearchStrategy[PlanChange] = st.one_of(
        names().map(RemoveNodes),
        names().map(CordonNodes),
        names().map(lambda some: SetLabels(some, {"zone": "z9", "rack": None})),
        names().map(lambda some: SetTaints(some, (Taint(key="full", effect="NoSchedule"),))),
        st.just(AddNodes(added, 2, Domains(key="zone", values=("z1", "z2")))),
        st.just(RemovePods(Selection(topology=Domains(key="rack", values=("r1",))))),
        st.just(PutPods((put,))),
        st.just(SetConfig({"hardPodAffinityWeight": 3})),
        st.just(SetConfig({"groupSearchSteps": 10})),
    )
    return st.lists(change, min_size=1, max_size=4)


def strategies_node(name: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"rack": "r1"}},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
    }


def placed_pod(name: str, node_name: str) -> Manifest:
    metadata = {"name": name, "namespace": "default", "labels": {"app": "a"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": node_name, "containers": [{"name": "main"}]},
    }


@SETTINGS
@given(small=clusters(), changes=some_changes(), explain=st.sampled_from(("None", "Summary")))
def test_after_any_plan_the_replica_is_exactly_as_it_was(
    small: Small, changes: list[PlanChange], explain: Any
) -> None:
    before, revision = small.replica.digest(), small.replica.revision
    try:
        planned = small.plan(*changes, goal=Place(displaced=True), explain=explain)
    except MoorageError:  # an earlier change has removed a node, or added one of this name
        planned = None
    assert (small.replica.revision, small.replica.digest()) == (revision, before)
    if planned is not None:
        again = small.plan(*changes, goal=Place(displaced=True), explain=explain)
        assert again == planned


@SETTINGS
@given(small=clusters(), lost=names())
def test_each_step_holds_by_the_reference_when_it_is_taken(small: Small, lost: Selection) -> None:
    planned = small.plan(RemoveNodes(lost), goal=Place(displaced=True))
    reference = small.reference
    for (namespace, name), stored in list(reference.pods.items()):
        if stored["spec"]["nodeName"] in (lost.names or ()):
            reference.delete_pod(namespace, name)
    for name in lost.names or ():
        reference.delete_node(name)
    for step in planned.steps:
        found = small.pods[step.namespace, step.name]
        assert step.from_node in (lost.names or ())
        assert step.to in reference.evaluate(found)["feasible"]
        reference.bind(found, step.to)


@SETTINGS
@given(small=clusters(), drained=names())
def test_each_move_of_a_drain_holds_by_the_reference_when_it_is_made(
    small: Small, drained: Selection
) -> None:
    before = small.replica.digest()
    planned = small.plan(goal=Drain(nodes=drained))
    assert small.replica.digest() == before
    reference, moved = small.reference, set()
    for name in drained.names or ():
        node = reference.nodes[name]
        reference.put_node(node | {"spec": {**(node.get("spec") or {}), "unschedulable": True}})
    for step in planned.steps:
        if step.action == "Cordon":
            assert step.name in (drained.names or ())
            continue
        found = small.pods[step.namespace, step.name]
        reference.delete_pod(step.namespace, step.name)
        assert step.from_node in (drained.names or ())
        assert step.to in set(reference.evaluate(found)["feasible"]) - {step.from_node}
        reference.bind(found, step.to)
        moved.add((step.namespace, step.name))
    told = {(each.namespace, each.name) for each in planned.unplaced}
    left = {
        key
        for key, stored in reference.pods.items()
        if stored["spec"].get("nodeName") in (drained.names or ())
    }
    assert told == left
    assert not told & moved


@SETTINGS
@given(small=clusters(), lost=names())
def test_a_plan_says_of_each_pod_what_doing_it_gives(small: Small, lost: Selection) -> None:
    planned = small.plan(RemoveNodes(lost), goal=Place(displaced=True))
    told = {(each.namespace, each.name): each.to for each in planned.steps}
    told |= {(each.namespace, each.name): each.message for each in planned.unplaced}
    displaced = [
        each.manifest
        for each in small.replica.objects("Pod")
        if isinstance(each.manifest, PodManifest)
        and each.manifest.pod.node_name in (lost.names or ())
    ]
    for name in lost.names or ():
        small.replica.delete("Node", "", name)
    for each in displaced:
        small.replica.put(replace(each, pod=replace(each.pod, node_name=None), status=None))
    order = sorted(
        displaced,
        key=lambda each: (-each.pod.priority, each.pod.created, each.namespace, each.name),
    )
    refs = tuple(PodRef(namespace=each.namespace, name=each.name) for each in order)
    results = small.place(PlacePods(pod_refs=refs, path="podRefs"))
    assert told == {(each.namespace, each.name): each.node_name or each.message for each in results}


def test_a_refused_change_leaves_the_replica_as_it_was() -> None:
    small = Small([strategies_node("n1")], [])
    before = small.replica.digest()
    with pytest.raises(NotFound):
        small.plan(RemoveNodes(Selection(names=("n1",))), CordonNodes(Selection(names=("n1",))))
    assert small.replica.digest() == before
