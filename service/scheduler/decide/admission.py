"""Whether a pod may come in at all, whatever room there is for it on nodes."""

from collections.abc import Sequence

from msgspec.structs import replace

from service.engine import Cluster
from service.model.anti_affinity import covers_all_namespaces, required_terms, without_tautologies
from service.model.config import ClusterConfig
from service.model.errors import Denied
from service.model.manifest import PodManifest
from service.model.objects import Pod, PodAffinityTerm
from service.model.selectors import matches
from service.scheduler.decide.context import DecisionContext
from service.scheduler.replica.quotas import refusal
from service.scheduler.replica.replica import Replica

TOO_BROAD = "AntiAffinityTooBroad"
UNKNOWN_PRIORITY_CLASS = "UnknownPriorityClass"
PRIORITY_DIFFERS = "PriorityDiffers"
QUOTA_EXCEEDED = "QuotaExceeded"


def prioritized(
    context: DecisionContext, manifest: PodManifest, stored: PodManifest | None
) -> PodManifest:
    """Return the pod with the `spec.priority` of its priority class, if it states none itself.

    As long as a pod keeps its class, it keeps the priority that it was created with, even if the
    class changes. A pod of an unknown class is returned as it is: `admit` refuses it.
    """
    spec, old = manifest.pod.spec, stored.pod.spec if stored is not None else None
    name = spec.priority_class_name
    if not name:
        return manifest
    priority = context.replica.config.priority_of(name)
    stale = False
    if old is not None and old.priority is not None:
        kept = old.priority_class_name == name
        priority = old.priority if kept else priority
        stale = not kept and spec.priority == old.priority
    if priority is None or not (spec.priority is None or stale):
        return manifest
    return manifest.with_priority(priority, context.templates)


def admit(replica: Replica, pod: Pod, stored: Pod | None = None) -> None:
    """Refuse a pod that may not be created, changed or placed; observed facts are never judged.

    Raises:
        Denied: with the reason that clients see.
    """
    _admit_priority(replica.config, pod, stored)
    _admit_anti_affinity(replica, pod)
    admit_charge(replica, pod, stored)


def admit_charge(replica: Replica, pod: Pod, stored: Pod | None = None) -> None:
    """Refuse a pod, or a change of the stored one, that quotas have no room for.

    Raises:
        Denied: in Kubernetes' words.
    """
    refused = refusal(replica.ledger, replica.config, pod, stored)
    if refused is not None:
        raise Denied(QUOTA_EXCEEDED, refused)


def knows_scheduler(cluster: Cluster, pod: Pod) -> bool:
    """Whether the pod's `schedulerName` is one of the cluster's profiles."""
    return cluster.pipeline(pod.spec.scheduler_name) is not None


def _admit_priority(config: ClusterConfig, pod: Pod, stored: Pod | None) -> None:
    """Refuse an unknown class, and a priority that is neither the class's nor the stored pod's."""
    name, sent = pod.spec.priority_class_name, pod.spec.priority
    if not name:
        return
    priority = config.priority_of(name)
    if priority is None:
        raise Denied(UNKNOWN_PRIORITY_CLASS, f"spec.priorityClassName: there is no class {name}.")
    kept = stored.spec.priority if stored and stored.spec.priority_class_name == name else None
    if sent not in (None, priority, kept):
        raise Denied(
            PRIORITY_DIFFERS, f"spec.priority: class {name} has priority {priority}, not {sent}."
        )


def _admit_anti_affinity(replica: Replica, pod: Pod) -> None:
    config = replica.config
    if (
        pod.spec.affinity is None
        or not config.restrict_all_namespaces_anti_affinity
        or pod.namespace in config.trusted_namespaces
    ):
        return
    terms = [
        (path, term)
        for path, term in required_terms(pod.spec)
        if term.topology_key not in config.node_topology_keys
    ]
    for path, term in terms:
        alike = [each for _, each in terms if _differ_by_namespaces_only(each, term)]
        if _apply_to_all_namespaces(replica, pod.namespace, alike):
            raise Denied(
                TOO_BROAD,
                f"{path}: required anti-affinity against all namespaces may not use the topology "
                f"key {term.topology_key}, only {', '.join(config.node_topology_keys) or 'none'}.",
            )


def _differ_by_namespaces_only(one: PodAffinityTerm, other: PodAffinityTerm) -> bool:
    plain = {"namespaces": None, "namespace_selector": None}
    return replace(one, **plain) == replace(other, **plain)


def _apply_to_all_namespaces(replica: Replica, own: str, terms: Sequence[PodAffinityTerm]) -> bool:
    """Whether terms together apply to all namespaces: to every possible one, or to all there are.

    Selectors that match all present namespaces, and one without labels, too, mean the same as `{}`:
    they ask for the absence of a label that no namespace has, or one term matches what the other
    leaves out. `own` is the pod's namespace.
    """
    means_all = replica.config.empty_namespaces_mean_all
    if any(covers_all_namespaces(term, empty_list_means_all=means_all) for term in terms):
        return True
    selectors = [
        without_tautologies(term.namespace_selector)
        for term in terms
        if term.namespace_selector is not None
    ]
    if not any(matches(selector, {}) for selector in selectors):
        return False
    named = {name for term in terms for name in term.namespaces or ()}
    named |= {own for term in terms if not term.namespaces and term.namespace_selector is None}
    stored = (replica.get("Namespace", *key) for key in replica.keys("Namespace"))
    return all(
        each.manifest.name in named
        or any(matches(selector, each.manifest.labels) for selector in selectors)
        for each in stored
        if each is not None
    )
