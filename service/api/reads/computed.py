"""Read objects whose `status` is computed from a replica because no table stores it."""

from collections.abc import AsyncIterator

from msgspec.structs import replace

from service.api.reads.stored import ClusterReads, Wanted
from service.model.log.commit import Head, ObjectRow
from service.model.log.pages import ObjectPage, ObjectRead, first_rows
from service.scheduler.protocol.answers import ShownObject
from service.scheduler.protocol.intents import ReadComputed
from service.scheduler.scheduler import Scheduler


class ComputedReads:
    """Replaces `ClusterReads` for kinds with a computed `status`, exact as of the read's head."""

    def __init__(self, reads: ClusterReads, scheduler: Scheduler) -> None:
        self._reads = reads
        self._scheduler = scheduler

    async def get_object(
        self, cluster: str, kind: str, namespace: str, name: str, *, at_least: int = 0
    ) -> ObjectRead:
        """Return one object at revision `at_least` or later."""
        stored = await self._reads.get_object(cluster, kind, namespace, name, at_least=at_least)
        intent = ReadComputed(kind=kind, namespace=namespace, name=name)
        page = await self._read(cluster, intent, stored.head)
        return ObjectRead(head=page.head, row=page.rows[0] if page.rows else None)

    async def batches(self, cluster: str, kind: str, wanted: Wanted) -> AsyncIterator[ObjectPage]:
        """Yield the objects of a kind at one revision, in batches; none matches a `node_name`."""
        stored = await self._reads.get_object(cluster, kind, "", "", at_least=wanted.at_least)
        intent = ReadComputed(kind=kind, namespace=wanted.namespace)
        page = await self._read(cluster, intent, stored.head)
        rows = [
            row
            for row in page.rows
            if not wanted.node_name
            and (wanted.after is None or (row.namespace, row.name) > wanted.after)
        ]
        wanted.hold(sum(len(row.body) for row in rows))
        while True:
            batch = first_rows(rows, wanted.rows)
            yield ObjectPage(head=page.head, rows=batch)
            rows = rows[len(batch) :]
            if not rows:
                return

    async def _read(self, cluster: str, intent: ReadComputed, head: Head) -> ObjectPage:
        answer = await self._scheduler.submit(cluster, intent)
        return ObjectPage(
            head=replace(head, revision=answer.revision),
            rows=[_row(intent.kind, item) for item in answer.objects],
        )


def _row(kind: str, shown: ShownObject) -> ObjectRow:
    return ObjectRow(
        kind=kind,
        namespace=shown.namespace,
        name=shown.name,
        uid=shown.uid,
        revision=shown.resource_version,
        body=shown.body,
    )
