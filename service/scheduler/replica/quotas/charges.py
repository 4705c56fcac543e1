"""How much a quota charges for a pod, in the cluster's current state."""

from collections.abc import Mapping

from service.engine import Cluster, OpportunityCosts
from service.model.core.quantity import MILLI, NANO
from service.model.pods.exclusive_terms import exclusive_keys
from service.model.pods.pod import Pod, PodSpec
from service.model.policies.quota import COUNT_PODS, PodCharge, ResourceQuota, pod_charge

CHARGES_MAX = 4_096
"""How many charges of pod specs are cached before all are dropped and recomputed."""

Nanos = dict[str, int]
"""The amount of each resource in nanos, by the resource names that quotas use."""


class Charges:
    """Computes charges of pods. Pods of one template share a charge; opportunity costs change with nodes."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[int, tuple[PodSpec, PodCharge]] = {}
        self._costs: OpportunityCosts | None = None

    def forget_costs(self) -> None:
        """Drop the opportunity costs, because nodes or the configuration have changed."""
        self._costs = None

    def charge(self, pod: Pod) -> PodCharge:
        """Return what a pod's manifest alone charges, and the properties that scopes read."""
        if pod.resize is not None:
            return pod_charge(pod.spec, pod.resize, self._cluster.resize_rules)
        # Specs are found by id; while a spec is cached here, no other object gets its id.
        cached = self._known.get(id(pod.spec))
        if cached is None:
            if len(self._known) >= CHARGES_MAX:
                self._known.clear()
            cached = self._known[id(pod.spec)] = (pod.spec, pod_charge(pod.spec))
        return cached[1]

    def covers(self, quota: ResourceQuota, pod: Pod) -> bool:
        """Return whether a pod matches all scopes of a quota."""
        if not quota.scopes:
            return True
        charge, means_all = self.charge(pod), self._cluster.config.empty_namespaces_mean_all
        return all(charge.is_in(scope, empty_list_means_all=means_all) for scope in quota.scopes)

    def amounts(self, quota: ResourceQuota, pod: Pod) -> Mapping[str, int]:
        """Return all charges except opportunity cost; a finished pod only counts as an object."""
        if not self.covers(quota, pod):
            return {}
        return {COUNT_PODS: NANO} if pod.finished else self.charge(pod).amounts

    def opportunity(self, quota: ResourceQuota, pod: Pod) -> Nanos:
        """Return the opportunity cost: the resources that other pods cannot use because of the pod."""
        if pod.finished or not quota.opportunity:
            return {}
        keys = self.exclusive_keys(pod)
        if not keys or not self.covers(quota, pod):
            return {}
        if self._costs is None:
            average = self._cluster.config.opportunity_cost_basis == "Average"
            self._costs = OpportunityCosts(self._cluster, average=average)
        taken = self._costs.cost(pod, keys)
        return {
            "opportunity.cpu": taken.cpu * MILLI,
            "opportunity.memory": taken.memory * NANO,
            "opportunity.nodes": taken.nodes * NANO,
        }

    def exclusive_keys(self, pod: Pod) -> tuple[str, ...]:
        """Return the topology keys by which a pod excludes all others; daemons are exempt."""
        config = self._cluster.config
        if pod.spec.affinity is None or pod.namespace in config.daemon_namespaces:
            return ()
        return exclusive_keys(
            pod.spec,
            empty_list_means_all=config.empty_namespaces_mean_all,
            reads_selectors=config.reads_namespace_selectors,
        )
