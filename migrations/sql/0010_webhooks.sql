-- Where records of a cluster are sent, and how far they were. A delivery is no change of the cluster. Secrets are kept as they are,
-- for messages are signed with them. `holder` is the process that delivers until `held_until`; `batch_end` is where the message
-- that is under way ends, so that a repetition says the same.
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

-- As before, with the cluster's webhooks.
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
    DELETE FROM cluster WHERE cluster_id = p_cluster_id;
    RETURN true;
END;
$$;
