"""Equivalence classes of pending pods: pods that no rule distinguishes, or a group's members."""

from collections.abc import Collection, Iterable
from enum import Enum

from service.engine.framework.events import Pair
from service.engine.profiles.registry import resource_filters
from service.model.core.primitives import ObjectName
from service.model.pods.pod import Pod
from service.scheduler.pending.queueing_hints import topics
from service.scheduler.protocol.pending_attempts import Refused
from service.scheduler.replica.pod_groups import GroupRef

Order = tuple[int, str, str, str]
"""The order in which pods are tried: highest priority first, then oldest, then by name."""


Topic = tuple[str, Pair | None]
"""The plugin that rejected a pod, and a pod or node label on which the verdict depends. None
instead of the label means that the verdict may depend on any label."""
ALL: Pair = ("", "")
"""Replaces the label in a topic that every equivalence class rejected by the plugin has."""


class State(Enum):
    """What an equivalence class is waiting for."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    UNKNOWN = "unknown scheduler"


class EquivalenceClass:
    """Pending pods that are equal for every rule, or the members of one group."""

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
        "shown_at",
        "shown_reasons",
        "stale",
        "stale_due",
        "state",
        "topics",
    )

    def __init__(self, identity: object, pod: Pod, group: GroupRef | None) -> None:
        self.identity = identity
        self.group = group
        """The group of these pods, which may differ but are tried together."""
        self.changed = 0
        """The last revision at which the group itself, or one of its members, changed."""
        self.pod = pod
        """One of the pods, representing all of them."""
        self.state = State.ACTIVE
        self.members: dict[ObjectName, Order] = {}
        self.heap: list[Order] = []
        """The members in order, possibly including deleted pods and pods being tried."""
        self.refused: Refused | None = None
        self.failures = 0
        """How often the class was refused since a member was placed or the group changed."""
        self.refused_at = self.due = 0.0
        """When the class was last refused, and when its back-off ends."""
        self.topics: frozenset[Topic] = frozenset()
        self.shown_reasons: frozenset[str] = frozenset()
        """The reasons in the members' conditions."""
        self.new: dict[ObjectName, None] = {}
        """The members without a condition so far."""
        self.stale: dict[ObjectName, None] = {}
        """The members whose conditions state outdated reasons, updated at `stale_due` (protocol
        rule P18)."""
        self.stale_due = 0.0
        self.shown_at: float | None = None
        """When the members' conditions were last updated."""

    @property
    def insufficient(self) -> bool:
        """Whether the class was last refused because no node had enough resources."""
        refused = None if self.group is not None else self.refused
        return refused is not None and not resource_filters().isdisjoint(refused.reasons)

    @property
    def is_costly(self) -> bool:
        """Whether another attempt would take long."""
        return self.refused is not None and self.refused.is_costly


def topics_of(pod: Pod, refused: Refused) -> frozenset[Topic]:
    """Return the topics that index a refused pod, so that events that may help can find it."""
    return frozenset(
        (plugin, pair)
        for plugin, reasons in refused.reasons.items()
        for pair in (ALL, *_labels_of_interest(plugin, pod, reasons))
    )


def _labels_of_interest(plugin: str, pod: Pod, reasons: Collection[str]) -> Iterable[Pair | None]:
    pairs = topics(plugin, pod, reasons)
    return (None,) if pairs is None else pairs
