"""Reads of quotas, whose `status` is known by replicas and not by the store's tables."""

from collections.abc import AsyncIterator

from msgspec.structs import replace

from service.api.reads import BATCH_ROWS, ClusterReads
from service.model.log import Head, ObjectPage, ObjectRead, ObjectRow
from service.model.manifest import QuotaManifest
from service.scheduler.answers import ShownQuota
from service.scheduler.intents import ReadQuotas
from service.scheduler.service import Scheduler


class QuotaReads:
    """Quotas in place of `ClusterReads`: what is used is exact for the head they are read at."""

    def __init__(self, reads: ClusterReads, scheduler: Scheduler) -> None:
        self._reads = reads
        self._scheduler = scheduler

    async def get_object(
        self, cluster: str, kind: str, namespace: str, name: str, *, at_least: int = 0
    ) -> ObjectRead:
        """One quota at revision `at_least` or later."""
        stored = await self._reads.get_object(cluster, kind, namespace, name, at_least=at_least)
        page = await self._read(cluster, ReadQuotas(namespace=namespace, name=name), stored.head)
        return ObjectRead(head=page.head, row=page.rows[0] if page.rows else None)

    async def batches(
        self,
        cluster: str,
        kind: str,
        *,
        namespace: str | None,
        after: tuple[str, str] | None,
        rows: int = BATCH_ROWS,
        node_name: str | None = None,
        at_least: int = 0,
    ) -> AsyncIterator[ObjectPage]:
        """The quotas in batches, all of one revision; none is on a node, so `node_name` finds none."""
        stored = await self._reads.get_object(cluster, kind, "", "", at_least=at_least)
        page = await self._read(cluster, ReadQuotas(namespace=namespace), stored.head)
        found = [row for row in page.rows if after is None or (row.namespace, row.name) > after]
        found = [] if node_name else found
        for start in range(0, len(found) or 1, rows):
            yield ObjectPage(head=page.head, rows=found[start : start + rows])

    async def _read(self, cluster: str, intent: ReadQuotas, head: Head) -> ObjectPage:
        answer = await self._scheduler.submit(cluster, intent)
        return ObjectPage(
            head=replace(head, revision=answer.revision),
            rows=[_row(each) for each in answer.quotas],
        )


def _row(quota: ShownQuota) -> ObjectRow:
    return ObjectRow(
        kind=QuotaManifest.kind,
        namespace=quota.namespace,
        name=quota.name,
        uid=quota.uid,
        revision=quota.resource_version,
        body=quota.body,
    )
