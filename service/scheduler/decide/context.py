"""What a decision works on: the replica, the time of the batch, identifiers and limits."""

from collections.abc import Callable, Generator
from datetime import datetime
from typing import TypeVar

import msgspec

from service.model.core.primitives import ObjectName
from service.model.errors import Overloaded
from service.model.kinds_kept_for_rules.disruption_budgets import DisruptionBudget
from service.model.log.events import Event
from service.model.manifests.manifest import TemplateCache
from service.model.pod_templates.field_warnings import FieldWarning, FieldWarnings, WarningList
from service.scheduler.decide.disruption_budgets import BudgetCache
from service.scheduler.protocol.intents import A
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.ports import Ids
from service.scheduler.protocol.suspects import KnowsSuspects, NoSuspects
from service.scheduler.replica.replica import Replica

Decision = Generator[None, None, A]
"""The steps of one decision. Between two steps the event loop may run other tasks, but nobody else
may change the replica. The decision returns the answer; or it raises a MoorageError, which is the
answer then, and its changes are undone."""

T = TypeVar("T")

Steps = Generator[None, None, T]
"""The steps of a part of a decision, and the type of what this part returns."""


class Hint(msgspec.Struct, frozen=True, gc=False):
    """The node that was chosen for a pod before the race was lost, by name and uid (P9)."""

    node_name: str
    node_uid: str


SWEEP_ATTEMPTS_MAX = 10
"""After so many attempts, with all races lost, a sweep is given up and made again later."""

Hints = dict[ObjectName, Hint]
"""The hint of each pod, by the pod's namespace and name."""


def kept_of(before: Hints, after: Hints) -> int:
    """Count the pods that got the same node again; each pod that was placed has a new hint."""
    return sum(
        after[key] is not hint and after[key].node_name == hint.node_name
        for key, hint in before.items()
    )


def _never() -> bool:
    return False


class DecisionContext(msgspec.Struct, kw_only=True):
    """Everything that deciding one intent may look at. Changes go to `replica` at once."""

    replica: Replica
    now: str
    """RFC 3339 in UTC, whole seconds; the same for a whole batch."""
    templates: TemplateCache
    ids: Ids
    limits: Limits
    attempts: int
    """How often the intent was decided, this time included."""
    hints: Hints
    cluster_id: int = 0
    """The cluster; 0 for one that only a request describes."""
    suspects: KnowsSuspects = NoSuspects()
    """The pods of which workers have died."""
    has_waited: bool = False
    """Whether the queue waits no longer for what expressions say of its pods."""
    is_late: Callable[[], bool] = _never
    """Whether a decision that may stop half-way should stop now."""
    not_before: datetime | None = None
    """Set by a decision that acts because a time has come: its commit must not be earlier (P16)."""
    events: list[Event] = msgspec.field(default_factory=list)
    """The events of the decision, which are recorded once it is committed."""
    budget_cache: BudgetCache | None = None
    """Kept from the first pod of the decision on that asks what disruption budgets allow."""
    warnings: WarningList | None = None
    """The warnings that the answer has, if there are any."""

    def budgets(self, *, as_given: bool) -> list[DisruptionBudget]:
        """Return what all disruption budgets allow now, or what their `status` says."""
        if self.budget_cache is None:
            self.budget_cache = BudgetCache()
        return self.budget_cache.of(self.replica.cluster, as_given=as_given)

    def warn(self, found: FieldWarnings, prefix: str = "") -> None:
        """Add warnings about an object at some path of the request to the answer."""
        if not found:
            return
        if self.warnings is None:
            self.warnings = WarningList()
        self.warnings.add(found, prefix)

    def told(self) -> list[FieldWarning] | msgspec.UnsetType:
        """Return the warnings as the answer has them."""
        return msgspec.UNSET if self.warnings is None else self.warnings.told()

    def aside(self) -> "DecisionContext":
        """Return the context of decisions that are only tried out: their hints and events are nobody's business."""
        return msgspec.structs.replace(self, hints={}, events=[], budget_cache=None)

    def give_up_in_time(self, told: str) -> None:
        """End a sweep that loses every race; it is made again later.

        Raises:
            Overloaded: this was tried `SWEEP_ATTEMPTS_MAX` times.
        """
        if self.attempts > SWEEP_ATTEMPTS_MAX:
            raise Overloaded(told)

    def rest_on(self, time: datetime) -> None:
        """Note that the decision rests on that time having come (P16)."""
        self.not_before = max(self.not_before or time, time)

    def hint(self, namespace: str, name: str) -> str | None:
        """Return the node that was chosen for a pod last time, if that very node is still there."""
        hint = self.hints.get((namespace, name))
        if hint is None:
            return None
        node = self.replica.cluster.node(hint.node_name)
        return hint.node_name if node and node.uid == hint.node_uid else None

    def remember(self, namespace: str, name: str, node_name: str) -> None:
        """Keep the node chosen for a pod as the hint for next time."""
        node = self.replica.cluster.node(node_name)
        assert node is not None
        self.hints[namespace, name] = Hint(node_name, node.uid)


def at_once(
    decide: Callable[[DecisionContext, T], A],
) -> Callable[[DecisionContext, T], Decision[A]]:
    """Turn a function that decides without steps in between into a decision."""

    def steps(context: DecisionContext, intent: T) -> Decision[A]:
        yield from ()
        return decide(context, intent)

    return steps
