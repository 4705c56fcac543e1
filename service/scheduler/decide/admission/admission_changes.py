"""What admission makes of a pod that comes in, before it is judged (`service.scheduler.decide.admission.admission`).

There is one way for all pods, whether they are written, placed or simulated. What would be refused
is left as it is here: the judgement says why.
"""

from service.model.configuration.config import ClusterConfig
from service.model.errors import InvalidManifest
from service.model.kinds_kept_for_rules.runtime_classes import read_by_runtime_class
from service.model.manifests.manifest import KeptManifest, PodManifest
from service.model.objects.pod_resource_requests import requirements
from service.model.objects.pods_and_nodes import Pod, PodSpec
from service.model.quotas_and_limits.limit_ranges import defaults_of
from service.scheduler.decide.admission.admission import (
    ADMITTING_KINDS,
    differs,
    limit_ranges,
    runtime_class_merge,
)
from service.scheduler.decide.context import DecisionContext
from service.scheduler.protocol.callers import Caller


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
