"""Explanations: the verdict of every plugin on every node, for users and test vectors."""

from collections.abc import Collection
from typing import TypeVar

import msgspec
import numpy as np
from msgspec.structs import replace

from service.engine.cluster import Cluster
from service.engine.framework.plugin import Failure
from service.engine.placing.placement import profile_of, resolve_fallbacks
from service.engine.placing.refusal import (
    PrefilterNodes,
    PrefilterRejection,
    failures_of,
    prefilter,
    refuse,
)
from service.engine.profiles.profile import Profile
from service.engine.rules.culprits import Culprit, culprits
from service.engine.rules.exemptions import (
    Exemption,
    exemptions,
    fallback_exemptions,
)
from service.engine.state.nodes.columns import ALL, Ints, Mask
from service.engine.state.nodes.node_table import NodeTable
from service.engine.state.pods.classes import PodClass
from service.engine.state.volumes.matching import VolumeMatches
from service.model.cluster.cluster_config import ClusterConfig
from service.model.pods.annotated_rules import RulesOrigin, rules_from
from service.model.pods.pod import Pod

T = TypeVar("T")

Verdicts = dict[str, dict[str, list[str]]]
"""The reasons by plugin and node."""


class Prefilter(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A plugin whose PreFilter rejected every node."""

    plugin: str
    """The plugin."""
    code: str
    """Its verdict in Kubernetes' words."""
    reasons: list[str]
    """Its reasons."""


class Explanation(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The answer to `explain: Full`: what each plugin by itself says of every node."""

    prefilter: Prefilter | None
    """A plugin that rejected every node before they were filtered."""
    prefilter_nodes: list[str] | msgspec.UnsetType = msgspec.UNSET
    """The nodes that a plugin's PreFilter left, by name; absent if no plugin named any."""
    filters: Verdicts
    """The reasons by plugin and node, without the nodes that pass; the plugins in the order in which they filter."""
    unresolvable: dict[str, list[str]]
    """Nodes that no eviction could make feasible, with the plugins."""
    feasible: list[str]
    """Nodes that passed every filter, sorted."""
    scores: dict[str, dict[str, int]]
    """Normalised scores from 0 to 100, before weights, by plugin and node, of feasible nodes."""
    score_skipped: list[str]
    """Scoring plugins that had nothing to say of this pod."""
    total: dict[str, int]
    """Node to weighted sum of its scores."""
    best: list[str]
    """Nodes with the largest sum."""
    message: str | None
    """A sentence for people that says the same; null if there is nothing to say."""
    bindings: dict[str, dict[str, str]] | msgspec.UnsetType = msgspec.UNSET
    """Feasible node to claim to the volume that it would get there, or `provision` where that is still to be made.

    A caller who may not read all of the cluster sees `volume` in place of the name.
    Claims that have their volumes are left out; absent if the pod has no claims or no node is feasible."""
    kubernetes: str
    """The Kubernetes version whose kube-scheduler was followed."""
    semantics: str
    """The preset of rules that was applied: Kubernetes or DesignDocuments."""
    exemptions: list[Exemption] | msgspec.UnsetType = msgspec.UNSET
    """The rules that were left out; absent if none was."""
    rules_from: RulesOrigin | msgspec.UnsetType = msgspec.UNSET
    """The annotation from which rules of the pod are; absent if all are in its spec."""
    culprits: list[Culprit] | msgspec.UnsetType = msgspec.UNSET
    """What stands against the pod on the node that was asked about, rule by rule; absent if no node was."""


class Summary(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The answer to `explain: Summary`: how many nodes were first rejected for which reason."""

    message: str | None
    """A sentence for people that says the same; null if there is nothing to say."""
    feasible_count: int
    """How many nodes passed every filter."""
    nodes: int
    """How many nodes there are."""
    reasons: dict[str, dict[str, int]]
    """Plugin to reason to the number of nodes that it rejected first."""
    kubernetes: str
    """The Kubernetes version whose kube-scheduler was followed."""
    semantics: str
    """The preset of rules that was applied: Kubernetes or DesignDocuments."""
    exemptions: list[Exemption] | msgspec.UnsetType = msgspec.UNSET
    """The rules that were left out; absent if none was."""
    rules_from: RulesOrigin | msgspec.UnsetType = msgspec.UNSET
    """The annotation from which rules of the pod are; absent if all are in its spec."""


def explain(cluster: Cluster, pod: Pod) -> Explanation:
    """Explain how every plugin judges a pod on every node, without changing the cluster.

    Raises:
        UnknownSchedulerError: the pod's scheduler is not a profile of the cluster.
    """
    profile, stored = profile_of(cluster, pod), pod
    pod = resolve_fallbacks(cluster, stored)
    pod_class = cluster.class_of(pod)
    exempt = _left_out(cluster, stored, pod, profile)
    prefiltered = prefilter(cluster, pod_class, profile) if cluster.nodes.count else None
    if isinstance(prefiltered, PrefilterRejection):
        message = refuse(cluster, pod, profile).message
        return _rejection_explanation(prefiltered, message, cluster.config, exempt, pod)
    failures = failures_of(cluster, pod, profile)
    slots = _feasible_slots(cluster, failures, prefiltered)
    scores = _scores(cluster, pod_class, profile, slots)
    total = sum(
        (profile.weights[name] * vector for name, vector in scores.items()),
        np.zeros(len(slots), dtype=np.int64),
    )
    names = [_name(cluster.nodes, slot) for slot in slots]
    top = int(total.max(initial=0))
    refusal = None if len(slots) else refuse(cluster, pod, profile)
    return Explanation(
        prefilter=None,
        prefilter_nodes=msgspec.UNSET if prefiltered is None else sorted(prefiltered.names),
        filters=_verdicts(cluster.nodes, failures),
        unresolvable=_unresolvable(cluster.nodes, failures),
        feasible=sorted(names),
        scores={name: _by_name(names, vector) for name, vector in scores.items()},
        score_skipped=sorted(profile.named_if_skipped - scores.keys()) if len(slots) else [],
        total=_by_name(names, total),
        best=sorted(name for name, score in zip(names, total, strict=True) if score == top),
        message=None if refusal is None else refusal.message,
        bindings=_bindings(pod_class, profile, names, slots),
        kubernetes=cluster.config.kubernetes,
        semantics=cluster.config.semantics,
        exemptions=exempt,
        rules_from=rules_from(pod.spec) or msgspec.UNSET,
    )


def explain_node(cluster: Cluster, pod: Pod, node_name: str) -> Explanation:
    """Explain how every plugin judges a pod on one node, and what is to blame for a rejection.

    The cluster stays unchanged. Of the other nodes, only the best have scores and totals, for
    comparison.

    Raises:
        KeyError: there is no such node.
        UnknownSchedulerError: the pod's scheduler is not a profile of the cluster.
    """
    details = culprits(cluster, pod, node_name)
    whole = explain(cluster, pod)
    shown = {node_name, *whole.best}
    return replace(
        whole,
        filters={
            plugin: {node_name: by_node[node_name]}
            for plugin, by_node in whole.filters.items()
            if node_name in by_node
        },
        unresolvable={
            plugin: [node_name]
            for plugin, by_node in whole.unresolvable.items()
            if node_name in by_node
        },
        feasible=[by_node for by_node in whole.feasible if by_node == node_name],
        scores={plugin: _only(shown, by_node) for plugin, by_node in whole.scores.items()},
        total=_only(shown, whole.total),
        bindings=_only({node_name}, whole.bindings) if whole.bindings else whole.bindings,
        culprits=details,
    )


def _only(names: Collection[str], by_node: dict[str, T]) -> dict[str, T]:
    return {name: value for name, value in by_node.items() if name in names}


def summarize(cluster: Cluster, pod: Pod) -> Summary:
    """Count nodes by the first reason for rejecting each, without changing the cluster.

    Raises:
        UnknownSchedulerError: the pod's scheduler is not a profile of the cluster.
    """
    profile, stored = profile_of(cluster, pod), pod
    pod = resolve_fallbacks(cluster, stored)
    prefiltered = prefilter(cluster, cluster.class_of(pod), profile)
    feasible = 0
    if not isinstance(prefiltered, PrefilterRejection):
        failures = failures_of(cluster, pod, profile)
        feasible = len(_feasible_slots(cluster, failures, prefiltered))
    answer = refuse(cluster, pod, profile)
    return Summary(
        message=None if feasible else answer.message,
        feasible_count=feasible,
        nodes=cluster.nodes.count,
        reasons=answer.reasons,
        kubernetes=cluster.config.kubernetes,
        semantics=cluster.config.semantics,
        exemptions=_left_out(cluster, stored, pod, profile),
        rules_from=rules_from(pod.spec) or msgspec.UNSET,
    )


def _left_out(
    cluster: Cluster, stored: Pod, judged: Pod, profile: Profile
) -> list[Exemption] | msgspec.UnsetType:
    exempt = exemptions(cluster, cluster.class_of(judged), profile)
    exempt += fallback_exemptions(cluster, stored, judged, profile)
    return exempt or msgspec.UNSET


def _rejection_explanation(
    rejection: PrefilterRejection,
    message: str,
    config: ClusterConfig,
    left_out: list[Exemption] | msgspec.UnsetType,
    pod: Pod,
) -> Explanation:
    return Explanation(
        prefilter=Prefilter(
            plugin=rejection.plugin,
            code="UnschedulableAndUnresolvable",
            reasons=[rejection.reason],
        ),
        filters={},
        unresolvable={},
        feasible=[],
        scores={},
        score_skipped=[],
        total={},
        best=[],
        message=message,
        kubernetes=config.kubernetes,
        semantics=config.semantics,
        exemptions=left_out,
        rules_from=rules_from(pod.spec) or msgspec.UNSET,
    )


def _bindings(
    pod_class: PodClass, profile: Profile, names: list[str], slots: Ints
) -> dict[str, dict[str, str]] | msgspec.UnsetType:
    volumes = pod_class.volumes
    if volumes is None or not volumes.claims or not names or not profile.binds_claims:
        return msgspec.UNSET
    matches = VolumeMatches(volumes.table, volumes.unbound_claims())
    bindings = {
        name: matches.volumes_on(int(slot)) for name, slot in zip(names, slots, strict=True)
    }
    return dict(sorted(bindings.items()))


def _feasible_slots(
    cluster: Cluster, failures: dict[str, list[Failure]], prefiltered: PrefilterNodes | None
) -> Ints:
    nodes = cluster.nodes
    mask = nodes.alive.copy()
    for plugin_failures in failures.values():
        for failure in plugin_failures:
            mask &= ~failure.nodes
    slots: Ints = np.flatnonzero(mask)
    if prefiltered is None:
        return slots
    return np.array([s for s in slots if _name(nodes, s) in prefiltered.names], dtype=np.int64)


def _scores(
    cluster: Cluster, pod_class: PodClass, profile: Profile, slots: Ints
) -> dict[str, Ints]:
    """Return the normalized scores of the feasible slots by plugin, omitting skipped plugins."""
    nodes, answer = cluster.nodes, {}
    if not len(slots):
        return {}
    infeasible = np.full(nodes.size, -1, dtype=np.int64)
    infeasible[slots] = 0
    for plugin, _ in profile.scores:
        scores = plugin.normalized_scores(nodes, pod_class, infeasible)
        if scores is not None:
            answer[plugin.name] = scores[slots]
    return answer


def _verdicts(nodes: NodeTable, failures: dict[str, list[Failure]]) -> Verdicts:
    verdicts: Verdicts = {}
    for plugin, plugin_failures in failures.items():
        for failure in plugin_failures:
            for slot in np.flatnonzero(failure.nodes & nodes.alive):
                by_node = verdicts.setdefault(plugin, {})
                by_node.setdefault(_name(nodes, slot), []).append(failure.reason)
    return verdicts


def _unresolvable(nodes: NodeTable, failures: dict[str, list[Failure]]) -> dict[str, list[str]]:
    answer = {}
    for plugin, plugin_failures in failures.items():
        mask: Mask = np.zeros(nodes.size, dtype=np.bool_)
        for failure in plugin_failures:
            mask |= failure.nodes & failure.unresolvable
        names = sorted(_name(nodes, slot) for slot in np.flatnonzero(mask & nodes.alive[ALL]))
        if names:
            answer[plugin] = names
    return answer


def _name(nodes: NodeTable, slot: int | np.intp) -> str:
    node = nodes.nodes[int(slot)]
    assert node is not None
    return node.name


def _by_name(names: list[str], vector: Ints) -> dict[str, int]:
    return dict(sorted(zip(names, vector.tolist(), strict=True)))
