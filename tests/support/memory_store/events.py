"""Keeps events in memory."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

from service.model.core.primitives import ObjectName
from service.model.log.events import Event, EventRow
from service.model.log.pages import EventPage
from tests.support.memory_store.state import MemoryState


class MemoryEvents:
    """The events of clusters."""

    def __init__(self, state: MemoryState) -> None:
        self.state = state

    async def add(self, cluster_id: int, events: Sequence[Event]) -> None:
        """Add events, or raise the count of equal ones; nothing is added if the cluster is gone."""
        own = self.state.states.get(cluster_id)
        if own is not None:
            own.add_events(events)

    async def list(
        self,
        cluster_id: int,
        *,
        namespace: str | None = None,
        after: ObjectName | None = None,
        limit: int,
    ) -> EventPage:
        """At most `limit` events that follow the key `after`, ordered by namespace and name."""
        own = self.state.of(cluster_id)
        rows = [
            EventRow(name=key[1], event=event)
            for key, event in sorted(own.events.items())
            if (namespace is None or key[0] == namespace) and (after is None or key > after)
        ]
        return EventPage(own.head, rows[:limit])

    async def sweep(self, cluster_id: int, *, keep_seconds: float, keep_rows: int) -> int:
        """Delete events that are older, or exceed `keep_rows` of a reason; returns how many."""
        own = self.state.states.get(cluster_id)
        if own is None:
            return 0
        before = self.state.clock() - timedelta(seconds=keep_seconds)
        newest = sorted(own.events.items(), key=lambda each: each[1].last, reverse=True)
        places: Counter[str] = Counter()
        old = []
        for key, event in newest:
            places[event.reason] += 1
            if datetime.fromisoformat(event.last) < before or places[event.reason] > keep_rows:
                old.append(key)
        for key in old:
            del own.events[key]
        return len(old)
