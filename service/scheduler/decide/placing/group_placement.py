"""Places a group of pods in one commit, all or none."""

from collections import Counter
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from service.engine import Colocation, GroupRefusal, Placement, place_group_in_steps
from service.model.core.primitives import ObjectName
from service.scheduler.decide.context import Decision, DecisionContext, Steps
from service.scheduler.decide.groups.group_membership import members_of, shortage
from service.scheduler.decide.groups.shared_domain import SharedDomain, shared_domain
from service.scheduler.decide.groups.waiting_groups import wait_together
from service.scheduler.decide.placing.gangs import GROUP_SEARCH_ENDED, denials
from service.scheduler.decide.placing.group_reservations import (
    BOUND_WITH_IT,
    begin,
    binds_more,
    reserve,
)
from service.scheduler.decide.placing.pod_placement import (
    Candidate,
    already_placed,
    bind,
    explain_placed,
    explanation_of,
    keep_waiting,
    result_of,
)
from service.scheduler.decide.placing.step_size import StepSize
from service.scheduler.decide.status.pod_conditions import GATED_REASON, record_failed
from service.scheduler.decide.status.references import reference
from service.scheduler.protocol.intents import PlacePods
from service.scheduler.protocol.placements import (
    GroupFailure,
    Outcome,
    PlacementAnswer,
    PlacementResult,
    PodRef,
)
from service.scheduler.protocol.split_groups import STORED_MEANWHILE
from service.scheduler.replica.pod_groups import GroupRef, group_of


def place_as_group(
    context: DecisionContext, intent: PlacePods, candidates: list[Candidate]
) -> Decision[PlacementAnswer]:
    """Place all pods of an AllOrNothing request together; already placed pods keep their nodes.

    After a lost race, the previously chosen nodes are checked together, and kept if they still fit
    (protocol rule P10).
    """
    group = GroupAttempt(context, intent, candidates)
    yield from group.refuse_at_once()
    yield
    if not group.failed:
        placements = yield from group.search()
        if placements is not None:
            yield from group.bind(placements)
            return group.answer((yield from _each(group.placed, candidates)))
    group.conclude()
    results = yield from _each(group.refused, candidates)
    group.keep_together()
    return group.answer(results)


def _each(
    make: Callable[[Candidate], PlacementResult], candidates: Sequence[Candidate]
) -> Steps[list[PlacementResult]]:
    """Build the results of all members step by step, since each may contain an explanation."""
    results, step = list[PlacementResult](), StepSize()
    for candidate in candidates:
        results.append(make(candidate))
        if step.is_over(candidate.pod):
            yield
    return results


class GroupAttempt:
    """One attempt to place a group."""

    def __init__(
        self, context: DecisionContext, intent: PlacePods, candidates: list[Candidate]
    ) -> None:
        self._context = context
        self._intent = intent
        self._candidates = candidates
        self._fresh = [candidate for candidate in candidates if not candidate.is_placed]
        self._planned = context.replica.revision
        self._placed: dict[ObjectName, tuple[Placement, str]] = {}
        """The placement and uid of each member that got a node."""
        self.failed: dict[ObjectName, PlacementResult] = {}
        self._reason: str | None = None
        self._plugin: str | None = None
        self._failure: GroupFailure | None = None

    def refuse_at_once(self) -> Steps[None]:
        """Find the members that may not be placed, regardless of room on nodes."""
        if self._intent.reserving is not None and self._are_stored_meanwhile():
            return
        denied = yield from denials(self._context, self._fresh)
        step = StepSize()
        for candidate in self._fresh:
            if step.is_over(candidate.pod):
                yield
            refused = denied.get(candidate.key)
            if refused is None:
                continue
            if refused.reason == GATED_REASON:
                self._fail(candidate, "Unschedulable", refused.detail)
            else:
                self._fail(candidate, "Denied", refused.detail, reason=refused.reason)
        lacking = self._lacking_members()
        for candidate in self._fresh:
            if step.is_over(candidate.pod):
                yield
            group = self._group_of(candidate)
            shortfall = None if group is None else lacking[group]
            if self._intent.reserving is not None and binds_more(candidate.pod):
                shortfall = BOUND_WITH_IT
            if shortfall is not None and candidate.key not in self.failed:
                self._fail(candidate, "Unschedulable", shortfall)

    def _are_stored_meanwhile(self) -> bool:
        """Return whether other requests have stored members that were to be reserved as new pods.

        If so, the group fails. Members reserved by an earlier attempt are reported as such
        (`RESERVED_REASON`).
        """
        for candidate in self._candidates:
            is_reserved = candidate.key in self._context.replica.reservations
            if candidate.stored is not None and not is_reserved:
                message = "a pod of this name was stored meanwhile; ask again"
                self._fail(candidate, "Denied", message, reason=STORED_MEANWHILE)
        return bool(self.failed)

    def search(self) -> Steps[list[Placement] | None]:
        """Return nodes for all members without one, or None after recording the failure."""
        context = self._context
        pods = [candidate.pod for candidate in self._fresh]
        if not pods:
            return []
        hints = [context.hint(pod.namespace, pod.name) for pod in pods]
        gang = yield from place_group_in_steps(
            context.replica.cluster, pods, hints, self._colocations()
        )
        if not isinstance(gang, GroupRefusal):
            return list(gang.placements)
        self._fail_search(gang)
        return None

    def bind(self, placements: list[Placement]) -> Steps[None]:
        """Store all members on their chosen nodes, or only reserve the nodes."""
        reserving = self._intent.reserving
        if reserving is not None:
            begin(self._context, reserving)
        step = StepSize()
        for candidate, placement in zip(self._fresh, placements, strict=True):
            if step.is_over(candidate.pod):
                yield
            uid = (
                bind(self._context, candidate, placement)
                if reserving is None
                else reserve(self._context, candidate, placement, reserving)
            )
            self._placed[candidate.key] = placement, uid

    def placed(self, candidate: Candidate) -> PlacementResult:
        """Return the result of a member of the placed group."""
        if candidate.is_placed:
            return already_placed(self._context, self._intent, candidate)
        placement, uid = self._placed[candidate.key]
        return PlacementResult(
            namespace=candidate.pod.namespace,
            name=candidate.pod.name,
            uid=None if self._intent.dry_run else uid,
            outcome="Placed",
            node_name=placement.node_name,
            score=placement.score,
            planned_revision=self._planned,
            explanation=explain_placed(self._context, self._intent, candidate.pod),
        )

    def refused(self, candidate: Candidate) -> PlacementResult:
        """Return the result of a member of a refused group, storing it as pending if requested."""
        if candidate.is_placed:
            return already_placed(self._context, self._intent, candidate)
        assert self._failure is not None
        result = self.failed.get(candidate.key)
        if result is None:
            message, reason = self._group_message(candidate), self._failure.reason
            result = self._result(candidate, "GroupRefused", message, reason)
        if not self._intent.queue or result.outcome == "Denied":
            if candidate.stored is not None and result.outcome != "Denied":
                record_failed(self._context, candidate.stored, self._group_message(candidate))
            return result
        gated = candidate.pod.spec.scheduling_gates
        uid = keep_waiting(
            self._context,
            candidate,
            result.message or self._group_message(candidate),
            GATED_REASON if gated else "Unschedulable",
        )
        return replace(result, uid=None if self._intent.dry_run else uid)

    def _group_message(self, candidate: Candidate) -> str:
        """Return why a member gets no node, naming pods of other namespaces only by reference."""
        assert self._failure is not None
        failed = self._failure.failed[0]
        if failed.namespace == candidate.key[0]:
            return self._failure.message
        at = reference("Pod", failed.namespace, failed.name, self._failure.message)
        return f"the group fails at {at}"

    def keep_together(self) -> None:
        """Make members that are stored as pending wait for each other."""
        if self._intent.queue:
            wait_together(
                self._context,
                [candidate.key for candidate in self._fresh if not group_of(candidate.manifest)],
            )

    def answer(self, results: list[PlacementResult]) -> PlacementAnswer:
        """Return the answer to the request: the results, and why the group failed, if it did."""
        return PlacementAnswer(
            revision=self._context.replica.revision,
            committed=False,
            attempts=self._context.attempts,
            kubernetes=self._context.replica.config.kubernetes,
            results=results,
            group=self._failure,
        )

    def _fail(
        self,
        candidate: Candidate,
        outcome: Outcome,
        message: str,
        *,
        reason: str | None = None,
        plugin: str | None = None,
    ) -> None:
        self.failed[candidate.key] = self._result(candidate, outcome, message, reason)
        self._reason = reason if reason == GROUP_SEARCH_ENDED else None
        self._plugin = plugin

    def conclude(self) -> None:
        """Summarize why the group failed, once all failed members are known."""
        first = next(iter(self.failed.values()))
        self._failure = GroupFailure(
            failed=[PodRef(namespace=namespace, name=name) for namespace, name in self.failed],
            plugin=self._plugin,
            reason=self._reason,
            message=first.message or "",
        )

    def _result(
        self, candidate: Candidate, outcome: Outcome, message: str, reason: str | None = None
    ) -> PlacementResult:
        """Return the result of an unplaced member, explained as if it were alone."""
        return result_of(
            self._context,
            candidate,
            outcome,
            reason=reason,
            message=message,
            explanation=explanation_of(self._context, self._intent, candidate.pod),
        )

    def _fail_search(self, refused: GroupRefusal) -> None:
        candidate = self._fresh[refused.failed]
        plugin = min(refused.refusal.plugins, default=None)
        reason = GROUP_SEARCH_ENDED if refused.exhausted else None
        self._fail(candidate, "Unschedulable", refused.message, reason=reason, plugin=plugin)

    def _lacking_members(self) -> dict[GroupRef, str | None]:
        """Return why each group has too few members, counting only stored ones and this request's.

        The message may instead say that current members are spread over several domains.
        """
        joining = Counter(
            group for candidate in self._fresh if (group := self._group_of(candidate)) is not None
        )
        lacking: dict[GroupRef, str | None] = {}
        for group, count in joining.items():
            shared = self._shared_by(group)
            shortfall = shortage(members_of(self._context.replica, group), count, 0)
            lacking[group] = shortfall or (shared.conflict if shared is not None else None)
        return lacking

    def _group_of(self, candidate: Candidate) -> GroupRef | None:
        return None if self._intent.without_groups else group_of(candidate.manifest)

    def _shared_by(self, group: GroupRef) -> SharedDomain | None:
        return shared_domain(self._context.replica, members_of(self._context.replica, group))

    def _colocations(self) -> list[Colocation]:
        """Return the domain constraints of the members, by group."""
        members: dict[GroupRef, list[int]] = {}
        for index, candidate in enumerate(self._fresh):
            group = self._group_of(candidate)
            if group is not None:
                members.setdefault(group, []).append(index)
        shared = {group: self._shared_by(group) for group in members}
        return [
            Colocation(domain.key, tuple(members[group]), domain.value)
            for group, domain in shared.items()
            if domain is not None
        ]
