"""The inputs of a decision: the replica, the batch's time, identifiers, and limits."""

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
"""The steps of one decision. Between two steps the event loop may run other tasks, but no other
task may change the replica. The decision returns the answer, or raises a MoorageError; the error is
then the answer, and the decision's changes are undone."""

T = TypeVar("T")

Steps = Generator[None, None, T]
"""The steps of a part of a decision, with the type that the part returns."""


class Hint(msgspec.Struct, frozen=True, gc=False):
    """The node chosen for a pod, by name and uid, before a commit lost its race (rule P9)."""

    node_name: str
    node_uid: str


SWEEP_ATTEMPTS_MAX = 10
"""After this many lost races, a sweep is abandoned and retried later."""

Hints = dict[ObjectName, Hint]
"""The hints of pods, by namespace and name."""


def count_kept_nodes(before: Hints, after: Hints) -> int:
    """Count the pods that got the same node again; every placed pod has a new hint."""
    return sum(
        after[key] is not hint and after[key].node_name == hint.node_name
        for key, hint in before.items()
    )


def _never() -> bool:
    return False


class DecisionContext(msgspec.Struct, kw_only=True):
    """The inputs of one intent's decision. Changes to `replica` take effect at once."""

    replica: Replica
    now: str
    """The current time in RFC 3339, UTC, whole seconds; the same for a whole batch."""
    templates: TemplateCache
    ids: Ids
    limits: Limits
    attempts: int
    """How many times the intent was decided, including this time."""
    hints: Hints
    cluster_id: int = 0
    """The cluster's number, or 0 for a cluster that exists only in a request."""
    suspects: SuspectRegistry = NoSuspects()
    """The pods whose decisions killed workers."""
    has_waited: bool = False
    """Whether pending pods stop waiting for the evaluation of their expressions."""
    is_late: Callable[[], bool] = _never
    """Whether a decision that can stop partway should stop now."""
    not_before: datetime | None = None
    """The earliest time to commit, set by decisions that assume a time has come (protocol rule
    P16)."""
    events: list[Event] = msgspec.field(default_factory=list)
    """The events of the decision, recorded after the commit."""
    budget_cache: BudgetCache | None = None
    """The budgets' allowances, filled when a pod of the decision first needs them."""
    warnings: WarningList | None = None
    """The warnings of the answer, or None if warnings are not collected."""

    def budgets(self, *, as_given: bool) -> list[DisruptionBudget]:
        """Return the current allowances of all disruption budgets, or those in their `status`."""
        if self.budget_cache is None:
            self.budget_cache = BudgetCache()
        return self.budget_cache.of(self.replica.cluster, as_given=as_given)

    def warn(self, warnings: FieldWarnings, prefix: str = "") -> None:
        """Add warnings about an object to the answer, below a path of the request."""
        if not warnings:
            return
        if self.warnings is None:
            self.warnings = WarningList()
        self.warnings.add(warnings, prefix)

    def answer_warnings(self) -> list[FieldWarning] | msgspec.UnsetType:
        """Return the warnings in the format of answers."""
        return msgspec.UNSET if self.warnings is None else self.warnings.told()

    def speculative(self) -> "DecisionContext":
        """Return a context for speculative decisions, with separate hints and events to discard."""
        return msgspec.structs.replace(self, hints={}, events=[], budget_cache=None)

    def check_attempts(self, message: str) -> None:
        """Abandon a sweep that has lost every race, to be retried later.

        Raises:
            Overloaded: the sweep was tried `SWEEP_ATTEMPTS_MAX` times.
        """
        if self.attempts > SWEEP_ATTEMPTS_MAX:
            raise Overloaded(message)

    def hold_until(self, time: datetime) -> None:
        """Delay the commit to a time that the decision assumes to have come (protocol rule P16)."""
        self.not_before = max(self.not_before or time, time)

    def hint(self, namespace: str, name: str) -> str | None:
        """Return the node last chosen for a pod, or None if that very node no longer exists."""
        hint = self.hints.get((namespace, name))
        if hint is None:
            return None
        node = self.replica.cluster.node(hint.node_name)
        return hint.node_name if node and node.uid == hint.node_uid else None

    def remember(self, namespace: str, name: str, node_name: str) -> None:
        """Store the node chosen for a pod as the hint for the next attempt."""
        node = self.replica.cluster.node(node_name)
        assert node is not None
        self.hints[namespace, name] = Hint(node_name, node.uid)


def at_once(
    decide: Callable[[DecisionContext, T], A],
) -> Callable[[DecisionContext, T], Decision[A]]:
    """Turn a single-step function into a decision."""

    def steps(context: DecisionContext, intent: T) -> Decision[A]:
        yield from ()
        return decide(context, intent)

    return steps
