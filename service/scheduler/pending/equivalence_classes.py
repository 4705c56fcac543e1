"""Lots of pending pods: those that no rule can tell apart, or the members of one group."""

from collections.abc import Collection, Iterable
from enum import Enum

from service.engine.cluster_events import Pair
from service.model.objects import ObjectName, Pod
from service.scheduler.pending.queueing_hints import FIT, topics
from service.scheduler.protocol.attempts import Refused
from service.scheduler.replica.pod_groups import GroupRef

Order = tuple[int, str, str, str]
"""Highest priority first, then oldest, then by namespace and name."""


Topic = tuple[str, Pair | None]
"""A plugin that rejected, with a label of pods, or a node, that it is about; None: of any."""
ALL: Pair = ("", "")
"""With this in place of a label: every equivalence class that the plugin rejected."""


class State(Enum):
    """What an equivalence class is waiting for."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    UNKNOWN = "unknown scheduler"


class EquivalenceClass:
    """Pending pods that are equal for every rule."""

    __slots__ = (
        "changed",
        "due",
        "failures",
        "group",
        "heap",
        "identity",
        "members",
        "new",
        "pod",
        "refused",
        "refused_at",
        "stale",
        "stale_due",
        "state",
        "told",
        "told_at",
        "topics",
    )

    def __init__(self, identity: object, pod: Pod, group: GroupRef | None) -> None:
        self.identity = identity
        self.group = group
        """Members of a group are one equivalence class however they differ: they are tried together."""
        self.changed = 0
        """The last revision at which something of the group itself was another."""
        self.pod = pod
        """Any of them."""
        self.state = State.ACTIVE
        self.members: dict[ObjectName, Order] = {}
        self.heap: list[Order] = []
        """Members in order, with some that are gone or being tried."""
        self.refused: Refused | None = None
        self.failures = 0
        """Refusals since the last change for the better."""
        self.refused_at = self.due = 0.0
        """When it was refused last, and before when it is not tried again."""
        self.topics: frozenset[Topic] = frozenset()
        self.told: frozenset[str] = frozenset()
        """The reasons that members were told."""
        self.new: dict[ObjectName, None] = {}
        """Members that were told nothing yet."""
        self.stale: dict[ObjectName, None] = {}
        """Members that were told other reasons; it is their turn at `stale_due` (P18)."""
        self.stale_due = 0.0
        self.told_at: float | None = None
        """When they were told last."""

    @property
    def insufficient(self) -> bool:
        """Whether it is room for a pod that was missing last."""
        return self.group is None and self.refused is not None and FIT in self.refused.reasons

    @property
    def is_costly(self) -> bool:
        """Whether finding out anew takes long."""
        return self.refused is not None and self.refused.is_costly


def topics_of(pod: Pod, refused: Refused) -> frozenset[Topic]:
    """What can help pods like this one, by the plugins that rejected it."""
    return frozenset(
        (plugin, pair)
        for plugin, reasons in refused.reasons.items()
        for pair in (ALL, *_labels_of_interest(plugin, pod, reasons))
    )


def _labels_of_interest(plugin: str, pod: Pod, reasons: Collection[str]) -> Iterable[Pair | None]:
    pairs = topics(plugin, pod, reasons)
    return (None,) if pairs is None else pairs
