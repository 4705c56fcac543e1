"""A compiled topology spread constraint: which pods it counts, and over which nodes."""

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
    """The matching pods on eligible nodes, by domain (for a soft hostname rule: by node).

    None if the selector is empty or null: such a constraint counts no placed pod."""
    needs_key: bool
    """Whether a node without the key gets no score at all; if not, only this rule adds nothing to
    it."""
    on_nodes: DomainCounter | None
    """The matching pods by node, if no key is needed: nodes without it count as a domain."""
    per_node: bool
    """Whether this is a soft rule on the hostname key: Kubernetes then counts the pods on the node
    itself."""
    included_nodes: IncludedNodes
    max_skew: int
    min_domains: int
    selector: Selector | None
    namespaces: NamespaceRule | None = None
    """The namespaces whose pods count, or None if these are those of the pod's own namespace."""

    def counts(self, labels: Mapping[str, str]) -> bool:
        """Whether a pod with these labels adds to the skew; an empty selector matches all pods."""
        return self.selector is not None and all(each.holds(labels) for each in self.selector)

    def counts_owner(self, pod: Subject) -> bool:
        """Return whether a pod that has the constraint adds to its skew."""
        reached = self.namespaces is None or self.namespaces.holds(
            pod.namespace, pod.namespace_labels
        )
        return reached and self.counts(pod.labels)
