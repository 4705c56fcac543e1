"""What the scheduler sees of a cluster, and small accessors for manifests."""

from collections.abc import Iterable, Iterator
from copy import copy
from typing import Any, NamedTuple

Manifest = dict[str, Any]
Labels = dict[str, str]

NEWEST = "1.37"
"""The Kubernetes version that clusters follow which name none."""


class Verdict(NamedTuple):
    """Why a plugin rejects a node; unresolvable: no eviction there could help."""

    reasons: list[str]
    unresolvable: bool


def name_of(manifest: Manifest) -> str:
    return manifest["metadata"]["name"]


def namespace_of(pod: Manifest) -> str:
    return pod["metadata"].get("namespace") or "default"


def labels_of(manifest: Manifest) -> Labels:
    return manifest["metadata"].get("labels") or {}


def spec_of(manifest: Manifest) -> Manifest:
    return manifest.get("spec") or {}


def status_of(manifest: Manifest) -> Manifest:
    return manifest.get("status") or {}


def is_terminating(pod: Manifest) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))


def is_finished(pod: Manifest) -> bool:
    return status_of(pod).get("phase") in ("Succeeded", "Failed")


def priority_of(pod: Manifest) -> int:
    return spec_of(pod).get("priority") or 0


def nomination_of(pod: Manifest) -> str | None:
    """The node on which a pending pod waits for room."""
    if spec_of(pod).get("nodeName") or is_finished(pod) or is_terminating(pod):
        return None
    return status_of(pod).get("nominatedNodeName")


def affinity_of(pod: Manifest, kind: str) -> Manifest:
    """`kind`: nodeAffinity, podAffinity or podAntiAffinity."""
    return (spec_of(pod).get("affinity") or {}).get(kind) or {}


REQUIRED = (
    "requiredDuringSchedulingRequiredDuringExecution",
    "requiredDuringSchedulingIgnoredDuringExecution",
)
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class Settings:
    """The settings of a cluster that evaluation reads, with the preset resolved."""

    def __init__(self, config: Manifest) -> None:
        def part(name: str, documented: str) -> bool:
            if config.get(name) is None:
                return config.get("semantics") == "DesignDocuments"
            return config[name] == documented

        self.empty_term_matches_all = part("emptyNodeSelectorTerm", "MatchAll")
        self.affinity_per_term = part("requiredAffinityTerms", "PerTerm")
        self.empty_namespaces_mean_all = part("emptyNamespaceList", "AllNamespaces")
        features = config.get("features") or {}
        self.reads_namespace_selectors = bool(features.get("PodAffinityNamespaceSelector", True))
        self.weight_per_term = part("preferredTermWeight", "PerTerm")
        self.kubernetes = config.get("kubernetes", NEWEST)
        self.follows_code = config.get("kubernetesRules") != "Documented"
        self.negation_selects_all = self.follows_code and self.kubernetes in ("1.35", "1.36")
        self.daemon_namespaces = config.get("daemonNamespaces", ["kube-system"])
        self.hard_pod_affinity_weight = config.get("hardPodAffinityWeight", 1)
        self.symmetric_preferred_affinity = config.get("symmetricPreferredAffinity", True)
        self.symmetric_preferred_anti_affinity = config.get("symmetricPreferredAntiAffinity", True)
        self.scoring_strategy = config.get("scoringStrategy", "LeastAllocated")
        self.shape = (config.get("requestedToCapacityRatio") or {}).get("shape")
        self.default_spread = config.get("defaultTopologySpread", "List")
        self.default_constraints = config.get("defaultTopologySpreadConstraints") or []


class View:
    """Nodes, the pods that count on each, namespace labels, other objects and settings, at one moment.

    A pod counts if its node is known and it has not finished. A namespace that was never stored
    exists without labels.
    """

    def __init__(
        self,
        config: Manifest,
        namespaces: Iterable[Manifest],
        nodes: Iterable[Manifest],
        pods: Iterable[Manifest],
        objects: Iterable[Manifest] = (),
    ) -> None:
        self.settings = Settings(config)
        self.namespace_labels = {name_of(each): labels_of(each) for each in namespaces}
        self.nodes = {name_of(node): node for node in nodes}
        self.objects = list(objects)
        self.pods_on: dict[str, list[Manifest]] = {name: [] for name in self.nodes}
        self.uncounted: dict[str, list[Manifest]] = {}
        """Terminating pods by node that a dry run has removed, and that lower counts they were not in."""
        self.nominated: dict[str, list[Manifest]] = {name: [] for name in self.nodes}
        """The pods that wait for room on a node."""
        for pod in pods:
            node_name = spec_of(pod).get("nodeName")
            nominated = nomination_of(pod)
            if nominated in self.nodes:
                self.nominated[nominated].append(pod)
            if node_name in self.nodes and not is_finished(pod):
                self.pods_on[node_name].append(pod)

    def holding(self, node_name: str, pods: list[Manifest]) -> "View":
        """Return the same cluster with these pods on one of its nodes."""
        twin = copy(self)
        twin.pods_on = self.pods_on | {node_name: pods}
        return twin

    def reserving(self, node_name: str, pod: Manifest) -> "View | None":
        """Return the same cluster with the pods on a node for which room is kept from this pod, if there are any."""
        key = namespace_of(pod), name_of(pod)
        kept = [
            each | {"spec": spec_of(each) | {"nodeName": node_name}}
            for each in self.nominated[node_name]
            if priority_of(each) >= priority_of(pod) and (namespace_of(each), name_of(each)) != key
        ]
        return self.holding(node_name, [*self.pods_on[node_name], *kept]) if kept else None

    def placed(self) -> Iterator[tuple[Manifest, Labels]]:
        """Every pod that counts, with the labels of its node."""
        for node_name, pods in self.pods_on.items():
            labels = labels_of(self.nodes[node_name])
            for pod in pods:
                yield pod, labels
