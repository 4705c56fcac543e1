"""Compiled topology spread constraints: the pods they count, and the nodes they count over."""

from collections.abc import Mapping
from dataclasses import dataclass

from service.engine.state.nodes.counters import DomainCounter, IncludedNodes
from service.engine.state.nodes.topology import TopologyKey
from service.engine.state.pods.matchers import NamespaceRule, Selector, Subject


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SpreadRule:
    """One constraint of one template."""

    index: int
    """The index of the constraint in the pod's list, or else in the profile's."""
    key: TopologyKey
    counter: DomainCounter | None
    """The matching pods on included nodes, by domain (for a soft hostname rule: by node).

    None if the selector is empty or null: such a constraint counts no placed pod."""
    needs_key: bool
    """Whether a node without the key gets no score at all; otherwise only this rule contributes
    nothing."""
    on_nodes: DomainCounter | None
    """The matching pods by node, if no key is needed: nodes without it count as a domain."""
    per_node: bool
    """Whether this is a soft rule on the hostname key, for which Kubernetes counts the pods of each
    node."""
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

    def counts_owner(self, pod: Subject) -> bool:
        """Return whether a pod that has the constraint adds to its skew."""
        reached = self.namespaces is None or self.namespaces.holds(
            pod.namespace, pod.namespace_labels
        )
        return reached and self.counts(pod.labels)
