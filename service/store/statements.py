"""Statements that SQLAlchemy Core compiles once, for the driver to send directly.

Importing SQLAlchemy takes as long as all other imports together, and a server can place pods
without it. So this module is imported only when one of its statements is needed, or some time after
the start.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Literal, cast

import asyncpg
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Dialect,
    Integer,
    ScalarSelect,
    Select,
    Text,
    bindparam,
    func,
    select,
    true,
    tuple_,
)
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg

from service.model.core.primitives import CLUSTER_KIND, CLUSTER_NAME
from service.store.db.connector import Connection
from service.store.schema.tables import cluster, head, object_

After = Literal["Start", "Name", "Key"]
"""Where a page of a list begins: at its start, after a name in a namespace, or after a key."""

_DIALECT: Dialect = cast(Callable[[], Dialect], PGDialect_asyncpg)()


class Query:
    """A statement with named parameters (`bindparam`).

    Going through SQLAlchemy for every call would take four times as long as the answer itself.
    """

    def __init__(self, statement: Select[Any]) -> None:
        compiled = statement.compile(dialect=_DIALECT)
        self.sql = str(compiled)
        self._names: list[str] = list(getattr(compiled, "positiontup", None) or ())
        self._constants: dict[str, object] = dict(compiled.params)

    async def fetch(self, connection: Connection, **values: object) -> list[asyncpg.Record]:
        """Fetch all rows; `values` are the parameters by name, and unknown ones are ignored."""
        given = self._constants | values
        return await connection.fetch(self.sql, *(given[name] for name in self._names))


@cache
def object_list(by_namespace: bool, by_node: bool, after: After) -> Query:  # noqa: FBT001
    """Return the statement for the head and a page of objects.

    Within a namespace, `after` is a name alone: given a whole key, PostgreSQL would start reading
    at the namespace's first object.
    """
    wanted = [
        object_.c.cluster_id == bindparam("cluster"),
        object_.c.kind == bindparam("kind"),
    ]
    if by_namespace:
        wanted.append(object_.c.namespace == bindparam("namespace"))
    if by_node:
        wanted.append(object_.c.node_name == bindparam("node_name"))
    if after == "Name":
        wanted.append(object_.c.name > bindparam("after_name"))
    if after == "Key":
        start = tuple_(
            bindparam("after_namespace", type_=Text), bindparam("after_name", type_=Text)
        )
        wanted.append(tuple_(object_.c.namespace, object_.c.name) > start)
    order, size = (object_.c.namespace, object_.c.name), func.octet_length(object_.c.body)
    bytes_before = (func.sum(size).over(order_by=order) - size).label("bytes_before")
    page = (
        select(object_, bytes_before)
        .where(*wanted)
        .order_by(*order)
        .limit(bindparam("limit", type_=Integer))
        .subquery("page")
    )
    small = page.c.bytes_before < bindparam("bytes_max", type_=BigInteger)
    listed = select(page).where(small).lateral("listed")
    present = [
        column.label(f"head_{column.name}") for column in (head.c.revision, head.c.tip, head.c.at)
    ]
    columns = [listed.c[column.name] for column in object_.c if column.name != "cluster_id"]
    return Query(
        select(*present, *columns)
        .select_from(head.outerjoin(listed, true()))
        .where(head.c.cluster_id == bindparam("cluster"))
        .order_by(listed.c.namespace, listed.c.name)
    )


@cache
def clusters(by: Literal["", "number"] = "") -> Query:
    """Return the statement for all clusters by name, or for the one with the given number."""
    if by:
        number: ColumnElement[int] = bindparam("number", type_=BigInteger)
        one = _clusters(number).where(cluster.c.cluster_id == number, head.c.cluster_id == number)
        return Query(one)
    return Query(_clusters(head.c.cluster_id).order_by(cluster.c.name))


def _clusters(number: ColumnElement[int]) -> Select[Any]:
    """Return a statement with one row per cluster; `number` is the id whose objects are counted."""
    config = _objects(number, object_.c.kind == CLUSTER_KIND, object_.c.name == CLUSTER_NAME)
    return select(
        cluster.c.cluster_id,
        cluster.c.name,
        head.c.revision,
        head.c.tip,
        head.c.at,
        config.with_only_columns(object_.c.body).scalar_subquery().label("config"),
        _count(number, object_.c.kind == "Node").label("nodes"),
        _count(number, object_.c.kind == "Pod").label("pods"),
        # Only pods have a node name; the narrow index on it makes counting quick.
        _count(number, object_.c.node_name.is_not(None)).label("placed"),
    ).join(head, head.c.cluster_id == cluster.c.cluster_id)


def _objects(number: ColumnElement[int], *which: ColumnElement[bool]) -> Select[Any]:
    return select(object_).where(object_.c.cluster_id == number, *which).correlate(head)


def _count(number: ColumnElement[int], *which: ColumnElement[bool]) -> ScalarSelect[int]:
    return _objects(number, *which).with_only_columns(func.count()).scalar_subquery()
