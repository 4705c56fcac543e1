"""The cluster as the log makes it, revision by revision, and what the reference says of it."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import msgspec

from service.model.log.commit import Change
from tests.concurrency.checker.history import Key
from tests.reference import ReferenceCluster
from tests.reference.fit import allocatable_of
from tests.reference.pipeline import evaluate_view, filters_of
from tests.reference.quota import Quotas
from tests.reference.resources import requests
from tests.reference.view import Manifest, View, is_finished, labels_of, nomination_of, spec_of

OLDER = {"kubernetes": "1.35", "kubernetesRules": "Documented"}
"""What a stored configuration means that lacks these settings."""
RELATIONS = ("PodTopologySpread", "InterPodAffinity")
"""Filters that look at all nodes; the others look at one node and its pods."""


class State:
    """All objects after the changes so far."""

    def __init__(self) -> None:
        self.revision = 0
        self.bodies: dict[Key, tuple[int, bytes]] = {}
        self.cluster = ReferenceCluster(OLDER)
        self._quotas: dict[tuple[str, str], Manifest] = {}
        self.budgets: dict[tuple[str, str], Manifest] = {}
        """The disruption budgets."""
        self._in: defaultdict[str, dict[Key, None]] = defaultdict(dict)
        self._of: defaultdict[str, dict[Key, None]] = defaultdict(dict)
        self._view: View | None = None

    def apply(self, change: Change) -> None:
        self.revision = change.revision
        key = tuple(change.key)
        before = self.pod(key)
        if change.verb == "Put":
            self.bodies[key] = (change.revision, change.body)
            self._in[change.namespace][key] = self._of[change.kind][key] = None
            self._put(change.kind, msgspec.json.decode(change.body))
        else:
            self.bodies.pop(key, None)
            self._in[change.namespace].pop(key, None)
            self._of[change.kind].pop(key, None)
            self._delete(change)
        if change.kind == "Pod":
            self._move(before, self.pod(key))
        elif change.kind == "Namespace":
            self._label(change.name)
        else:
            self._view = None

    def _label(self, name: str) -> None:
        """Keep the view, as `_move` does: of a namespace it has the labels."""
        if self._view is not None:
            namespace = self.cluster.namespaces.get(name)
            if namespace is None:
                self._view.namespace_labels.pop(name, None)
            else:
                self._view.namespace_labels[name] = labels_of(namespace)

    def _move(self, before: Manifest | None, after: Manifest | None) -> None:
        """Keep the view, which is dear to make, while nothing changes but one pod."""
        if self._view is not None:
            for pods in self._counted_with(self._view, before):
                pods[:] = [each for each in pods if each is not before]
            for pods in self._counted_with(self._view, after):
                pods.append(after)

    def _counted_with(self, view: View, pod: Manifest | None) -> Iterator[list[Manifest]]:
        """The pods of its node, if it counts there, or those that wait for room on the same node."""
        node_name = spec_of(pod).get("nodeName") if pod is not None else None
        if pod is not None and node_name in view.nodes and not is_finished(pod):
            yield view.pods_on[node_name]
        nominated = None if pod is None else nomination_of(pod)
        if nominated in view.nodes:
            yield view.nominated[nominated]

    def _put(self, kind: str, manifest: Manifest) -> None:
        match kind:
            case "Cluster":
                self.cluster.config = OLDER | manifest
            case "Node":
                self.cluster.put_node(manifest)
            case "Namespace":
                self.cluster.put_namespace(manifest)
            case "Pod":
                self.cluster.put_pod(manifest)
            case "ResourceQuota":
                metadata = manifest["metadata"]
                self._quotas[metadata["namespace"], metadata["name"]] = manifest
            case "PodDisruptionBudget":
                metadata = manifest["metadata"]
                self.budgets[metadata["namespace"], metadata["name"]] = manifest

    def _delete(self, change: Change) -> None:
        match change.kind:
            case "Node":
                self.cluster.delete_node(change.name)
            case "Namespace":
                self.cluster.delete_namespace(change.name)
            case "Pod":
                self.cluster.delete_pod(change.namespace, change.name)
            case "ResourceQuota":
                del self._quotas[change.namespace, change.name]
            case "PodDisruptionBudget":
                del self.budgets[change.namespace, change.name]

    @property
    def view(self) -> View:
        if self._view is None:
            self._view = self.cluster.view()
        return self._view

    def documented_view(self) -> View:
        """The same under the documented rules, which hold for evictions by domains in any case."""
        twin = self.cluster.copy()
        twin.config = {**twin.config, "kubernetesRules": "Documented"}
        return twin.view()

    def quotas(self, namespace: str) -> Quotas:
        """Those of a namespace, with the pods there."""
        quotas = [quota for key, quota in self._quotas.items() if key[0] == namespace]
        keys = self.inside(namespace) if quotas else ()
        charged = [self.cluster.pods[key[1:]] for key in keys if key[0] == "Pod"]
        return Quotas(self.cluster.config, quotas, charged, self.cluster.nodes.values())

    def inside(self, namespace: str) -> Iterable[Key]:
        """The objects of a namespace."""
        return self._in[namespace]

    def of_kind(self, kind: str) -> Iterable[Key]:
        """All objects of a kind."""
        return self._of[kind]

    def pod(self, key: Key) -> Manifest | None:
        return self.cluster.pods.get(key[1:])

    def node_of(self, key: Key) -> str | None:
        pod = self.pod(key)
        return None if pod is None else spec_of(pod).get("nodeName")

    def without(self, key: Key) -> View:
        """The view with one pod taken out."""
        cluster = self.cluster.copy()
        cluster.pods.pop(key[1:], None)
        return cluster.view()

    def evaluate(self, pod: Manifest) -> dict[str, Any]:
        return evaluate_view(self.view, unbound(pod))


def unbound(pod: Manifest) -> Manifest:
    """As it was when it was to be placed."""
    spec = {name: value for name, value in spec_of(pod).items() if name != "nodeName"}
    return pod | {"spec": spec}


def objections(view: View, pod: Manifest, node_name: str) -> dict[str, list[str]]:
    """Why a pod may not go to a node, by plugin; empty if it may."""
    if node_name not in view.nodes:
        return {"NodeName": ["no such node"]}
    pod = unbound(pod)
    beside = view.reserving(node_name, pod)
    told = {} if beside is None else _objections(beside, pod, node_name)
    return told or _objections(view, pod, node_name)


def _objections(view: View, pod: Manifest, node_name: str) -> dict[str, list[str]]:
    alone, found = _alone(view, node_name), {}
    for plugin, rejections in filters_of(view).items():
        seen = view if plugin in RELATIONS else alone
        verdict = rejections(seen, pod).get(node_name)
        if verdict is not None:
            found[plugin] = verdict.reasons
    return found


def _alone(view: View, node_name: str) -> View:
    alone = object.__new__(View)
    alone.settings = view.settings
    alone.namespace_labels = view.namespace_labels
    alone.nodes = {node_name: view.nodes[node_name]}
    alone.objects = view.objects
    alone.pods_on = {node_name: view.pods_on[node_name]}
    return alone


def overcommitted(view: View, node_name: str) -> str | None:
    """A1: what a node has promised beyond what it has, counted by itself."""
    allocatable = _allocatable(msgspec.json.encode(view.nodes[node_name].get("status")))
    pods = view.pods_on[node_name]
    used = {"pods": len(pods)}
    for containers, number in Counter(_containers(pod) for pod in pods).items():
        for resource, amount in _requests(containers).items():
            used[resource] = used.get(resource, 0) + number * amount
    for resource, amount in used.items():
        if amount > allocatable.get(resource, 0):
            return f"{amount} of {allocatable.get(resource, 0)} {resource}"
    return None


def _containers(pod: Manifest) -> bytes:
    return msgspec.json.encode(spec_of(pod)["containers"])


@lru_cache(maxsize=4_096)
def _requests(containers: bytes) -> dict[str, int]:
    return requests({"spec": {"containers": msgspec.json.decode(containers)}})


@lru_cache(maxsize=4_096)
def _allocatable(status: bytes) -> dict[str, int]:
    return allocatable_of({"status": msgspec.json.decode(status)})
