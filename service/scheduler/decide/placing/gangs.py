"""Places the members of a group together, once there are enough of them."""

from collections.abc import Sequence
from datetime import datetime

from service.engine import (
    GROUP_TOPOLOGY,
    Colocation,
    GroupDomain,
    GroupRefusal,
    Placement,
    Refusal,
    group_domain,
    place_group_in_steps,
)
from service.model.core.errors import Denied
from service.model.core.primitives import ObjectName
from service.model.pods.pod import Pod
from service.scheduler.decide.context import DecisionContext, Steps
from service.scheduler.decide.groups.group_membership import Members, shortage
from service.scheduler.decide.groups.shared_domain import shared_domain
from service.scheduler.decide.placing.pod_placement import Candidate, bind, refusal_of
from service.scheduler.decide.placing.step_size import StepSize
from service.scheduler.decide.placing.with_extenders import not_asked
from service.scheduler.decide.status.pod_conditions import GATED, GATED_REASON
from service.scheduler.decide.status.references import reference
from service.scheduler.pending.queueing_hints import ADMISSION, MEMBERS

GROUP_SEARCH_ENDED = "GroupSearchEnded"
"""The reason for a refusal after `groupSearchSteps`; there may still be room."""
_EXCHANGES_MAX = 8
"""The maximum number of searches that replace a failed member with another."""


class Gang:
    """One attempt to place a group that needs `min_member` of its members on nodes.

    If not all waiting members fit together, the first `min_member` by priority and age are tried,
    and a member that fails is replaced by another; then the rest are placed one by one.
    """

    def __init__(
        self, context: DecisionContext, members: Members, candidates: Sequence[Candidate]
    ) -> None:
        """Create an attempt; `candidates` are all members without a node, in order."""
        self._context = context
        self._members = members
        self._candidates = candidates
        self.denied: dict[ObjectName, Denied] = {}
        """The members that may not be placed, either yet or at all."""
        self.placed: dict[ObjectName, tuple[Placement, str]] = {}
        """The members placed together, with their placements and uids."""
        self.alone: list[Candidate] = []
        """The members beyond the group's need, to be placed individually."""
        self.refusal: Refusal | None = None
        """Why the members that had to be placed together were refused, or None."""
        self.steps = 0
        """The number of steps in unsuccessful searches."""
        self._shared = shared_domain(context.replica, members)

    def assemble(self, beside: Pod | None = None) -> Steps[None]:
        """Place the members that have to be placed together.

        `beside` is a stand-in pod: during the search, it reserves the room that a starving pod
        needs.
        """
        self.denied = yield from denials(self._context, self._candidates)
        ready = [candidate for candidate in self._candidates if candidate.key not in self.denied]
        need = self._need(ready)
        if self._members.missing is not None or need > len(ready):
            self.refusal = self._too_few()
        elif self._shared is not None and self._shared.conflict is not None:
            conflict = self._shared.conflict
            self.refusal = Refusal(conflict, {GROUP_TOPOLOGY: {conflict: 1}})
        elif need <= 0:
            self.alone = ready
        else:
            yield from self._place(ready, need, beside)

    def _need(self, ready: Sequence[Candidate]) -> int:
        """Return how many of the ready members must get nodes together."""
        need = self._members.min_member - self._members.scheduled
        is_open = self._shared is not None and self._shared.value is None
        # If the domain is not fixed yet, the search for several members chooses the domain.
        return max(need, 1) if is_open and ready else need

    def within(self) -> GroupDomain | None:
        """The domain for members that are placed individually, or None for any."""
        if self._shared is None:
            return None
        cluster, value = self._context.replica.cluster, self._shared.value
        for placement, _ in self.placed.values():
            node = cluster.node(placement.node_name)
            value = node.labels.get(self._shared.key) if node is not None else value
        return group_domain(cluster.nodes, self._shared.key, value)

    @property
    def reason(self) -> str | None:
        """The machine-readable reason of the refusal, or None."""
        reasons = self.refusal.reasons if self.refusal is not None else {}
        return GROUP_SEARCH_ENDED if GROUP_SEARCH_ENDED in reasons else None

    def seconds_left(self) -> float | None:
        """The seconds until the group times out, or None if it has timed out or has no timeout."""
        deadline = self._members.deadline()
        if deadline is None:
            return None
        seconds = (deadline - datetime.fromisoformat(self._context.now)).total_seconds()
        return seconds if seconds > 0 else None

    def with_timeout(self, message: str) -> str:
        """Append a note to a message if the group has timed out."""
        if self._members.deadline() is None or self.seconds_left() is not None:
            return message
        seconds = self._members.timeout_seconds
        return f"{message.rstrip('.')}; timed out after {seconds} s (scheduleTimeoutSeconds)"

    def _place(self, ready: list[Candidate], need: int, beside: Pod | None) -> Steps[None]:
        cluster = self._context.replica.cluster
        mark = cluster.mark()
        if beside is not None:
            cluster.put_pod(beside)
        placements = yield from self.search(ready, need)
        cluster.undo(mark)
        if isinstance(placements, Refusal):
            self.refusal = placements
            return
        step = StepSize()
        for candidate, placement in placements:
            if step.is_over(candidate.pod):
                yield
            uid = bind(self._context, candidate, placement)
            self.placed[candidate.key] = placement, uid
        self.alone = [candidate for candidate in ready if candidate.key not in self.placed]

    def search(
        self, ready: list[Candidate], need: int
    ) -> Steps[list[tuple[Candidate, Placement]] | Refusal]:
        """Find nodes for all ready members, or else for `need` of them, without binding."""
        result = yield from self.together(ready)
        if not isinstance(result, GroupRefusal):
            return result
        if need == len(ready):
            return self._refused(ready, result)
        chosen, spare = ready[:need], ready[need:]
        for _ in range(_EXCHANGES_MAX):
            result = yield from self.together(chosen)
            if not isinstance(result, GroupRefusal):
                return result
            failed = self._context.replica.cluster.class_of(chosen[result.failed].pod)
            spare = [
                candidate
                for candidate in spare
                if self._context.replica.cluster.class_of(candidate.pod) is not failed
            ]
            if not spare or result.exhausted:
                break
            chosen[result.failed] = spare.pop(0)
        return self._refused(chosen, result)

    def together(
        self, candidates: list[Candidate]
    ) -> Steps[list[tuple[Candidate, Placement]] | GroupRefusal]:
        """Find nodes for exactly these members, without binding."""
        pods = [candidate.pod for candidate in candidates]
        hints = [self._context.hint(pod.namespace, pod.name) for pod in pods]
        cluster = self._context.replica.cluster
        result = yield from place_group_in_steps(cluster, pods, hints, self._colocations(len(pods)))
        if isinstance(result, GroupRefusal):
            self.steps += result.steps
            return result
        return list(zip(candidates, result.placements, strict=True))

    def _colocations(self, count: int) -> list[Colocation]:
        """Return the domain constraint for this many members, or an empty list."""
        if self._shared is None:
            return []
        return [Colocation(self._shared.key, tuple(range(count)), self._shared.value)]

    def _refused(self, candidates: list[Candidate], refusal: GroupRefusal) -> Refusal:
        key = candidates[refusal.failed].key
        if self._is_of_one_namespace:
            message = f"{refusal.message.rstrip('.')}; so {self._members.title} fails at {key[1]}"
        else:
            message = self._fails_at(key, refusal.message)
        return Refusal(message, reasons_of(refusal))

    def _too_few(self) -> Refusal:
        gated = sum(denied.reason == GATED_REASON for denied in self.denied.values())
        shortfall = shortage(self._members, len(self._candidates), gated)
        if shortfall is not None:
            return Refusal(shortfall, {MEMBERS: {shortfall: 1}})
        key, denied = next(
            (key, reason) for key, reason in self.denied.items() if reason.reason != GATED_REASON
        )
        return Refusal(self._fails_at(key, denied.detail), {ADMISSION: {denied.reason: 1}})

    @property
    def _is_of_one_namespace(self) -> bool:
        """Whether all members are in one namespace, so that every reader of one may read all."""
        return len(self._members.namespaces) == 1

    def _fails_at(self, key: ObjectName, why: str) -> str:
        """Return a message that names the member at which the group fails, and the reason."""
        failed = f"{key[1]}: {why}" if self._is_of_one_namespace else reference("Pod", *key, why)
        return f"{self._members.title} fails at {failed}"


def reasons_of(refusal: GroupRefusal) -> dict[str, dict[str, int]]:
    """Return the reasons for a failed search, including a reached search limit."""
    if not refusal.exhausted:
        return refusal.refusal.reasons
    return refusal.refusal.reasons | {GROUP_SEARCH_ENDED: {"groupSearchSteps": 1}}


def denials(
    context: DecisionContext, candidates: Sequence[Candidate]
) -> Steps[dict[ObjectName, Denied]]:
    """Find the members that may not be placed, regardless of room on nodes.

    Quotas must have room for all candidates together, so each stays charged while the next is
    checked.
    """
    ledger, reserved, answer = context.replica.ledger, list[Pod](), dict[ObjectName, Denied]()
    step = StepSize()
    try:
        for candidate in candidates:
            if step.is_over(candidate.pod):
                yield
            denied = _denied(context, candidate)
            if denied is not None:
                answer[candidate.key] = denied
            if candidate.stored is None and (denied is None or denied.reason == GATED_REASON):
                ledger.move(None, candidate.pod)
                reserved.append(candidate.pod)
    finally:
        for pod in reversed(reserved):
            ledger.move(pod, None)
    return answer


def _denied(context: DecisionContext, candidate: Candidate) -> Denied | None:
    denied = refusal_of(context, candidate)
    if denied is None and context.replica.config.profiles:
        denied = not_asked(context, candidate.pod)
    if denied is None and candidate.pod.spec.scheduling_gates:
        return Denied(GATED_REASON, GATED)
    return denied
