"""Culprits: what excludes a pod from a node, down to the rule and the placed pods.

An explanation states in Kubernetes' words why a filter refuses a node. Fixing it requires more: the
rule and the pod it belongs to, the other pods in the domain, the skew, or the missing amount of a
resource.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import msgspec
import numpy as np

from service.engine.cluster import Cluster
from service.engine.framework.plugin import Blame, Headroom, Plugin
from service.engine.placing.placement import profile_of, resolve_fallbacks
from service.engine.placing.refusal import PrefilterRejection, prefilter
from service.engine.plugins import (
    node_affinity as selection,
    node_declared_features as features,
    pod_topology_spread as spreading,
)
from service.engine.rules.rule_paths import (
    affinity_rules,
    anti_affinity_rules,
    node_rules,
    owned_rules,
    spread_rules,
)
from service.engine.state.nodes.node_selectors import required_mask
from service.engine.state.nodes.topology import NO_DOMAIN
from service.engine.state.pods.classes import PodClass, Template
from service.engine.state.pods.spread import SpreadRule
from service.model.core.quantity import format_amount
from service.model.pods.declared_features import feature_needs
from service.model.pods.pod import Pod

PODS_MAX = 20
"""The number of pods named per culprit; further pods are only counted."""


class CulpritPod(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A placed pod because of which a rule refuses a node."""

    namespace: str
    """The pod's namespace."""
    name: str
    """The pod's name."""
    rule: str | None
    """The rule of this pod that keeps the other one out, by its place in this pod's manifest; null:
    the rule is the other pod's own."""


class CulpritDomain(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The topology domain of the node, as a rule counts it."""

    key: str
    """The topology key."""
    value: str | None
    """The node's value of it; null if the node does not have the label."""
    count: int
    """How many pods in the domain the rule is about."""
    skew: int | msgspec.UnsetType = msgspec.UNSET
    """The skew with the pod in the domain; absent if the rule is none of topology spread."""


class Culprit(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One thing that stands against a pod on one node."""

    plugin: str
    """The filter that refuses the node."""
    node: str
    """The node."""
    reason: str
    """The filter's reason in Kubernetes' words."""
    rule: str | None
    """The pod's own rule, by its place in the manifest or the configuration; null if it is a rule of
    the pods named here, or no rule of a pod at all."""
    pods: list[CulpritPod] = []
    """Placed pods without which the rule would let the pod in, by namespace and name; the first 20."""
    other_pods: int = 0
    """How many more such pods there are."""
    domain: CulpritDomain | msgspec.UnsetType = msgspec.UNSET
    """The domain that the rule is about; absent if it is about the node alone."""
    missing: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    """Resource to the quantity of it that the node lacks; absent if it lacks none."""


def culprits(cluster: Cluster, pod: Pod, node_name: str) -> list[Culprit]:
    """Return what excludes a pod from a node, plugin by plugin; empty if the pod fits there.

    Raises:
        KeyError: there is no such node.
        UnknownSchedulerError: the pod's scheduler is not a profile of the cluster.
    """
    return list(_CulpritSearch(cluster, resolve_fallbacks(cluster, pod), node_name).culprits())


class _CulpritSearch:
    """A search for the culprits that exclude one pod from one node."""

    def __init__(self, cluster: Cluster, pod: Pod, node_name: str) -> None:
        self._cluster = cluster
        self._nodes = cluster.nodes
        self._slot = cluster.nodes.slots[node_name]
        self._node_name = node_name
        self._profile = profile_of(cluster, pod)
        self._class = cluster.class_of(pod)
        self._paths = _paths_of(self._class.template)

    def culprits(self) -> Iterator[Culprit]:
        prefiltered = prefilter(self._cluster, self._class, self._profile)
        if isinstance(prefiltered, PrefilterRejection):
            yield self._culprit(prefiltered.plugin, prefiltered.reason)
            return
        for plugin in self._profile.filters:
            reasons = self._reasons(plugin)
            if reasons:
                yield from self._culprits_of(plugin, reasons)

    def _reasons(self, plugin: Plugin) -> list[str]:
        failures = plugin.failures(self._nodes, self._class)
        return [failure.reason for failure in failures if failure.nodes[self._slot]]

    def _culprits_of(self, plugin: Plugin, reasons: Sequence[str]) -> Iterator[Culprit]:
        """Yield the culprits of one filter in as much detail as it supports."""
        blames = plugin.blames(self._nodes, self._class, self._slot)
        details = [
            culprit
            for blame in blames or ()
            for culprit in self._blamed_culprits(plugin, blame, reasons)
        ]
        details = details or list(self._shortages(plugin, reasons))
        yield from details
        explained = {culprit.reason for culprit in details}
        for reason in reasons:
            if reason not in explained:
                yield from self._unmet_by_node(plugin, reason)

    # Rules about other pods

    def _blamed_culprits(
        self, plugin: Plugin, blame: Blame, reasons: Sequence[str]
    ) -> Iterator[Culprit]:
        """Yield a culprit for each place where the rule is declared."""
        key, lacks_pods = blame.key, blame.domain is None
        domain = key.cells[self._slot]
        members = [] if domain == NO_DOMAIN else self._members(blame, domain)
        if lacks_pods and members:
            return  # another term of the same requirement is unmet
        reason = blame.reason or "; ".join(reasons)
        for path in self._paths.get(id(blame.rule), [None]):
            yield self._culprit(
                plugin.name,
                reason,
                rule=path,
                members=[] if lacks_pods else members,
                blame=blame,
                domain=CulpritDomain(
                    key=key.name,
                    value=None if domain == NO_DOMAIN else key.values.values[domain],
                    count=len(members),
                    skew=_skew(blame, len(members)),
                ),
            )

    def _members(self, blame: Blame, domain: int) -> list[tuple[Pod, PodClass]]:
        """Return a domain's pods that the rule counts, with their classes."""
        counted = blame.counted
        wanted = {
            counted_class
            for counted_class in self._cluster.placed_classes()
            if blame.taken(counted_class)
        }
        return [
            (pod, pod_class)
            for slot in blame.key.members[domain]
            if counted is None or counted[slot]
            for pod, pod_class in self._cluster.placed_on(slot)
            if pod_class in wanted
        ]

    # Rules about the node alone

    def _shortages(self, plugin: Plugin, reasons: Sequence[str]) -> Iterator[Culprit]:
        """Yield a culprit for each amount that the node is short of, with the pods that hold it."""
        headrooms = plugin.headrooms(self._nodes, self._class)
        for room in headrooms.rooms if headrooms is not None else ():
            spare = int(room.spare[self._slot])
            runs_out = bool(room.resource) or room.taken is not None
            if spare >= 0 or not runs_out or room.reason not in reasons:
                continue
            missing = {room.resource: format_amount(room.resource, -spare)}
            yield self._culprit(
                plugin.name,
                room.reason,
                members=self._holders(room),
                missing=missing if room.resource else msgspec.UNSET,
            )

    def _holders(self, room: Headroom) -> list[tuple[Pod, PodClass]]:
        if room.taken is None or room.is_given:
            return []
        placed = self._cluster.placed_on(self._slot)
        return [(pod, pod_class) for pod, pod_class in placed if room.taken(pod_class)]

    def _unmet_by_node(self, plugin: Plugin, reason: str) -> Iterator[Culprit]:
        """Yield a culprit for each rule of the pod that the node does not satisfy by itself."""
        if plugin.name == selection.NAME:
            paths: Sequence[str | None] = self._unmet_selections() or [None]
        elif plugin.name == spreading.NAME:
            paths = self._constraints_without_domain() or [None]
        elif plugin.name == features.NAME:
            paths = self._undeclared_needs()
        else:
            paths = [None]
        for path in paths:
            yield self._culprit(plugin.name, reason, rule=path)

    def _unmet_selections(self) -> list[str]:
        template, row = self._class.template, np.array([self._slot])
        return [
            rule.path
            for rule, required in node_rules(template.spec, template.rules)
            if not required_mask(self._nodes, required, row)[0]
        ]

    def _undeclared_needs(self) -> list[str]:
        template, node = self._class.template, self._nodes.nodes[self._slot]
        assert node is not None
        undeclared = {*template.rules.features} - {*node.declared_features}
        needs = feature_needs(template.spec)
        return [need.path for need in needs if need.feature in undeclared]

    def _constraints_without_domain(self) -> list[str]:
        return [
            rule.path
            for rule, spread in spread_rules(self._class.template)
            if spread.key.cells[self._slot] == NO_DOMAIN
        ]

    def _culprit(
        self,
        plugin: str,
        reason: str,
        *,
        rule: str | None = None,
        members: Sequence[tuple[Pod, PodClass]] = (),
        blame: Blame | None = None,
        domain: CulpritDomain | msgspec.UnsetType = msgspec.UNSET,
        missing: dict[str, str] | msgspec.UnsetType = msgspec.UNSET,
    ) -> Culprit:
        ordered = sorted(members, key=lambda member: (member[0].namespace, member[0].name))
        return Culprit(
            plugin=plugin,
            node=self._node_name,
            reason=reason,
            rule=rule,
            pods=[
                CulpritPod(
                    namespace=pod.namespace, name=pod.name, rule=_owned_path(blame, pod_class)
                )
                for pod, pod_class in islice(ordered, PODS_MAX)
            ],
            other_pods=max(len(ordered) - PODS_MAX, 0),
            domain=domain,
            missing=missing,
        )


def _paths_of(template: Template) -> Mapping[int, list[str | None]]:
    """Map each compiled rule of a template, by object id, to all places where it is declared."""
    paths: dict[int, list[str | None]] = {}
    during_execution, ignored = affinity_rules(template, per_term=template.affinity_per_term)
    for rule, term in (*during_execution, *ignored, *anti_affinity_rules(template)):
        paths.setdefault(id(term), []).append(rule.path)
    for rule, spread in spread_rules(template):
        paths[id(spread)] = [rule.path]
    return paths


def _owned_path(blame: Blame | None, pod_class: PodClass) -> str | None:
    """Return where a blamed pod's manifest declares the rule, or None if another pod has it."""
    if blame is None:
        return None
    return next(
        (rule.path for rule, term in owned_rules(pod_class) if term is blame.rule),
        None,
    )


def _skew(blame: Blame, count: int) -> int | msgspec.UnsetType:
    if not isinstance(blame.rule, SpreadRule) or blame.may_stay is None:
        return msgspec.UNSET
    return blame.rule.max_skew + count - blame.may_stay
