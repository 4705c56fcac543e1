"""An index of the pending pods that an event may help."""

from collections.abc import Iterable

from service.engine.framework.events import ClusterEvent
from service.scheduler.pending.equivalence_classes import ALL, EquivalenceClass, Topic, topics_of
from service.scheduler.pending.queueing_hints import EVERYTHING, helps, labels_of, plugins_turned_by
from service.scheduler.protocol.pending_attempts import Refused


class QueueingHintIndex:
    """The unschedulable equivalence classes of one queue, indexed by what refused them."""

    def __init__(self) -> None:
        self._by_topic: dict[Topic, dict[EquivalenceClass, None]] = {}
        self._groups: dict[EquivalenceClass, None] = {}
        """The groups refused despite having enough members; any event may help them."""
        self._held_back: dict[EquivalenceClass, None] = {}
        """The classes refused because room is kept for the starving pod; any event may help them,
        because it may change which room that is."""

    def put(self, equivalence: EquivalenceClass, refused: Refused) -> None:
        """Index an equivalence class of single pods by the topics of its refusal."""
        equivalence.topics = topics_of(equivalence.pod, refused)
        for topic in equivalence.topics:
            self._by_topic.setdefault(topic, {})[equivalence] = None

    def put_group(self, equivalence: EquivalenceClass) -> None:
        """Index a group under every event, because hints only cover single pods."""
        self._groups[equivalence] = None

    def put_held_back(self, equivalence: EquivalenceClass) -> None:
        """Index an equivalence class that is refused because of the starving pod."""
        self._held_back[equivalence] = None

    def held_back(self) -> list[EquivalenceClass]:
        """Return the classes refused because of the starving pod."""
        return list(self._held_back)

    def drop(self, equivalence: EquivalenceClass) -> None:
        self._groups.pop(equivalence, None)
        self._held_back.pop(equivalence, None)
        for topic in equivalence.topics:
            equivalences = self._by_topic[topic]
            del equivalences[equivalence]
            if not equivalences:
                del self._by_topic[topic]
        equivalence.topics = frozenset()

    def concerned(
        self, event: ClusterEvent, everybody: Iterable[EquivalenceClass]
    ) -> list[EquivalenceClass]:
        """Return the classes that an event may help, possibly with some others."""
        plugins = plugins_turned_by(event)
        if plugins is None:
            return list(everybody)
        rejected = [
            equivalence for plugin in plugins for equivalence in self._asking(plugin, event)
        ]
        return [*rejected, *self._groups, *self._held_back]

    def is_helped(self, equivalence: EquivalenceClass, event: ClusterEvent) -> bool:
        """Return whether an event may change the refusal of an equivalence class."""
        if equivalence in self._held_back:
            return True
        if equivalence.group is not None:
            return equivalence in self._groups
        reasons = equivalence.refused.reasons if equivalence.refused else {}
        return event is EVERYTHING or any(
            helps(event, plugin, equivalence.pod, messages) for plugin, messages in reasons.items()
        )

    def _asking(self, plugin: str, event: ClusterEvent) -> list[EquivalenceClass]:
        """Return the equivalence classes rejected by a plugin that an event may concern."""
        pairs = labels_of(plugin, event)
        if pairs is None:
            return list(self._by_topic.get((plugin, ALL), ()))
        return [
            equivalence
            for pair in (None, *pairs)
            for equivalence in self._by_topic.get((plugin, pair), ())
        ]
