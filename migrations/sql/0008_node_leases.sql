-- When each node that reports did so last. A report is no change of the cluster: rows are narrow, stay in their place, and are
-- written every few seconds. A node that never reported has no row.
CREATE TABLE node_lease (
    cluster_id bigint NOT NULL,
    node text COLLATE "C" NOT NULL,
    renewed_at timestamptz NOT NULL,
    CONSTRAINT node_lease_pkey PRIMARY KEY (cluster_id, node),
    CONSTRAINT node_lease_cluster_id_fkey FOREIGN KEY (cluster_id) REFERENCES cluster (cluster_id)
) WITH (fillfactor = 50);

-- As before, with what the cluster's nodes reported.
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
    DELETE FROM cluster WHERE cluster_id = p_cluster_id;
    RETURN true;
END;
$$;
