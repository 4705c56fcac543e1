-- Deletes a cluster with everything that it has; false if there was none. The head goes first, so that a
-- commit that waits for it then finds the cluster gone; then the cluster is locked, so that nobody takes a
-- lease between the deletion of its leases and its own; then the floor, so that a compaction waits.
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
    DELETE FROM cluster WHERE cluster_id = p_cluster_id;
    RETURN true;
END;
$$;
