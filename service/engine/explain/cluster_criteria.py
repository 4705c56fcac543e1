"""The criteria for comparing clusters in multi-cluster placement: a pod's rules and the load."""

from service.engine.cluster import Cluster
from service.engine.explain.totals import resource_totals
from service.engine.state.pods.spread import SpreadRule
from service.model.cluster.comparison import ClusterComparison, SpreadOverClusters
from service.model.pods.cluster_topology import CLUSTER_KEY
from service.model.pods.pod import Pod

_LOAD = ("cpu", "memory")


def compare_cluster(cluster: Cluster, pod: Pod) -> ClusterComparison:
    """Return this cluster's figures for the multi-cluster rules of a pod, stored or not."""
    pod_class = cluster.class_of(pod)
    template = pod_class.template
    rules = [(rule, True) for rule in template.hard_spread]
    rules += [(rule, False) for rule in template.soft_spread]
    subject = cluster.subject(pod_class)
    terms = [term for term in template.affinity if term.counter.key.name == CLUSTER_KEY]
    return ClusterComparison(
        stored=cluster.pod(pod.namespace, pod.name) is not None,
        used_share=used_share(cluster),
        spread=[
            SpreadOverClusters(
                max_skew=rule.max_skew,
                required=required,
                eligible=_includes_any_node(rule),
                pods=0 if rule.counter is None else int(rule.counter.counts.sum()),
                counts_itself=rule.counts_owner(subject),
            )
            for rule, required in sorted(rules, key=lambda ruled: ruled[0].index)
            if rule.key.name == CLUSTER_KEY
        ],
        affine=all(term.counter.total > 0 for term in terms) if terms else None,
        preferred=sum(
            term.weight * term.counter.total
            for term in template.preferred
            if term.counter.key.name == CLUSTER_KEY
        ),
    )


def used_share(cluster: Cluster) -> float:
    """Return the larger of the requested shares of cpu and memory, or 1 without nodes."""
    totals = resource_totals(cluster)
    load = [totals[name] for name in _LOAD if name in totals]
    return max(
        (resource.requested / resource.allocatable for resource in load if resource.allocatable),
        default=1.0,
    )


def _includes_any_node(rule: SpreadRule) -> bool:
    domains = rule.included_nodes.nodes_of.get(rule.key.name)
    return domains is not None and bool((domains.counts[:-1] > 0).any())
