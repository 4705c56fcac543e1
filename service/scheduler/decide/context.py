"""What a decision works on: the replica, the time of the batch, identifiers, and limits."""

from collections.abc import Callable, Generator
from datetime import datetime
from typing import TypeVar

import msgspec

from service.model.core.errors import Overloaded
from service.model.core.field_warnings import FieldWarning, FieldWarnings, WarningList
from service.model.core.primitives import ObjectName
from service.model.log.events import Event
from service.model.registry.manifests import TemplateCache
from service.model.workloads.disruption_budget import DisruptionBudget
from service.scheduler.decide.disruption_budgets import BudgetCache
from service.scheduler.protocol.intents import A
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.ports import Ids
from service.scheduler.protocol.suspects import NoSuspects, SuspectRegistry
from service.scheduler.replica.replica import Replica

Decision = Generator[None, None, A]
"""The steps of one decision. Between two steps the event loop may run other tasks, but nobody else
may change the replica. The decision returns the answer, or raises a MoorageError, which is then the
answer, and its changes are undone."""

T = TypeVar("T")

Steps = Generator[None, None, T]
"""The steps of a part of a decision, with the type that this part returns."""


class Hint(msgspec.Struct, frozen=True, gc=False):
    """The node chosen for a pod before the race was lost, by name and uid (protocol rule P9)."""

    node_name: str
    node_uid: str


SWEEP_ATTEMPTS_MAX = 10
"""After this many lost races, a sweep is abandoned and made again later."""

Hints = dict[ObjectName, Hint]
"""The hint of each pod, by the pod's namespace and name."""


def count_kept_nodes(before: Hints, after: Hints) -> int:
    """Count the pods that got the same node again; each pod that was placed has a new hint."""
    return sum(
        after[key] is not hint and after[key].node_name == hint.node_name
        for key, hint in before.items()
    )


def _never() -> bool:
    return False


class DecisionContext(msgspec.Struct, kw_only=True):
    """Everything that deciding one intent may read. Changes to `replica` take effect at once."""

    replica: Replica
    now: str
    """RFC 3339 in UTC, whole seconds; the same for a whole batch."""
    templates: TemplateCache
    ids: Ids
    limits: Limits
    attempts: int
    """How often the intent was decided, including this time."""
    hints: Hints
    cluster_id: int = 0
    """The cluster; 0 for one that exists only in a request."""
    suspects: SuspectRegistry = NoSuspects()
    """The pods whose decisions killed workers."""
    has_waited: bool = False
    """Whether pending pods wait no longer for the evaluation of their expressions."""
    is_late: Callable[[], bool] = _never
    """Whether a decision that may stop half-way should stop now."""
    not_before: datetime | None = None
    """The earliest time to commit, set by decisions that act because a time has come (protocol rule
    P16)."""
    events: list[Event] = msgspec.field(default_factory=list)
    """The events of the decision, which are recorded once it is committed."""
    budget_cache: BudgetCache | None = None
    """The budgets' allowances, from the first pod of the decision on that needs them."""
    warnings: WarningList | None = None
    """The warnings of the answer, or None."""

    def budgets(self, *, as_given: bool) -> list[DisruptionBudget]:
        """Return what all disruption budgets allow now, or what their `status` says."""
        if self.budget_cache is None:
            self.budget_cache = BudgetCache()
        return self.budget_cache.of(self.replica.cluster, as_given=as_given)

    def warn(self, warnings: FieldWarnings, prefix: str = "") -> None:
        """Add warnings about an object at some path of the request to the answer."""
        if not warnings:
            return
        if self.warnings is None:
            self.warnings = WarningList()
        self.warnings.add(warnings, prefix)

    def answer_warnings(self) -> list[FieldWarning] | msgspec.UnsetType:
        """Return the warnings in the form that answers have."""
        return msgspec.UNSET if self.warnings is None else self.warnings.told()

    def speculative(self) -> "DecisionContext":
        """Return a context for speculative decisions, whose hints and events are discarded."""
        return msgspec.structs.replace(self, hints={}, events=[], budget_cache=None)

    def check_attempts(self, message: str) -> None:
        """Abandon a sweep that loses every race; it is made again later.

        Raises:
            Overloaded: this was tried `SWEEP_ATTEMPTS_MAX` times.
        """
        if self.attempts > SWEEP_ATTEMPTS_MAX:
            raise Overloaded(message)

    def hold_until(self, time: datetime) -> None:
        """Delay the commit to a time that the decision assumes to have come (protocol rule P16)."""
        self.not_before = max(self.not_before or time, time)

    def hint(self, namespace: str, name: str) -> str | None:
        """Return the node chosen for a pod last time, or None if that very node no longer exists."""
        hint = self.hints.get((namespace, name))
        if hint is None:
            return None
        node = self.replica.cluster.node(hint.node_name)
        return hint.node_name if node and node.uid == hint.node_uid else None

    def remember(self, namespace: str, name: str, node_name: str) -> None:
        """Remember the node chosen for a pod as the hint for next time."""
        node = self.replica.cluster.node(node_name)
        assert node is not None
        self.hints[namespace, name] = Hint(node_name, node.uid)


def at_once(
    decide: Callable[[DecisionContext, T], A],
) -> Callable[[DecisionContext, T], Decision[A]]:
    """Turn a function that decides in one step into a decision."""

    def steps(context: DecisionContext, intent: T) -> Decision[A]:
        yield from ()
        return decide(context, intent)

    return steps
