"""Places a single pod, and stores it as placed or as pending."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from msgspec.structs import replace

from service.engine import (
    Cluster,
    Explanation,
    GroupDomain,
    Placement,
    Refusal,
    Summary,
    explain,
    place,
    summarize,
)
from service.model.core.errors import Denied, FieldError, Forbidden, InvalidManifest, PodDiffers
from service.model.core.primitives import ObjectName
from service.model.pods.pod import Pod
from service.model.registry.manifests import PodManifest
from service.scheduler.decide.admission.admission_policies import admit_by_policies
from service.scheduler.decide.admission.authorization import authorize_status
from service.scheduler.decide.admission.feature_gates import (
    warnings_of_features,
    without_features_off,
)
from service.scheduler.decide.admission.pod_admission import (
    admit,
    as_created,
    as_updated,
    knows_scheduler,
    unknown_scheduler,
    was_admitted,
)
from service.scheduler.decide.claims.device_claims import allocate_devices
from service.scheduler.decide.claims.volume_bindings import bind_volumes
from service.scheduler.decide.context import DecisionContext
from service.scheduler.decide.groups.waiting_groups import end_waiting
from service.scheduler.decide.move_reservations import note_arrival
from service.scheduler.decide.object_writes import not_found
from service.scheduler.decide.placing.preempting import find_room, make_room
from service.scheduler.decide.placing.preemption_answers import with_proposal
from service.scheduler.decide.placing.with_extenders import by_extender_verdict
from service.scheduler.decide.status.pod_conditions import (
    GATED,
    GATED_REASON,
    record_failed,
    record_scheduled,
    with_binding,
    with_waiting_condition,
)
from service.scheduler.protocol.intents import PlacePods
from service.scheduler.protocol.placements import Outcome, PlacementResult
from service.scheduler.protocol.suspects import SET_ASIDE, SET_ASIDE_DEATHS, SET_ASIDE_TOLD

NODE_NOT_FOUND = "NodeNotFound"
RESERVED_REASON = "GroupReserved"
"""The reason of a pod whose node is reserved until its split group is complete."""
RESERVED = (
    "A node is reserved for the pod until the other pods of its group have nodes in their clusters"
)


class Candidate(NamedTuple):
    """A pod to place. `stored` is the stored pod, or None for a new one."""

    manifest: PodManifest
    stored: PodManifest | None
    was_admitted: bool = False
    """Whether an API server has already admitted it."""
    lost_node: str | None = None
    """The deleted node on which the stored pod is, or None."""

    @property
    def pod(self) -> Pod:
        """The pod as the engine sees it."""
        return self.manifest.pod

    @property
    def key(self) -> ObjectName:
        """The pod's namespace and name."""
        return self.manifest.pod.namespace, self.manifest.pod.name

    @property
    def is_placed(self) -> bool:
        """Whether the pod is on a node that has existed continuously since the pod's placement."""
        if self.stored is None or self.lost_node is not None:
            return False
        if self.stored.has_ended_with_its_node:
            return False
        return self.stored.pod.node_name is not None


def candidates_of(context: DecisionContext, intent: PlacePods) -> list[Candidate]:
    """Return the pods, stored or new, that an intent wants placed.

    Raises:
        InvalidManifest: a pod is named twice, or its labels do not allow creating it.
        NotFound: a `podRef` names no pod.
        PodDiffers: another pod is stored under the same name.
        Forbidden: a new pod comes with a status that the caller may not state.
    """
    names = [(ref.namespace, ref.name) for ref in intent.pod_refs]
    names += [(manifest.pod.namespace, manifest.pod.name) for manifest in intent.pods]
    _refuse_repeated(intent, names)
    if intent.pod_refs:
        return [_referred(context, *name) for name in names]
    return [_sent(context, intent, index) for index in range(len(intent.pods))]


def _referred(context: DecisionContext, namespace: str, name: str) -> Candidate:
    stored = context.replica.pod(namespace, name)
    if stored is None:
        raise not_found("Pod", namespace, name)
    return _of_stored(context, stored)


def _of_stored(context: DecisionContext, stored: PodManifest) -> Candidate:
    node_name = stored.pod.node_name
    if node_name is None or context.replica.cluster.node(node_name) is not None:
        return Candidate(stored, stored)
    return Candidate(stored, stored, lost_node=node_name)


def _sent(context: DecisionContext, intent: PlacePods, index: int) -> Candidate:
    sent = intent.pods[index]
    stored = context.replica.pod(sent.pod.namespace, sent.pod.name)
    try:
        if not context.replica.cluster.config.features.pod_affinity_namespace_selector:
            sent = _without_features_off(context, intent, index, stored)
        known = bool(sent.pod.uid) and was_admitted(sent, intent.caller)
        if stored is None:
            sent = as_created(context, sent, was_admitted=known)
        else:
            sent = as_updated(context, sent, stored, was_admitted=known)
    except InvalidManifest as error:
        raise error.under(intent.place_of(index)) from None
    if stored is None:
        if intent.pods[index].status is not None:
            _authorize_status(intent, index)
        return Candidate(sent, None, known)
    if not _is_same(sent, stored):
        raise PodDiffers(
            f"{intent.place_of(index)}: another pod is stored as {sent.namespace}/{sent.name}."
        )
    return _of_stored(context, stored)


def _without_features_off(
    context: DecisionContext, intent: PlacePods, index: int, stored: PodManifest | None
) -> PodManifest:
    """Drop fields of disabled features, warning once for all replicas of a template."""
    sent = intent.pods[index]
    if index == 0 or intent.path != "template":
        context.warn(warnings_of_features(context, sent), intent.place_of(index))
    return without_features_off(context, sent, stored)


def _authorize_status(intent: PlacePods, index: int) -> None:
    try:
        authorize_status(intent.caller, intent.pods[index])
    except Forbidden as forbidden:
        raise forbidden.under(intent.place_of(index)) from None


def _is_same(sent: PodManifest, stored: PodManifest) -> bool:
    required, uid = sent.pod.required_node_name, sent.uid
    node_names = (None, stored.pod.node_name or stored.pod.required_node_name)
    return required in node_names and uid in ("", stored.uid) and sent.same_pod(stored)


def _refuse_repeated(intent: PlacePods, names: list[ObjectName]) -> None:
    known = set(names)
    if len(known) == len(names):
        return
    errors = []
    for index, name in enumerate(names):
        if name in known:
            known.remove(name)
        else:
            place = intent.place_of(index)
            errors.append(FieldError(place, "is the same pod as one before it", "/".join(name)))
    raise InvalidManifest(errors)


def place_pod(
    context: DecisionContext,
    intent: PlacePods,
    candidate: Candidate,
    within: GroupDomain | None = None,
) -> PlacementResult:
    """Place one pod, or return why it cannot be placed, and store it as pending if requested.

    A pod whose group has a domain is placed `within` that domain, without evicting other pods.
    """
    if intent.preemption == "Evict":
        candidate = _as_it_is_now(context, candidate)
    if candidate.is_placed:
        return already_placed(context, intent, candidate)
    cluster, pod = context.replica.cluster, candidate.pod
    refused = refusal_of(context, candidate)
    explanation = _saying(explanation_of(context, intent, pod), _held_back(refused, pod))
    if refused is not None:
        return denied_result(context, candidate, refused, explanation)
    if pod.spec.scheduling_gates:
        return left_waiting(context, intent, candidate, GATED, explanation, reason=GATED_REASON)
    hint = context.hint(pod.namespace, pod.name) if context.hints else None
    placement = place(cluster, pod, hint, within)
    if cluster.config.profiles and isinstance(placement, Placement):
        said, explanation = by_extender_verdict(
            context, intent, candidate.manifest, placement, explanation
        )
        if isinstance(said, Denied):
            return denied_result(context, candidate, said, _saying(explanation, said.detail))
        placement = said
    if isinstance(placement, Refusal) and within is not None:
        return left_waiting(context, intent, candidate, placement.message, explanation)
    if isinstance(placement, Refusal):
        return _refused(context, intent, candidate, placement, explanation)
    planned = context.replica.revision
    uid = bind(context, candidate, placement)
    return PlacementResult(
        namespace=pod.namespace,
        name=pod.name,
        uid=None if intent.dry_run else uid,
        outcome="Placed",
        node_name=placement.node_name,
        score=placement.score,
        planned_revision=planned,
        explanation=explanation,
    )


def _as_it_is_now(context: DecisionContext, candidate: Candidate) -> Candidate:
    """Return the current stored pod: pods before it in the request may have ended its nomination."""
    stored = None if candidate.stored is None else context.replica.pod(*candidate.key)
    return candidate if stored is None else _of_stored(context, stored)


def _refused(
    context: DecisionContext,
    intent: PlacePods,
    candidate: Candidate,
    refusal: Refusal,
    explanation: Explanation | Summary | None,
) -> PlacementResult:
    """Return the result of an unschedulable pod, making room for it if requested."""
    if intent.preemption == "Never":
        return left_waiting(context, intent, candidate, refusal.message, explanation)
    planned = context.replica.revision
    preemption = find_room(context, intent, candidate.pod)
    if intent.preemption == "Evict":
        manifest = make_room(context, candidate.manifest, preemption)
        candidate = Candidate(manifest, candidate.stored)
        # A pod with victims waits for them to leave, even if it would otherwise not be queued.
        is_changed = candidate.stored is not None and manifest is not candidate.stored
        waits = is_changed or manifest.pod.nominated_node_name is not None
        intent = replace(intent, queue=intent.queue or waits)
    result = left_waiting(context, intent, candidate, refusal.message, explanation)
    return with_proposal(replace(result, planned_revision=planned), refusal, preemption)


def held_back_by(context: DecisionContext, candidate: Candidate) -> str | None:
    """Return why a pod is not tried on any node (admission, quotas, or gates), or None."""
    return _held_back(refusal_of(context, candidate), candidate.pod)


def _held_back(refused: Denied | None, pod: Pod) -> str | None:
    if refused is not None:
        return refused.detail
    return GATED if pod.spec.scheduling_gates else None


def _saying(
    explanation: Explanation | Summary | None, message: str | None
) -> Explanation | Summary | None:
    """Replace the message of an explanation, if both are given."""
    if explanation is None or message is None:
        return explanation
    return replace(explanation, message=message)


def refusal_of(context: DecisionContext, candidate: Candidate) -> Denied | None:
    """Return why a pod without a node may not be placed on any node, or None."""
    pod = candidate.pod
    if candidate.lost_node is not None:
        message = (
            f"The pod is on {candidate.lost_node}, which is not there: delete it to place it anew."
        )
        return Denied(NODE_NOT_FOUND, message)
    if context.replica.reservations and candidate.key in context.replica.reservations:
        return Denied(RESERVED_REASON, RESERVED)
    if pod.terminating or pod.finished:
        return Denied("PodNotActive", "The pod is being deleted, or has ended: it gets no node.")
    if not knows_scheduler(context.replica.cluster, pod):
        return unknown_scheduler(context.replica.cluster, pod)
    try:
        if candidate.stored is None and context.replica.cluster.config.policies:
            admit_by_policies(context.replica, candidate.manifest, None)
        stored = candidate.stored.pod if candidate.stored else None
        admit(context.replica, pod, stored, was_admitted=candidate.was_admitted)
    except Denied as denied:
        return denied
    spec = candidate.manifest.template.spec_json
    deaths = context.suspects.deciding(context.cluster_id, pod.namespace, pod.name, spec)
    if deaths >= SET_ASIDE_DEATHS:
        context.suspects.decided()
        return Denied(SET_ASIDE, SET_ASIDE_TOLD)
    return None


def denied_result(
    context: DecisionContext,
    candidate: Candidate,
    refused: Denied,
    explanation: Explanation | Summary | None,
) -> PlacementResult:
    """Return the result of a denied pod."""
    return result_of(
        context,
        candidate,
        "Denied",
        reason=refused.reason,
        message=refused.detail,
        explanation=explanation,
    )


def bind(context: DecisionContext, candidate: Candidate, placement: Placement) -> str:
    """Store a pod as placed on a node, and return its uid."""
    pod, node_name = candidate.pod, placement.node_name
    uid = pod.uid or context.ids.uid()
    if pod.spec.volumes:
        bind_volumes(context, pod, node_name, placement.bindings)
    manifest = candidate.manifest
    if pod.spec.resource_claims:
        manifest = allocate_devices(context, manifest, node_name, uid, placement.devices)
    placed = with_binding(context, manifest, node_name, uid)
    context.replica.put(placed)
    if context.replica.cluster.reserved:
        note_arrival(context.replica, placed.pod)
    context.remember(pod.namespace, pod.name, node_name)
    if (pod.namespace, pod.name) in context.replica.groups.waiting:
        end_waiting(context.replica, (pod.namespace, pod.name))
    record_scheduled(context, candidate.manifest, node_name, uid)
    return uid


def left_waiting(
    context: DecisionContext,
    intent: PlacePods,
    candidate: Candidate,
    message: str,
    explanation: Explanation | Summary | None = None,
    *,
    reason: str = "Unschedulable",
) -> PlacementResult:
    """Return the result of a pod without a node, storing it as pending if requested."""
    planned, uid = context.replica.revision, candidate.pod.uid or None
    if intent.queue:
        uid = keep_waiting(context, candidate, message, reason)
    elif candidate.stored is not None:
        record_failed(context, candidate.stored, message)
    result = result_of(
        context,
        candidate,
        "Queued" if intent.queue else "Unschedulable",
        message=message,
        explanation=explanation,
    )
    return replace(result, uid=None if intent.dry_run else uid, planned_revision=planned)


def keep_waiting(
    context: DecisionContext, candidate: Candidate, message: str, reason: str = "Unschedulable"
) -> str:
    """Store a pod as pending with the reason in its condition, and return its uid."""
    manifest = candidate.manifest
    if candidate.stored is None:
        created = manifest.created or context.now
        manifest = manifest.with_identity(manifest.uid or context.ids.uid(), created)
    updated = with_waiting_condition(context, manifest, reason, message)
    if updated is not candidate.stored:
        context.replica.put(updated)
    record_failed(context, updated, message)
    return updated.uid


def already_placed(
    context: DecisionContext, intent: PlacePods, candidate: Candidate
) -> PlacementResult:
    """Return the result of a placed pod, explained as if it were being placed again."""
    pod = candidate.pod
    explanation = explain_placed(context, intent, pod)
    return result_of(
        context, candidate, "AlreadyPlaced", node_name=pod.node_name, explanation=explanation
    )


def explain_placed(
    context: DecisionContext, intent: PlacePods, pod: Pod
) -> Explanation | Summary | None:
    """Return the requested explanation of a placed pod, computed as if the pod were absent."""
    if intent.explain == "None":
        return None
    with without_pod(context.replica.cluster, pod):
        return explanation_of(context, intent, replace(pod, node_name=None))


@contextmanager
def without_pod(cluster: Cluster, pod: Pod) -> Iterator[None]:
    """Take a known pod out of the cluster for a `with` block, and restore the state exactly."""
    mark = cluster.mark()
    cluster.delete_pod(pod.namespace, pod.name)
    try:
        yield
    finally:
        cluster.undo(mark)


def explanation_of(
    context: DecisionContext, intent: PlacePods, pod: Pod
) -> Explanation | Summary | None:
    """Return the requested explanation of a pod that is not placed.

    It is None for a pod whose `schedulerName` is not a profile.
    """
    cluster = context.replica.cluster
    if intent.explain == "None" or not knows_scheduler(cluster, pod):
        return None
    return explain(cluster, pod) if intent.explain == "Full" else summarize(cluster, pod)


def result_of(
    context: DecisionContext,
    candidate: Candidate,
    outcome: Outcome,
    *,
    node_name: str | None = None,
    reason: str | None = None,
    message: str | None = None,
    explanation: Explanation | Summary | None = None,
) -> PlacementResult:
    """Return the result of a pod that this request did not place."""
    return PlacementResult(
        namespace=candidate.pod.namespace,
        name=candidate.pod.name,
        uid=candidate.stored.uid if candidate.stored else None,
        outcome=outcome,
        node_name=node_name,
        planned_revision=context.replica.revision,
        reason=reason,
        message=message,
        explanation=explanation,
    )
