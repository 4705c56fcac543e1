"""Mistakes in the rules themselves, as they are evaluated over the replica."""

from service.engine.groups import gang_search as group_placement
from service.engine.plugins import inter_pod_affinity, pod_topology_spread
from service.engine.state.nodes.node_table import NodeTable
from service.engine.state.pods.classes import PodClass
from service.engine.state.pods.matchers import TermMatcher
from tests.concurrency.planted.registry import bug


@bug("A2", "inter_pod_affinity.forbidding_terms")
def anti_affinity_one_way_only(patch):
    """Placed pods' anti-affinity is not seen."""
    patch.setattr(inter_pod_affinity, "forbidding_terms", lambda pod_class: [])


@bug("A2", "TermMatcher.matches")
def daemons_exempt_from_each_other(patch):
    """Required anti-affinity is left out among daemons, too."""
    matches_pod = TermMatcher.matches

    def matches_no_daemon(self, subject):
        return subject.namespace not in self.daemons and matches_pod(self, subject)

    patch.setattr(TermMatcher, "matches", matches_no_daemon)


@bug("A15, A14", "TermMatcher.matches")
def daemons_not_exempt(patch):
    """The rules between daemons and other pods are not left out."""
    matches_pod = TermMatcher.matches

    def matches_all(self, subject):
        whole = TermMatcher(self.namespaces, self.selector, terminating_too=self.terminating_too)
        return matches_pod(whole, subject)

    patch.setattr(TermMatcher, "matches", matches_all)


@bug("A2", "pod_topology_spread.allowed_domains")
def spread_forgets_the_pod_itself(patch):
    """The skew is that before the pod comes."""
    allowed = pod_topology_spread.allowed_domains

    def allowed_without(rule, *, self_matches):
        return allowed(rule, self_matches=False)

    patch.setattr(pod_topology_spread, "allowed_domains", allowed_without)


@bug("A2", "PodClass.matches_all")
def every_pod_is_the_first(patch):
    """A pod need not match itself to be the first of its group."""
    patch.setattr(PodClass, "matches_all", lambda self, terms: True)


@bug("A1", "NodeTable.use")
def cpu_counted_once_per_node(patch):
    """Only the pods' number is counted, not what they request."""
    use = NodeTable.use

    def use_less(self, slot, amounts, scored, pods):
        use(self, slot, (), scored, pods)

    patch.setattr(NodeTable, "use", use_less)


@bug("A2", "NodeTable.use_ports")
def host_ports_not_held(patch):
    """Host ports of placed pods are not remembered."""
    patch.setattr(NodeTable, "use_ports", lambda self, slot, ports, pods: None)


@bug("P10, A2", "GroupSearch.verify")
def group_not_checked_whole(patch):
    """Members are checked when they are chosen only, not with all the others in place."""

    def believe(self, names):
        return [group_placement.Placement(name, 0) for name in names]

    patch.setattr(group_placement.GroupSearch, "verify", believe)
