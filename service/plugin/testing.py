"""Tests of the rules that hold for every plugin; a plugin's own tests inherit them.

    class TestMyPlugin(PluginSuite):
        plugin = MyPlugin
        pods = ({"nodeSelector": {"rack": "r1"}},)     # specs that concern the plugin

        def node(self, number):                        # a node that concerns the plugin
            ...

Every test uses small random clusters, the same ones in each run, and calls every method that the
plugin implements. The module also has the functions with which a plugin's own tests create and
place pods.
"""

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any, ClassVar

import msgspec
import numpy as np
from msgspec.structs import replace

from service.engine import Cluster, Placement, Refusal, explain, place
from service.engine.framework.events import ClusterEvent, node_events, object_events, pod_events
from service.engine.framework.plugin import (
    MAX_NODE_SCORE,
    Headroom,
    Headrooms,
    NodePlugin,
    Plugin,
    RelationPlugin,
)
from service.engine.placing.placement import candidates_of, profile_of, relation_vetoes
from service.engine.profiles.registry import known_plugins, register, unregister
from service.engine.ranking.rank_cache import Candidates
from service.engine.state.nodes.columns import ALL, Ints, Mask
from service.engine.state.pods.classes import PodClass
from service.engine.state.pods.importance import PODS as ONE_EACH
from service.model.cluster.cluster_config import ClusterConfig, parse_config
from service.model.cluster.versions.known import VERSIONS
from service.model.core.errors import InvalidManifest
from service.model.nodes.node import Node
from service.model.pods.pod import DEFAULT_SCHEDULER, Pod
from service.model.registry.manifests import TemplateCache, parse_declared, parse_node, parse_pod

__all__ = [
    "InvalidManifest",
    "Placement",
    "PluginSuite",
    "Refusal",
    "TemplateCache",
    "explain",
    "parse_config",
    "parse_pod",
    "place",
]

Manifest = dict[str, Any]

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
SEEDS = range(3)
NODES, PODS, CHANGES = 7, 16, 4

_APP: Manifest = {"labelSelector": {"matchLabels": {"app": "a"}}}
_TEMPLATES = TemplateCache()
_clusters: dict[object, list[Cluster]] = {}
"""The clusters of each suite and plugin."""
_registered: list[type[Plugin]] = []


def chance(seed: int) -> Random:
    """Create a random generator that yields the same numbers in every run."""
    return Random(seed)  # noqa: S311 - nothing secret comes of it


def _spread(key: str, when: str) -> Manifest:
    constraint = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": when, **_APP}
    return {"topologySpreadConstraints": [constraint]}


def _affinity(kind: str, key: str) -> Manifest:
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": key, **_APP}]}
    return {"affinity": {kind: terms}}


def _preference(kind: str, key: str, weight: int) -> Manifest:
    term = {"weight": weight, "podAffinityTerm": {"topologyKey": key, **_APP}}
    return {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}}


def _preferred_nodes(*values: str) -> Manifest:
    match = [{"key": "disk", "operator": "In", "values": [*values]}]
    term = {"weight": 7, "preference": {"matchExpressions": match}}
    return {
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}
    }


USUAL: tuple[Manifest, ...] = (
    {},
    {"nodeSelector": {"disk": "ssd"}},
    _preferred_nodes("hdd"),
    {"tolerations": [{"operator": "Exists"}]},
    *(_spread(key, when) for key in (HOST, ZONE) for when in ("DoNotSchedule", "ScheduleAnyway")),
    *(_affinity(kind, ZONE) for kind in ("podAffinity", "podAntiAffinity")),
    _affinity("podAntiAffinity", HOST),
    *(_preference("podAffinity", key, 3) for key in (HOST, ZONE)),
    *(_preference("podAntiAffinity", key, 5) for key in (HOST, ZONE)),
)
"""Specs that concern the plugins of Kubernetes."""


class PluginSuite:
    """The rules that hold for every plugin, tested on `plugin`."""

    plugin: ClassVar[type[Plugin]]
    arguments: ClassVar[Mapping[str, object]] = {}
    """The `args` of the plugin in `pluginConfig`."""
    pods: ClassVar[Sequence[Manifest]] = ()
    """Further pod specs, without containers, to test the plugin with."""
    objects: ClassVar[Sequence[Manifest]] = ()
    """Other objects that concern the plugin, such as claims and volumes, each with its kind."""

    def node(self, number: int) -> Manifest:  # noqa: ARG002 - for those that override it
        """Return metadata, spec, and status that concern the plugin, to be merged into a node."""
        return {}

    @classmethod
    def teardown_class(cls) -> None:
        """Unregister the plugins registered here, so that other tests see only installed ones."""
        while _registered:
            unregister(_registered.pop())

    # The rules

    def test_its_name_is_known_to_profiles(self) -> None:
        profile = self.config().scheduler_profiles()[DEFAULT_SCHEDULER]
        assert known_plugins()[self.plugin.name] is self.plugin
        assert (self.plugin.name in profile.filters) == self.plugin.filters
        assert (self.plugin.name in profile.weights) == bool(self.plugin.weight)

    def test_many_nodes_are_judged_as_one_by_one(self) -> None:
        for scene in self.scenes():
            plugin, nodes, rules = scene.own(self.plugin), scene.cluster.nodes, scene.rules
            if not isinstance(plugin, NodePlugin):
                continue
            slots = np.flatnonzero(nodes.alive)
            if plugin.filters:
                admitted = plugin.admits(nodes, rules, slots)
                assert admitted.dtype == np.bool_
                assert plugin.admits(nodes, rules, ALL)[slots].tolist() == admitted.tolist()
                assert [plugin.admits_one(nodes, rules, int(s)) for s in slots] == admitted.tolist()
                assert plugin.applies(rules) or admitted.all()
            if plugin.weight and plugin.scores_for(rules):
                scores, every = plugin.scores(nodes, rules, slots), plugin.scores(nodes, rules, ALL)
                assert (scores is None) == (every is None)
                if scores is None or every is None:
                    continue
                assert scores.dtype == np.int64
                assert every[slots].tolist() == scores.tolist()
                if plugin.reads_usage:
                    assert [plugin.score(nodes, rules, int(s)) for s in slots] == scores.tolist()

    def test_domains_are_judged_as_their_nodes_are(self) -> None:
        for scene in self.scenes():
            plugin, nodes = scene.own(self.plugin), scene.cluster.nodes
            if not isinstance(plugin, RelationPlugin):
                continue
            alive = np.flatnonzero(nodes.alive)
            for vetoes in plugin.vetoes(nodes, scene.pod_class) if plugin.filters else ():
                assert [vetoes.at(int(slot)) for slot in alive] == vetoes.nodes[alive].tolist()
            score = plugin.scoring(nodes, scene.pod_class) if plugin.weight else None
            candidates = scene.candidates()
            feasible = np.flatnonzero(candidates.ranks >= 0)
            if score is None or not len(feasible):
                continue
            on_nodes = score.on_nodes(candidates.ranks, 1)
            expected = [0] * len(feasible) if on_nodes is None else on_nodes[feasible].tolist()
            by_domain = score.by_domain(candidates.vacant)
            if by_domain is not None:
                assert [by_domain.at(int(slot)) for slot in feasible] == expected
            if score.terms:
                sums = sum(
                    (nodes.views.weighted_sum((term,)) for term in score.terms),
                    np.zeros(nodes.size, dtype=np.int64),
                )[feasible]
                least, span = int(sums.min()), int(sums.max() - sums.min())
                assert [plugin.scale(total - least, span) for total in sums.tolist()] == expected

    def test_a_node_is_refused_where_and_only_where_there_is_a_reason(self) -> None:
        for scene in self.scenes():
            plugin, nodes = scene.own(self.plugin), scene.cluster.nodes
            if not plugin.filters:
                continue
            passing = plugin.passing(nodes, scene.pod_class)
            refused: Mask = np.zeros(nodes.size, dtype=np.bool_)
            for failure in plugin.failures(nodes, scene.pod_class):
                assert failure.reason
                refused |= failure.nodes
            expected = nodes.alive if passing is None else passing & nodes.alive
            assert (~refused & nodes.alive).tolist() == expected.tolist()

    def test_headrooms_say_what_the_filter_says_when_pods_leave(self) -> None:
        for seed, scene in enumerate(self.scenes()):
            plugin, cluster = scene.own(self.plugin), scene.cluster
            headrooms = plugin.headrooms(cluster.nodes, scene.pod_class) if plugin.filters else None
            if headrooms is None:
                continue
            for slot in np.flatnonzero(cluster.nodes.alive).tolist():
                placed = [pod for pod, _ in cluster.placed_on(slot)]
                gone = chance(seed).sample(placed, chance(seed).randint(0, len(placed)))
                expected = _admitted_by(headrooms, cluster, slot, gone)
                mark = cluster.mark()
                for pod in gone:
                    cluster.delete_pod(pod.namespace, pod.name)
                if headrooms.unsure is None or not headrooms.unsure[slot]:
                    assert plugin.admits_at(cluster.nodes, scene.pod_class, slot) == expected
                cluster.undo(mark)

    def test_scores_are_from_0_to_100(self) -> None:
        for scene in self.scenes():
            scores = scene.scores(self.plugin)
            if scores is not None:
                feasible = scores[scene.candidates().ranks >= 0]
                assert ((feasible >= 0) & (feasible <= MAX_NODE_SCORE)).all()

    def test_a_placement_is_what_the_explanation_says(self) -> None:
        for scene in self.scenes():
            explanation, placed = explain(scene.cluster, scene.pod), place(scene.cluster, scene.pod)
            if isinstance(placed, Placement):
                assert placed.node_name in explanation.best
                assert placed.score == explanation.total[placed.node_name]
            else:
                assert not explanation.feasible
                assert placed.message == explanation.message

    def test_what_followed_every_change_knows_what_looking_anew_does(self) -> None:
        anew = {cluster: _loaded_anew(cluster, self.config()) for cluster in self.clusters()}
        for scene in self.scenes():
            other = Scene(anew[scene.cluster], scene.pod)
            assert place(scene.cluster, scene.pod) == place(other.cluster, scene.pod)
            assert _told(scene) == _told(other)

    def test_changes_that_are_undone_leave_nothing(self) -> None:
        for scene in self.scenes():
            before, mark = _told(scene), scene.cluster.mark()
            for number in range(2):
                other = replace(scene.pod, name=f"other-{number}")
                placed = place(scene.cluster, other)
                if isinstance(placed, Placement):
                    scene.cluster.put_pod(replace(other, node_name=placed.node_name))
            scene.cluster.undo(mark)
            assert _told(scene) == before

    def test_what_turns_a_rejection_is_told_as_a_hint(self) -> None:
        for seed, scene in enumerate(self.scenes()):
            before, reasons = scene.rejected(self.plugin)
            if not reasons:
                continue
            for events in scene.changes(chance(seed), self):
                after, _ = scene.rejected(self.plugin)
                if any(before.get(name, True) and not now for name, now in after.items()):
                    assert any(_helps(self.plugin, event, scene.pod, reasons) for event in events)

    # The clusters and pods that the rules are tested on

    def config(self) -> ClusterConfig:
        """Create a configuration of the oldest version that has the plugin, with it enabled."""
        if self.plugin.name not in known_plugins():
            register(self.plugin)
            _registered.append(self.plugin)
        name = self.plugin.name
        arguments = [{"name": name, "args": dict(self.arguments)}] if self.arguments else []
        profile = {
            "schedulerName": DEFAULT_SCHEDULER,
            "plugins": {"multiPoint": {"enabled": [{"name": name, "weight": self.plugin.weight}]}},
            "pluginConfig": arguments,
        }
        versions = (name for name, version in VERSIONS.items() if self.plugin.is_in(version))
        return parse_config({"kubernetes": next(versions), "profiles": [profile]})

    def scenes(self) -> Iterator["Scene"]:
        """Yield clusters with placed pods, each with a pod to test; tests must undo changes."""
        for cluster in self.clusters():
            for index, spec in enumerate((*USUAL, *self.pods)):
                yield Scene(cluster, _pod(f"asked-{index}", spec, chance(index)))

    def clusters(self) -> list[Cluster]:
        """Return the clusters, created once for all tests."""
        clusters = _clusters.get((type(self), self.plugin))
        if clusters is None:
            clusters = [self._cluster(chance(seed)) for seed in SEEDS]
            _clusters[type(self), self.plugin] = clusters
        return clusters

    def _cluster(self, draw: Random) -> Cluster:
        cluster, specs = Cluster(self.config()), [*USUAL, *self.pods]
        for number in range(NODES):
            cluster.put_node(_node(_drawn_node(number, draw), self.node(number)))
        for manifest in self.objects:
            cluster.put_object(parse_declared(manifest["kind"], manifest).kept)
        for number in range(PODS):
            pod = _pod(f"placed-{number}", draw.choice(specs), draw)
            placed = place(cluster, pod)
            if isinstance(placed, Placement):
                cluster.put_pod(replace(pod, node_name=placed.node_name))
            if number % 5 == 4:  # noqa: PLR2004 - now and then
                cluster.delete_pod(*draw.choice([(p.namespace, p.name) for p in cluster.pods()]))
        cluster.put_node(_node(_drawn_node(0, draw), self.node(0)))
        return cluster


class Scene:
    """A cluster, and a pod to test on it."""

    def __init__(self, cluster: Cluster, pod: Pod) -> None:
        self.cluster = cluster
        self.pod = pod

    @property
    def pod_class(self) -> PodClass:
        return self.cluster.class_of(self.pod)

    @property
    def rules(self) -> Any:
        return self.pod_class.template.rules

    def own(self, plugin: type[Plugin]) -> Plugin:
        """Return the plugin instance of the pod's profile."""
        profile = profile_of(self.cluster, self.pod)
        plugins = [*profile.filters, *(scorer for scorer, _ in profile.scores)]
        return next(candidate for candidate in plugins if isinstance(candidate, plugin))

    def candidates(self) -> Candidates:
        """Return the nodes that pass all filters."""
        profile = profile_of(self.cluster, self.pod)
        vetoes = relation_vetoes(self.cluster.nodes, self.pod_class, profile)
        return candidates_of(self.cluster, self.pod_class, profile, vetoes)

    def scores(self, plugin: type[Plugin]) -> Ints | None:
        """Return scores, shape (nodes,), int64, or None if the plugin does not score."""
        if not plugin.weight:
            return None
        infeasible = self.candidates().infeasible
        return self.own(plugin).normalized_scores(self.cluster.nodes, self.pod_class, infeasible)

    def rejected(self, plugin: type[Plugin]) -> tuple[dict[str, bool], list[str]]:
        """Return, for each node, whether the plugin rejects it, and list all its reasons."""
        nodes, reasons = self.cluster.nodes, list[str]()
        mask: Mask = np.zeros(nodes.size, dtype=np.bool_)
        for failure in self.own(plugin).failures(nodes, self.pod_class) if plugin.filters else ():
            if (failure.nodes & nodes.alive).any():
                reasons.append(failure.reason)
            mask |= failure.nodes
        return {name: bool(mask[slot]) for name, slot in nodes.slots.items()}, reasons

    def changes(self, draw: Random, suite: PluginSuite) -> Iterator[list[ClusterEvent]]:
        """Make changes one by one, and undo each; yield the cluster events of each change."""
        cluster, mark = self.cluster, self.cluster.mark()
        placed = [pod for pod in cluster.pods() if pod.node_name is not None]
        for pod in draw.sample(placed, min(CHANGES, len(placed))):
            cluster.delete_pod(pod.namespace, pod.name)
            yield pod_events(pod, None)
            cluster.undo(mark)
        for pod in draw.sample(placed, min(CHANGES, len(placed))):
            specs = [*USUAL, *suite.pods]
            other = _pod(pod.name, draw.choice(specs), draw)
            changed = replace(other, node_name=pod.node_name)
            cluster.put_pod(changed)
            yield pod_events(pod, changed)
            cluster.undo(mark)
        name = draw.choice(list(cluster.nodes.slots))
        before = cluster.node(name)
        cluster.delete_node(name)
        yield node_events(before, None)
        cluster.undo(mark)
        for number in draw.sample(range(NODES + 1), CHANGES):
            node = _node(_drawn_node(number, draw), suite.node(draw.randrange(NODES)))
            before = cluster.node(node.name)
            cluster.put_node(node)
            yield node_events(before, node)
            cluster.undo(mark)
        for kept in list(cluster.objects):
            cluster.delete_object(kept.kind, kept.namespace, kept.name)
            yield object_events(kept, None)
            cluster.undo(mark)
        arrival = replace(_pod("arrival", draw.choice(USUAL), draw), node_name=name)
        cluster.put_pod(arrival)
        yield pod_events(None, arrival)
        cluster.undo(mark)


def _loaded_anew(cluster: Cluster, config: ClusterConfig) -> Cluster:
    """Create a cluster with the same objects, each put once."""
    made = Cluster(config)
    for node in cluster.nodes.nodes:
        if node is not None:
            made.put_node(node)
    for kept in cluster.objects:
        made.put_object(kept)
    for pod in cluster.pods():
        made.put_pod(pod)
    return made


def _told(scene: Scene) -> object:
    return msgspec.to_builtins(explain(scene.cluster, scene.pod))


def _admitted_by(headrooms: Headrooms, cluster: Cluster, slot: int, gone: Sequence[Pod]) -> bool:
    """Return whether a node has room by a filter's headrooms once the pods in `gone` have left it."""
    for room in headrooms.rooms:
        taken = sum(_taken(room, cluster, slot, pod) for pod in gone)
        if room.spare[slot] + (-taken if room.is_given else taken) < 0:
            return False
    return True


def _taken(room: Headroom, cluster: Cluster, slot: int, pod: Pod) -> int:
    pod_class = cluster.class_of(pod)
    if room.resource:
        return dict(pod_class.template.use.amounts).get(
            room.resource, int(room.resource == ONE_EACH)
        )
    counted = room.counted is None or room.counted[slot]
    return room.taken(pod_class) if room.taken is not None and counted else 0


def _helps(plugin: type[Plugin], event: ClusterEvent, pod: Pod, reasons: list[str]) -> bool:
    """Return whether the plugin's hints would make the queue retry the pod after an event."""
    if event.change not in plugin.events or not plugin.helps(event, pod, reasons):
        return False
    topics, labels = plugin.topics(pod, reasons), plugin.labels_of(event)
    return topics is None or labels is None or not topics.isdisjoint(labels)


def _drawn_node(number: int, draw: Random) -> Manifest:
    """Draw a random node with something for each of Kubernetes' plugins, and room for few pods."""
    labels = {HOST: f"n{number}", "disk": draw.choice(("ssd", "hdd"))}
    if draw.random() < 0.9:  # noqa: PLR2004 - most nodes are in a zone
        labels[ZONE] = draw.choice("abc")
    taint = {"key": "t", "effect": draw.choice(("NoSchedule", "PreferNoSchedule"))}
    spec = {
        "unschedulable": draw.random() < 0.1,  # noqa: PLR2004
        "taints": [taint] if draw.random() < 0.3 else [],  # noqa: PLR2004
    }
    image = {"names": [f"image-{draw.randrange(3)}"], "sizeBytes": 500_000_000}
    amounts = {"cpu": str(draw.randrange(2, 6)), "memory": "4Gi", "pods": "4"}
    return {
        "metadata": {"name": f"n{number}", "labels": labels},
        "spec": spec,
        "status": {"allocatable": amounts, "images": [image]},
    }


def _node(drawn: Manifest, more: Manifest) -> Node:
    return parse_node(_merged(drawn, more)).node


def _merged(one: Any, other: Any) -> Any:
    if not isinstance(one, dict) or not isinstance(other, dict):
        return other
    return one | {key: _merged(one.get(key), value) for key, value in other.items()}


def _pod(name: str, spec: Manifest, draw: Random) -> Pod:
    container: Manifest = {
        "name": "main",
        "image": f"image-{draw.randrange(3)}",
        "resources": {"requests": {"cpu": f"{draw.randrange(1, 9)}00m", "memory": "300Mi"}},
    }
    if draw.random() < 0.2:  # noqa: PLR2004
        container["ports"] = [{"containerPort": 80, "hostPort": 80}]
    metadata = {"name": name, "namespace": "default", "labels": {"app": draw.choice("ab")}}
    manifest = {"metadata": metadata, "spec": {"containers": [container], **spec}}
    return parse_pod(msgspec.json.encode(manifest), _TEMPLATES, to_place=True).pod
