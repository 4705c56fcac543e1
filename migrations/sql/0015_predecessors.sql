-- The last revision of each deleted cluster, by name, until a cluster of that name is created again. The new one begins above it,
-- so that a name and a revision always mean the same change.
CREATE TABLE predecessor (
    name text COLLATE "C" NOT NULL,
    revision bigint NOT NULL,
    CONSTRAINT predecessor_pkey PRIMARY KEY (name)
);

-- As before, but the log begins above the last revision of the name's previous cluster. One revision between the two is skipped:
-- a follower at the end of the old log is below the floor of the new one, and has to list again.
CREATE OR REPLACE FUNCTION create_cluster_v1(p_name text, p_config bytea, p_commit_id uuid) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_cluster_id bigint;
    v_floor bigint;
    v_at CONSTANT timestamptz := clock_timestamp();
    v_root CONSTANT uuid := '00000000-0000-0000-0000-000000000000';
BEGIN
    -- Waits for a deletion of the cluster of that name that is under way.
    INSERT INTO cluster (name) VALUES (p_name) RETURNING cluster_id INTO v_cluster_id;
    DELETE FROM predecessor WHERE name = p_name RETURNING revision + 1 INTO v_floor;
    v_floor := coalesce(v_floor, 0);
    INSERT INTO head (cluster_id, revision, tip, at)
    VALUES (v_cluster_id, v_floor + 1, p_commit_id, v_at);
    INSERT INTO floor (cluster_id, revision) VALUES (v_cluster_id, v_floor);
    INSERT INTO commit
        (cluster_id, last_revision, commit_id, parent, first_revision, planned_at, kind, at)
    VALUES (v_cluster_id, v_floor + 1, p_commit_id, v_root, v_floor + 1, v_floor, 'CreateCluster', v_at);
    INSERT INTO change
        (cluster_id, revision, commit_id, created, verb, kind, namespace, name, uid, body)
    VALUES (v_cluster_id, v_floor + 1, p_commit_id, true, 'Put', 'Cluster', '', 'config', '', p_config);
    INSERT INTO object (cluster_id, revision, kind, namespace, name, uid, body)
    VALUES (v_cluster_id, v_floor + 1, 'Cluster', '', 'config', '', p_config);
    RETURN v_cluster_id;
END;
$$;

-- As before, with the revision at which the cluster began.
CREATE OR REPLACE FUNCTION create_cluster_v2(
    p_name text,
    p_config bytea,
    p_commit_id uuid,
    p_principal text,
    p_address text,
    p_operation text,
    p_request_id text
) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_cluster_id CONSTANT bigint := create_cluster_v1(p_name, p_config, p_commit_id);
    v_revision bigint;
BEGIN
    SELECT h.revision INTO v_revision FROM head AS h WHERE h.cluster_id = v_cluster_id;
    PERFORM audit_v1(0, v_cluster_id, clock_timestamp(), ARRAY[p_principal], ARRAY[p_address],
        ARRAY[p_operation], ARRAY[p_name], ARRAY[v_revision], ARRAY[p_request_id], ARRAY[200],
        ARRAY[1::bigint]);
    RETURN v_cluster_id;
END;
$$;

-- As before, and records the last revision.
CREATE OR REPLACE FUNCTION delete_cluster_v1(p_cluster_id bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_name text;
    v_revision bigint;
BEGIN
    DELETE FROM head WHERE cluster_id = p_cluster_id RETURNING revision INTO v_revision;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM FROM floor WHERE cluster_id = p_cluster_id FOR UPDATE;
    SELECT name INTO v_name FROM cluster WHERE cluster_id = p_cluster_id FOR UPDATE;
    INSERT INTO predecessor (name, revision) VALUES (v_name, v_revision)
    ON CONFLICT (name) DO UPDATE SET revision = greatest(predecessor.revision, excluded.revision);
    DELETE FROM floor WHERE cluster_id = p_cluster_id;
    DELETE FROM object WHERE cluster_id = p_cluster_id;
    DELETE FROM change WHERE cluster_id = p_cluster_id;
    DELETE FROM commit WHERE cluster_id = p_cluster_id;
    DELETE FROM idempotency WHERE cluster_id = p_cluster_id;
    DELETE FROM lease WHERE cluster_id = p_cluster_id;
    DELETE FROM event WHERE cluster_id = p_cluster_id;
    DELETE FROM node_lease WHERE cluster_id = p_cluster_id;
    DELETE FROM webhook WHERE cluster_id = p_cluster_id;
    DELETE FROM history WHERE cluster_id = p_cluster_id;
    DELETE FROM cluster WHERE cluster_id = p_cluster_id;
    RETURN true;
END;
$$;
