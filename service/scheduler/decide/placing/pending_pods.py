"""Tries pending pods again after changes that may help them."""

from collections.abc import Hashable

from msgspec.structs import replace

from service.engine import GroupDomain, Placement, Refusal, place
from service.engine.explain.nearest_fit import nearest_node
from service.engine.placing.signature import pod_signature
from service.engine.plugins.node_resources_fit import NAME as FIT
from service.model.core.errors import Denied
from service.model.core.primitives import ObjectName
from service.model.pods.pod import Pod, PodSpec
from service.model.registry.manifests import PodManifest
from service.scheduler.decide.admission.pod_admission import UNKNOWN_SCHEDULER
from service.scheduler.decide.context import Decision, DecisionContext, Steps
from service.scheduler.decide.eviction_rate import seconds_until_allowed, spend
from service.scheduler.decide.groups.group_membership import members_of, waits_with
from service.scheduler.decide.placing.gangs import Gang
from service.scheduler.decide.placing.pod_placement import (
    RESERVED,
    RESERVED_REASON,
    Candidate,
    bind,
    refusal_of,
)
from service.scheduler.decide.placing.preempting import (
    find_room_for_queue,
    make_room,
    to_be_evicted,
)
from service.scheduler.decide.placing.with_extenders import extenders_for
from service.scheduler.decide.status.pod_conditions import (
    GATED,
    GATED_REASON,
    record_failed,
    with_waiting_condition,
)
from service.scheduler.pending.queueing_hints import ADMISSION, NO_NODES
from service.scheduler.protocol.answers import PendingAnswer
from service.scheduler.protocol.intents import PlacePending
from service.scheduler.protocol.pending_attempts import ConditionUpdate, Refused, WaitReason
from service.scheduler.protocol.suspects import SET_ASIDE
from service.scheduler.replica.pod_groups import GroupRef

UNANSWERED = "The selectors of the pod's claims are still being evaluated."
_STEP_PODS = 8
"""How many pods are tried, or conditions written, in one step before other tasks may run."""
_ASKING_MAX = 16
"""How many pods' extenders are queried after one request; other pods are tried later."""
_STEPS_CHEAP_MAX = 1_000
"""Searches for a group's nodes with more steps (about 50 ms) are costly and rarely repeated."""


def place_pending(context: DecisionContext, intent: PlacePending) -> Decision[PendingAnswer]:
    """Try pods in order, and update the conditions of other waiting pods.

    A long decision ends early; pods that were not tried are not refused.
    """
    attempts = _Attempts(context, intent)
    preempts = context.replica.config.queue_preemption != "Never"
    for index, key in enumerate(intent.attempts.tries):
        if index and context.is_late():
            break
        yield from attempts.try_pod(key, behind=index >= intent.attempts.behind)
        # A search for victims may take as long as several placement attempts.
        if preempts or index % _STEP_PODS == _STEP_PODS - 1:
            yield
    for index, update in enumerate(intent.attempts.condition_updates):
        attempts.tell(update)
        if index % _STEP_PODS == _STEP_PODS - 1:
            yield
    return PendingAnswer(
        revision=context.replica.revision,
        refused=attempts.refused,
        placed=tuple(attempts.placed),
        asking=tuple(attempts.asking),
    )


class _Attempts:
    """The attempts of one request on one state; deciding it again creates a new object."""

    def __init__(self, context: DecisionContext, intent: PlacePending) -> None:
        self._context = context
        self._clock = intent.clock
        self._starving = intent.attempts.starving
        self._stand_in: Pod | None = None
        self._verdicts: dict[Hashable, Refused] = {}
        """The refusals since the last placement, which apply to all equal pods."""
        self.refused: dict[ObjectName, Refused] = {}
        self.placed: list[ObjectName] = []
        self.asking: list[ObjectName] = []

    def try_pod(self, key: ObjectName, *, behind: bool) -> Steps[None]:
        """Place one pod, or record why it cannot be placed."""
        manifest = self._waiting_pod(key)
        if manifest is None:
            return
        if key in self._context.replica.reservations:
            denied = Denied(RESERVED_REASON, RESERVED)
            self.refused[key] = _refused_for(self._context, denied)
            return
        if self._context.has_waited:
            yield from self._try_answered(key, manifest, behind=behind)
        else:
            yield from self._try(key, manifest, behind=behind)

    def _try(self, key: ObjectName, manifest: PodManifest, *, behind: bool) -> Steps[None]:
        group = waits_with(self._context.replica, manifest)
        if group is not None:
            yield from self._try_members(key, group, behind=behind)
        else:
            self._try_alone(manifest, behind=behind)

    def _try_answered(self, key: ObjectName, manifest: PodManifest, *, behind: bool) -> Steps[None]:
        """Try a pod, but keep it waiting if expressions still have to be evaluated for it."""
        replica = self._context.replica
        start, events = replica.mark(), len(self._context.events)
        known = dict(self.refused), list(self.placed), list(self.asking)
        for _ in self._try(key, manifest, behind=behind):
            if replica.questions:
                break
            yield
        if not replica.questions:
            return
        replica.questions.take()  # They are being evaluated already, or will be asked next time.
        replica.undo(start)
        del self._context.events[events:]
        self.refused, self.placed, self.asking = known
        self._verdicts.clear()
        again_after = self._context.limits.pending_answers_seconds
        self.refused[key] = Refused(
            replica.revision, {NO_NODES: ()}, UNANSWERED, again_after=again_after
        )

    def _try_alone(
        self, manifest: PodManifest, *, behind: bool, within: GroupDomain | None = None
    ) -> None:
        key = (manifest.namespace, manifest.name)
        placement = self._find(manifest, behind=behind, within=within)
        if isinstance(placement, Refused) and within is not None:
            self._refuse(key, placement)  # As in Kubernetes, no pod is evicted for this pod.
            return
        if isinstance(placement, Refused):
            self._refuse(key, *self._preempt(manifest, placement))
            return
        if self._context.replica.config.profiles and extenders_for(self._context, manifest.pod):
            if len(self.asking) < _ASKING_MAX:
                self.asking.append(key)
            return
        bind(self._context, Candidate(manifest, manifest), placement)
        self.placed.append(key)
        self._verdicts.clear()

    def _try_members(self, key: ObjectName, group: GroupRef, *, behind: bool) -> Steps[None]:
        """Place the waiting members of a group, or record why they keep waiting.

        If the members are refused together, only the first member's condition is updated at once
        (protocol rule P18).
        """
        members = members_of(self._context.replica, group)
        gang = Gang(
            self._context, members, [Candidate(manifest, manifest) for manifest in members.waiting]
        )
        beside = self._standing_in() if behind else None
        yield from gang.assemble(beside)
        self.placed.extend(gang.placed)
        if gang.placed:
            self._verdicts.clear()
        within = gang.within() if gang.alone else None
        for candidate in gang.alone:
            self._try_alone(candidate.manifest, behind=behind, within=within)
        for denied_key, denied in gang.denied.items():
            if denied.reason not in (GATED_REASON, UNKNOWN_SCHEDULER):
                self._refuse(denied_key, _refused_for(self._context, denied))
        if gang.refusal is not None and key not in self.refused:
            refused = self._refused_together(gang, gang.refusal)
            self._refuse(key, replace(refused, is_held_back=beside is not None))

    def _preempt(self, manifest: PodManifest, refused: Refused) -> tuple[Refused, PodManifest]:
        """Make room for a refused pod, within the settings and the eviction budget.

        Returns the reason why the pod keeps waiting, and the pod with its nominated node.
        """
        context, pod = self._context, manifest.pod
        if self._clock is None or context.replica.config.queue_preemption == "Never":
            return refused, manifest
        if ADMISSION in refused.reasons or refused.is_held_back:
            return refused, manifest
        preemption, now = find_room_for_queue(context, pod), self._clock()
        evictions = to_be_evicted(preemption)
        seconds = seconds_until_allowed(context.replica, evictions, now) if evictions else None
        if seconds is not None:
            return replace(refused, again_after=seconds), manifest
        if evictions:
            spend(context.replica, evictions, now)
            self._verdicts.clear()
        return refused, make_room(context, manifest, preemption)

    def _refuse(
        self, key: ObjectName, refused: Refused, nominated: PodManifest | None = None
    ) -> None:
        """Keep a pod waiting, with the reason in its condition and any new nominated node."""
        stored = self._waiting_pod(key)
        if stored is None:
            return
        self.refused[key] = refused
        updated = with_waiting_condition(
            self._context, nominated or stored, refused.wait_reason, refused.message
        )
        if updated is not stored:
            self._context.replica.put(updated)
        if nominated is not None and nominated is not stored:
            self._verdicts.clear()
        record_failed(self._context, stored, refused.message)

    def _refused_together(self, gang: Gang, refusal: Refusal) -> Refused:
        reasons = {plugin: tuple(messages) for plugin, messages in refusal.reasons.items()}
        return Refused(
            self._context.replica.revision,
            reasons or {NO_NODES: ()},
            gang.with_timeout(refusal.message),
            is_costly=gang.steps > _STEPS_CHEAP_MAX,
            again_after=gang.seconds_left(),
        )

    def tell(self, update: ConditionUpdate) -> None:
        """Write the reason for waiting into a pod's condition."""
        manifest = self._waiting_pod(update.key)
        if manifest is not None:
            message = update.message or GATED
            if self._write(manifest, update.reason, message):
                record_failed(self._context, manifest, message)

    def _waiting_pod(self, key: ObjectName) -> PodManifest | None:
        manifest = self._context.replica.pod(*key)
        return manifest if manifest is not None and manifest.pod.wants_node else None

    def _find(
        self, manifest: PodManifest, *, behind: bool, within: GroupDomain | None
    ) -> Placement | Refused:
        context, pod = self._context, manifest.pod
        denied = refusal_of(context, Candidate(manifest, manifest))
        if denied is None and pod.spec.scheduling_gates:
            denied = Denied(GATED_REASON, GATED)
        if denied is not None:
            return _refused_for(context, denied)
        known = (pod_signature(context.replica.cluster, pod), behind, within and within.domain)
        if known in self._verdicts:
            return self._verdicts[known]
        alone = self._place(pod, within=within)
        is_behind = behind and isinstance(alone, Placement)
        placement = self._place_behind(pod, within) if is_behind else alone
        if isinstance(placement, Placement):
            return placement
        reasons = {plugin: tuple(messages) for plugin, messages in placement.reasons.items()}
        refused = Refused(
            context.replica.revision,
            reasons or {NO_NODES: ()},
            placement.message,
            is_held_back=is_behind,
        )
        self._verdicts[known] = refused
        return refused

    def _place(
        self, pod: Pod, node_name: str | None = None, within: GroupDomain | None = None
    ) -> Placement | Refusal:
        hint = node_name or self._context.hint(pod.namespace, pod.name)
        return place(self._context.replica.cluster, pod, hint, within)

    def _place_behind(self, pod: Pod, within: GroupDomain | None) -> Placement | Refusal:
        """Place a pod as if the starving pod already had the room that it waits for.

        A stand-in for the starving pod takes up resources and ports, but has no labels or rules.
        The node must be feasible without the stand-in, too.
        """
        stand_in = self._standing_in()
        if stand_in is None:
            return self._place(pod, within=within)
        cluster = self._context.replica.cluster
        mark = cluster.mark()
        cluster.put_pod(stand_in)
        placement = self._place(pod, within=within)
        cluster.undo(mark)
        if isinstance(placement, Refusal):
            return placement
        confirmed = self._place(pod, placement.node_name, within)
        if isinstance(confirmed, Refusal) or confirmed.node_name == placement.node_name:
            return confirmed
        # The pod fits on the first node only next to the stand-in. It may go to any other node.
        taken = confirmed.node_name == stand_in.node_name
        return _kept_free(confirmed.node_name) if taken else confirmed

    def _standing_in(self) -> Pod | None:
        """Return the stand-in that keeps a node free for the starving pod, or None."""
        starving = self._waiting_pod(self._starving) if self._starving else None
        if starving is None:
            return None
        if self._stand_in is None:
            node_name = nearest_node(self._context.replica.cluster, starving.pod)
            spec = starving.pod.spec
            self._stand_in = Pod(
                namespace="",
                name="",
                labels={},
                node_name=node_name,
                spec=PodSpec(
                    containers=spec.containers,
                    init_containers=spec.init_containers,
                    overhead=spec.overhead,
                    resources=spec.resources,
                ),
            )
        return self._stand_in if self._stand_in.node_name is not None else None

    def _write(self, manifest: PodManifest, reason: WaitReason, message: str) -> bool:
        """Write a pod's condition, and return whether it changed."""
        updated = with_waiting_condition(self._context, manifest, reason, message)
        if updated is not manifest:
            self._context.replica.put(updated)
        return updated is not manifest


def _refused_for(context: DecisionContext, denied: Denied) -> Refused:
    reason: WaitReason = "SchedulerError" if denied.reason == SET_ASIDE else "Unschedulable"
    reasons = {ADMISSION: (denied.reason,)}
    return Refused(context.replica.revision, reasons, denied.detail, wait_reason=reason)


def _kept_free(node_name: str) -> Refusal:
    message = f"Node {node_name} is kept free for a pod that has waited longer."
    return Refusal(message, {FIT: {"Too many pods": 1}})
