"""Placing the members of a group together, as soon as enough of them are there."""

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
from service.model.errors import Denied
from service.model.objects.pods_and_nodes import ObjectName, Pod
from service.scheduler.decide.context import DecisionContext, Steps
from service.scheduler.decide.groups.group_membership import Members, shortage
from service.scheduler.decide.groups.shared_domain import shared_domain
from service.scheduler.decide.placing.pod_placement import Candidate, bind, refusal_of
from service.scheduler.decide.placing.step_size import StepSize
from service.scheduler.decide.placing.with_extenders import not_asked
from service.scheduler.decide.status.pod_conditions import (
    GATED,
    GATED_REASON,
)
from service.scheduler.decide.status.references import reference
from service.scheduler.pending.queueing_hints import ADMISSION, MEMBERS

GROUP_SEARCH_ENDED = "GroupSearchEnded"
"""The reason of a refusal if the search ended at `groupSearchSteps`: there may be room after all."""
_EXCHANGES_MAX = 8
"""At most so many searches exchange a member that failed for another one."""


class Gang:
    """One attempt to place a group that has to have `min_member` of its members on nodes.

    If not all waiting members find nodes together, the first `min_member` by priority and age are
    tried, and a member that fails is exchanged for another; then the rest are placed one by one.
    """

    def __init__(
        self, context: DecisionContext, members: Members, candidates: Sequence[Candidate]
    ) -> None:
        """`candidates` are all members without a node, stored or not, in their order."""
        self._context = context
        self._members = members
        self._candidates = candidates
        self.denied: dict[ObjectName, Denied] = {}
        """The members that may not be placed at all, or not yet."""
        self.placed: dict[ObjectName, tuple[Placement, str]] = {}
        """The members that got nodes together: their placements and uids."""
        self.alone: list[Candidate] = []
        """The members without which the group has enough: each is to be placed by itself."""
        self.refusal: Refusal | None = None
        """The reason why the members that had to be placed together were not."""
        self.steps = 0
        """How many steps the searches took that found nothing."""
        self._shared = shared_domain(context.replica, members)

    def assemble(self, beside: Pod | None = None) -> Steps[None]:
        """Place the members that have to be placed together.

        `beside` is no real pod: during the search it only takes the room that a starving pod needs.
        """
        self.denied = yield from denials(self._context, self._candidates)
        ready = [each for each in self._candidates if each.key not in self.denied]
        need = self._need(ready)
        if self._members.missing is not None or need > len(ready):
            self.refusal = self._too_few()
        elif self._shared is not None and self._shared.conflict is not None:
            told = self._shared.conflict
            self.refusal = Refusal(told, {GROUP_TOPOLOGY: {told: 1}})
        elif need <= 0:
            self.alone = ready
        else:
            yield from self._place(ready, need, beside)

    def _need(self, ready: Sequence[Candidate]) -> int:
        """Return how many of the members that are ready have to get nodes together."""
        need = self._members.min_member - self._members.scheduled
        is_open = self._shared is not None and self._shared.value is None
        # Where the domain is still open, it is chosen by the search for several members.
        return max(need, 1) if is_open and ready else need

    def within(self) -> GroupDomain | None:
        """Return the domain for members that are placed by themselves; None: they may go anywhere."""
        if self._shared is None:
            return None
        cluster, value = self._context.replica.cluster, self._shared.value
        for placement, _ in self.placed.values():
            node = cluster.node(placement.node_name)
            value = node.labels.get(self._shared.key) if node is not None else value
        return group_domain(cluster.nodes, self._shared.key, value)

    @property
    def reason(self) -> str | None:
        """The reason of the refusal, if it has one of its own."""
        reasons = self.refusal.reasons if self.refusal is not None else {}
        return GROUP_SEARCH_ENDED if GROUP_SEARCH_ENDED in reasons else None

    def seconds_left(self) -> float | None:
        """Seconds until the group has waited too long; None if it has, or if it has no timeout."""
        deadline = self._members.deadline()
        if deadline is None:
            return None
        left = (deadline - datetime.fromisoformat(self._context.now)).total_seconds()
        return left if left > 0 else None

    def told(self, message: str) -> str:
        """Add to a message that the group's time is over, if it is."""
        if self._members.deadline() is None or self.seconds_left() is not None:
            return message
        seconds = self._members.timeout_seconds
        return f"{message.rstrip('.')}; timed out after {seconds} s (scheduleTimeoutSeconds)"

    def _place(self, ready: list[Candidate], need: int, beside: Pod | None) -> Steps[None]:
        cluster = self._context.replica.cluster
        mark = cluster.mark()
        if beside is not None:
            cluster.put_pod(beside)
        found = yield from self.search(ready, need)
        cluster.undo(mark)
        if isinstance(found, Refusal):
            self.refusal = found
            return
        step = StepSize()
        for candidate, placement in found:
            if step.is_over(candidate.pod):
                yield
            uid = bind(self._context, candidate, placement)
            self.placed[candidate.key] = placement, uid
        self.alone = [each for each in ready if each.key not in self.placed]

    def search(
        self, ready: list[Candidate], need: int
    ) -> Steps[list[tuple[Candidate, Placement]] | Refusal]:
        """Search nodes for all members that are ready, else for `need` of them; nothing is bound."""
        found = yield from self.together(ready)
        if not isinstance(found, GroupRefusal):
            return found
        if need == len(ready):
            return self._refused(ready, found)
        chosen, spare = ready[:need], ready[need:]
        for _ in range(_EXCHANGES_MAX):
            found = yield from self.together(chosen)
            if not isinstance(found, GroupRefusal):
                return found
            failed = self._context.replica.cluster.class_of(chosen[found.failed].pod)
            spare = [
                each
                for each in spare
                if self._context.replica.cluster.class_of(each.pod) is not failed
            ]
            if not spare or found.exhausted:
                break
            chosen[found.failed] = spare.pop(0)
        return self._refused(chosen, found)

    def together(
        self, candidates: list[Candidate]
    ) -> Steps[list[tuple[Candidate, Placement]] | GroupRefusal]:
        """Search nodes for exactly these members; nothing is bound."""
        pods = [each.pod for each in candidates]
        hints = [self._context.hint(pod.namespace, pod.name) for pod in pods]
        cluster = self._context.replica.cluster
        found = yield from place_group_in_steps(cluster, pods, hints, self._colocations(len(pods)))
        if isinstance(found, GroupRefusal):
            self.steps += found.steps
            return found
        return list(zip(candidates, found.placements, strict=True))

    def _colocations(self, count: int) -> list[Colocation]:
        """Say that this many members have to be in one domain, if they have to."""
        if self._shared is None:
            return []
        return [Colocation(self._shared.key, tuple(range(count)), self._shared.value)]

    def _refused(self, candidates: list[Candidate], found: GroupRefusal) -> Refusal:
        key = candidates[found.failed].key
        if self._is_of_one_namespace:
            message = f"{found.message.rstrip('.')}; so {self._members.title} fails at {key[1]}"
        else:
            message = self._fails_at(key, found.message)
        return Refusal(message, reasons_of(found))

    def _too_few(self) -> Refusal:
        gated = sum(denied.reason == GATED_REASON for denied in self.denied.values())
        told = shortage(self._members, len(self._candidates), gated)
        if told is not None:
            return Refusal(told, {MEMBERS: {told: 1}})
        key, denied = next(
            (key, each) for key, each in self.denied.items() if each.reason != GATED_REASON
        )
        return Refusal(self._fails_at(key, denied.detail), {ADMISSION: {denied.reason: 1}})

    @property
    def _is_of_one_namespace(self) -> bool:
        """Whether everybody who may read one member may read all of them."""
        return len(self._members.namespaces) == 1

    def _fails_at(self, key: ObjectName, why: str) -> str:
        """Say at which member the group fails, and what keeps that one from being placed."""
        failed = f"{key[1]}: {why}" if self._is_of_one_namespace else reference("Pod", *key, why)
        return f"{self._members.title} fails at {failed}"


def reasons_of(found: GroupRefusal) -> dict[str, dict[str, int]]:
    """Return the reasons why a search found nothing; one is that it ended by its budget."""
    if not found.exhausted:
        return found.refusal.reasons
    return found.refusal.reasons | {GROUP_SEARCH_ENDED: {"groupSearchSteps": 1}}


def denials(
    context: DecisionContext, candidates: Sequence[Candidate]
) -> Steps[dict[ObjectName, Denied]]:
    """Find the members that may not be placed, whatever room there is on nodes.

    Quotas must have room for all of them together, so each is charged while the next is judged.
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
