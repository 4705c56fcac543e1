"""Clusters on PostgreSQL: which there are, making one, deleting one with all that it has."""

from typing import Any

import asyncpg
from sqlalchemy import ColumnElement, ScalarSelect, Select, bindparam, func, select

from service.model.errors import Conflict, NotFound
from service.model.log import (
    CLUSTER_KIND,
    CLUSTER_NAME,
    ClusterRow,
    Counts,
    Head,
)
from service.store.connections import Connections
from service.store.failures import unavailable_on_failure
from service.store.queries import Query
from service.store.tables import cluster, head, object_

_CREATE = "SELECT create_cluster_v1($1, $2, gen_random_uuid())"
_DELETE = "SELECT delete_cluster_v1($1)"
_IDS = "SELECT cluster_id FROM cluster ORDER BY cluster_id"
_FIND = "SELECT cluster_id FROM cluster WHERE name = $1"


class Clusters:
    """The part of the store that keeps clusters. Every call raises StorageUnavailable."""

    def __init__(self, commits: Connections, reads: Connections) -> None:
        self._writer = commits
        self._reader = reads

    async def list_clusters(self) -> list[ClusterRow]:
        """All clusters by name, as of one instant."""
        return await self._clusters(_ALL)

    async def cluster_ids(self) -> list[int]:
        """The numbers of all clusters, the oldest first."""
        with unavailable_on_failure():
            async with self._reader.driver() as connection:
                rows = await connection.fetch(_IDS)
        return [row["cluster_id"] for row in rows]

    async def get_cluster(self, name: str) -> ClusterRow:
        """The cluster that has this name now, or NotFound."""
        for found in await self._clusters(_BY_NAME, name=name):
            return found
        raise _unknown(name)

    async def find_cluster(self, name: str) -> int:
        """Only the number of the cluster that has this name now, or NotFound."""
        with unavailable_on_failure():
            async with self._reader.driver() as connection:
                cluster_id: int | None = await connection.fetchval(_FIND, name)
        if cluster_id is None:
            raise _unknown(name)
        return cluster_id

    async def create_cluster(self, name: str, config: bytes) -> ClusterRow:
        """A new cluster, with its configuration as its one object, at revision 1.

        Raises:
            Conflict: the name is taken.
        """
        with unavailable_on_failure():
            async with self._writer.driver() as connection:
                try:
                    await connection.fetchval(_CREATE, name, config)
                except asyncpg.UniqueViolationError as error:
                    raise Conflict(f"There is a cluster {name!r} already.") from error
        return await self.get_cluster(name)

    async def delete_cluster(self, cluster_id: int) -> bool:
        """Delete a cluster with everything that it has; False if it was gone already."""
        with unavailable_on_failure():
            async with self._writer.driver() as connection:
                deleted: bool = await connection.fetchval(_DELETE, cluster_id)
        return deleted

    async def counts(self, cluster_id: int) -> Counts:
        """How many nodes and pods a cluster has, or NotFound."""
        for found in await self._clusters(_BY_NUMBER, number=cluster_id):
            return found.counts
        raise NotFound(f"There is no cluster {cluster_id}.")

    async def _clusters(self, query: Query, **values: object) -> list[ClusterRow]:
        with unavailable_on_failure():
            async with self._reader.driver() as connection:
                return [_row(row) for row in await query.fetch(connection, **values)]


def _clusters() -> Select[Any]:
    """One row per cluster: see `_row`."""
    config = _objects(object_.c.kind == CLUSTER_KIND, object_.c.name == CLUSTER_NAME)
    return select(
        cluster.c.cluster_id,
        cluster.c.name,
        head.c.revision,
        head.c.tip,
        head.c.at,
        config.with_only_columns(object_.c.body).scalar_subquery().label("config"),
        _count(object_.c.kind == "Node").label("nodes"),
        _count(object_.c.kind == "Pod").label("pods"),
        # Only pods have one; the narrow index on it counts quickly.
        _count(object_.c.node_name.is_not(None)).label("placed"),
    ).join(head, head.c.cluster_id == cluster.c.cluster_id)


def _row(row: asyncpg.Record) -> ClusterRow:
    counts = Counts(nodes=row["nodes"], pods=row["pods"], pending=row["pods"] - row["placed"])
    return ClusterRow(
        cluster_id=row["cluster_id"],
        name=row["name"],
        head=Head(row["revision"], row["tip"], row["at"]),
        config=row["config"],
        counts=counts,
    )


def _objects(*which: ColumnElement[bool]) -> Select[Any]:
    own = object_.c.cluster_id == cluster.c.cluster_id
    return select(object_).where(own, *which).correlate(cluster)


def _count(*which: ColumnElement[bool]) -> ScalarSelect[int]:
    return _objects(*which).with_only_columns(func.count()).scalar_subquery()


def _unknown(name: str) -> NotFound:
    return NotFound(f"There is no cluster {name!r}.")


_ALL = Query(_clusters().order_by(cluster.c.name))
_BY_NAME = Query(_clusters().where(cluster.c.name == bindparam("name")))
_BY_NUMBER = Query(_clusters().where(cluster.c.cluster_id == bindparam("number")))
