-- A cluster's identity. A name may come back after its cluster was deleted, a number never does.
CREATE TABLE cluster (
    cluster_id bigint GENERATED ALWAYS AS IDENTITY,
    name text COLLATE "C" NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT cluster_pkey PRIMARY KEY (cluster_id),
    CONSTRAINT cluster_name_key UNIQUE (name),
    CONSTRAINT cluster_name_check CHECK (name <> '')
);

-- Where the log ends: the one row that a commit swaps. It is narrow and stays so, since every
-- commit writes it anew; its free space lets that happen within the page.
CREATE TABLE head (
    cluster_id bigint NOT NULL,
    revision bigint NOT NULL,
    tip uuid NOT NULL,
    at timestamptz NOT NULL,
    CONSTRAINT head_pkey PRIMARY KEY (cluster_id),
    CONSTRAINT head_cluster_id_fkey FOREIGN KEY (cluster_id) REFERENCES cluster (cluster_id),
    CONSTRAINT head_revision_check CHECK (revision >= 1)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);

-- Changes up to and including this revision are gone from the log. Stored, never min(revision):
-- an empty log has a floor too.
CREATE TABLE floor (
    cluster_id bigint NOT NULL,
    revision bigint NOT NULL,
    CONSTRAINT floor_pkey PRIMARY KEY (cluster_id),
    CONSTRAINT floor_cluster_id_fkey FOREIGN KEY (cluster_id) REFERENCES cluster (cluster_id),
    CONSTRAINT floor_revision_check CHECK (revision >= 0)
);

-- One row per commit. A fence has no changes: it ends where it began, with a tip of its own.
-- The tables below have no foreign keys: checking them would cost more than writing the rows,
-- and only the functions of these migrations write here.
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

-- The log: one row per change, with consecutive revisions.
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

-- Which pods a node has: narrow, so that placing a pod costs next to nothing more.
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

CREATE INDEX idempotency_recorded_at_idx ON idempotency (cluster_id, recorded_at);

-- Who does a cluster's work of some name, and until when: a hint that saves double work, never a
-- guarantee; that is the head's.
CREATE TABLE lease (
    cluster_id bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    holder text NOT NULL,
    until timestamptz NOT NULL,
    CONSTRAINT lease_pkey PRIMARY KEY (cluster_id, name),
    CONSTRAINT lease_cluster_id_fkey FOREIGN KEY (cluster_id) REFERENCES cluster (cluster_id)
);
