"""A cluster in the engine and one in the reference, changed alike and compared after every step."""

from collections import Counter
from typing import Any, ClassVar

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from service.engine import (
    Cluster,
    Placement,
    Refusal,
    Summary,
    check,
    explain,
    place,
    summarize,
)
from tests import strategies, volume_strategies
from tests.conformance.vectors import differences
from tests.engine import objects
from tests.reference import ReferenceCluster, admit, interpod
from tests.strategies import LABELS

PROBES = 3
"""So many pods are asked about after every step, so that what was cached for them is used."""
PODS = 4
"""So many pods are there from the start."""
HISTORY = 8
"""Marks that can be returned to."""

Manifest = dict[str, Any]


class EngineAgainstReference(RuleBasedStateMachine):
    """Objects come, change and go in any order, and prefixes of the history are undone."""

    features = strategies.POD_FEATURES + strategies.NODE_FEATURES
    config: ClassVar[Manifest] = {}
    """Settings that are not left to chance."""
    nominates = False
    """Whether room is kept for pods on nodes."""

    @initialize(data=st.data())
    def start(self, data: st.DataObject) -> None:
        self.world = data.draw(strategies.worlds(self.features))
        config = data.draw(strategies.configs(self.world)) | self.config
        self.reference = ReferenceCluster(config)
        self.engine = Cluster(objects.config(config))
        self.marks: list[tuple[int, ReferenceCluster]] = []
        self.pool = [
            admit(data.draw(strategies.pods(self.world, f"probe-{number}")))
            for number in range(PROBES)
        ]
        self.probes = self.pool[:PROBES]
        for name in strategies.NODES[:3]:
            self.put_node(data.draw(strategies.nodes(self.world, st.just(name))))
        for number in range(PODS):
            self.put_new_pod(data, number)
        for _ in self.world.stored:
            self.put_namespace(data)
        self.mark()

    @rule()
    def forget_what_was_brought(self) -> None:
        """Nothing that is asked afterwards has another answer."""
        self.engine.forget_uncommitted()

    # Nodes and namespaces

    @rule(data=st.data())
    def put_any_node(self, data: st.DataObject) -> None:
        """A new node, or one that is relabelled, tainted, cordoned, resized."""
        self.put_node(data.draw(strategies.nodes(self.world)))

    def put_node(self, node: Manifest) -> None:
        self.reference.put_node(node)
        self.engine.put_node(objects.node(node))

    @precondition(lambda self: self.reference.nodes)
    @rule(data=st.data())
    def delete_node(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.reference.nodes)))
        self.reference.delete_node(name)
        self.engine.delete_node(name)

    @rule(data=st.data())
    def put_namespace(self, data: st.DataObject) -> None:
        """A new namespace, or one that is relabelled."""
        namespace = data.draw(strategies.namespaces(self.world))
        self.reference.put_namespace(namespace)
        self.engine.put_namespace(objects.namespace(namespace))

    @precondition(lambda self: self.reference.namespaces)
    @rule(data=st.data())
    def delete_namespace(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.reference.namespaces)))
        self.reference.delete_namespace(name)
        self.engine.delete_namespace(name)

    # Other objects

    @precondition(lambda self: self.world.has(strategies.DEFAULT_SPREAD))
    @rule(data=st.data())
    def put_selecting_object(self, data: st.DataObject) -> None:
        """A new service or owner of pods, or one that selects others now."""
        manifest = data.draw(strategies.selecting_objects(self.world))
        self.reference.put_object(manifest)
        self.engine.put_object(objects.kept(manifest))

    @precondition(lambda self: self.world.has(strategies.DATA))
    @rule(data=st.data())
    def put_data_set(self, data: st.DataObject) -> None:
        """A new data set, or one that is elsewhere now."""
        manifest = data.draw(strategies.data_sets(self.world))
        self.reference.put_object(manifest)
        self.engine.put_object(objects.kept(manifest))

    @precondition(lambda self: self.world.has(strategies.VOLUMES))
    @rule(data=st.data())
    def put_volume_objects(self, data: st.DataObject) -> None:
        """Claims, volumes, or what says more of them: new ones, and others of the same names."""
        drawn = volume_strategies.objects(self.world.namespaces)
        for manifest in data.draw(st.lists(drawn, min_size=1, max_size=6)):
            self.reference.put_object(manifest)
            self.engine.put_object(objects.kept(manifest))

    @precondition(lambda self: self.reference.objects)
    @rule(data=st.data())
    def delete_object(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.reference.objects)))
        kept = objects.kept(self.reference.objects[key])
        self.reference.delete_object(*key)
        self.engine.delete_object(kept.kind, kept.namespace, kept.name)

    # Pods

    def put_pod(self, pod: Manifest) -> None:
        self.reference.put_pod(pod)
        self.engine.put_pod(objects.pod(pod))

    def some_pod(self, data: st.DataObject) -> Manifest:
        return self.reference.pods[data.draw(st.sampled_from(sorted(self.reference.pods)))]

    def some_node_name(self, data: st.DataObject) -> str | None:
        """Mostly of a node that is there; any other, or None, for a pod that does not count."""
        known = st.sampled_from(sorted(self.reference.nodes) or strategies.NODES)
        other = st.none() | strategies.NODE_NAMES
        return data.draw(known if data.draw(st.integers(0, 5)) else other)

    @rule(data=st.data(), number=st.integers(0, 9))
    def put_new_pod(self, data: st.DataObject, number: int) -> None:
        """A pod that is new, or a replacement."""
        template = data.draw(st.sampled_from(self.pool))
        if data.draw(st.booleans()):
            template = admit(data.draw(strategies.pods(self.world, "template")))
            self.pool = [*self.pool[-7:], template]
        pod = template | {"metadata": template["metadata"] | {"name": f"p{number}"}}
        self.put_pod(bound(pod, self.some_node_name(data)))

    @precondition(lambda self: self.reference.pods)
    @rule(data=st.data())
    def bind_or_move_pod(self, data: st.DataObject) -> None:
        self.put_pod(bound(self.some_pod(data), self.some_node_name(data)))

    @precondition(lambda self: self.nominates and self.reference.pods)
    @rule(data=st.data(), priority=st.integers(-1, 1))
    def nominate_node_for_pod(self, data: st.DataObject, priority: int) -> None:
        """The pod waits for room on a node, against pods of priority 0 or not."""
        pod = bound(self.some_pod(data), None)
        ranked = pod | {"spec": pod["spec"] | {"priority": priority}}
        self.put_pod(ranked | {"status": {"nominatedNodeName": self.some_node_name(data)}})

    @precondition(lambda self: self.reference.pods)
    @rule(data=st.data())
    def relabel_pod(self, data: st.DataObject) -> None:
        """Not its revision, which was merged into its selectors when it was created."""
        pod, labels = self.some_pod(data), data.draw(strategies.pod_labels(self.world))
        labels.pop(strategies.REVISION, None)
        kept = {key: each for key, each in pod["metadata"]["labels"].items() if key not in LABELS}
        self.put_pod(with_metadata(pod, labels=kept | labels))

    @precondition(lambda self: self.reference.pods)
    @rule(data=st.data())
    def terminate_pod(self, data: st.DataObject) -> None:
        self.put_pod(with_metadata(self.some_pod(data), deletionTimestamp="2026-01-01T00:00:00Z"))

    @precondition(lambda self: self.reference.pods)
    @rule(
        data=st.data(),
        phase=st.sampled_from(("Running", "Succeeded", "Failed")),
        conditions=st.sampled_from(([], [{"type": "Ready", "status": "False"}])),
    )
    def change_phase(self, data: st.DataObject, phase: str, conditions: list[Manifest]) -> None:
        self.put_pod(self.some_pod(data) | {"status": {"phase": phase, "conditions": conditions}})

    @precondition(lambda self: self.reference.pods)
    @rule(data=st.data())
    def delete_pod(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.reference.pods)))
        self.reference.delete_pod(*key)
        self.engine.delete_pod(*key)

    @rule(data=st.data())
    def place_a_probe(self, data: st.DataObject) -> None:
        """Bind one where the engine puts it, as the service does all day."""
        probe = data.draw(st.sampled_from(self.probes))
        chosen = place(self.engine, objects.pod(probe, incoming=True))
        if isinstance(chosen, Placement):
            name = f"p{data.draw(st.integers(0, 9))}"
            self.put_pod(bound(with_metadata(probe, name=name), chosen.node_name))

    # Settings and history

    @rule(data=st.data())
    def configure(self, data: st.DataObject) -> None:
        config = data.draw(strategies.configs(self.world)) | self.config
        self.reference.config = config
        self.engine.configure(objects.config(config))

    @rule()
    def mark(self) -> None:
        self.marks = [*self.marks[-HISTORY:], (self.engine.mark(), self.reference.copy())]

    @precondition(lambda self: self.marks)
    @rule(data=st.data())
    def undo(self, data: st.DataObject) -> None:
        """Back to any mark; those after it are gone."""
        number = data.draw(st.integers(0, len(self.marks) - 1))
        mark, reference = self.marks[number]
        self.engine.undo(mark)
        self.reference = reference.copy()
        self.marks = self.marks[: number + 1]

    @precondition(lambda self: self.marks)
    @rule(data=st.data())
    def settle(self, data: st.DataObject) -> None:
        """What lies before a mark is final; the marks from there on still hold."""
        number = data.draw(st.integers(0, len(self.marks) - 1))
        self.engine.commit_until(self.marks[number][0])
        self.marks = self.marks[number:]

    @rule(data=st.data(), number=st.integers(0, PROBES - 1))
    def ask_about_another_pod(self, data: st.DataObject, number: int) -> None:
        probe = data.draw(strategies.pods(self.world, f"probe-{number}"))
        if self.world.has("named-node") and data.draw(st.booleans()):
            probe = bound(probe, data.draw(strategies.NODE_NAMES))
        self.probes[number] = admit(probe)

    @invariant()
    def answers_are_equal(self) -> None:
        for probe in self.probes if hasattr(self, "probes") else ():
            compare(self.engine, self.reference, probe)


def compare(engine: Cluster, reference: ReferenceCluster, manifest: Manifest) -> None:
    """Every door of the engine to one question, against the reference's answer."""
    want = reference.evaluate(manifest)
    pod = objects.pod(manifest, incoming=True)
    got = msgspec.to_builtins(explain(engine, pod))
    del got["semantics"], got["kubernetes"]
    told = got.pop("exemptions", [])
    assert differences(got, want) == []
    assert told == msgspec.to_builtins(summarize(engine, pod)).get("exemptions", [])
    compare_exemptions(told, interpod.exemptions(reference.view(), manifest))
    compare_placement(place(engine, pod), want)
    compare_summary(summarize(engine, pod), want, sorted(reference.nodes))
    for name in reference.nodes:
        if want["prefilter"] is None:
            verdicts = {plugin: by[name] for plugin, by in want["filters"].items() if name in by}
            assert check(engine, pod, name) == verdicts
    if want["feasible"]:
        kept = want["feasible"][-1]
        assert place(engine, pod, hint=kept).node_name == kept


def compare_exemptions(told: list[Manifest], want: list[tuple[Any, ...]]) -> None:
    fields = ("ownerNamespace", "rule", "topologyKey", "pods", "nodes")
    got = [tuple(each[name] for name in fields) for each in told]
    assert sorted((each[0] or "", *each[1:]) for each in got) == sorted(want)


def compare_placement(placement: Placement | Refusal, want: Manifest) -> None:
    if want["best"]:
        assert isinstance(placement, Placement)
        assert placement.node_name in want["best"]
        assert placement.score == want["total"][placement.node_name]
    else:
        assert isinstance(placement, Refusal)
        assert placement.message == want["message"]


def compare_summary(summary: Summary, want: Manifest, node_names: list[str]) -> None:
    """Each node counts for the reasons of the first plugin that rejects it."""
    assert summary.message == want["message"]
    assert summary.feasible_count == len(want["feasible"])
    assert summary.nodes == len(node_names)
    if want["prefilter"] or "prefilterNodes" in want:
        return
    counts: dict[str, Counter[str]] = {}
    for name in node_names:
        first = next((plugin for plugin, nodes in want["filters"].items() if name in nodes), "")
        if first:
            counts.setdefault(first, Counter()).update(want["filters"][first][name])
    assert summary.reasons == counts


def bound(pod: Manifest, node_name: str | None) -> Manifest:
    """The pod on a node; without one, pending."""
    spec = {name: value for name, value in pod["spec"].items() if name != "nodeName"}
    return pod | {"spec": spec | ({"nodeName": node_name} if node_name else {})}


def with_metadata(pod: Manifest, **fields: Any) -> Manifest:
    return pod | {"metadata": pod["metadata"] | fields}
