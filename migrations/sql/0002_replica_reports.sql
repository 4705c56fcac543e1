-- What each process that runs with --debug says of its replicas. Not logged: it is worth nothing
-- after a crash, and nothing rests on it.
CREATE UNLOGGED TABLE replica_report (
    process text COLLATE "C" NOT NULL,
    cluster_id bigint NOT NULL,
    revision bigint NOT NULL,
    hash text NOT NULL,
    at timestamptz NOT NULL,
    CONSTRAINT replica_report_pkey PRIMARY KEY (process, cluster_id)
);
