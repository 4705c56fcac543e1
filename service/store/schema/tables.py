"""The declaration of all tables: columns, keys, checks, indexes, and storage parameters.

`tests/store/test_migrations.py` checks that the SQL in `migrations` declares the same tables, as
far as SQLAlchemy can express. That SQL also contains the functions that write the tables, and
explains what each table is for.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    func,
)

metadata = MetaData()


def _text(name: str) -> Column[str]:
    return Column(name, Text, nullable=False)


def _key(name: str) -> Column[str]:
    """Return a text column ordered by code point, as in Python, whatever the database's locale."""
    return Column(name, Text(collation="C"), nullable=False)


def _number(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False)


def _time(name: str) -> Column[object]:
    return Column(name, DateTime(timezone=True), nullable=False)


def _bytes(name: str) -> Column[bytes]:
    return Column(name, LargeBinary, nullable=False)


def _of_cluster(table: str) -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        ["cluster_id"], ["cluster.cluster_id"], name=f"{table}_cluster_id_fkey"
    )


cluster = Table(
    "cluster",
    metadata,
    Column("cluster_id", BigInteger, Identity(always=True), nullable=False),
    _key("name"),
    Column(
        "created_at",
        DateTime(timezone=True),
        nullable=False,
        server_default=func.clock_timestamp(),
    ),
    PrimaryKeyConstraint("cluster_id", name="cluster_pkey"),
    UniqueConstraint("name", name="cluster_name_key"),
    CheckConstraint("name <> ''", name="cluster_name_check"),
)

predecessor = Table(
    "predecessor",
    metadata,
    _key("name"),
    _number("revision"),
    PrimaryKeyConstraint("name", name="predecessor_pkey"),
)

head = Table(
    "head",
    metadata,
    Column("cluster_id", BigInteger, nullable=False, autoincrement=False),
    _number("revision"),
    Column("tip", Uuid, nullable=False),
    _time("at"),
    PrimaryKeyConstraint("cluster_id", name="head_pkey"),
    _of_cluster("head"),
    CheckConstraint("revision >= 1", name="head_revision_check"),
    postgresql_with={
        "fillfactor": 50,
        "autovacuum_vacuum_threshold": 1000,
        "autovacuum_vacuum_scale_factor": 0,
    },
)

floor = Table(
    "floor",
    metadata,
    Column("cluster_id", BigInteger, nullable=False, autoincrement=False),
    _number("revision"),
    PrimaryKeyConstraint("cluster_id", name="floor_pkey"),
    _of_cluster("floor"),
    CheckConstraint("revision >= 0", name="floor_revision_check"),
)

commit = Table(
    "commit",
    metadata,
    _number("cluster_id"),
    _number("last_revision"),
    Column("commit_id", Uuid, nullable=False),
    Column("parent", Uuid, nullable=False),
    _number("first_revision"),
    _number("planned_at"),
    _text("kind"),
    _time("at"),
    PrimaryKeyConstraint("cluster_id", "last_revision", "commit_id", name="commit_pkey"),
    CheckConstraint("last_revision >= first_revision - 1", name="commit_last_revision_check"),
)

change = Table(
    "change",
    metadata,
    _number("cluster_id"),
    _number("revision"),
    Column("commit_id", Uuid, nullable=False),
    Column("created", Boolean, nullable=False),
    _text("verb"),
    _text("kind"),
    _text("namespace"),
    _text("name"),
    _text("uid"),
    Column("node_name", Text),
    Column("labels_before", LargeBinary),
    _bytes("body"),
    Column("fields_before", LargeBinary),
    PrimaryKeyConstraint("cluster_id", "revision", name="change_pkey"),
    CheckConstraint("verb IN ('Put', 'Delete')", name="change_verb_check"),
    postgresql_with={"toast_tuple_target": 8160},
)

object_ = Table(
    "object",
    metadata,
    _number("cluster_id"),
    _number("revision"),
    _key("kind"),
    _key("namespace"),
    _key("name"),
    _text("uid"),
    Column("node_name", Text(collation="C")),
    _bytes("body"),
    PrimaryKeyConstraint("cluster_id", "kind", "namespace", "name", name="object_pkey"),
    postgresql_with={"fillfactor": 85, "toast_tuple_target": 8160},
)
Index(
    "object_node_name_idx",
    object_.c.cluster_id,
    object_.c.node_name,
    postgresql_where=object_.c.node_name.is_not(None),
)

idempotency = Table(
    "idempotency",
    metadata,
    _number("cluster_id"),
    _key("operation"),
    _key("key"),
    Column("chunk", Integer, nullable=False),
    _bytes("request_hash"),
    _bytes("answer"),
    _time("recorded_at"),
    PrimaryKeyConstraint("cluster_id", "operation", "key", "chunk", name="idempotency_pkey"),
)
Index("idempotency_recorded_at_idx", idempotency.c.recorded_at)

event = Table(
    "event",
    metadata,
    _number("cluster_id"),
    _key("namespace"),
    _key("name"),
    _text("pod"),
    _text("uid"),
    _text("type"),
    _key("reason"),
    _text("message"),
    _number("revision"),
    _number("count"),
    _time("first_at"),
    _time("last_at"),
    PrimaryKeyConstraint("cluster_id", "namespace", "name", name="event_pkey"),
)
Index("event_last_at_idx", event.c.cluster_id, event.c.reason, event.c.last_at)

audit = Table(
    "audit",
    metadata,
    _number("chain"),
    _number("number"),
    _time("at"),
    _text("principal"),
    _text("address"),
    _text("operation"),
    Column("cluster_id", BigInteger),
    _key("cluster"),
    Column("revision", BigInteger),
    _text("request_id"),
    Column("status", Integer, nullable=False),
    _number("requests"),
    _bytes("previous_hash"),
    _bytes("hash"),
    PrimaryKeyConstraint("chain", "number", name="audit_pkey"),
)

audit_chain = Table(
    "audit_chain",
    metadata,
    Column("chain", BigInteger, nullable=False, autoincrement=False),
    _key("cluster"),
    _number("number"),
    _bytes("hash"),
    _time("at"),
    PrimaryKeyConstraint("chain", name="audit_chain_pkey"),
    postgresql_with={
        "fillfactor": 50,
        "autovacuum_vacuum_threshold": 1000,
        "autovacuum_vacuum_scale_factor": 0,
    },
)

replica_report = Table(
    "replica_report",
    metadata,
    _key("process"),
    _number("cluster_id"),
    _number("revision"),
    _text("hash"),
    _time("at"),
    PrimaryKeyConstraint("process", "cluster_id", name="replica_report_pkey"),
    prefixes=["UNLOGGED"],
)

worker = Table(
    "worker",
    metadata,
    _key("servers"),
    _key("name"),
    _time("until"),
    PrimaryKeyConstraint("servers", "name", name="worker_pkey"),
    prefixes=["UNLOGGED"],
)

lease = Table(
    "lease",
    metadata,
    _number("cluster_id"),
    _key("name"),
    _text("holder"),
    _time("until"),
    PrimaryKeyConstraint("cluster_id", "name", name="lease_pkey"),
    _of_cluster("lease"),
)

node_lease = Table(
    "node_lease",
    metadata,
    _number("cluster_id"),
    _key("node"),
    _time("renewed_at"),
    PrimaryKeyConstraint("cluster_id", "node", name="node_lease_pkey"),
    _of_cluster("node_lease"),
    postgresql_with={"fillfactor": 50},
)

webhook = Table(
    "webhook",
    metadata,
    _number("cluster_id"),
    _key("name"),
    _text("uid"),
    _number("version"),
    _text("url"),
    _text("events"),
    Column("namespace", Text(collation="C")),
    Column("disabled", Boolean, nullable=False),
    _text("secret"),
    Column("previous_secret", Text),
    Column("previous_until", DateTime(timezone=True)),
    _time("created_at"),
    _number("revision"),
    Column("batch_end", BigInteger),
    Column("delivered_at", DateTime(timezone=True)),
    _time("attempt_at"),
    _number("failures"),
    Column("last_error", Text),
    Column("stopped", Boolean, nullable=False),
    Column("holder", Text),
    Column("held_until", DateTime(timezone=True)),
    PrimaryKeyConstraint("cluster_id", "name", name="webhook_pkey"),
    _of_cluster("webhook"),
    postgresql_with={"fillfactor": 50},
)

history = Table(
    "history",
    metadata,
    Column("cluster_id", BigInteger, nullable=False, autoincrement=False),
    _number("system"),
    _number("timeline"),
    _number("database"),
    PrimaryKeyConstraint("cluster_id", name="history_pkey"),
    _of_cluster("history"),
)

principal = Table(
    "principal",
    metadata,
    _key("kind"),
    _key("name"),
    _bytes("grants"),
    Column("admin", Boolean, nullable=False),
    _time("created_at"),
    PrimaryKeyConstraint("kind", "name", name="principal_pkey"),
    CheckConstraint("kind IN ('User', 'Group')", name="principal_kind_check"),
)

token = Table(
    "token",
    metadata,
    _key("token_id"),
    _key("principal"),
    _bytes("secret_hash"),
    _text("description"),
    _time("created_at"),
    Column("expires_at", DateTime(timezone=True)),
    Column("last_used_at", DateTime(timezone=True)),
    PrimaryKeyConstraint("token_id", name="token_pkey"),
    CheckConstraint("octet_length(secret_hash) = 32", name="token_secret_hash_check"),
)
Index("token_principal_idx", token.c.principal)

access_state = Table(
    "access_state",
    metadata,
    Column("only_row", Boolean, nullable=False),
    _number("version"),
    Column("tag", Uuid, nullable=False, server_default=func.gen_random_uuid()),
    PrimaryKeyConstraint("only_row", name="access_state_pkey"),
    CheckConstraint("only_row", name="access_state_only_row_check"),
)
