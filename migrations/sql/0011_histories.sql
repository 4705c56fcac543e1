-- Which history a cluster's revisions belong to: of which server (`system` and `timeline`), and of which of its databases (by oid).
-- It is noted when a server reads the cluster into memory. A database that was restored from a dump has another system or oid, one
-- that was restored to a point in time, or a standby that was promoted, has a later timeline.
CREATE TABLE history (
    cluster_id bigint NOT NULL,
    system bigint NOT NULL,
    timeline bigint NOT NULL,
    database bigint NOT NULL,
    CONSTRAINT history_pkey PRIMARY KEY (cluster_id),
    CONSTRAINT history_cluster_id_fkey FOREIGN KEY (cluster_id) REFERENCES cluster (cluster_id)
);

-- Notes the history that a cluster is part of now. Its revisions are lifted if others may have seen revisions that are lost: either
-- the log lacks the commit that the caller knows (p_revision and p_tip, null if it knows none), or the history that was noted is
-- another one, and the caller knows no commit that proves that nothing is missing. True if they were lifted; null if there is no
-- such cluster.
CREATE FUNCTION continue_history_v1(
    p_cluster_id bigint,
    p_revision bigint,
    p_tip uuid,
    p_by bigint
) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_now history%ROWTYPE;
    v_head head%ROWTYPE;
    v_noted history%ROWTYPE;
    v_is_there boolean;
    v_lift boolean;
BEGIN
    -- The checkpoint's timeline lags behind after a promotion; the name of the log's file does not.
    SELECT p_cluster_id, s.system_identifier,
        ('x' || substring(pg_walfile_name(pg_current_wal_lsn()) FOR 8))::bit(32)::bigint, d.oid
    INTO v_now
    FROM pg_control_system() AS s, pg_database AS d WHERE d.datname = current_database();
    -- Looked at without a lock first, for commits hold it; nearly always there is nothing to do.
    FOR v_locks IN 0..1 LOOP
        IF v_locks = 1 THEN
            PERFORM FROM head AS h WHERE h.cluster_id = p_cluster_id FOR UPDATE;
        END IF;
        SELECT * INTO v_head FROM head AS h WHERE h.cluster_id = p_cluster_id;
        IF NOT FOUND THEN
            RETURN null;
        END IF;
        -- Null if it cannot be known: the caller knows no commit, or the log no longer reaches back to it.
        v_is_there := CASE
            WHEN p_revision > v_head.revision THEN false
            WHEN p_tip = v_head.tip THEN true
            WHEN p_revision > (SELECT f.revision FROM floor AS f WHERE f.cluster_id = p_cluster_id)
                THEN EXISTS (
                    SELECT FROM commit AS c
                    WHERE c.cluster_id = p_cluster_id AND c.last_revision = p_revision
                        AND c.commit_id = p_tip
                )
        END;
        SELECT * INTO v_noted FROM history AS n WHERE n.cluster_id = p_cluster_id;
        v_lift := coalesce(NOT v_is_there, v_noted.cluster_id IS NOT NULL AND v_noted <> v_now);
        EXIT WHEN NOT v_lift;
    END LOOP;
    IF v_lift THEN
        PERFORM lift_cluster_v1(p_cluster_id, p_by);
    END IF;
    IF v_noted IS DISTINCT FROM v_now THEN
        INSERT INTO history SELECT v_now.* ON CONFLICT (cluster_id) DO UPDATE SET
            system = excluded.system, timeline = excluded.timeline, database = excluded.database;
    END IF;
    RETURN v_lift;
END;
$$;

-- As before, with the cluster's history.
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
    DELETE FROM node_lease WHERE cluster_id = p_cluster_id;
    DELETE FROM webhook WHERE cluster_id = p_cluster_id;
    DELETE FROM history WHERE cluster_id = p_cluster_id;
    DELETE FROM cluster WHERE cluster_id = p_cluster_id;
    RETURN true;
END;
$$;
