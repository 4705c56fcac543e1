"""Reads objects in memory."""

from collections.abc import Collection
from heapq import nsmallest

from service.model.core.primitives import ObjectName
from service.model.log.commit import ObjectKey, ObjectRow
from service.model.log.pages import ObjectPage, ObjectRead, first_rows
from tests.support.memory_store.state import MemoryState


class MemoryObjects:
    """The objects of clusters."""

    def __init__(self, state: MemoryState) -> None:
        self.state = state

    async def read(
        self,
        cluster_id: int,
        after: ObjectKey | None,
        limit: int,
        namespaces: Collection[str] | None = None,
    ) -> ObjectPage:
        """At most `limit` objects of all kinds that follow the key `after`, ordered by their keys (P13)."""
        own = self.state.of(cluster_id)
        keys = (
            key
            for key in own.objects
            if (after is None or key > after) and _is_within(key, namespaces)
        )
        rows = (own.objects[key] for key in nsmallest(limit, keys))
        return ObjectPage(own.head, first_rows(rows, limit))

    async def get(self, cluster_id: int, kind: str, namespace: str, name: str) -> ObjectRead:
        """One object, and the head of the same instant."""
        own = self.state.of(cluster_id)
        return ObjectRead(own.head, own.objects.get(ObjectKey(kind, namespace, name)))

    async def list(
        self,
        cluster_id: int,
        kind: str,
        *,
        namespace: str | None = None,
        node_name: str | None = None,
        after: ObjectName | None = None,
        limit: int,
    ) -> ObjectPage:
        """At most `limit` objects that follow the key `after`, ordered by namespace and name."""
        own = self.state.of(cluster_id)
        rows = [
            row
            for row in own.objects.values()
            if row.kind == kind
            and (namespace is None or row.namespace == namespace)
            and (node_name is None or row.node_name == node_name)
            and (after is None or (row.namespace, row.name) > after)
        ]
        return ObjectPage(own.head, first_rows(sorted(rows, key=_key), limit))


def _is_within(key: ObjectKey, namespaces: Collection[str] | None) -> bool:
    """Whether an object is one of these namespaces, is in one, or is another kind outside of namespaces."""
    if namespaces is None or key.namespace in namespaces:
        return True
    return not key.namespace and (key.kind != "Namespace" or key.name in namespaces)


def _key(row: ObjectRow) -> ObjectKey:
    return row.key
