"""Whether a pod may come in at all, whatever room there is for it on nodes, and what it becomes then.

There is one way for all pods, whether they are written, placed or simulated: first something may be
merged into them, then they are judged. What will be refused is left as it is: the judgement says why.
"""

from collections.abc import Callable, Sequence
from typing import cast

from msgspec.structs import replace

from service.engine import Cluster
from service.model.configuration.config import ClusterConfig
from service.model.errors import Denied, InvalidManifest
from service.model.kinds_kept_for_rules.object_kept_for_rules import KeptObject
from service.model.kinds_kept_for_rules.runtime_classes import (
    RUNTIME_CLASS,
    WITHOUT_CLASS,
    RuntimeClassBody,
    RuntimeClassMerge,
    merge_of,
    read_by_runtime_class,
)
from service.model.kinds_kept_for_rules.volume_kinds import PersistentVolumeClaimBody
from service.model.manifests.manifest import KeptManifest, PodManifest
from service.model.objects.anti_affinity_to_all_pods import (
    covers_all_namespaces,
    required_terms,
    without_tautologies,
)
from service.model.objects.pod_resource_requests import requirements
from service.model.objects.pods_and_nodes import Pod, PodAffinityTerm, PodSpec, Quantities
from service.model.objects.selectors import matches
from service.model.quotas_and_limits.limit_ranges import (
    LIMIT_RANGE,
    LimitRangeBody,
    claim_violations,
    defaults_of,
    violations,
)
from service.scheduler.decide.context import DecisionContext
from service.scheduler.protocol.callers import Caller
from service.scheduler.replica.quotas import refusal
from service.scheduler.replica.replica import Replica

UNKNOWN_SCHEDULER = "UnknownScheduler"
TOO_BROAD = "AntiAffinityTooBroad"
UNKNOWN_PRIORITY_CLASS = "UnknownPriorityClass"
PRIORITY_DIFFERS = "PriorityDiffers"
PREEMPTION_POLICY_DIFFERS = "PreemptionPolicyDiffers"
UNKNOWN_RUNTIME_CLASS = "UnknownRuntimeClass"
RUNTIME_CLASS_CONFLICT = "RuntimeClassConflict"
LIMIT_RANGE_VIOLATED = "LimitRangeViolated"
QUOTA_EXCEEDED = "QuotaExceeded"
DEVICE_CLAIMS = "DeviceClaimsRefused"
ADMITTING_KINDS = frozenset({LIMIT_RANGE.kind, RUNTIME_CLASS.kind})
"""The kinds of objects by which pods are judged, and by which something is merged into them."""


def admit(
    replica: Replica, pod: Pod, stored: Pod | None = None, *, was_admitted: bool = False
) -> None:
    """Refuse a pod that may not be created, changed or placed; observed facts are never judged.

    What Kubernetes judges only at the creation of a pod is judged again if the fields change that
    it reads; not of a pod that has been through the admission of an API server.

    Raises:
        Denied: with the reason that clients see.
    """
    config = replica.cluster.config
    _admit_device_claims(config, pod)
    _admit_priority(config, pod, stored)
    _admit_anti_affinity(replica, config, pod)
    if not was_admitted and not ADMITTING_KINDS.isdisjoint(replica.cluster.objects.kinds):
        _admit_by_objects(replica.cluster, pod, stored)
    admit_charge(replica, pod, stored)


def _admit_by_objects(cluster: Cluster, pod: Pod, stored: Pod | None) -> None:
    if differs(pod, stored, read_by_runtime_class):
        _admit_runtime_class(cluster, pod)
    if differs(pod, stored, requirements):
        admit_limits(cluster, pod)


def admit_charge(replica: Replica, pod: Pod, stored: Pod | None = None) -> None:
    """Refuse a pod, or a change of the stored one, that quotas have no room for.

    Raises:
        Denied: in Kubernetes' words.
    """
    config = replica.cluster.config
    if not (replica.ledger.accounts or config.limited_resources):
        return
    refused = refusal(replica.ledger, config, pod, stored)
    if refused is not None:
        raise Denied(QUOTA_EXCEEDED, refused)


def knows_scheduler(cluster: Cluster, pod: Pod) -> bool:
    """Whether the pod's `schedulerName` is one of the cluster's profiles."""
    return pod.spec.scheduler_name in cluster.profiles


def unknown_scheduler(cluster: Cluster, pod: Pod) -> Denied:
    """Make the refusal of a pod whose `schedulerName` is no profile."""
    known = ", ".join(sorted(cluster.config.scheduler_profiles()))
    return Denied(
        UNKNOWN_SCHEDULER,
        f"spec.schedulerName: {pod.spec.scheduler_name} is no profile; known are {known}.",
    )


def limit_ranges(cluster: Cluster, namespace: str) -> list[LimitRangeBody]:
    """Return the limit ranges of a namespace, by their names."""
    found = cluster.objects.within(LIMIT_RANGE.kind, namespace)
    return [cast("LimitRangeBody", found[name].body) for name in sorted(found)]


def admit_limits(cluster: Cluster, pod: Pod) -> None:
    """Refuse a pod that asks for more or less than a limit range of its namespace allows.

    Raises:
        Denied: in Kubernetes' words, with the fields of the pod.
    """
    for each in limit_ranges(cluster, pod.namespace):
        _refuse_violations(violations(pod.spec, each))


def admit_claim(
    cluster: Cluster,
    claim: KeptObject[PersistentVolumeClaimBody],
    stored: KeptObject[PersistentVolumeClaimBody] | None = None,
) -> None:
    """Refuse a claim, if what it asks for is new, that a limit range does not allow.

    Raises:
        Denied: in Kubernetes' words, with the fields of the claim.
    """
    asked = _requests_of(claim)
    if stored is not None and asked == _requests_of(stored):
        return
    for each in limit_ranges(cluster, claim.namespace):
        _refuse_violations(claim_violations(asked, each))


def _requests_of(claim: KeptObject[PersistentVolumeClaimBody]) -> Quantities:
    resources = claim.body.spec.resources
    return (resources.requests if resources else None) or {}


def _refuse_violations(found: list[str]) -> None:
    if found:
        raise Denied(LIMIT_RANGE_VIOLATED, "; ".join(found))


def differs(pod: Pod, stored: Pod | None, read: Callable[[PodSpec], object]) -> bool:
    """Whether a pod is new, or says something else than the stored one in what is read of it."""
    if stored is None:
        return True
    return pod.spec is not stored.spec and read(pod.spec) != read(stored.spec)


def has_runtime_classes(cluster: Cluster) -> bool:
    """Whether any RuntimeClass is kept; else none are expected to be."""
    return bool(cluster.objects.having(RuntimeClassBody))


def runtime_class_merge(cluster: Cluster, pod: Pod) -> RuntimeClassMerge | None:
    """Return what the pod's runtime class has merged into it; None if there is no such class."""
    name = pod.spec.runtime_class_name
    if not name:
        return WITHOUT_CLASS
    found = cluster.objects.having(RuntimeClassBody).get(("", name))
    return None if found is None else merge_of(found.body)


def _admit_runtime_class(cluster: Cluster, pod: Pod) -> None:
    """Refuse an unknown runtime class, and a pod that contradicts its own."""
    if not has_runtime_classes(cluster):
        return
    merge = runtime_class_merge(cluster, pod)
    if merge is None:
        raise Denied(
            UNKNOWN_RUNTIME_CLASS,
            "spec.runtimeClassName: pod rejected: "
            f'RuntimeClass "{pod.spec.runtime_class_name}" not found',
        )
    conflict = merge.conflict(pod.spec)
    if conflict is not None:
        raise Denied(RUNTIME_CLASS_CONFLICT, conflict)


def _admit_device_claims(config: ClusterConfig, pod: Pod) -> None:
    """Refuse a pod that needs devices, unless the cluster says that they do not matter."""
    if pod.spec.resource_claims and config.device_claims == "Refuse":
        raise Denied(
            DEVICE_CLAIMS,
            "spec.resourceClaims: pods with claims to devices are refused here, by the setting "
            "deviceClaims: Refuse.",
        )


def _admit_priority(config: ClusterConfig, pod: Pod, stored: Pod | None) -> None:
    """Refuse an unknown class, and what is neither what the class says nor what the stored pod has."""
    name, sent = pod.spec.priority_class_name, pod.spec
    if not name:
        return
    found = config.priority_class(name)
    if found is None:
        raise Denied(UNKNOWN_PRIORITY_CLASS, f"spec.priorityClassName: there is no class {name}.")
    old = stored.spec if stored and stored.spec.priority_class_name == name else None
    if sent.priority not in (None, found.value, old and old.priority):
        raise Denied(
            PRIORITY_DIFFERS,
            f"spec.priority: class {name} has priority {found.value}, not {sent.priority}.",
        )
    if sent.preemption_policy not in (found.preemption_policy, old and old.preemption_policy):
        raise Denied(
            PREEMPTION_POLICY_DIFFERS,
            f"spec.preemptionPolicy: class {name} has {found.preemption_policy}, "
            f"not {sent.preemption_policy}.",
        )


def _admit_anti_affinity(replica: Replica, config: ClusterConfig, pod: Pod) -> None:
    rules = pod.spec.affinity.pod_anti_affinity if pod.spec.affinity else None
    if (
        rules is None
        or not (
            rules.required_during_scheduling_ignored_during_execution
            or rules.required_during_scheduling_required_during_execution
        )
        or not config.restrict_all_namespaces_anti_affinity
        or pod.namespace in config.trusted_namespaces
    ):
        return
    terms = [
        (path, term)
        for path, term in required_terms(
            pod.spec, reads_selectors=config.features.pod_affinity_namespace_selector
        )
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


_PLAIN = {
    "namespaces": None,
    "namespace_selector": None,
    "except_namespace_selector": None,
    "max_per_domain": None,
}
"""What tells no terms apart here: rules that together close all namespaces may each leave out some."""


def _differ_by_namespaces_only(one: PodAffinityTerm, other: PodAffinityTerm) -> bool:
    return replace(one, **_PLAIN) == replace(other, **_PLAIN)


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


def was_admitted(sent: PodManifest | KeptManifest, caller: Caller) -> bool:
    """Whether an object has been through the admission of an API server already.

    Then it has a uid, and whoever passes it on may state facts: others could invent a uid.
    """
    return bool(sent.uid) and caller.may("observe", sent.namespace)


def as_created(context: DecisionContext, sent: PodManifest, *, was_admitted: bool) -> PodManifest:
    """Return a pod as its creation makes it.

    Raises:
        InvalidManifest: what is merged into it contradicts what it says itself.
    """
    created = sent.created_now(context.templates) if sent.template.label_keys else sent
    config = context.replica.cluster.config
    name = created.pod.spec.priority_class_name
    if not name and config.priority_classes and not was_admitted:
        name = config.default_priority_class() or ""
    if name:
        created = prioritized(context, created, name, None)
    if was_admitted or ADMITTING_KINDS.isdisjoint(context.replica.cluster.objects.kinds):
        return created
    return _merged(context, created)


def as_updated(
    context: DecisionContext, sent: PodManifest, stored: PodManifest, *, was_admitted: bool
) -> PodManifest:
    """Return an update of a pod with what was merged into the stored one when that was created.

    Where it says something else than the stored pod, it gets what a new pod would get.

    Raises:
        InvalidManifest: what is merged into it contradicts what it says itself.
    """
    updated = sent.keeping_terms(stored, context.templates)
    old, name = stored.pod.spec, updated.pod.spec.priority_class_name
    if not name and old.priority_class_name == context.replica.config.default_priority_class():
        name = old.priority_class_name
    if name:
        updated = prioritized(context, updated, name, old)
    return updated if was_admitted else _merged(context, updated, stored.pod)


def _merged(context: DecisionContext, pod: PodManifest, stored: Pod | None = None) -> PodManifest:
    """Return a pod with the defaults of its namespace and what its runtime class adds.

    That a pod is on a node is a fact, so one that contradicts what is added stays as it is.
    """
    if ADMITTING_KINDS.isdisjoint(context.replica.cluster.objects.kinds):
        return pod
    try:
        full = _with_defaults(context, pod) if differs(pod.pod, stored, requirements) else pod
        is_new = differs(pod.pod, stored, _added_by_runtime_class)
        return _with_runtime_class(context, full) if is_new else full
    except InvalidManifest:
        if pod.pod.node_name is None:
            raise
        return pod


def _added_by_runtime_class(spec: PodSpec) -> object:
    return read_by_runtime_class(spec), spec.tolerations


def _with_defaults(context: DecisionContext, pod: PodManifest) -> PodManifest:
    for each in limit_ranges(context.replica.cluster, pod.namespace):
        defaults = defaults_of(each)
        if defaults is not None:
            pod = pod.amended(defaults, context.templates)
    return pod


def _with_runtime_class(context: DecisionContext, pod: PodManifest) -> PodManifest:
    """Return a pod with what its runtime class adds, unless that contradicts the pod."""
    if not pod.pod.spec.runtime_class_name:
        return pod
    merge = runtime_class_merge(context.replica.cluster, pod.pod)
    if merge is None or merge.conflict(pod.pod.spec) is not None:
        return pod
    return pod.amended(merge, context.templates)


def prioritized(
    context: DecisionContext, manifest: PodManifest, name: str, old: PodSpec | None
) -> PodManifest:
    """Return a pod with what the priority class of this name gives it, unless it says so itself.

    As long as a pod keeps its class, it keeps the priority that it was created with, even if the
    class changes. A pod of an unknown class gets nothing.
    """
    spec, config = manifest.pod.spec, context.replica.config
    kept = old if old is not None and old.priority_class_name == name else None
    stale = old is not None and kept is None and spec.priority == old.priority is not None
    fields = _given(config, name, kept)
    stated = spec.priority is not None and not stale
    if stated or fields.get("priority") == spec.priority:
        fields.pop("priority", None)
    if fields.get("preemptionPolicy") == spec.preemption_policy or (
        manifest.states("preemptionPolicy") and not stale
    ):
        fields.pop("preemptionPolicy", None)
    if spec.priority_class_name != name:
        fields["priorityClassName"] = name
    return manifest.with_fields(fields, context.templates) if fields else manifest


def _given(config: ClusterConfig, name: str, kept: PodSpec | None) -> dict[str, object]:
    """What a class gives to a pod, or has given to the stored one."""
    found = config.priority_class(name)
    if kept is not None and kept.priority is not None:
        return {"priority": kept.priority, "preemptionPolicy": kept.preemption_policy}
    if found is None:
        return {}
    return {"priority": found.value, "preemptionPolicy": found.preemption_policy}
