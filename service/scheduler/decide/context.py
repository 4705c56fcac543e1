"""What a decision works on: the replica, the time of the batch, identifiers and limits."""

from collections.abc import Callable, Generator
from datetime import datetime
from typing import TypeVar

import msgspec

from service.model.events import Event
from service.model.manifest import TemplateCache
from service.scheduler.protocol.intents import A
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.ports import Ids
from service.scheduler.replica.replica import Replica

Decision = Generator[None, None, A]
"""The steps of one decision; between two of them the event loop may run, the replica may not
change. It returns the answer, or raises the MoorageError that is the answer: then what it changed
is undone."""

T = TypeVar("T")

Steps = Generator[None, None, T]
"""Those of a part of a decision, and what it comes to."""


class Hint(msgspec.Struct, frozen=True, gc=False):
    """Where a pod was to go before the race was lost: the node by name and uid (P9)."""

    node_name: str
    node_uid: str


Hints = dict[tuple[str, str], Hint]
"""By the pod's namespace and name."""


def kept_of(before: Hints, after: Hints) -> int:
    """How many pods were placed anew (each has a new hint then) where they were to go before."""
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
    is_late: Callable[[], bool] = _never
    """Whether a decision that can be left half done should come to its end."""
    not_before: datetime | None = None
    """Set by a decision that acts because a time has come: its commit must not be earlier (P16)."""
    events: list[Event] = msgspec.field(default_factory=list)
    """What is told of the decision, once it is committed."""

    def hint(self, namespace: str, name: str) -> str | None:
        """The node chosen for a pod last time, if that very node is still there."""
        hint = self.hints.get((namespace, name))
        if hint is None:
            return None
        node = self.replica.get("Node", "", hint.node_name)
        return hint.node_name if node and node.manifest.uid == hint.node_uid else None

    def remember(self, namespace: str, name: str, node_name: str) -> None:
        """Keep the node chosen for a pod as the hint for next time."""
        node = self.replica.get("Node", "", node_name)
        assert node is not None
        self.hints[namespace, name] = Hint(node_name, node.manifest.uid)


def at_once(
    decide: Callable[[DecisionContext, T], A],
) -> Callable[[DecisionContext, T], Decision[A]]:
    """A decision that is made in one step."""

    def steps(context: DecisionContext, intent: T) -> Decision[A]:
        yield from ()
        return decide(context, intent)

    return steps
