"""Compiled topology spread constraints, with the pods they count and the nodes they include."""

from collections.abc import Mapping
from dataclasses import dataclass

from service.engine.state.nodes.counters import DomainCounter, IncludedNodes
from service.engine.state.nodes.topology import TopologyKey
from service.engine.state.pods.matchers import NamespaceRule, Selector, Subject


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SpreadRule:
    """One topology spread constraint of a template."""

    index: int
    """The index of the constraint in the pod's list, or else in the profile's."""
    key: TopologyKey
    counter: DomainCounter | None
    """The matching pods on included nodes, by domain (by node for a soft hostname rule), or None if
    the selector is empty or null, so that no placed pod counts."""
    needs_key: bool
    """Whether a node without the key gets no score at all; otherwise, only this rule contributes
    nothing."""
    on_nodes: DomainCounter | None
    """The matching pods by node, if no key is needed, so that nodes without it count as a domain.
    """
    per_node: bool
    """Whether this is a soft rule on the hostname key, where Kubernetes counts pods by node."""
    included_nodes: IncludedNodes
    max_skew: int
    min_domains: int
    selector: Selector | None
    namespaces: NamespaceRule | None = None
    """The namespaces whose pods count, or None for the pod's own namespace."""

    def counts(self, labels: Mapping[str, str]) -> bool:
        """Return whether a pod with these labels counts; an empty selector matches all pods."""
        return self.selector is not None and all(
            requirement.holds(labels) for requirement in self.selector
        )

    def uncounts(self, labels: Mapping[str, str]) -> bool:
        """Return whether kube-scheduler's preemption lowers a count as a terminating pod leaves.

        It was never counted. The pod is in the namespace of the pod that has the constraint; a
        constraint with other namespaces is none of Kubernetes.
        """
        return self.counter is not None and self.namespaces is None and self.counts(labels)

    def counts_owner(self, pod: Subject) -> bool:
        """Return whether the constraint counts a pod that carries it."""
        reached = self.namespaces is None or self.namespaces.holds(
            pod.namespace, pod.namespace_labels
        )
        return reached and self.counts(pod.labels)
