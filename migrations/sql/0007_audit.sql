-- Who wrote what, and who was refused. Rows are chained: each has the hash of the one before it. A cluster has a chain of its
-- own, under its number; what concerns the whole server (clusters made and deleted, refusals) is chain 0. Rows stay when their
-- cluster is deleted, and go by age.
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

-- Adds rows to a chain. Whoever adds to a cluster's has its head locked, so nobody waits here but for chain 0; that comes last in
-- its transactions. The hash is that of a JSON array of the row's fields in the order of the table, the previous hash first.
CREATE FUNCTION audit_v1(
    p_chain bigint,
    p_cluster_id bigint,
    p_at timestamptz,
    p_principals text[],
    p_addresses text[],
    p_operations text[],
    p_clusters text[],
    p_revisions bigint[],
    p_request_ids text[],
    p_statuses integer[],
    p_requests bigint[]
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_number bigint;
    v_hash bytea;
    v_at timestamptz;
    v_cluster text;
    v_told text;
    v_previous bytea[] := '{}';
    v_hashes bytea[] := '{}';
BEGIN
    SELECT c.number, c.hash, greatest(c.at, p_at), c.cluster INTO v_number, v_hash, v_at, v_cluster
    FROM audit_chain AS c WHERE c.chain = p_chain FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        INSERT INTO audit_chain (chain, cluster, number, hash, at)
        SELECT p_chain, c.name, 0, '', p_at FROM cluster AS c WHERE c.cluster_id = p_chain
        RETURNING number, hash, at, cluster INTO v_number, v_hash, v_at, v_cluster;
    END IF;
    v_told := to_char(v_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"');
    FOR v_place IN 1 .. cardinality(p_principals) LOOP
        v_previous[v_place] := v_hash;
        v_hash := sha256(convert_to(json_build_array(encode(v_hash, 'hex'), p_chain,
            v_number + v_place, v_told, p_principals[v_place], p_addresses[v_place],
            p_operations[v_place], p_cluster_id, coalesce(p_clusters[v_place], v_cluster),
            p_revisions[v_place], p_request_ids[v_place], p_statuses[v_place],
            p_requests[v_place])::text, 'UTF8'));
        v_hashes[v_place] := v_hash;
    END LOOP;
    INSERT INTO audit
        (chain, number, at, principal, address, operation, cluster_id, cluster, revision,
            request_id, status, requests, previous_hash, hash)
    SELECT p_chain, v_number + r.place, v_at, r.principal, r.address, r.operation, p_cluster_id,
        coalesce(r.cluster, v_cluster), r.revision, r.request_id, r.status, r.requests,
        r.previous_hash, r.hash
    FROM unnest(p_principals, p_addresses, p_operations, p_clusters, p_revisions, p_request_ids,
            p_statuses, p_requests, v_previous, v_hashes)
        WITH ORDINALITY AS r (principal, address, operation, cluster, revision, request_id, status,
            requests, previous_hash, hash, place);
    UPDATE audit_chain
    SET number = v_number + cardinality(p_principals), hash = v_hash, at = v_at
    WHERE chain = p_chain;
END;
$$;

-- As commit_v2, and with it, or not at all, says who asked for it.
CREATE FUNCTION commit_v3(
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
    p_audit_principals text[],
    p_audit_addresses text[],
    p_audit_operations text[],
    p_audit_clusters text[],
    p_audit_revisions bigint[],
    p_audit_request_ids text[],
    p_audit_statuses integer[],
    p_audit_requests bigint[],
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
        IF cardinality(p_event_names) > 0 THEN
            PERFORM add_events_v1(p_cluster_id, p_event_namespaces, p_event_names, p_event_pods,
                p_event_uids, p_event_types, p_event_reasons, p_event_messages,
                p_event_revisions, p_event_counts, p_event_first_at, p_event_last_at);
        END IF;
        PERFORM audit_v1(p_cluster_id, p_cluster_id, head_at, p_audit_principals,
            p_audit_addresses, p_audit_operations, p_audit_clusters, p_audit_revisions,
            p_audit_request_ids, p_audit_statuses, p_audit_requests);
    END IF;
END;
$$;

-- As create_cluster_v1, and says who asked for it.
CREATE FUNCTION create_cluster_v2(
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
BEGIN
    PERFORM audit_v1(0, v_cluster_id, clock_timestamp(), ARRAY[p_principal], ARRAY[p_address],
        ARRAY[p_operation], ARRAY[p_name], ARRAY[1::bigint], ARRAY[p_request_id], ARRAY[200],
        ARRAY[1::bigint]);
    RETURN v_cluster_id;
END;
$$;

-- As delete_cluster_v1, and says who asked for it.
CREATE FUNCTION delete_cluster_v2(
    p_cluster_id bigint,
    p_principal text,
    p_address text,
    p_operation text,
    p_request_id text
) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_name text;
BEGIN
    SELECT c.name INTO v_name FROM cluster AS c WHERE c.cluster_id = p_cluster_id;
    IF NOT delete_cluster_v1(p_cluster_id) THEN
        RETURN false;
    END IF;
    PERFORM audit_v1(0, p_cluster_id, clock_timestamp(), ARRAY[p_principal], ARRAY[p_address],
        ARRAY[p_operation], ARRAY[v_name], ARRAY[NULL::bigint], ARRAY[p_request_id], ARRAY[200],
        ARRAY[1::bigint]);
    RETURN true;
END;
$$;
