-- Extends a cluster's log by one commit, or says why not, as `outcome`:
--   Committed  the head is now (head_revision, head_tip), which is this commit
--   Lost       the head is elsewhere: at (head_revision, head_tip)
--   NotYet     p_not_before has not come
--   Gone       there is no such cluster
-- A row of the arrays is one change; effects says what it does to the table of objects, where only
-- the last change of an object acts. Errors: MR001, arrays of unequal length; MR002, what is
-- stored is not what the caller expected; a unique violation of idempotency_pkey, the key has an
-- answer; of object_pkey, the same as MR002.
CREATE FUNCTION commit_v1(
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
    OUT outcome text,
    OUT head_revision bigint,
    OUT head_tip uuid,
    OUT head_at timestamptz
)
LANGUAGE plpgsql AS $$
DECLARE
    v_changes CONSTANT integer := cardinality(p_verbs);
    v_records CONSTANT integer := cardinality(p_keys);
    v_expected integer;
    v_touched integer;
BEGIN
    IF v_changes = 0
        OR (v_changes, v_changes, v_changes, v_changes, v_changes,
            v_changes, v_changes, v_changes, v_changes)
        IS DISTINCT FROM
        (cardinality(p_effects), cardinality(p_created), cardinality(p_kinds),
            cardinality(p_namespaces), cardinality(p_names), cardinality(p_uids),
            cardinality(p_node_names), cardinality(p_labels_before), cardinality(p_bodies))
        OR (v_records, v_records, v_records, v_records)
        IS DISTINCT FROM
        (cardinality(p_operations), cardinality(p_chunks), cardinality(p_request_hashes),
            cardinality(p_answers))
    THEN
        RAISE EXCEPTION 'arrays differ in length, or there is no change' USING ERRCODE = 'MR001';
    END IF;

    -- The swap comes first: all who commit to this cluster queue up here and nowhere else. The
    -- clock is read when the row is held; now() would run backwards between commits.
    UPDATE head AS h
    SET revision = p_revision + v_changes, tip = p_commit_id, at = greatest(clock_timestamp(), h.at)
    WHERE h.cluster_id = p_cluster_id AND h.revision = p_revision AND h.tip = p_tip
        AND (p_not_before IS NULL OR greatest(clock_timestamp(), h.at) >= p_not_before)
    RETURNING h.revision, h.tip, h.at INTO head_revision, head_tip, head_at;
    IF NOT FOUND THEN
        SELECT
            CASE WHEN h.revision = p_revision AND h.tip = p_tip THEN 'NotYet' ELSE 'Lost' END,
            h.revision, h.tip, h.at
        INTO outcome, head_revision, head_tip, head_at
        FROM head AS h WHERE h.cluster_id = p_cluster_id;
        IF NOT FOUND THEN
            outcome := 'Gone';
        END IF;
        RETURN;
    END IF;
    outcome := 'Committed';

    -- Plain inserts: ON CONFLICT DO NOTHING would commit the changes without their record. In
    -- order of key, so that two who insert several keys cannot wait for each other.
    IF v_records > 0 THEN
        INSERT INTO idempotency
            (cluster_id, operation, key, chunk, request_hash, answer, recorded_at)
        SELECT p_cluster_id, r.operation, r.key, r.chunk, r.request_hash, r.answer, head_at
        FROM unnest(p_operations, p_keys, p_chunks, p_request_hashes, p_answers)
            AS r (operation, key, chunk, request_hash, answer)
        ORDER BY r.operation COLLATE "C", r.key COLLATE "C", r.chunk;
    END IF;

    INSERT INTO commit
        (cluster_id, last_revision, commit_id, parent, first_revision, planned_at, kind, at)
    VALUES
        (p_cluster_id, head_revision, p_commit_id, p_tip, p_revision + 1, p_planned_at, p_kind,
            head_at);

    INSERT INTO change
        (cluster_id, revision, commit_id, created, verb, kind, namespace, name, uid, node_name,
            labels_before, body)
    SELECT p_cluster_id, p_revision + c.place, p_commit_id, c.created, c.verb, c.kind, c.namespace,
        c.name, c.uid, c.node_name, c.labels_before, c.body
    FROM unnest(p_created, p_verbs, p_kinds, p_namespaces, p_names, p_uids, p_node_names,
            p_labels_before, p_bodies)
        WITH ORDINALITY AS c (created, verb, kind, namespace, name, uid, node_name, labels_before,
            body, place);

    v_expected := cardinality(array_positions(p_effects, 'Create'));
    IF v_expected > 0 THEN
        INSERT INTO object (cluster_id, revision, kind, namespace, name, uid, node_name, body)
        SELECT p_cluster_id, p_revision + c.place, c.kind, c.namespace, c.name, c.uid, c.node_name,
            c.body
        FROM unnest(p_effects, p_kinds, p_namespaces, p_names, p_uids, p_node_names, p_bodies)
            WITH ORDINALITY AS c (effect, kind, namespace, name, uid, node_name, body, place)
        WHERE c.effect = 'Create';
    END IF;

    v_expected := cardinality(array_positions(p_effects, 'Update'));
    IF v_expected > 0 THEN
        UPDATE object AS o
        SET revision = p_revision + c.place, uid = c.uid, node_name = c.node_name, body = c.body
        FROM unnest(p_effects, p_kinds, p_namespaces, p_names, p_uids, p_node_names, p_bodies)
            WITH ORDINALITY AS c (effect, kind, namespace, name, uid, node_name, body, place)
        WHERE c.effect = 'Update' AND o.cluster_id = p_cluster_id AND o.kind = c.kind
            AND o.namespace = c.namespace AND o.name = c.name;
        GET DIAGNOSTICS v_touched = ROW_COUNT;
        IF v_touched <> v_expected THEN
            RAISE EXCEPTION 'updated % of % objects', v_touched, v_expected
                USING ERRCODE = 'MR002';
        END IF;
    END IF;

    v_expected := cardinality(array_positions(p_effects, 'Delete'));
    IF v_expected > 0 THEN
        DELETE FROM object AS o
        USING unnest(p_effects, p_kinds, p_namespaces, p_names)
            AS c (effect, kind, namespace, name)
        WHERE c.effect = 'Delete' AND o.cluster_id = p_cluster_id AND o.kind = c.kind
            AND o.namespace = c.namespace AND o.name = c.name;
        GET DIAGNOSTICS v_touched = ROW_COUNT;
        IF v_touched <> v_expected THEN
            RAISE EXCEPTION 'deleted % of % objects', v_touched, v_expected
                USING ERRCODE = 'MR002';
        END IF;
    END IF;
END;
$$;

-- Kills an attempt to commit whose outcome is unknown: the head gets a new tip at the same
-- revision, so that a commit still on its way no longer finds the tip that it expects. The fence
-- joins the log as a commit without changes; so readers can follow the chain of tips across it.
-- `outcome` is Fenced, Lost or Gone.
CREATE FUNCTION fence_v1(
    p_cluster_id bigint,
    p_revision bigint,
    p_tip uuid,
    p_fence_id uuid,
    OUT outcome text,
    OUT head_revision bigint,
    OUT head_tip uuid,
    OUT head_at timestamptz
)
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE head AS h
    SET tip = p_fence_id, at = greatest(clock_timestamp(), h.at)
    WHERE h.cluster_id = p_cluster_id AND h.revision = p_revision AND h.tip = p_tip
    RETURNING h.revision, h.tip, h.at INTO head_revision, head_tip, head_at;
    IF FOUND THEN
        INSERT INTO commit
            (cluster_id, last_revision, commit_id, parent, first_revision, planned_at, kind, at)
        VALUES
            (p_cluster_id, p_revision, p_fence_id, p_tip, p_revision + 1, p_revision, 'Fence',
                head_at);
        outcome := 'Fenced';
        RETURN;
    END IF;
    SELECT 'Lost', h.revision, h.tip, h.at INTO outcome, head_revision, head_tip, head_at
    FROM head AS h WHERE h.cluster_id = p_cluster_id;
    IF NOT FOUND THEN
        outcome := 'Gone';
    END IF;
END;
$$;

-- Makes a cluster with its configuration as the one object, at revision 1. Error: a unique
-- violation of cluster_name_key, the name is taken.
CREATE FUNCTION create_cluster_v1(p_name text, p_config bytea, p_commit_id uuid) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_cluster_id bigint;
    v_at CONSTANT timestamptz := clock_timestamp();
    v_root CONSTANT uuid := '00000000-0000-0000-0000-000000000000';
BEGIN
    INSERT INTO cluster (name) VALUES (p_name) RETURNING cluster_id INTO v_cluster_id;
    INSERT INTO head (cluster_id, revision, tip, at) VALUES (v_cluster_id, 1, p_commit_id, v_at);
    INSERT INTO floor (cluster_id, revision) VALUES (v_cluster_id, 0);
    INSERT INTO commit
        (cluster_id, last_revision, commit_id, parent, first_revision, planned_at, kind, at)
    VALUES (v_cluster_id, 1, p_commit_id, v_root, 1, 0, 'CreateCluster', v_at);
    INSERT INTO change
        (cluster_id, revision, commit_id, created, verb, kind, namespace, name, uid, body)
    VALUES (v_cluster_id, 1, p_commit_id, true, 'Put', 'Cluster', '', 'config', '', p_config);
    INSERT INTO object (cluster_id, revision, kind, namespace, name, uid, body)
    VALUES (v_cluster_id, 1, 'Cluster', '', 'config', '', p_config);
    RETURN v_cluster_id;
END;
$$;

-- Deletes a cluster with everything that it has. The head goes first: a commit that waits for it
-- then finds the cluster gone; then the floor, so that a compaction waits or finds nothing. False
-- if there was none.
CREATE FUNCTION delete_cluster_v1(p_cluster_id bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM head WHERE cluster_id = p_cluster_id;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM floor WHERE cluster_id = p_cluster_id;
    DELETE FROM object WHERE cluster_id = p_cluster_id;
    DELETE FROM change WHERE cluster_id = p_cluster_id;
    DELETE FROM commit WHERE cluster_id = p_cluster_id;
    DELETE FROM idempotency WHERE cluster_id = p_cluster_id;
    DELETE FROM lease WHERE cluster_id = p_cluster_id;
    DELETE FROM cluster WHERE cluster_id = p_cluster_id;
    RETURN true;
END;
$$;

-- One step of compaction: raises the floor by at most p_rows revisions and deletes what is now
-- below it, in one transaction. Kept are the last p_keep_changes changes, and everything that was
-- committed less than p_keep_for ago. The head is not touched, so commits go on meanwhile.
-- Returns the floor, and whether it rose; null if there is no such cluster.
CREATE FUNCTION compact_v1(
    p_cluster_id bigint,
    p_keep_changes bigint,
    p_keep_for interval,
    p_rows bigint,
    OUT floor_revision bigint,
    OUT rose boolean
)
LANGUAGE plpgsql AS $$
DECLARE
    v_target bigint;
BEGIN
    SELECT f.revision INTO floor_revision FROM floor AS f
    WHERE f.cluster_id = p_cluster_id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    -- Commits are in order of time too, so the last old one within reach bounds the step.
    SELECT least(coalesce(max(c.last_revision), 0), floor_revision + p_rows,
            (SELECT h.revision - p_keep_changes FROM head AS h WHERE h.cluster_id = p_cluster_id))
    INTO v_target
    FROM commit AS c
    WHERE c.cluster_id = p_cluster_id AND c.last_revision > floor_revision
        AND c.first_revision <= floor_revision + p_rows
        AND c.at < clock_timestamp() - p_keep_for;
    rose := coalesce(v_target > floor_revision, false);
    IF rose THEN
        DELETE FROM change AS c
        WHERE c.cluster_id = p_cluster_id AND c.revision <= v_target;
        DELETE FROM commit AS c
        WHERE c.cluster_id = p_cluster_id AND c.last_revision <= v_target;
        UPDATE floor AS f SET revision = v_target WHERE f.cluster_id = p_cluster_id;
        floor_revision := v_target;
    END IF;
END;
$$;

-- After a restore from a backup: others may have seen revisions that are now lost, and new ones
-- must not be mistaken for them. Lifts the head over all that can have been, with an empty log.
-- False if there is no such cluster.
CREATE FUNCTION lift_cluster_v1(p_cluster_id bigint, p_by bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_revision bigint;
BEGIN
    UPDATE head AS h
    SET revision = h.revision + p_by, tip = gen_random_uuid(),
        at = greatest(clock_timestamp(), h.at)
    WHERE h.cluster_id = p_cluster_id
    RETURNING h.revision INTO v_revision;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE floor SET revision = v_revision WHERE cluster_id = p_cluster_id;
    DELETE FROM change WHERE cluster_id = p_cluster_id;
    DELETE FROM commit WHERE cluster_id = p_cluster_id;
    RETURN true;
END;
$$;
