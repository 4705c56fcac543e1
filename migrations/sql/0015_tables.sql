-- All tables, with the rows that they have from the start.

-- A cluster's identity. A name can come back after its cluster was deleted, a number never does.
CREATE TABLE cluster (
    cluster_id bigint GENERATED ALWAYS AS IDENTITY,
    name text COLLATE "C" NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT cluster_pkey PRIMARY KEY (cluster_id),
    CONSTRAINT cluster_name_key UNIQUE (name),
    CONSTRAINT cluster_name_check CHECK (name <> '')
);

-- The last revision of each deleted cluster, by name, until a cluster of that name is created again.
-- The new one begins above it, so that a name and a revision always mean the same change.
CREATE TABLE predecessor (
    name text COLLATE "C" NOT NULL,
    revision bigint NOT NULL,
    CONSTRAINT predecessor_pkey PRIMARY KEY (name)
);

-- The end of the log: the one row that a commit swaps. It is narrow and stays so, since every commit
-- writes it anew; its free space lets that happen within the page.
CREATE TABLE head (
    cluster_id bigint NOT NULL,
    revision bigint NOT NULL,
    tip uuid NOT NULL,
    at timestamptz NOT NULL,
    CONSTRAINT head_pkey PRIMARY KEY (cluster_id),
    CONSTRAINT head_cluster_id_fkey FOREIGN KEY (cluster_id) REFERENCES cluster (cluster_id),
    CONSTRAINT head_revision_check CHECK (revision >= 1)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);

-- Changes up to and including this revision are no longer in the log. Stored, never min(revision):
-- an empty log has a floor too.
CREATE TABLE floor (
    cluster_id bigint NOT NULL,
    revision bigint NOT NULL,
    CONSTRAINT floor_pkey PRIMARY KEY (cluster_id),
    CONSTRAINT floor_cluster_id_fkey FOREIGN KEY (cluster_id) REFERENCES cluster (cluster_id),
    CONSTRAINT floor_revision_check CHECK (revision >= 0)
);

-- The history that a cluster's revisions belong to: of which server (`system` and `timeline`), and of
-- which of its databases (by oid). It is recorded when a server reads the cluster into memory. A
-- database restored from a dump has another system or oid; a database restored to a point in time,
-- or a promoted standby, has a later timeline.
CREATE TABLE history (
    cluster_id bigint NOT NULL,
    system bigint NOT NULL,
    timeline bigint NOT NULL,
    database bigint NOT NULL,
    CONSTRAINT history_pkey PRIMARY KEY (cluster_id),
    CONSTRAINT history_cluster_id_fkey FOREIGN KEY (cluster_id) REFERENCES cluster (cluster_id)
);

-- One row per commit. A fence has no changes: it ends where it began, with a tip of its own.
-- The log and the objects have no foreign keys: checking them would cost more than writing the
-- rows, and only the functions of this migration write here.
CREATE TABLE commit (
    cluster_id bigint NOT NULL,
    last_revision bigint NOT NULL,
    commit_id uuid NOT NULL,
    parent uuid NOT NULL,
    first_revision bigint NOT NULL,
    planned_at bigint NOT NULL,
    kind text NOT NULL,
    at timestamptz NOT NULL,
    CONSTRAINT commit_pkey PRIMARY KEY (cluster_id, last_revision, commit_id),
    CONSTRAINT commit_last_revision_check CHECK (last_revision >= first_revision - 1)
);

-- The log: one row per change, with consecutive revisions. `fields_before` is what fields of an object
-- were before a Put that found the object there, so that a watch with a field selector can report
-- that an object starts or ceases to match: a JSON object of those that the change altered, empty if
-- it altered none. It is null for creations and deletions, and for kinds without such fields.
CREATE TABLE change (
    cluster_id bigint NOT NULL,
    revision bigint NOT NULL,
    commit_id uuid NOT NULL,
    created boolean NOT NULL,
    verb text NOT NULL,
    kind text NOT NULL,
    namespace text NOT NULL,
    name text NOT NULL,
    uid text NOT NULL,
    node_name text,
    labels_before bytea,
    body bytea NOT NULL,
    fields_before bytea,
    CONSTRAINT change_pkey PRIMARY KEY (cluster_id, revision),
    CONSTRAINT change_verb_check CHECK (verb IN ('Put', 'Delete'))
) WITH (toast_tuple_target = 8160);

-- The present objects of all kinds.
CREATE TABLE object (
    cluster_id bigint NOT NULL,
    revision bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    uid text NOT NULL,
    node_name text COLLATE "C",
    body bytea NOT NULL,
    CONSTRAINT object_pkey PRIMARY KEY (cluster_id, kind, namespace, name)
) WITH (fillfactor = 85, toast_tuple_target = 8160);

-- The pods of a node: narrow, so that placing a pod costs next to nothing more.
CREATE INDEX object_node_name_idx ON object (cluster_id, node_name)
WHERE node_name IS NOT NULL;

-- Answers given to requests with an Idempotency-Key; a row counts as long as it exists.
CREATE TABLE idempotency (
    cluster_id bigint NOT NULL,
    operation text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    chunk integer NOT NULL,
    request_hash bytea NOT NULL,
    answer bytea NOT NULL,
    recorded_at timestamptz NOT NULL,
    CONSTRAINT idempotency_pkey PRIMARY KEY (cluster_id, operation, key, chunk)
);

-- Of the time alone, so that it is never taken for a way to find a key (P15).
CREATE INDEX idempotency_recorded_at_idx ON idempotency (recorded_at);

-- What happened to pods, for people. Equal events are one row that counts; `name` says which are
-- equal. Nothing is decided by them, so they are no part of the log; old ones are swept away.
CREATE TABLE event (
    cluster_id bigint NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    pod text NOT NULL,
    uid text NOT NULL,
    type text NOT NULL,
    reason text COLLATE "C" NOT NULL,
    message text NOT NULL,
    revision bigint NOT NULL,
    count bigint NOT NULL,
    first_at timestamptz NOT NULL,
    last_at timestamptz NOT NULL,
    CONSTRAINT event_pkey PRIMARY KEY (cluster_id, namespace, name)
);

CREATE INDEX event_last_at_idx ON event (cluster_id, reason, last_at);

-- The holder of a cluster's work of some name, and until when: a hint that saves double work, never a
-- guarantee; that is the head's.
CREATE TABLE lease (
    cluster_id bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    holder text NOT NULL,
    until timestamptz NOT NULL,
    CONSTRAINT lease_pkey PRIMARY KEY (cluster_id, name),
    CONSTRAINT lease_cluster_id_fkey FOREIGN KEY (cluster_id) REFERENCES cluster (cluster_id)
);

-- When each node that reports did so last. A report is no change of the cluster: rows are narrow, stay
-- in their place, and are written every few seconds. A node that never reported has no row.
CREATE TABLE node_lease (
    cluster_id bigint NOT NULL,
    node text COLLATE "C" NOT NULL,
    renewed_at timestamptz NOT NULL,
    CONSTRAINT node_lease_pkey PRIMARY KEY (cluster_id, node),
    CONSTRAINT node_lease_cluster_id_fkey FOREIGN KEY (cluster_id) REFERENCES cluster (cluster_id)
) WITH (fillfactor = 50);

-- Where records of a cluster are sent, and how far they were. A delivery is no change of the cluster.
-- Secrets are kept as they are, for messages are signed with them. `holder` is the process that
-- delivers until `held_until`; `batch_end` is where the message under way ends, so that a repetition
-- says the same.
CREATE TABLE webhook (
    cluster_id bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    uid text NOT NULL,
    version bigint NOT NULL,
    url text NOT NULL,
    events text NOT NULL,
    namespace text COLLATE "C",
    disabled boolean NOT NULL,
    secret text NOT NULL,
    previous_secret text,
    previous_until timestamptz,
    created_at timestamptz NOT NULL,
    revision bigint NOT NULL,
    batch_end bigint,
    delivered_at timestamptz,
    attempt_at timestamptz NOT NULL,
    failures bigint NOT NULL,
    last_error text,
    stopped boolean NOT NULL,
    holder text,
    held_until timestamptz,
    CONSTRAINT webhook_pkey PRIMARY KEY (cluster_id, name),
    CONSTRAINT webhook_cluster_id_fkey FOREIGN KEY (cluster_id) REFERENCES cluster (cluster_id)
) WITH (fillfactor = 50);

-- What each process that runs with --debug says of its replicas. Not logged: it is worth nothing after
-- a crash, and nothing rests on it.
CREATE UNLOGGED TABLE replica_report (
    process text COLLATE "C" NOT NULL,
    cluster_id bigint NOT NULL,
    revision bigint NOT NULL,
    hash text NOT NULL,
    at timestamptz NOT NULL,
    CONSTRAINT replica_report_pkey PRIMARY KEY (process, cluster_id)
);

-- The worker processes that forward requests to each other: each renews its row again and again, by
-- the database's clock. `servers` is their common name. Not logged, for the same reason.
CREATE UNLOGGED TABLE worker (
    servers text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    until timestamptz NOT NULL,
    CONSTRAINT worker_pkey PRIMARY KEY (servers, name)
);

-- Every write and every refusal, with its caller. Rows are chained: each has the hash of the one
-- before it. A cluster has a chain of its own, under its number; what concerns the whole server
-- (clusters created and deleted, refusals) is chain 0. Rows stay when their cluster is deleted, and
-- are deleted by age.
CREATE TABLE audit (
    chain bigint NOT NULL,
    number bigint NOT NULL,
    at timestamptz NOT NULL,
    principal text NOT NULL,
    address text NOT NULL,
    operation text NOT NULL,
    cluster_id bigint,
    cluster text COLLATE "C" NOT NULL,
    revision bigint,
    request_id text NOT NULL,
    status integer NOT NULL,
    requests bigint NOT NULL,
    previous_hash bytea NOT NULL,
    hash bytea NOT NULL,
    CONSTRAINT audit_pkey PRIMARY KEY (chain, number)
);

-- Where each chain ends. As narrow as `head`, and written as often.
CREATE TABLE audit_chain (
    chain bigint NOT NULL,
    cluster text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    hash bytea NOT NULL,
    at timestamptz NOT NULL,
    CONSTRAINT audit_chain_pkey PRIMARY KEY (chain)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);

INSERT INTO audit_chain (chain, cluster, number, hash, at) VALUES (0, '', 0, '', clock_timestamp());

-- The callers that may make requests: users, and groups of users of an identity provider. Grants are
-- JSON, as the API shows them; `admin` says whether they make an admin of the whole server.
CREATE TABLE principal (
    kind text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    grants bytea NOT NULL,
    admin boolean NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT principal_pkey PRIMARY KEY (kind, name),
    CONSTRAINT principal_kind_check CHECK (kind IN ('User', 'Group'))
);

-- What users authenticate with. Of a secret only its SHA-256 is kept: 256 random bits need no slow
-- hash.
CREATE TABLE token (
    token_id text COLLATE "C" NOT NULL,
    principal text COLLATE "C" NOT NULL,
    secret_hash bytea NOT NULL,
    description text NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    last_used_at timestamptz,
    CONSTRAINT token_pkey PRIMARY KEY (token_id),
    CONSTRAINT token_secret_hash_check CHECK (octet_length(secret_hash) = 32)
);

CREATE INDEX token_principal_idx ON token (principal);

-- One row, whose version every change of principals and tokens raises, so that changes queue up here;
-- processes read it to see that they know the present state. A restore sets the version back, and
-- later changes raise it to what servers already know. The tag is random, so two states with one tag
-- are the same state.
CREATE TABLE access_state (
    only_row boolean NOT NULL,
    version bigint NOT NULL,
    tag uuid NOT NULL DEFAULT gen_random_uuid(),
    CONSTRAINT access_state_pkey PRIMARY KEY (only_row),
    CONSTRAINT access_state_only_row_check CHECK (only_row)
);

INSERT INTO access_state (only_row, version) VALUES (true, 1);
