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

-- Adds events, in the order of their keys, so that two who add the same ones cannot wait for each
-- other. The cluster is held meanwhile: nothing is added to one that is gone.
CREATE FUNCTION add_events_v1(
    p_cluster_id bigint,
    p_namespaces text[],
    p_names text[],
    p_pods text[],
    p_uids text[],
    p_types text[],
    p_reasons text[],
    p_messages text[],
    p_revisions bigint[],
    p_counts bigint[],
    p_first_at timestamptz[],
    p_last_at timestamptz[]
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM cluster WHERE cluster_id = p_cluster_id FOR KEY SHARE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    INSERT INTO event AS e
        (cluster_id, namespace, name, pod, uid, type, reason, message, revision, count, first_at,
            last_at)
    SELECT p_cluster_id, n.*
    FROM unnest(p_namespaces, p_names, p_pods, p_uids, p_types, p_reasons, p_messages,
            p_revisions, p_counts, p_first_at, p_last_at)
        AS n (namespace, name, pod, uid, type, reason, message, revision, count, first_at, last_at)
    ORDER BY n.namespace COLLATE "C", n.name COLLATE "C"
    ON CONFLICT (cluster_id, namespace, name) DO UPDATE
    SET count = e.count + excluded.count, message = excluded.message,
        revision = greatest(e.revision, excluded.revision),
        last_at = greatest(e.last_at, excluded.last_at);
END;
$$;

-- As commit_v1, and with it, or not at all, adds events.
CREATE FUNCTION commit_v2(
    p_cluster_id bigint,
    p_revision bigint,
    p_tip uuid,
    p_commit_id uuid,
    p_planned_at bigint,
    p_kind text,
    p_not_before timestamptz,
    p_effects text[],
    p_created boolean[],
    p_verbs text[],
    p_kinds text[],
    p_namespaces text[],
    p_names text[],
    p_uids text[],
    p_node_names text[],
    p_labels_before bytea[],
    p_bodies bytea[],
    p_operations text[],
    p_keys text[],
    p_chunks integer[],
    p_request_hashes bytea[],
    p_answers bytea[],
    p_event_namespaces text[],
    p_event_names text[],
    p_event_pods text[],
    p_event_uids text[],
    p_event_types text[],
    p_event_reasons text[],
    p_event_messages text[],
    p_event_revisions bigint[],
    p_event_counts bigint[],
    p_event_first_at timestamptz[],
    p_event_last_at timestamptz[],
    OUT outcome text,
    OUT head_revision bigint,
    OUT head_tip uuid,
    OUT head_at timestamptz
)
LANGUAGE plpgsql AS $$
BEGIN
    SELECT c.outcome, c.head_revision, c.head_tip, c.head_at
    INTO outcome, head_revision, head_tip, head_at
    FROM commit_v1(p_cluster_id, p_revision, p_tip, p_commit_id, p_planned_at, p_kind,
        p_not_before, p_effects, p_created, p_verbs, p_kinds, p_namespaces, p_names, p_uids,
        p_node_names, p_labels_before, p_bodies, p_operations, p_keys, p_chunks,
        p_request_hashes, p_answers) AS c;
    IF outcome = 'Committed' THEN
        PERFORM add_events_v1(p_cluster_id, p_event_namespaces, p_event_names, p_event_pods,
            p_event_uids, p_event_types, p_event_reasons, p_event_messages, p_event_revisions,
            p_event_counts, p_event_first_at, p_event_last_at);
    END IF;
END;
$$;

-- As before, with the cluster's events. Whoever adds some holds the cluster, which is locked here: none
-- are left behind.
CREATE OR REPLACE FUNCTION delete_cluster_v1(p_cluster_id bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM head WHERE cluster_id = p_cluster_id;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM FROM cluster WHERE cluster_id = p_cluster_id FOR UPDATE;
    DELETE FROM floor WHERE cluster_id = p_cluster_id;
    DELETE FROM object WHERE cluster_id = p_cluster_id;
    DELETE FROM change WHERE cluster_id = p_cluster_id;
    DELETE FROM commit WHERE cluster_id = p_cluster_id;
    DELETE FROM idempotency WHERE cluster_id = p_cluster_id;
    DELETE FROM lease WHERE cluster_id = p_cluster_id;
    DELETE FROM event WHERE cluster_id = p_cluster_id;
    DELETE FROM cluster WHERE cluster_id = p_cluster_id;
    RETURN true;
END;
$$;
