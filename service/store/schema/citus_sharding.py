"""Distribution of the tables over several PostgreSQL servers with Citus, by cluster.

All rows of a cluster are in shards with the same number, which are on one server and move together.
So a commit is a transaction on one server, as it is without Citus. The names of clusters are on all
servers. Tables about processes or callers stay on Citus's coordinator, to which all statements are
sent first.
"""

from service.store.db.connector import READ_SETTINGS, STARTERS_LOCK, Connection, connector
from service.store.db.failures import unavailable_on_failure

DISTRIBUTED = {
    "head": "cluster_id",
    "floor": "cluster_id",
    "commit": "cluster_id",
    "change": "cluster_id",
    "object": "cluster_id",
    "idempotency": "cluster_id",
    "event": "cluster_id",
    "lease": "cluster_id",
    "node_lease": "cluster_id",
    "webhook": "cluster_id",
    "history": "cluster_id",
    # The cluster's id, or 0 for rows that belong to no cluster.
    "audit": "chain",
    "audit_chain": "chain",
}
"""The sharded tables, each with its distribution column; `head` is first."""
REFERENCE = ("cluster", "predecessor")
"""The tables that every server has in full."""
DELEGATED = {
    "commit_v5": "p_cluster_id",
    "compact_v1": "p_cluster_id",
    "record_answers_v1": "p_cluster_id",
    "take_lease_v1": "p_cluster_id",
    "renew_node_leases_v1": "p_cluster_id",
}
"""The functions that run on a cluster's own server, each with its cluster id parameter.

All other functions that write run where they are called, and send their statements.
"""
CREATED_EVERYWHERE = ("add_events_v1", "audit_v1")
"""The functions that the delegated ones call, created on every server."""

SETTINGS = {
    **READ_SETTINGS,
    "jit": "off",
    # A transaction's own settings, such as its lock timeout, apply on all servers.
    "citus.propagate_set_commands": "local",
}
"""Database settings, applied on every server.

A connection's own settings affect the coordinator alone (protocol rule P15).
"""

_HAS_CITUS = "SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')"
_NODES = """
    SELECT count(*) FILTER (WHERE groupid = 0) AS coordinators,
        count(*) FILTER (WHERE shouldhaveshards AND isactive) AS workers
    FROM pg_dist_node WHERE noderole = 'primary'
"""
# Tables distributed by hash, and tables that are on all servers. Citus also lists a table of the
# coordinator here as soon as it references one of them.
_PLACED = """
    SELECT logicalrelid::regclass::text FROM pg_dist_partition
    WHERE partmethod = 'h' OR repmodel = 't'
"""
_IN_ORDER = "SELECT set_config('citus.multi_shard_modify_mode', 'sequential', true)"
_EVERYWHERE = "SELECT create_reference_table($1::text::regclass)"
_BY_COLUMN = """
    SELECT create_distributed_table($1::text::regclass, $2, colocate_with => $3, shard_count => $4)
"""
_SIGNATURE = """
    SELECT oid::regprocedure::text FROM pg_proc WHERE proname = $1 AND pg_function_is_visible(oid)
"""
_FUNCTION = "SELECT create_distributed_function($1::text::regprocedure)"
_DELEGATE = (
    "SELECT create_distributed_function($1::text::regprocedure, $2, colocate_with => 'head')"
)
_SET = "SELECT format('ALTER DATABASE %I SET %s = %L', current_database(), $1::text, $2::text)"


class ServersMissing(Exception):  # noqa: N818 - a fact about the database
    """The database cannot be distributed as it is; the message says what to do."""


async def distribute(url: str, shards: int) -> list[str]:
    """Distribute all tables that are not distributed yet, with their rows; return their names.

    `shards` is the number of parts into which the rows are divided, and so the maximum number of
    servers that can have some. It has no effect on a database that is already distributed. Tables
    are locked during the call, which does everything or nothing. Call it again after adding
    servers, so that they also get the settings.

    Raises:
        ServersMissing: the database has no Citus, or Citus has no other servers.
        StorageUnavailable: the database cannot be reached, or a server failed.
    """
    with unavailable_on_failure():
        connection = await connector(url, {})()
        try:
            await _require_servers(connection)
            async with connection.transaction():
                await connection.execute("SET LOCAL statement_timeout = 0")
                await connection.fetchval("SELECT pg_advisory_xact_lock($1)", STARTERS_LOCK)
                distributed = await distribute_new(connection, shards)
                await _set_on_all(connection)
        finally:
            await connection.close()
    return distributed


async def is_distributed(connection: Connection) -> bool:
    """Return whether the tables of a database are distributed."""
    return await connection.fetchval(_HAS_CITUS) and bool(await _placed(connection))


async def begin_in_order(connection: Connection) -> None:
    """Set the open transaction to change one shard at a time.

    Otherwise, Citus opens many connections to a server at once, and a later statement on one of
    them does not see what an earlier one did on another.
    """
    await connection.execute(_IN_ORDER)


async def distribute_new(connection: Connection, shards: int = 0) -> list[str]:
    """Distribute the remaining tables, and all functions, within an open transaction.

    `shards` is required as long as no table is distributed.
    """
    await begin_in_order(connection)
    placed = await _placed(connection)
    new = [name for name in (*REFERENCE, *DISTRIBUTED) if name not in placed]
    for name in new:
        if name in REFERENCE:
            await connection.fetchval(_EVERYWHERE, f'"{name}"')
        elif name == "head":
            await connection.fetchval(_BY_COLUMN, name, DISTRIBUTED[name], "none", shards)
        else:
            await connection.fetchval(_BY_COLUMN, f'"{name}"', DISTRIBUTED[name], "head", None)
    for function in CREATED_EVERYWHERE:
        await connection.fetchval(_FUNCTION, await connection.fetchval(_SIGNATURE, function))
    for function, parameter in DELEGATED.items():
        signature = await connection.fetchval(_SIGNATURE, function)
        await connection.fetchval(_DELEGATE, signature, parameter)
    return new


async def _require_servers(connection: Connection) -> None:
    if not await connection.fetchval(_HAS_CITUS):
        raise ServersMissing(
            "The database has no extension citus. Install Citus on each server, and run"
            " CREATE EXTENSION citus in the database on each of them."
        )
    nodes = await connection.fetchrow(_NODES)
    assert nodes is not None
    if not nodes["coordinators"]:
        raise ServersMissing(
            "Citus does not know at which address the other servers reach this one."
            " Run SELECT citus_set_coordinator_host(address, port) here."
        )
    if not nodes["workers"]:
        raise ServersMissing(
            "Citus knows no server that may have shards."
            " Run SELECT citus_add_node(address, port) here for each."
        )


async def _placed(connection: Connection) -> set[str]:
    return {row[0].strip('"') for row in await connection.fetch(_PLACED)}


async def _set_on_all(connection: Connection) -> None:
    """Change the database's settings, which Citus applies on each of its servers."""
    for name, value in SETTINGS.items():
        await connection.execute(await connection.fetchval(_SET, name, value))
