"""Decides whether a pod is admitted, regardless of room on nodes, and what admission adds to it.

Written, placed, and simulated pods take the same path: defaults are merged first, then the pod is
checked. Merging leaves a contradictory pod unchanged, and the check reports why it is refused.
"""

from collections.abc import Callable, Sequence
from typing import cast

from msgspec.structs import replace

from service.engine import Cluster
from service.model.cluster.cluster_config import ClusterConfig
from service.model.core.errors import Denied, InvalidManifest
from service.model.core.kind import DeclaredObject
from service.model.core.primitives import Quantities
from service.model.core.selectors import matches
from service.model.pods.exclusive_terms import (
    covers_all_namespaces,
    required_terms,
    without_tautologies,
)
from service.model.pods.pod import Pod, PodAffinityTerm, PodSpec
from service.model.pods.requests import requirements
from service.model.policies.limit_ranges import (
    LIMIT_RANGE,
    LimitRangeBody,
    claim_violations,
    defaults_of,
    violations,
)
from service.model.policies.runtime_classes import (
    RUNTIME_CLASS,
    WITHOUT_CLASS,
    RuntimeClassBody,
    RuntimeClassMerge,
    merge_of,
    read_by_runtime_class,
)
from service.model.registry.manifests import DeclaredManifest, PodManifest
from service.model.volumes.volume_kinds import PersistentVolumeClaimBody
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
"""The kinds of objects that pods are checked against, or that contribute fields to pods."""


def admit(
    replica: Replica, pod: Pod, stored: Pod | None = None, *, was_admitted: bool = False
) -> None:
    """Refuse a pod that may not be created, changed, or placed. Observed facts are never checked.

    Checks that Kubernetes makes only at creation are repeated when the fields they read change,
    except for pods that an API server has admitted.

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
    """Refuse a new pod, or a change to the stored one, that exceeds a quota.

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
    """Return whether the pod's `schedulerName` is one of the cluster's profiles."""
    return pod.spec.scheduler_name in cluster.profiles


def unknown_scheduler(cluster: Cluster, pod: Pod) -> Denied:
    """Return the refusal of a pod whose `schedulerName` names no profile."""
    known = ", ".join(sorted(cluster.config.scheduler_profiles()))
    return Denied(
        UNKNOWN_SCHEDULER,
        f"spec.schedulerName: {pod.spec.scheduler_name} is no profile; known are {known}.",
    )


def limit_ranges(cluster: Cluster, namespace: str) -> list[LimitRangeBody]:
    """Return the limit ranges of a namespace, by their names."""
    ranges_by_name = cluster.objects.within(LIMIT_RANGE.kind, namespace)
    return [cast("LimitRangeBody", ranges_by_name[name].body) for name in sorted(ranges_by_name)]


def admit_limits(cluster: Cluster, pod: Pod) -> None:
    """Refuse a pod that requests more or less than a limit range of its namespace allows.

    Raises:
        Denied: in Kubernetes' words, with the fields of the pod.
    """
    for limit_range in limit_ranges(cluster, pod.namespace):
        _refuse_violations(violations(pod.spec, limit_range))


def admit_claim(
    cluster: Cluster,
    claim: DeclaredObject[PersistentVolumeClaimBody],
    stored: DeclaredObject[PersistentVolumeClaimBody] | None = None,
) -> None:
    """Refuse a claim whose new request violates a limit range.

    Raises:
        Denied: in Kubernetes' words, with the fields of the claim.
    """
    requests = _requests_of(claim)
    if stored is not None and requests == _requests_of(stored):
        return
    for limit_range in limit_ranges(cluster, claim.namespace):
        _refuse_violations(claim_violations(requests, limit_range))


def _requests_of(claim: DeclaredObject[PersistentVolumeClaimBody]) -> Quantities:
    resources = claim.body.spec.resources
    return (resources.requests if resources else None) or {}


def _refuse_violations(messages: list[str]) -> None:
    if messages:
        raise Denied(LIMIT_RANGE_VIOLATED, "; ".join(messages))


def differs(pod: Pod, stored: Pod | None, read: Callable[[PodSpec], object]) -> bool:
    """Return whether a pod is new, or whether `read` returns another value for the stored pod."""
    if stored is None:
        return True
    return pod.spec is not stored.spec and read(pod.spec) != read(stored.spec)


def has_runtime_classes(cluster: Cluster) -> bool:
    """Return whether any RuntimeClass is stored; otherwise pods may name any runtime class."""
    return bool(cluster.objects.having(RuntimeClassBody))


def runtime_class_merge(cluster: Cluster, pod: Pod) -> RuntimeClassMerge | None:
    """Return the fields that the pod's runtime class adds, or None if the class does not exist."""
    name = pod.spec.runtime_class_name
    if not name:
        return WITHOUT_CLASS
    runtime_class = cluster.objects.having(RuntimeClassBody).get(("", name))
    return None if runtime_class is None else merge_of(runtime_class.body)


def _admit_runtime_class(cluster: Cluster, pod: Pod) -> None:
    """Refuse a pod whose runtime class is unknown, or that contradicts its runtime class."""
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
    """Refuse a pod that needs devices, if the cluster refuses device claims."""
    if pod.spec.resource_claims and config.device_claims == "Refuse":
        raise Denied(
            DEVICE_CLAIMS,
            "spec.resourceClaims: pods with claims to devices are refused here, by the setting "
            "deviceClaims: Refuse.",
        )


def _admit_priority(config: ClusterConfig, pod: Pod, stored: Pod | None) -> None:
    """Refuse an unknown priority class, or a priority of neither the class nor the stored pod."""
    name, sent = pod.spec.priority_class_name, pod.spec
    if not name:
        return
    priority_class = config.priority_class(name)
    if priority_class is None:
        raise Denied(UNKNOWN_PRIORITY_CLASS, f"spec.priorityClassName: there is no class {name}.")
    old = stored.spec if stored and stored.spec.priority_class_name == name else None
    if sent.priority not in (None, priority_class.value, old and old.priority):
        raise Denied(
            PRIORITY_DIFFERS,
            f"spec.priority: class {name} has priority {priority_class.value}, not {sent.priority}.",
        )
    if sent.preemption_policy not in (
        priority_class.preemption_policy,
        old and old.preemption_policy,
    ):
        raise Denied(
            PREEMPTION_POLICY_DIFFERS,
            f"spec.preemptionPolicy: class {name} has {priority_class.preemption_policy}, "
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
        alike = [other for _, other in terms if _differ_by_namespaces_only(other, term)]
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
"""Fields ignored when grouping terms: several terms may cover all namespaces only together."""


def _differ_by_namespaces_only(one: PodAffinityTerm, other: PodAffinityTerm) -> bool:
    return replace(one, **_PLAIN) == replace(other, **_PLAIN)


def _apply_to_all_namespaces(replica: Replica, own: str, terms: Sequence[PodAffinityTerm]) -> bool:
    """Return whether terms together apply to all possible or all existing namespaces.

    Selectors that together match all existing namespaces and one without labels amount to `{}`:
    either they require the absence of a label that no namespace has, or one term matches what
    another excludes. `own` is the pod's namespace.
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
        namespace.manifest.name in named
        or any(matches(selector, namespace.manifest.labels) for selector in selectors)
        for namespace in stored
        if namespace is not None
    )


def was_admitted(sent: PodManifest | DeclaredManifest, caller: Caller) -> bool:
    """Return whether an API server has already admitted an object.

    Such an object has a uid and a sender that may state facts; other senders could invent a uid.
    """
    return bool(sent.uid) and caller.may("observe", sent.namespace)


def as_created(context: DecisionContext, sent: PodManifest, *, was_admitted: bool) -> PodManifest:
    """Return a new pod completed with defaults and with the fields that its classes add.

    Raises:
        InvalidManifest: the pod contradicts what is merged into it.
    """
    created = sent.created_now(context.templates) if sent.template.label_keys else sent
    config = context.replica.cluster.config
    name = created.pod.spec.priority_class_name
    if not name and config.priority_classes and not was_admitted:
        name = config.default_priority_class() or ""
    if name:
        created = with_priority(context, created, name, None)
    if was_admitted or ADMITTING_KINDS.isdisjoint(context.replica.cluster.objects.kinds):
        return created
    return _merged(context, created)


def as_updated(
    context: DecisionContext, sent: PodManifest, stored: PodManifest, *, was_admitted: bool
) -> PodManifest:
    """Return an update of a pod, with the fields that were merged into the stored pod at creation.

    Changed fields are completed as in a new pod.

    Raises:
        InvalidManifest: the pod contradicts what is merged into it.
    """
    updated = sent.keeping_terms(stored, context.templates)
    old, name = stored.pod.spec, updated.pod.spec.priority_class_name
    if not name and old.priority_class_name == context.replica.config.default_priority_class():
        name = old.priority_class_name
    if name:
        updated = with_priority(context, updated, name, old)
    return updated if was_admitted else _merged(context, updated, stored.pod)


def _merged(context: DecisionContext, pod: PodManifest, stored: Pod | None = None) -> PodManifest:
    """Return a pod with its namespace's defaults and the fields of its runtime class.

    A placed pod is a fact, so one that contradicts the added fields stays unchanged.
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
    for limit_range in limit_ranges(context.replica.cluster, pod.namespace):
        defaults = defaults_of(limit_range)
        if defaults is not None:
            pod = pod.amended(defaults, context.templates)
    return pod


def _with_runtime_class(context: DecisionContext, pod: PodManifest) -> PodManifest:
    """Return a pod with its runtime class's fields, or unchanged if they contradict the pod."""
    if not pod.pod.spec.runtime_class_name:
        return pod
    merge = runtime_class_merge(context.replica.cluster, pod.pod)
    if merge is None or merge.conflict(pod.pod.spec) is not None:
        return pod
    return pod.amended(merge, context.templates)


def with_priority(
    context: DecisionContext, manifest: PodManifest, name: str, old: PodSpec | None
) -> PodManifest:
    """Return a pod with a class's priority and preemption policy, unless the pod sets its own.

    While a pod keeps its class, it keeps its original priority, even if the class changes. A pod
    with an unknown class is returned unchanged.
    """
    spec, config = manifest.pod.spec, context.replica.config
    admitted = old if old is not None and old.priority_class_name == name else None
    stale = old is not None and admitted is None and spec.priority == old.priority is not None
    fields = _given(config, name, admitted)
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


def _given(config: ClusterConfig, name: str, admitted: PodSpec | None) -> dict[str, object]:
    """Return the fields that a class sets, or that it set on the stored pod."""
    priority_class = config.priority_class(name)
    if admitted is not None and admitted.priority is not None:
        return {"priority": admitted.priority, "preemptionPolicy": admitted.preemption_policy}
    if priority_class is None:
        return {}
    return {"priority": priority_class.value, "preemptionPolicy": priority_class.preemption_policy}
