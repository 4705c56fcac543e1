"""A topology spread constraint, compiled: what it counts, where, and over which nodes."""

from dataclasses import dataclass

from service.engine.state.counters import DomainCounter, Eligibility
from service.engine.state.matchers import Selector
from service.engine.state.topology import TopologyKey


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SpreadRule:
    """One constraint of one template."""

    key: TopologyKey
    counter: DomainCounter | None
    """Matching pods on eligible nodes per domain (for a soft hostname rule: per node).

    None where the selector is empty or null: such a constraint counts no placed pod.
    """
    per_node: bool
    """A soft rule on the hostname key: Kubernetes counts the pods on the node itself."""
    eligibility: Eligibility
    max_skew: int
    min_domains: int
    selector: Selector | None

    def counts(self, labels: dict[str, str]) -> bool:
        """Whether a pod with these labels adds to the skew: an empty selector matches itself."""
        return self.selector is not None and all(each.holds(labels) for each in self.selector)
