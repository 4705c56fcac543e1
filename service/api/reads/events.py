"""Read events in Kubernetes' format."""

from collections.abc import AsyncIterator

import msgspec

from service.api.reads.stored import ClusterReads, Wanted
from service.model.log.commit import ObjectRow
from service.model.log.events import EventRow
from service.model.log.pages import ObjectPage
from service.scheduler.scheduler import Scheduler

EVENT_KIND = "Event"


class EventReads:
    """Replaces `ClusterReads` for events, first storing those that this process still holds."""

    def __init__(self, reads: ClusterReads, scheduler: Scheduler) -> None:
        self._reads = reads
        self._scheduler = scheduler

    async def batches(self, cluster: str, kind: str, wanted: Wanted) -> AsyncIterator[ObjectPage]:
        """Yield the events in batches; none of them matches a `wanted.node_name`."""
        del kind
        await self._scheduler.store_events()
        after = wanted.after
        while True:
            page = await self._reads.list_events(cluster, wanted, after)
            yield ObjectPage(
                page.head, [] if wanted.node_name else [_row(row) for row in page.rows]
            )
            if len(page.rows) < wanted.rows:
                return
            after = (page.rows[-1].event.namespace, page.rows[-1].name)


def _row(row: EventRow) -> ObjectRow:
    """Return the event as an object whose body is an `Event` of the API."""
    event = row.event
    about = {"apiVersion": "v1", "kind": "Pod", "namespace": event.namespace, "name": event.pod}
    fields = {
        "apiVersion": "v1",
        "kind": EVENT_KIND,
        "metadata": {
            "name": row.name,
            "namespace": event.namespace,
            "creationTimestamp": event.first,
        },
        "involvedObject": {**about, "uid": event.uid},
        "type": event.type,
        "reason": event.reason,
        "message": event.message,
        "count": event.count,
        "firstTimestamp": event.first,
        "lastTimestamp": event.last,
        "source": {"component": "moorage"},
    }
    return ObjectRow(
        kind=EVENT_KIND,
        namespace=event.namespace,
        name=row.name,
        uid="",
        revision=event.revision,
        body=msgspec.json.encode(fields),
    )
