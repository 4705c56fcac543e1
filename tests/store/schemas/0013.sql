--
-- PostgreSQL database dump
--


-- Dumped from database version 18.4
-- Dumped by pg_dump version 18.4

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: add_events_v1(bigint, text[], text[], text[], text[], text[], text[], text[], bigint[], bigint[], timestamp with time zone[], timestamp with time zone[]); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.add_events_v1(p_cluster_id bigint, p_namespaces text[], p_names text[], p_pods text[], p_uids text[], p_types text[], p_reasons text[], p_messages text[], p_revisions bigint[], p_counts bigint[], p_first_at timestamp with time zone[], p_last_at timestamp with time zone[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM 1 FROM floor AS f WHERE f.cluster_id = p_cluster_id FOR KEY SHARE;
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


--
-- Name: audit_v1(bigint, bigint, timestamp with time zone, text[], text[], text[], text[], bigint[], text[], integer[], bigint[]); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.audit_v1(p_chain bigint, p_cluster_id bigint, p_at timestamp with time zone, p_principals text[], p_addresses text[], p_operations text[], p_clusters text[], p_revisions bigint[], p_request_ids text[], p_statuses integer[], p_requests bigint[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
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
        SELECT 0, '', p_at, c.name INTO v_number, v_hash, v_at, v_cluster
        FROM cluster AS c WHERE c.cluster_id = p_chain;
        INSERT INTO audit_chain (chain, cluster, number, hash, at)
        VALUES (p_chain, v_cluster, v_number, v_hash, v_at);
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


--
-- Name: change_access_v1(boolean, boolean); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.change_access_v1(p_had_tokens boolean, p_keep_admin boolean) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF p_keep_admin AND (p_had_tokens OR has_tokens_v1()) AND NOT EXISTS (
        SELECT FROM token AS t JOIN principal AS p ON p.kind = 'User' AND p.name = t.principal
        WHERE p.admin AND (t.expires_at IS NULL OR t.expires_at > clock_timestamp())
    ) THEN
        RAISE EXCEPTION 'no token of an admin would be left' USING ERRCODE = 'MR003';
    END IF;
END;
$$;


--
-- Name: commit_v1(bigint, bigint, uuid, uuid, bigint, text, timestamp with time zone, text[], boolean[], text[], text[], text[], text[], text[], text[], bytea[], bytea[], text[], text[], integer[], bytea[], bytea[]); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.commit_v1(p_cluster_id bigint, p_revision bigint, p_tip uuid, p_commit_id uuid, p_planned_at bigint, p_kind text, p_not_before timestamp with time zone, p_effects text[], p_created boolean[], p_verbs text[], p_kinds text[], p_namespaces text[], p_names text[], p_uids text[], p_node_names text[], p_labels_before bytea[], p_bodies bytea[], p_operations text[], p_keys text[], p_chunks integer[], p_request_hashes bytea[], p_answers bytea[], OUT outcome text, OUT head_revision bigint, OUT head_tip uuid, OUT head_at timestamp with time zone) RETURNS record
    LANGUAGE plpgsql
    AS $$
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

    -- Each row is looked up by its whole key, in a subquery that the planner leaves alone (P15). As
    -- a plain join, planned while the table is all but empty and kept until it is analyzed, this
    -- reads all rows of the cluster for every object. Nobody else moves them: the head is locked.
    v_expected := cardinality(array_positions(p_effects, 'Update'));
    IF v_expected > 0 THEN
        UPDATE object AS o
        SET revision = p_revision + c.place, uid = c.uid, node_name = c.node_name, body = c.body
        FROM unnest(p_effects, p_kinds, p_namespaces, p_names, p_uids, p_node_names, p_bodies)
            WITH ORDINALITY AS c (effect, kind, namespace, name, uid, node_name, body, place),
            LATERAL (SELECT k.ctid AS at FROM object AS k
                WHERE k.cluster_id = p_cluster_id AND k.kind = c.kind
                    AND k.namespace = c.namespace AND k.name = c.name
                OFFSET 0) AS found
        WHERE c.effect = 'Update' AND o.ctid = found.at;
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
            AS c (effect, kind, namespace, name),
            LATERAL (SELECT k.ctid AS at FROM object AS k
                WHERE k.cluster_id = p_cluster_id AND k.kind = c.kind
                    AND k.namespace = c.namespace AND k.name = c.name
                OFFSET 0) AS found
        WHERE c.effect = 'Delete' AND o.ctid = found.at;
        GET DIAGNOSTICS v_touched = ROW_COUNT;
        IF v_touched <> v_expected THEN
            RAISE EXCEPTION 'deleted % of % objects', v_touched, v_expected
                USING ERRCODE = 'MR002';
        END IF;
    END IF;
END;
$$;


--
-- Name: commit_v2(bigint, bigint, uuid, uuid, bigint, text, timestamp with time zone, text[], boolean[], text[], text[], text[], text[], text[], text[], bytea[], bytea[], text[], text[], integer[], bytea[], bytea[], text[], text[], text[], text[], text[], text[], text[], bigint[], bigint[], timestamp with time zone[], timestamp with time zone[]); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.commit_v2(p_cluster_id bigint, p_revision bigint, p_tip uuid, p_commit_id uuid, p_planned_at bigint, p_kind text, p_not_before timestamp with time zone, p_effects text[], p_created boolean[], p_verbs text[], p_kinds text[], p_namespaces text[], p_names text[], p_uids text[], p_node_names text[], p_labels_before bytea[], p_bodies bytea[], p_operations text[], p_keys text[], p_chunks integer[], p_request_hashes bytea[], p_answers bytea[], p_event_namespaces text[], p_event_names text[], p_event_pods text[], p_event_uids text[], p_event_types text[], p_event_reasons text[], p_event_messages text[], p_event_revisions bigint[], p_event_counts bigint[], p_event_first_at timestamp with time zone[], p_event_last_at timestamp with time zone[], OUT outcome text, OUT head_revision bigint, OUT head_tip uuid, OUT head_at timestamp with time zone) RETURNS record
    LANGUAGE plpgsql
    AS $$
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


--
-- Name: commit_v3(bigint, bigint, uuid, uuid, bigint, text, timestamp with time zone, text[], boolean[], text[], text[], text[], text[], text[], text[], bytea[], bytea[], text[], text[], integer[], bytea[], bytea[], text[], text[], text[], text[], text[], text[], text[], bigint[], bigint[], timestamp with time zone[], timestamp with time zone[], text[], text[], text[], text[], bigint[], text[], integer[], bigint[]); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.commit_v3(p_cluster_id bigint, p_revision bigint, p_tip uuid, p_commit_id uuid, p_planned_at bigint, p_kind text, p_not_before timestamp with time zone, p_effects text[], p_created boolean[], p_verbs text[], p_kinds text[], p_namespaces text[], p_names text[], p_uids text[], p_node_names text[], p_labels_before bytea[], p_bodies bytea[], p_operations text[], p_keys text[], p_chunks integer[], p_request_hashes bytea[], p_answers bytea[], p_event_namespaces text[], p_event_names text[], p_event_pods text[], p_event_uids text[], p_event_types text[], p_event_reasons text[], p_event_messages text[], p_event_revisions bigint[], p_event_counts bigint[], p_event_first_at timestamp with time zone[], p_event_last_at timestamp with time zone[], p_audit_principals text[], p_audit_addresses text[], p_audit_operations text[], p_audit_clusters text[], p_audit_revisions bigint[], p_audit_request_ids text[], p_audit_statuses integer[], p_audit_requests bigint[], OUT outcome text, OUT head_revision bigint, OUT head_tip uuid, OUT head_at timestamp with time zone) RETURNS record
    LANGUAGE plpgsql
    AS $$
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


--
-- Name: commit_v4(bigint, bigint, uuid, uuid, bigint, text, timestamp with time zone, text[], boolean[], text[], text[], text[], text[], text[], text[], bytea[], bytea[], text[], text[], integer[], bytea[], bytea[], bytea[], text[], text[], text[], text[], text[], text[], text[], bigint[], bigint[], timestamp with time zone[], timestamp with time zone[], text[], text[], text[], text[], bigint[], text[], integer[], bigint[]); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.commit_v4(p_cluster_id bigint, p_revision bigint, p_tip uuid, p_commit_id uuid, p_planned_at bigint, p_kind text, p_not_before timestamp with time zone, p_effects text[], p_created boolean[], p_verbs text[], p_kinds text[], p_namespaces text[], p_names text[], p_uids text[], p_node_names text[], p_labels_before bytea[], p_bodies bytea[], p_operations text[], p_keys text[], p_chunks integer[], p_request_hashes bytea[], p_answers bytea[], p_fields_before bytea[], p_event_namespaces text[] DEFAULT '{}'::text[], p_event_names text[] DEFAULT '{}'::text[], p_event_pods text[] DEFAULT '{}'::text[], p_event_uids text[] DEFAULT '{}'::text[], p_event_types text[] DEFAULT '{}'::text[], p_event_reasons text[] DEFAULT '{}'::text[], p_event_messages text[] DEFAULT '{}'::text[], p_event_revisions bigint[] DEFAULT '{}'::bigint[], p_event_counts bigint[] DEFAULT '{}'::bigint[], p_event_first_at timestamp with time zone[] DEFAULT '{}'::timestamp with time zone[], p_event_last_at timestamp with time zone[] DEFAULT '{}'::timestamp with time zone[], p_audit_principals text[] DEFAULT '{}'::text[], p_audit_addresses text[] DEFAULT '{}'::text[], p_audit_operations text[] DEFAULT '{}'::text[], p_audit_clusters text[] DEFAULT '{}'::text[], p_audit_revisions bigint[] DEFAULT '{}'::bigint[], p_audit_request_ids text[] DEFAULT '{}'::text[], p_audit_statuses integer[] DEFAULT '{}'::integer[], p_audit_requests bigint[] DEFAULT '{}'::bigint[], OUT outcome text, OUT head_revision bigint, OUT head_tip uuid, OUT head_at timestamp with time zone) RETURNS record
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_changes CONSTANT integer := cardinality(p_verbs);
    v_records CONSTANT integer := cardinality(p_keys);
    v_expected integer;
    v_touched integer;
BEGIN
    IF v_changes = 0
        OR (v_changes, v_changes, v_changes, v_changes, v_changes,
            v_changes, v_changes, v_changes, v_changes, v_changes)
        IS DISTINCT FROM
        (cardinality(p_effects), cardinality(p_created), cardinality(p_kinds),
            cardinality(p_namespaces), cardinality(p_names), cardinality(p_uids),
            cardinality(p_node_names), cardinality(p_labels_before),
            cardinality(p_fields_before), cardinality(p_bodies))
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
            labels_before, fields_before, body)
    SELECT p_cluster_id, p_revision + c.place, p_commit_id, c.created, c.verb, c.kind, c.namespace,
        c.name, c.uid, c.node_name, c.labels_before, c.fields_before, c.body
    FROM unnest(p_created, p_verbs, p_kinds, p_namespaces, p_names, p_uids, p_node_names,
            p_labels_before, p_fields_before, p_bodies)
        WITH ORDINALITY AS c (created, verb, kind, namespace, name, uid, node_name, labels_before,
            fields_before, body, place);

    v_expected := cardinality(array_positions(p_effects, 'Create'));
    IF v_expected > 0 THEN
        INSERT INTO object (cluster_id, revision, kind, namespace, name, uid, node_name, body)
        SELECT p_cluster_id, p_revision + c.place, c.kind, c.namespace, c.name, c.uid, c.node_name,
            c.body
        FROM unnest(p_effects, p_kinds, p_namespaces, p_names, p_uids, p_node_names, p_bodies)
            WITH ORDINALITY AS c (effect, kind, namespace, name, uid, node_name, body, place)
        WHERE c.effect = 'Create';
    END IF;

    -- Each row is looked up by its whole key, in a subquery that the planner leaves alone (P15). As
    -- a plain join, planned while the table is all but empty and kept until it is analyzed, this
    -- reads all rows of the cluster for every object. Nobody else moves them: the head is locked.
    v_expected := cardinality(array_positions(p_effects, 'Update'));
    IF v_expected > 0 THEN
        UPDATE object AS o
        SET revision = p_revision + c.place, uid = c.uid, node_name = c.node_name, body = c.body
        FROM unnest(p_effects, p_kinds, p_namespaces, p_names, p_uids, p_node_names, p_bodies)
            WITH ORDINALITY AS c (effect, kind, namespace, name, uid, node_name, body, place),
            LATERAL (SELECT k.ctid AS at FROM object AS k
                WHERE k.cluster_id = p_cluster_id AND k.kind = c.kind
                    AND k.namespace = c.namespace AND k.name = c.name
                OFFSET 0) AS found
        WHERE c.effect = 'Update' AND o.ctid = found.at;
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
            AS c (effect, kind, namespace, name),
            LATERAL (SELECT k.ctid AS at FROM object AS k
                WHERE k.cluster_id = p_cluster_id AND k.kind = c.kind
                    AND k.namespace = c.namespace AND k.name = c.name
                OFFSET 0) AS found
        WHERE c.effect = 'Delete' AND o.ctid = found.at;
        GET DIAGNOSTICS v_touched = ROW_COUNT;
        IF v_touched <> v_expected THEN
            RAISE EXCEPTION 'deleted % of % objects', v_touched, v_expected
                USING ERRCODE = 'MR002';
        END IF;
    END IF;

    IF cardinality(p_event_names) > 0 THEN
        PERFORM add_events_v1(p_cluster_id, p_event_namespaces, p_event_names, p_event_pods,
            p_event_uids, p_event_types, p_event_reasons, p_event_messages, p_event_revisions,
            p_event_counts, p_event_first_at, p_event_last_at);
    END IF;
    IF cardinality(p_audit_principals) > 0 THEN
        PERFORM audit_v1(p_cluster_id, p_cluster_id, head_at, p_audit_principals,
            p_audit_addresses, p_audit_operations, p_audit_clusters, p_audit_revisions,
            p_audit_request_ids, p_audit_statuses, p_audit_requests);
    END IF;
END;
$$;


--
-- Name: commit_v5(bigint, bigint, uuid, uuid, bigint, text, timestamp with time zone, text, text, text, text, text, text, text, text, text, bytea[], text[], text[], integer[], bytea[], bytea[], text, text, text, text, text, text, text, text, text, text, text, text, text, text, text, text, text, text, text, text); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.commit_v5(p_cluster_id bigint, p_revision bigint, p_tip uuid, p_commit_id uuid, p_planned_at bigint, p_kind text, p_not_before timestamp with time zone, p_effects text, p_created text, p_verbs text, p_kinds text, p_namespaces text, p_names text, p_uids text, p_node_names text, p_labels_before text, p_bodies bytea[], p_operations text[], p_keys text[], p_chunks integer[], p_request_hashes bytea[], p_answers bytea[], p_fields_before text, p_event_namespaces text DEFAULT '{}'::text, p_event_names text DEFAULT '{}'::text, p_event_pods text DEFAULT '{}'::text, p_event_uids text DEFAULT '{}'::text, p_event_types text DEFAULT '{}'::text, p_event_reasons text DEFAULT '{}'::text, p_event_messages text DEFAULT '{}'::text, p_event_revisions text DEFAULT '{}'::text, p_event_counts text DEFAULT '{}'::text, p_event_first_at text DEFAULT '{}'::text, p_event_last_at text DEFAULT '{}'::text, p_audit_principals text DEFAULT '{}'::text, p_audit_addresses text DEFAULT '{}'::text, p_audit_operations text DEFAULT '{}'::text, p_audit_clusters text DEFAULT '{}'::text, p_audit_revisions text DEFAULT '{}'::text, p_audit_request_ids text DEFAULT '{}'::text, p_audit_statuses text DEFAULT '{}'::text, p_audit_requests text DEFAULT '{}'::text, OUT outcome text, OUT head_revision bigint, OUT head_tip uuid, OUT head_at timestamp with time zone) RETURNS record
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_effects CONSTANT text[] := p_effects;
    v_created CONSTANT boolean[] := p_created;
    v_verbs CONSTANT text[] := p_verbs;
    v_kinds CONSTANT text[] := p_kinds;
    v_namespaces CONSTANT text[] := p_namespaces;
    v_names CONSTANT text[] := p_names;
    v_uids CONSTANT text[] := p_uids;
    v_node_names CONSTANT text[] := p_node_names;
    v_labels_before CONSTANT bytea[] := p_labels_before;
    v_fields_before CONSTANT bytea[] := p_fields_before;
    v_changes CONSTANT integer := cardinality(v_verbs);
    v_records CONSTANT integer := cardinality(p_keys);
    v_expected integer;
    v_touched integer;
    v_clock timestamptz;
BEGIN
    IF v_changes = 0
        OR (v_changes, v_changes, v_changes, v_changes, v_changes,
            v_changes, v_changes, v_changes, v_changes, v_changes)
        IS DISTINCT FROM
        (cardinality(v_effects), cardinality(v_created), cardinality(v_kinds),
            cardinality(v_namespaces), cardinality(v_names), cardinality(v_uids),
            cardinality(v_node_names), cardinality(v_labels_before),
            cardinality(v_fields_before), cardinality(p_bodies))
        OR (v_records, v_records, v_records, v_records)
        IS DISTINCT FROM
        (cardinality(p_operations), cardinality(p_chunks), cardinality(p_request_hashes),
            cardinality(p_answers))
    THEN
        RAISE EXCEPTION 'arrays differ in length, or there is no change' USING ERRCODE = 'MR001';
    END IF;

    -- The swap comes first: all who commit to this cluster queue up here and nowhere else. Time does
    -- not run backwards between commits, also where another one was waited for meanwhile.
    v_clock := clock_timestamp();
    UPDATE head AS h
    SET revision = p_revision + v_changes, tip = p_commit_id, at = greatest(v_clock, h.at)
    WHERE h.cluster_id = p_cluster_id AND h.revision = p_revision AND h.tip = p_tip
        AND (p_not_before IS NULL OR greatest(v_clock, h.at) >= p_not_before)
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
            labels_before, fields_before, body)
    SELECT p_cluster_id, p_revision + c.place, p_commit_id, c.created, c.verb, c.kind, c.namespace,
        c.name, c.uid, c.node_name, c.labels_before, c.fields_before, c.body
    FROM unnest(v_created, v_verbs, v_kinds, v_namespaces, v_names, v_uids, v_node_names,
            v_labels_before, v_fields_before, p_bodies)
        WITH ORDINALITY AS c (created, verb, kind, namespace, name, uid, node_name, labels_before,
            fields_before, body, place);

    v_expected := cardinality(array_positions(v_effects, 'Create'));
    IF v_expected > 0 THEN
        INSERT INTO object (cluster_id, revision, kind, namespace, name, uid, node_name, body)
        SELECT p_cluster_id, p_revision + c.place, c.kind, c.namespace, c.name, c.uid, c.node_name,
            c.body
        FROM unnest(v_effects, v_kinds, v_namespaces, v_names, v_uids, v_node_names, p_bodies)
            WITH ORDINALITY AS c (effect, kind, namespace, name, uid, node_name, body, place)
        WHERE c.effect = 'Create';
    END IF;

    -- Each row is looked up by its whole key, in a subquery that the planner leaves alone (P15). As
    -- a plain join, planned while the table is all but empty and kept until it is analyzed, this
    -- reads all rows of the cluster for every object. Nobody else moves them: the head is locked.
    v_expected := cardinality(array_positions(v_effects, 'Update'));
    IF v_expected > 0 THEN
        UPDATE object AS o
        SET revision = p_revision + c.place, uid = c.uid, node_name = c.node_name, body = c.body
        FROM unnest(v_effects, v_kinds, v_namespaces, v_names, v_uids, v_node_names, p_bodies)
            WITH ORDINALITY AS c (effect, kind, namespace, name, uid, node_name, body, place),
            LATERAL (SELECT k.ctid AS at FROM object AS k
                WHERE k.cluster_id = p_cluster_id AND k.kind = c.kind
                    AND k.namespace = c.namespace AND k.name = c.name
                OFFSET 0) AS found
        WHERE c.effect = 'Update' AND o.cluster_id = p_cluster_id AND o.ctid = found.at;
        GET DIAGNOSTICS v_touched = ROW_COUNT;
        IF v_touched <> v_expected THEN
            RAISE EXCEPTION 'updated % of % objects', v_touched, v_expected
                USING ERRCODE = 'MR002';
        END IF;
    END IF;

    v_expected := cardinality(array_positions(v_effects, 'Delete'));
    IF v_expected > 0 THEN
        DELETE FROM object AS o
        USING unnest(v_effects, v_kinds, v_namespaces, v_names)
            AS c (effect, kind, namespace, name),
            LATERAL (SELECT k.ctid AS at FROM object AS k
                WHERE k.cluster_id = p_cluster_id AND k.kind = c.kind
                    AND k.namespace = c.namespace AND k.name = c.name
                OFFSET 0) AS found
        WHERE c.effect = 'Delete' AND o.cluster_id = p_cluster_id AND o.ctid = found.at;
        GET DIAGNOSTICS v_touched = ROW_COUNT;
        IF v_touched <> v_expected THEN
            RAISE EXCEPTION 'deleted % of % objects', v_touched, v_expected
                USING ERRCODE = 'MR002';
        END IF;
    END IF;

    IF p_event_names <> '{}' THEN
        PERFORM add_events_v1(p_cluster_id, p_event_namespaces::text[], p_event_names::text[], p_event_pods::text[],
            p_event_uids::text[], p_event_types::text[], p_event_reasons::text[], p_event_messages::text[], p_event_revisions::bigint[],
            p_event_counts::bigint[], p_event_first_at::timestamptz[], p_event_last_at::timestamptz[]);
    END IF;
    IF p_audit_principals <> '{}' THEN
        PERFORM audit_v1(p_cluster_id, p_cluster_id, head_at, p_audit_principals::text[],
            p_audit_addresses::text[], p_audit_operations::text[], p_audit_clusters::text[], p_audit_revisions::bigint[],
            p_audit_request_ids::text[], p_audit_statuses::integer[], p_audit_requests::bigint[]);
    END IF;
END;
$$;


--
-- Name: compact_v1(bigint, bigint, interval, bigint); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.compact_v1(p_cluster_id bigint, p_keep_changes bigint, p_keep_for interval, p_rows bigint, OUT floor_revision bigint, OUT rose boolean) RETURNS record
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_head bigint;
    v_target bigint;
BEGIN
    SELECT f.revision INTO floor_revision FROM floor AS f
    WHERE f.cluster_id = p_cluster_id FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT h.revision INTO v_head FROM head AS h WHERE h.cluster_id = p_cluster_id;
    -- Commits are in order of time too, so the last old one within reach bounds the step.
    SELECT least(coalesce(max(c.last_revision), 0), floor_revision + p_rows, v_head - p_keep_changes)
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


--
-- Name: continue_history_v1(bigint, bigint, uuid, bigint); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.continue_history_v1(p_cluster_id bigint, p_revision bigint, p_tip uuid, p_by bigint) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_now history%ROWTYPE;
    v_head head%ROWTYPE;
    v_noted history%ROWTYPE;
    v_floor bigint;
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
            PERFORM 1 FROM head AS h WHERE h.cluster_id = p_cluster_id FOR UPDATE;
        END IF;
        SELECT * INTO v_head FROM head AS h WHERE h.cluster_id = p_cluster_id;
        IF NOT FOUND THEN
            RETURN null;
        END IF;
        -- Null if it cannot be known: the caller knows no commit, or the log no longer reaches back to it.
        v_is_there := CASE WHEN p_revision > v_head.revision THEN false WHEN p_tip = v_head.tip THEN true END;
        IF v_is_there IS NULL THEN
            SELECT f.revision INTO v_floor FROM floor AS f WHERE f.cluster_id = p_cluster_id;
            IF p_revision > v_floor THEN
                PERFORM 1 FROM commit AS c
                WHERE c.cluster_id = p_cluster_id AND c.last_revision = p_revision
                    AND c.commit_id = p_tip;
                v_is_there := FOUND;
            END IF;
        END IF;
        SELECT * INTO v_noted FROM history AS n WHERE n.cluster_id = p_cluster_id;
        v_lift := coalesce(NOT v_is_there, v_noted.cluster_id IS NOT NULL AND v_noted <> v_now);
        EXIT WHEN NOT v_lift;
    END LOOP;
    IF v_lift THEN
        PERFORM lift_cluster_v1(p_cluster_id, p_by);
    END IF;
    IF v_noted IS DISTINCT FROM v_now THEN
        INSERT INTO history (cluster_id, system, timeline, database)
        VALUES (p_cluster_id, v_now.system, v_now.timeline, v_now.database)
        ON CONFLICT (cluster_id) DO UPDATE SET
            system = excluded.system, timeline = excluded.timeline, database = excluded.database;
    END IF;
    RETURN v_lift;
END;
$$;


--
-- Name: create_cluster_v1(text, bytea, uuid); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.create_cluster_v1(p_name text, p_config bytea, p_commit_id uuid) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
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


--
-- Name: create_cluster_v2(text, bytea, uuid, text, text, text, text); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.create_cluster_v2(p_name text, p_config bytea, p_commit_id uuid, p_principal text, p_address text, p_operation text, p_request_id text) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_cluster_id CONSTANT bigint := create_cluster_v1(p_name, p_config, p_commit_id);
BEGIN
    PERFORM audit_v1(0, v_cluster_id, clock_timestamp(), ARRAY[p_principal], ARRAY[p_address],
        ARRAY[p_operation], ARRAY[p_name], ARRAY[1::bigint], ARRAY[p_request_id], ARRAY[200],
        ARRAY[1::bigint]);
    RETURN v_cluster_id;
END;
$$;


--
-- Name: create_token_v1(text, text, bytea, text, interval, boolean); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.create_token_v1(p_token_id text, p_principal text, p_secret_hash bytea, p_description text, p_expires_in interval, p_keep_admin boolean, OUT created_at timestamp with time zone, OUT expires_at timestamp with time zone) RETURNS record
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_had_tokens boolean;
    v_now CONSTANT timestamptz := clock_timestamp();
BEGIN
    UPDATE access_state SET version = version + 1;
    v_had_tokens := has_tokens_v1();
    INSERT INTO token AS t (token_id, principal, secret_hash, description, created_at, expires_at)
    SELECT p_token_id, p.name, p_secret_hash, p_description, v_now, v_now + p_expires_in
    FROM principal AS p WHERE p.kind = 'User' AND p.name = p_principal
    RETURNING t.created_at, t.expires_at INTO created_at, expires_at;
    IF FOUND THEN
        PERFORM change_access_v1(v_had_tokens, p_keep_admin);
    END IF;
END;
$$;


--
-- Name: delete_cluster_v1(bigint); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.delete_cluster_v1(p_cluster_id bigint) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
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


--
-- Name: delete_cluster_v2(bigint, text, text, text, text); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.delete_cluster_v2(p_cluster_id bigint, p_principal text, p_address text, p_operation text, p_request_id text) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
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


--
-- Name: delete_principal_v1(text, text, boolean); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.delete_principal_v1(p_kind text, p_name text, p_keep_admin boolean) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_had_tokens boolean;
BEGIN
    UPDATE access_state SET version = version + 1;
    v_had_tokens := has_tokens_v1();
    DELETE FROM principal WHERE kind = p_kind AND name = p_name;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM token WHERE p_kind = 'User' AND principal = p_name;
    PERFORM change_access_v1(v_had_tokens, p_keep_admin);
    RETURN true;
END;
$$;


--
-- Name: delete_token_v1(text, boolean); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.delete_token_v1(p_token_id text, p_keep_admin boolean) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_had_tokens boolean;
BEGIN
    UPDATE access_state SET version = version + 1;
    v_had_tokens := has_tokens_v1();
    DELETE FROM token WHERE token_id = p_token_id;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM change_access_v1(v_had_tokens, p_keep_admin);
    RETURN true;
END;
$$;


--
-- Name: fence_v1(bigint, bigint, uuid, uuid); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.fence_v1(p_cluster_id bigint, p_revision bigint, p_tip uuid, p_fence_id uuid, OUT outcome text, OUT head_revision bigint, OUT head_tip uuid, OUT head_at timestamp with time zone) RETURNS record
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_clock CONSTANT timestamptz := clock_timestamp();
BEGIN
    UPDATE head AS h
    SET tip = p_fence_id, at = greatest(v_clock, h.at)
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


--
-- Name: has_tokens_v1(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.has_tokens_v1() RETURNS boolean
    LANGUAGE sql STABLE
    AS $$ SELECT EXISTS (SELECT FROM token) $$;


--
-- Name: lift_cluster_v1(bigint, bigint); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.lift_cluster_v1(p_cluster_id bigint, p_by bigint) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_clock CONSTANT timestamptz := clock_timestamp();
    v_tip CONSTANT uuid := gen_random_uuid();
    v_revision bigint;
BEGIN
    UPDATE head AS h
    SET revision = h.revision + p_by, tip = v_tip, at = greatest(v_clock, h.at)
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


--
-- Name: note_use_v1(text[], timestamp with time zone[]); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.note_use_v1(p_token_ids text[], p_used_at timestamp with time zone[]) RETURNS void
    LANGUAGE sql
    AS $$
    UPDATE token AS t SET last_used_at = greatest(t.last_used_at, u.used_at)
    FROM unnest(p_token_ids, p_used_at) AS u (token_id, used_at)
    WHERE t.token_id = u.token_id
$$;


--
-- Name: put_principal_v1(text, text, bytea, boolean, boolean); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.put_principal_v1(p_kind text, p_name text, p_grants bytea, p_admin boolean, p_keep_admin boolean) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_had_tokens boolean;
    v_created boolean;
BEGIN
    UPDATE access_state SET version = version + 1;
    v_had_tokens := has_tokens_v1();
    INSERT INTO principal AS p (kind, name, grants, admin, created_at)
    VALUES (p_kind, p_name, p_grants, p_admin, clock_timestamp())
    ON CONFLICT (kind, name) DO UPDATE SET grants = excluded.grants, admin = excluded.admin
    RETURNING xmax = 0 INTO v_created;
    PERFORM change_access_v1(v_had_tokens, p_keep_admin);
    RETURN v_created;
END;
$$;


--
-- Name: record_answers_v1(bigint, bigint, uuid, text[], text[], integer[], bytea[], bytea[]); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.record_answers_v1(p_cluster_id bigint, p_revision bigint, p_tip uuid, p_operations text[], p_keys text[], p_chunks integer[], p_request_hashes bytea[], p_answers bytea[]) RETURNS TABLE(head_revision bigint, head_tip uuid, head_at timestamp with time zone)
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_clock CONSTANT timestamptz := clock_timestamp();
BEGIN
    SELECT h.revision, h.tip, h.at INTO head_revision, head_tip, head_at
    FROM head AS h WHERE h.cluster_id = p_cluster_id;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF (head_revision, head_tip) = (p_revision, p_tip) THEN
        INSERT INTO idempotency
            (cluster_id, operation, key, chunk, request_hash, answer, recorded_at)
        SELECT p_cluster_id, r.operation, r.key, r.chunk, r.request_hash, r.answer, v_clock
        FROM unnest(p_operations, p_keys, p_chunks, p_request_hashes, p_answers)
            AS r (operation, key, chunk, request_hash, answer)
        ORDER BY r.operation COLLATE "C", r.key COLLATE "C", r.chunk;
    END IF;
    RETURN NEXT;
END;
$$;


--
-- Name: renew_node_leases_v1(bigint, text[]); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.renew_node_leases_v1(p_cluster_id bigint, p_nodes text[], OUT head_revision bigint, OUT reported_at timestamp with time zone, OUT known text[]) RETURNS record
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM 1 FROM floor AS f WHERE f.cluster_id = p_cluster_id FOR KEY SHARE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT coalesce(array_agg(n.node ORDER BY n.node), '{}') INTO known
    FROM (SELECT DISTINCT unnest(p_nodes) COLLATE "C" AS node) AS n,
        LATERAL (
            SELECT FROM object AS o
            WHERE o.cluster_id = p_cluster_id AND o.kind = 'Node' AND o.namespace = ''
                AND o.name = n.node
            LIMIT 1
        ) AS there;
    reported_at := clock_timestamp();
    INSERT INTO node_lease (cluster_id, node, renewed_at)
    SELECT p_cluster_id, n.node, reported_at FROM unnest(known) WITH ORDINALITY AS n (node, place)
    ORDER BY n.place
    ON CONFLICT (cluster_id, node) DO UPDATE SET renewed_at = excluded.renewed_at;
    SELECT h.revision INTO head_revision FROM head AS h WHERE h.cluster_id = p_cluster_id;
END;
$$;


--
-- Name: take_lease_v1(bigint, text, text, interval, interval); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.take_lease_v1(p_cluster_id bigint, p_name text, p_holder text, p_length interval, p_length_max interval) RETURNS TABLE(lease_holder text, lease_until timestamp with time zone)
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_clock timestamptz;
BEGIN
    PERFORM 1 FROM floor AS f WHERE f.cluster_id = p_cluster_id FOR KEY SHARE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT l.holder, l.until INTO lease_holder, lease_until FROM lease AS l
    WHERE l.cluster_id = p_cluster_id AND l.name = p_name FOR NO KEY UPDATE;
    -- A lease that ends later than any can was taken before the database's clock was set back.
    v_clock := clock_timestamp();
    IF lease_holder <> p_holder AND lease_until > v_clock AND lease_until <= v_clock + p_length_max
    THEN
        RETURN NEXT;
        RETURN;
    END IF;
    lease_until := v_clock + p_length;
    IF lease_holder IS NULL THEN
        INSERT INTO lease (cluster_id, name, holder, until)
        VALUES (p_cluster_id, p_name, p_holder, lease_until)
        ON CONFLICT (cluster_id, name) DO NOTHING;
    ELSE
        UPDATE lease AS l SET holder = p_holder, until = lease_until
        WHERE l.cluster_id = p_cluster_id AND l.name = p_name;
    END IF;
    -- Somebody else may have taken a new one at the same moment.
    RETURN QUERY SELECT l.holder, l.until FROM lease AS l
    WHERE l.cluster_id = p_cluster_id AND l.name = p_name;
END;
$$;


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: access_state; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.access_state (
    only_row boolean NOT NULL,
    version bigint NOT NULL,
    CONSTRAINT access_state_only_row_check CHECK (only_row)
);


--
-- Name: alembic_version; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);


--
-- Name: audit; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.audit (
    chain bigint NOT NULL,
    number bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    principal text NOT NULL,
    address text NOT NULL,
    operation text NOT NULL,
    cluster_id bigint,
    cluster text NOT NULL COLLATE pg_catalog."C",
    revision bigint,
    request_id text NOT NULL,
    status integer NOT NULL,
    requests bigint NOT NULL,
    previous_hash bytea NOT NULL,
    hash bytea NOT NULL
);


--
-- Name: audit_chain; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.audit_chain (
    chain bigint NOT NULL,
    cluster text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL,
    hash bytea NOT NULL,
    at timestamp with time zone NOT NULL
)
WITH (fillfactor='50', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_scale_factor='0');


--
-- Name: change; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.change (
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
    fields_before bytea,
    CONSTRAINT change_verb_check CHECK ((verb = ANY (ARRAY['Put'::text, 'Delete'::text])))
)
WITH (toast_tuple_target='8160');


--
-- Name: cluster; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.cluster (
    cluster_id bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT cluster_name_check CHECK ((name <> ''::text))
);


--
-- Name: cluster_cluster_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.cluster ALTER COLUMN cluster_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.cluster_cluster_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: commit; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.commit (
    cluster_id bigint NOT NULL,
    last_revision bigint NOT NULL,
    commit_id uuid NOT NULL,
    parent uuid NOT NULL,
    first_revision bigint NOT NULL,
    planned_at bigint NOT NULL,
    kind text NOT NULL,
    at timestamp with time zone NOT NULL,
    CONSTRAINT commit_last_revision_check CHECK ((last_revision >= (first_revision - 1)))
);


--
-- Name: event; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.event (
    cluster_id bigint NOT NULL,
    namespace text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    pod text NOT NULL,
    uid text NOT NULL,
    type text NOT NULL,
    reason text NOT NULL COLLATE pg_catalog."C",
    message text NOT NULL,
    revision bigint NOT NULL,
    count bigint NOT NULL,
    first_at timestamp with time zone NOT NULL,
    last_at timestamp with time zone NOT NULL
);


--
-- Name: floor; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.floor (
    cluster_id bigint NOT NULL,
    revision bigint NOT NULL,
    CONSTRAINT floor_revision_check CHECK ((revision >= 0))
);


--
-- Name: head; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.head (
    cluster_id bigint NOT NULL,
    revision bigint NOT NULL,
    tip uuid NOT NULL,
    at timestamp with time zone NOT NULL,
    CONSTRAINT head_revision_check CHECK ((revision >= 1))
)
WITH (fillfactor='50', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_scale_factor='0');


--
-- Name: history; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.history (
    cluster_id bigint NOT NULL,
    system bigint NOT NULL,
    timeline bigint NOT NULL,
    database bigint NOT NULL
);


--
-- Name: idempotency; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.idempotency (
    cluster_id bigint NOT NULL,
    operation text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    chunk integer NOT NULL,
    request_hash bytea NOT NULL,
    answer bytea NOT NULL,
    recorded_at timestamp with time zone NOT NULL
);


--
-- Name: lease; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.lease (
    cluster_id bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    holder text NOT NULL,
    until timestamp with time zone NOT NULL
);


--
-- Name: object; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.object (
    cluster_id bigint NOT NULL,
    revision bigint NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    namespace text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    uid text NOT NULL,
    node_name text COLLATE pg_catalog."C",
    body bytea NOT NULL
)
WITH (fillfactor='85', toast_tuple_target='8160');


--
-- Name: manifest; Type: VIEW; Schema: public; Owner: -
--

CREATE VIEW public.manifest AS
 SELECT c.name AS cluster,
    o.kind,
    o.namespace,
    o.name,
    o.uid,
    o.revision,
    o.node_name,
    jsonb_set((convert_from(o.body, 'UTF8'::name))::jsonb, '{metadata,resourceVersion}'::text[], to_jsonb((o.revision)::text)) AS manifest
   FROM (public.object o
     JOIN public.cluster c ON ((c.cluster_id = o.cluster_id)));


--
-- Name: namespace; Type: VIEW; Schema: public; Owner: -
--

CREATE VIEW public.namespace AS
 SELECT cluster,
    name,
    uid,
    revision,
    manifest
   FROM public.manifest
  WHERE (kind = 'Namespace'::text);


--
-- Name: node; Type: VIEW; Schema: public; Owner: -
--

CREATE VIEW public.node AS
 SELECT cluster,
    name,
    uid,
    revision,
    manifest
   FROM public.manifest
  WHERE (kind = 'Node'::text);


--
-- Name: node_lease; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.node_lease (
    cluster_id bigint NOT NULL,
    node text NOT NULL COLLATE pg_catalog."C",
    renewed_at timestamp with time zone NOT NULL
)
WITH (fillfactor='50');


--
-- Name: pod; Type: VIEW; Schema: public; Owner: -
--

CREATE VIEW public.pod AS
 SELECT cluster,
    namespace,
    name,
    uid,
    revision,
    node_name,
    manifest
   FROM public.manifest
  WHERE (kind = 'Pod'::text);


--
-- Name: principal; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.principal (
    kind text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    grants bytea NOT NULL,
    admin boolean NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT principal_kind_check CHECK ((kind = ANY (ARRAY['User'::text, 'Group'::text])))
);


--
-- Name: replica_report; Type: TABLE; Schema: public; Owner: -
--

CREATE UNLOGGED TABLE public.replica_report (
    process text NOT NULL COLLATE pg_catalog."C",
    cluster_id bigint NOT NULL,
    revision bigint NOT NULL,
    hash text NOT NULL,
    at timestamp with time zone NOT NULL
);


--
-- Name: token; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.token (
    token_id text NOT NULL COLLATE pg_catalog."C",
    principal text NOT NULL COLLATE pg_catalog."C",
    secret_hash bytea NOT NULL,
    description text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    last_used_at timestamp with time zone,
    CONSTRAINT token_secret_hash_check CHECK ((octet_length(secret_hash) = 32))
);


--
-- Name: webhook; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.webhook (
    cluster_id bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    uid text NOT NULL,
    version bigint NOT NULL,
    url text NOT NULL,
    events text NOT NULL,
    namespace text COLLATE pg_catalog."C",
    disabled boolean NOT NULL,
    secret text NOT NULL,
    previous_secret text,
    previous_until timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    revision bigint NOT NULL,
    batch_end bigint,
    delivered_at timestamp with time zone,
    attempt_at timestamp with time zone NOT NULL,
    failures bigint NOT NULL,
    last_error text,
    stopped boolean NOT NULL,
    holder text,
    held_until timestamp with time zone
)
WITH (fillfactor='50');


--
-- Name: worker; Type: TABLE; Schema: public; Owner: -
--

CREATE UNLOGGED TABLE public.worker (
    servers text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    until timestamp with time zone NOT NULL
);


--
-- Data for Name: access_state; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.access_state VALUES (true, 3);


--
-- Data for Name: alembic_version; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.alembic_version VALUES ('0013');


--
-- Data for Name: audit; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.audit VALUES (0, 1, '2026-11-26 08:27:59.944991+00', 'everybody', '127.0.0.1', 'putCluster', 2, 'staging', 1, 'ab0fa703-6c1f-4f99-9e39-e39bd7776fac', 200, 1, '', '^\311X\272\210Q\015\274C\271\200AC\270\020\215\375X7\004\026\356\210\330\213i6O,\255\256\200');
INSERT INTO public.audit VALUES (0, 2, '2026-11-26 08:27:59.977819+00', 'everybody', '127.0.0.1', 'putCluster', 3, 'given-up', 1, '83457884-99de-444a-8df8-b241263a1c00', 200, 1, '^\311X\272\210Q\015\274C\271\200AC\270\020\215\375X7\004\026\356\210\330\213i6O,\255\256\200', '\217\303\2056-]\345\315\261\2152\250`\233\2242\270M9\027\307\231S\333/\361\025\027R\177\314\267');
INSERT INTO public.audit VALUES (0, 3, '2026-11-26 08:28:00.005873+00', 'everybody', '127.0.0.1', 'deleteCluster', 3, 'given-up', NULL, '6ac9e3be-d2b4-46a4-8620-2e1fb9d19cbd', 200, 1, '\217\303\2056-]\345\315\261\2152\250`\233\2242\270M9\027\307\231S\333/\361\025\027R\177\314\267', '\261~\332?p:Nc\015\214s\003]\337\220\266\225\272\324tP*"\362H\265,\265a6+K');
INSERT INTO public.audit VALUES (1, 1, '2026-11-26 08:28:00.08436+00', 'everybody', '127.0.0.1', 'putNamespace', 1, 'default', 2, 'ca5128df-6b62-4501-ae47-f7de12ca08e7', 200, 1, '', '\000g\302;\221\251S7\262*\302\237\222\206\030\325\223l\274\341\325\237\27281\376<z2\342c4');
INSERT INTO public.audit VALUES (1, 2, '2026-11-26 08:28:00.105246+00', 'everybody', '127.0.0.1', 'putNode', 1, 'default', 3, 'b4b3ccfb-d728-44e5-959a-0b2fa2bd77e9', 200, 1, '\000g\302;\221\251S7\262*\302\237\222\206\030\325\223l\274\341\325\237\27281\376<z2\342c4', '\217nZ\201\354\374r\023\214$\345R\310\341\307\031\334\275\006}\230I\265\251\031\343\242\273\325\177\303K');
INSERT INTO public.audit VALUES (1, 3, '2026-11-26 08:28:00.13712+00', 'everybody', '127.0.0.1', 'putNode', 1, 'default', 4, '077bee4c-d0c7-466e-b901-307ef3ac494e', 200, 1, '\217nZ\201\354\374r\023\214$\345R\310\341\307\031\334\275\006}\230I\265\251\031\343\242\273\325\177\303K', '\253\332\202\375v\026\2524\003N\361\311\020F4t\371Fp\312\335^\352\251\027\247\017\254\332\031\025^');
INSERT INTO public.audit VALUES (1, 4, '2026-11-26 08:28:00.154883+00', 'everybody', '127.0.0.1', 'putNode', 1, 'default', 5, '58fc9aff-3370-486f-94bf-be6b5f5b2f52', 200, 1, '\253\332\202\375v\026\2524\003N\361\311\020F4t\371Fp\312\335^\352\251\027\247\017\254\332\031\025^', ' \366g\334>C\233J\250WU\203\322\330\312\205{\243\253\312\330-\233\326\311\347\000\203:\212%p');
INSERT INTO public.audit VALUES (1, 5, '2026-11-26 08:28:00.173107+00', 'everybody', '127.0.0.1', 'putResourceQuota', 1, 'default', 6, '08aa93b4-ff89-4f8e-a6f5-ce2aeec920d5', 200, 1, ' \366g\334>C\233J\250WU\203\322\330\312\205{\243\253\312\330-\233\326\311\347\000\203:\212%p', 't\251\000\244&3 h\267\340\373\333 !\327\265\0252\242\004;e\340\022\311a\014\241O\352\231\321');
INSERT INTO public.audit VALUES (1, 6, '2026-11-26 08:28:00.182288+00', 'everybody', '127.0.0.1', 'putPodGroup', 1, 'default', 7, '502e18a2-b60d-4645-b9fc-5b521afaf389', 200, 1, 't\251\000\244&3 h\267\340\373\333 !\327\265\0252\242\004;e\340\022\311a\014\241O\352\231\321', '\211\204\300\352,\007\036\225\314eD\030\361r\310yQ\251\335u`\017\221\2224R{W\245\003\353Y');
INSERT INTO public.audit VALUES (1, 7, '2026-11-26 08:28:00.207565+00', 'everybody', '127.0.0.1', 'placePods', 1, 'default', 8, 'afb139bb-71a7-47d0-a971-de5d6ff0e6e4', 200, 1, '\211\204\300\352,\007\036\225\314eD\030\361r\310yQ\251\335u`\017\221\2224R{W\245\003\353Y', '+\013xD0\0047h?\212m1 w\332\362%\357\314(eA\222+\327\026d\361\311^\252\360');
INSERT INTO public.audit VALUES (1, 8, '2026-11-26 08:28:00.232891+00', 'everybody', '127.0.0.1', 'placePods', 1, 'default', 9, 'cf64967c-c8ed-480b-900f-97de93bcc93b', 200, 1, '+\013xD0\0047h?\212m1 w\332\362%\357\314(eA\222+\327\026d\361\311^\252\360', '\346q\025-\3255\317X*\226\276\005]\351\006c\263`$\325>\026\303"O\370g\034\3223\210*');
INSERT INTO public.audit VALUES (1, 9, '2026-11-26 08:28:00.257461+00', 'everybody', '127.0.0.1', 'placePods', 1, 'default', 10, '8484c37a-1abe-4c44-90e7-b7d147b40821', 200, 1, '\346q\025-\3255\317X*\226\276\005]\351\006c\263`$\325>\026\303"O\370g\034\3223\210*', '\032%w\257f\234\247K\305\015\262U\273\370PmWt\0331\035\263\023\026\260@\227\030\035\340zv');
INSERT INTO public.audit VALUES (1, 10, '2026-11-26 08:28:00.290594+00', 'everybody', '127.0.0.1', 'putPod', 1, 'default', 11, 'e8b86f88-c114-498b-93c9-89519b5b47ad', 200, 1, '\032%w\257f\234\247K\305\015\262U\273\370PmWt\0331\035\263\023\026\260@\227\030\035\340zv', '\010\224\346\307\013C\312\201sT!\0349x\317\3002\013<wz1m\227)\006\036^\002\324\027\233');
INSERT INTO public.audit VALUES (1, 11, '2026-11-26 08:28:00.319202+00', 'moorage', '', 'PlacePending', 1, 'default', 12, '', 200, 1, '\010\224\346\307\013C\312\201sT!\0349x\317\3002\013<wz1m\227)\006\036^\002\324\027\233', 'Vl\243"\003\311\312>\372\326+\335L\001\325\242f\330\277\241D\036\002\034\365\030\346\200\235\342\337\375');
INSERT INTO public.audit VALUES (1, 12, '2026-11-26 08:28:00.327233+00', 'everybody', '127.0.0.1', 'deletePod', 1, 'default', 13, 'f47de67e-9a9e-4132-9856-336460d2d45b', 200, 1, 'Vl\243"\003\311\312>\372\326+\335L\001\325\242f\330\277\241D\036\002\034\365\030\346\200\235\342\337\375', '\247I\331K\241\226?j\277\255\300Q;\234\345_\241\201R\234-2\327\232_\230\266\205\316V\202\315');
INSERT INTO public.audit VALUES (1, 13, '2026-11-26 08:28:00.342287+00', 'everybody', '127.0.0.1', 'patchNode', 1, 'default', 14, '53ad5769-b84d-40fe-b3a7-5afb828084b3', 200, 1, '\247I\331K\241\226?j\277\255\300Q;\234\345_\241\201R\234-2\327\232_\230\266\205\316V\202\315', 's5\202\301\373B\341U#\231\013(\234p)\004\310G\250\342 O\272\237\373-\253;\353J\361\000');
INSERT INTO public.audit VALUES (1, 14, '2026-11-26 08:28:00.348919+00', 'moorage', '', 'EvictViolating', 1, 'default', 16, '', 200, 1, 's5\202\301\373B\341U#\231\013(\234p)\004\310G\250\342 O\272\237\373-\253;\353J\361\000', 'c''\337\361}\231\027R\241\276"_e\374\317\326\200\030=J \021\302\211\366I\034\267\001K@A');
INSERT INTO public.audit VALUES (1, 15, '2026-11-26 08:28:00.355822+00', 'everybody', '127.0.0.1', 'patchNode', 1, 'default', 17, 'caa34f9e-6601-4ac7-823a-bb0fc43ee11b', 200, 1, 'c''\337\361}\231\027R\241\276"_e\374\317\326\200\030=J \021\302\211\366I\034\267\001K@A', '\001\331\037\\\3638\274\350\365\211\340b\216\345m4\012\366x8\272\211\347\212\362j[\362\313O:\302');
INSERT INTO public.audit VALUES (0, 4, '2026-11-26 08:28:00.375192+00', 'everybody', '127.0.0.1', 'putWebhook', NULL, 'default', NULL, '27b9fcfd-c511-4287-ad1f-c916ecb1d938', 200, 1, '\261~\332?p:Nc\015\214s\003]\337\220\266\225\272\324tP*"\362H\265,\265a6+K', '\177\273\300\357W\263\025\270=\375]w\342\011\254eWT\304<\\\267\235\311''\332\000@\246\26227');
INSERT INTO public.audit VALUES (0, 5, '2026-11-26 08:28:00.390952+00', 'everybody', '127.0.0.1', 'putPrincipal', NULL, '', NULL, '23baeff5-a487-4047-940c-d5cc052ae22c', 200, 1, '\177\273\300\357W\263\025\270=\375]w\342\011\254eWT\304<\\\267\235\311''\332\000@\246\26227', '\310\364\314\214N\335O\341\340\334\317\231\037\304\334\274+A!JFK/\325VE\210\325]\260\336\201');
INSERT INTO public.audit VALUES (0, 6, '2026-11-26 08:28:00.399044+00', 'everybody', '127.0.0.1', 'createToken', NULL, '', NULL, '334d8738-7058-4cee-8636-91bdd3d4f5db', 200, 1, '\310\364\314\214N\335O\341\340\334\317\231\037\304\334\274+A!JFK/\325VE\210\325]\260\336\201', '\2314\216\372\262J~`\311\354\356Q/\311\027,$m\315\321e\\\004\334\372\244@\014\012\320\231W');
INSERT INTO public.audit VALUES (1, 16, '2026-11-26 08:28:00.59966+00', 'moorage', '', 'EvictViolating', 1, 'default', 19, '', 200, 1, '\001\331\037\\\3638\274\350\365\211\340b\216\345m4\012\366x8\272\211\347\212\362j[\362\313O:\302', '\034k{\327s\242\356\206\317\344RRC@S\034u\317\303\347._\344\264$\321\370k\036\367\011\337');


--
-- Data for Name: audit_chain; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.audit_chain VALUES (0, '', 6, '\2314\216\372\262J~`\311\354\356Q/\311\027,$m\315\321e\\\004\334\372\244@\014\012\320\231W', '2026-11-26 08:28:00.399044+00');
INSERT INTO public.audit_chain VALUES (1, 'default', 16, '\034k{\327s\242\356\206\317\344RRC@S\034u\317\303\347._\344\264$\321\370k\036\367\011\337', '2026-11-26 08:28:00.59966+00');


--
-- Data for Name: change; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.change VALUES (1, 1, '64244707-4de1-49e3-912c-500f5315fd2f', true, 'Put', 'Cluster', '', 'config', '', NULL, NULL, '{}', NULL);
INSERT INTO public.change VALUES (2, 1, '3abd95a8-2fe4-40ae-a269-5eea3e5d1364', true, 'Put', 'Cluster', '', 'config', '', NULL, NULL, '{"semantics":"Kubernetes","emptyNodeSelectorTerm":null,"requiredAffinityTerms":null,"emptyNamespaceList":null,"preferredTermWeight":null,"hardPodAffinityWeight":1,"symmetricPreferredAffinity":true,"symmetricPreferredAntiAffinity":true,"daemonNamespaces":["kube-system"],"restrictAllNamespacesAntiAffinity":true,"nodeTopologyKeys":["kubernetes.io/hostname"],"trustedNamespaces":[],"defaultTopologySpread":"List","defaultTopologySpreadConstraints":[],"scoringStrategy":"LeastAllocated","requestedToCapacityRatio":null,"profiles":[],"deviceClaims":"Allocate","volumes":"Honor","placePendingPods":true,"deviceSearchSteps":5000,"groupSearchSteps":10000,"priorityClasses":{},"limitedResources":[],"features":{"PodAffinityNamespaceSelector":true},"policies":[],"opportunityCostBasis":"Largest","queuePreemption":"Never","queuePreemptionScope":"Node","affinityViolationGraceSeconds":30,"antiAffinityVictim":"RuleOwner","evictionsPerMinute":60,"noExecuteTaints":null,"defaultNotReadyTolerationSeconds":300,"defaultUnreachableTolerationSeconds":300,"nodeConditions":null,"nodeMonitorGraceSeconds":40,"nodeEvictionRate":0.1,"secondaryNodeEvictionRate":0.01,"unhealthyZoneThreshold":0.55,"largeZoneNodes":50,"deletedNodePods":null,"orphanGraceSeconds":10}', NULL);
INSERT INTO public.change VALUES (1, 2, '86483987-65dd-4e09-85dd-0b5d75f2a68a', true, 'Put', 'Namespace', '', 'shop', 'b0f99fc0-b59c-49f6-ab87-f43c91f0538a', NULL, NULL, '{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","labels":{"team":"shop"},"uid":"b0f99fc0-b59c-49f6-ab87-f43c91f0538a","creationTimestamp":"2026-11-26T08:28:00Z"}}', NULL);
INSERT INTO public.change VALUES (1, 3, '353a6ce7-cac4-4563-8d25-e0b357b0ee9f', true, 'Put', 'Node', '', 'node-a', 'fd4d573a-850b-4cad-adfd-e726d528f96f', NULL, NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-a","labels":{"zone":"a"},"uid":"fd4d573a-850b-4cad-adfd-e726d528f96f","creationTimestamp":"2026-11-26T08:28:00Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}', NULL);
INSERT INTO public.change VALUES (1, 4, '52034c98-964a-404a-aef9-d0d7228f0a03', true, 'Put', 'Node', '', 'node-b', '4d356ec8-165f-4f97-9514-1e555151037d', NULL, NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-b","labels":{"zone":"b"},"uid":"4d356ec8-165f-4f97-9514-1e555151037d","creationTimestamp":"2026-11-26T08:28:00Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}', NULL);
INSERT INTO public.change VALUES (1, 5, '9f7af867-dfea-44ba-a84f-b02f1041598a', true, 'Put', 'Node', '', 'node-c', 'aea40473-4412-4be4-9d75-7ecfef19f283', NULL, NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-c","labels":{"zone":"c"},"uid":"aea40473-4412-4be4-9d75-7ecfef19f283","creationTimestamp":"2026-11-26T08:28:00Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}', NULL);
INSERT INTO public.change VALUES (1, 6, '200a2a62-4d58-43eb-b509-4b6d4fd80868', true, 'Put', 'ResourceQuota', 'shop', 'pods', '453299fa-a1e2-49fb-bac0-153c46892054', NULL, NULL, '{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"pods","namespace":"shop","uid":"453299fa-a1e2-49fb-bac0-153c46892054","creationTimestamp":"2026-11-26T08:28:00Z"},"spec":{"hard":{"pods":"10"}}}', NULL);
INSERT INTO public.change VALUES (1, 7, '24f9ef4a-2e87-41fc-a17b-95cadde5e497', true, 'Put', 'PodGroup', 'shop', 'train', '2aa46865-c1dc-4ac0-8d13-d8a4583f99ed', NULL, NULL, '{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"PodGroup","metadata":{"name":"train","namespace":"shop","uid":"2aa46865-c1dc-4ac0-8d13-d8a4583f99ed","creationTimestamp":"2026-11-26T08:28:00Z"},"spec":{"minMember":2}}', NULL);
INSERT INTO public.change VALUES (1, 8, 'a5eaad07-554d-4860-a4f3-9ee5e966040c', true, 'Put', 'Pod', 'shop', 'web-0', '81e45d40-704d-4819-9589-a76bb279ffd0', 'node-b', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"uid":"81e45d40-704d-4819-9589-a76bb279ffd0","creationTimestamp":"2026-11-26T08:28:00Z"},"spec":{"nodeName":"node-b","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-26T08:28:00Z"}]}}', NULL);
INSERT INTO public.change VALUES (1, 9, 'a5cea4ae-7f51-4627-b426-6bb9b63b2350', true, 'Put', 'Pod', 'shop', 'web-1', 'cd822342-1ad8-47b2-8f40-7221e5bc5c5a', 'node-a', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-1","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"uid":"cd822342-1ad8-47b2-8f40-7221e5bc5c5a","creationTimestamp":"2026-11-26T08:28:00Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-26T08:28:00Z"}]}}', NULL);
INSERT INTO public.change VALUES (1, 10, '0cceb937-d047-4f4f-b5e7-c33927d1b3de', true, 'Put', 'Pod', 'shop', 'web-2', '29a16c19-4191-48a6-ae2c-cf23c045869d', 'node-a', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-2","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"uid":"29a16c19-4191-48a6-ae2c-cf23c045869d","creationTimestamp":"2026-11-26T08:28:00Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-26T08:28:00Z"}]}}', NULL);
INSERT INTO public.change VALUES (1, 11, '71305847-90ad-48a5-b755-a892f403fe1e', true, 'Put', 'Pod', 'shop', 'too-big', 'ca56b534-2ffd-4862-be02-b4523e76a1dd', NULL, NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"too-big","namespace":"shop","uid":"ca56b534-2ffd-4862-be02-b4523e76a1dd","creationTimestamp":"2026-11-26T08:28:00Z"},"spec":{"affinity":{},"containers":[{"name":"main","resources":{"requests":{"cpu":"64"}}}]}}', NULL);
INSERT INTO public.change VALUES (1, 12, 'dbd56dcb-c95e-4a7a-82fb-0bac0f4817b8', false, 'Put', 'Pod', 'shop', 'too-big', 'ca56b534-2ffd-4862-be02-b4523e76a1dd', NULL, NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"too-big","namespace":"shop","uid":"ca56b534-2ffd-4862-be02-b4523e76a1dd","creationTimestamp":"2026-11-26T08:28:00Z"},"spec":{"affinity":{},"containers":[{"name":"main","resources":{"requests":{"cpu":"64"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/3 nodes are available: 3 Insufficient cpu.","lastTransitionTime":"2026-11-26T08:28:00Z"}]}}', '');
INSERT INTO public.change VALUES (1, 13, '763c50cd-751a-4bb7-814f-2d0864cad32f', false, 'Delete', 'Pod', 'shop', 'web-1', 'cd822342-1ad8-47b2-8f40-7221e5bc5c5a', 'node-a', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-1","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"uid":"cd822342-1ad8-47b2-8f40-7221e5bc5c5a","creationTimestamp":"2026-11-26T08:28:00Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-26T08:28:00Z"}]}}', NULL);
INSERT INTO public.change VALUES (1, 14, '84ad6b1e-000a-4c8d-9e7b-c2726fa0408b', false, 'Put', 'Node', '', 'node-a', 'fd4d573a-850b-4cad-adfd-e726d528f96f', NULL, '{"zone":"a"}', '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-a","labels":{"zone":"c"},"uid":"fd4d573a-850b-4cad-adfd-e726d528f96f","creationTimestamp":"2026-11-26T08:28:00Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}', '');
INSERT INTO public.change VALUES (1, 15, '8b59e374-a56a-44d2-9906-9acfe8ed04ec', false, 'Put', 'Pod', 'shop', 'web-2', '29a16c19-4191-48a6-ae2c-cf23c045869d', 'node-a', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-2","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"deletionTimestamp":"2026-11-26T08:28:00Z","uid":"29a16c19-4191-48a6-ae2c-cf23c045869d","creationTimestamp":"2026-11-26T08:28:00Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-26T08:28:00Z"},{"type":"DisruptionTarget","status":"True","reason":"NodeAffinityViolated","message":"spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-a.","lastTransitionTime":"2026-11-26T08:28:00Z"}]}}', '{"metadata.deletionTimestamp":"false"}');
INSERT INTO public.change VALUES (1, 16, '8b59e374-a56a-44d2-9906-9acfe8ed04ec', true, 'Put', 'Evictions', '', 'state', '', NULL, NULL, '{"timers":[],"recent":[{"at":"2026-11-26T08:28:00.344883Z","pods":1}],"blocked":[]}', NULL);
INSERT INTO public.change VALUES (1, 17, 'f9569809-dde5-435b-be06-869e5ad46ee9', false, 'Put', 'Node', '', 'node-b', '4d356ec8-165f-4f97-9514-1e555151037d', NULL, '{"zone":"b"}', '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-b","labels":{"zone":"c"},"uid":"4d356ec8-165f-4f97-9514-1e555151037d","creationTimestamp":"2026-11-26T08:28:00Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}', '');
INSERT INTO public.change VALUES (1, 18, '0c6e167a-9ff2-45ac-9a1d-fd2273280bee', false, 'Put', 'Pod', 'shop', 'web-0', '81e45d40-704d-4819-9589-a76bb279ffd0', 'node-b', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"deletionTimestamp":"2026-11-26T08:28:00Z","uid":"81e45d40-704d-4819-9589-a76bb279ffd0","creationTimestamp":"2026-11-26T08:28:00Z"},"spec":{"nodeName":"node-b","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-26T08:28:00Z"},{"type":"DisruptionTarget","status":"True","reason":"NodeAffinityViolated","message":"spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-b.","lastTransitionTime":"2026-11-26T08:28:00Z"}]}}', '{"metadata.deletionTimestamp":"false"}');
INSERT INTO public.change VALUES (1, 19, '0c6e167a-9ff2-45ac-9a1d-fd2273280bee', false, 'Put', 'Evictions', '', 'state', '', NULL, NULL, '{"timers":[],"recent":[{"at":"2026-11-26T08:28:00.344883Z","pods":1},{"at":"2026-11-26T08:28:00.585800Z","pods":1}],"blocked":[]}', NULL);


--
-- Data for Name: cluster; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.cluster OVERRIDING SYSTEM VALUE VALUES (1, 'default', '2026-11-26 08:27:57.225474+00');
INSERT INTO public.cluster OVERRIDING SYSTEM VALUE VALUES (2, 'staging', '2026-11-26 08:27:59.944002+00');


--
-- Data for Name: commit; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.commit VALUES (1, 1, '64244707-4de1-49e3-912c-500f5315fd2f', '00000000-0000-0000-0000-000000000000', 1, 0, 'CreateCluster', '2026-11-26 08:27:57.223856+00');
INSERT INTO public.commit VALUES (2, 1, '3abd95a8-2fe4-40ae-a269-5eea3e5d1364', '00000000-0000-0000-0000-000000000000', 1, 0, 'CreateCluster', '2026-11-26 08:27:59.943724+00');
INSERT INTO public.commit VALUES (1, 2, '86483987-65dd-4e09-85dd-0b5d75f2a68a', '64244707-4de1-49e3-912c-500f5315fd2f', 2, 1, 'PutObject', '2026-11-26 08:28:00.08436+00');
INSERT INTO public.commit VALUES (1, 3, '353a6ce7-cac4-4563-8d25-e0b357b0ee9f', '86483987-65dd-4e09-85dd-0b5d75f2a68a', 3, 2, 'PutObject', '2026-11-26 08:28:00.105246+00');
INSERT INTO public.commit VALUES (1, 4, '52034c98-964a-404a-aef9-d0d7228f0a03', '353a6ce7-cac4-4563-8d25-e0b357b0ee9f', 4, 3, 'PutObject', '2026-11-26 08:28:00.13712+00');
INSERT INTO public.commit VALUES (1, 5, '9f7af867-dfea-44ba-a84f-b02f1041598a', '52034c98-964a-404a-aef9-d0d7228f0a03', 5, 4, 'PutObject', '2026-11-26 08:28:00.154883+00');
INSERT INTO public.commit VALUES (1, 6, '200a2a62-4d58-43eb-b509-4b6d4fd80868', '9f7af867-dfea-44ba-a84f-b02f1041598a', 6, 5, 'PutObject', '2026-11-26 08:28:00.173107+00');
INSERT INTO public.commit VALUES (1, 7, '24f9ef4a-2e87-41fc-a17b-95cadde5e497', '200a2a62-4d58-43eb-b509-4b6d4fd80868', 7, 6, 'PutObject', '2026-11-26 08:28:00.182288+00');
INSERT INTO public.commit VALUES (1, 8, 'a5eaad07-554d-4860-a4f3-9ee5e966040c', '24f9ef4a-2e87-41fc-a17b-95cadde5e497', 8, 7, 'PlacePods', '2026-11-26 08:28:00.207565+00');
INSERT INTO public.commit VALUES (1, 9, 'a5cea4ae-7f51-4627-b426-6bb9b63b2350', 'a5eaad07-554d-4860-a4f3-9ee5e966040c', 9, 8, 'PlacePods', '2026-11-26 08:28:00.232891+00');
INSERT INTO public.commit VALUES (1, 10, '0cceb937-d047-4f4f-b5e7-c33927d1b3de', 'a5cea4ae-7f51-4627-b426-6bb9b63b2350', 10, 9, 'PlacePods', '2026-11-26 08:28:00.257461+00');
INSERT INTO public.commit VALUES (1, 11, '71305847-90ad-48a5-b755-a892f403fe1e', '0cceb937-d047-4f4f-b5e7-c33927d1b3de', 11, 10, 'PutObject', '2026-11-26 08:28:00.290594+00');
INSERT INTO public.commit VALUES (1, 12, 'dbd56dcb-c95e-4a7a-82fb-0bac0f4817b8', '71305847-90ad-48a5-b755-a892f403fe1e', 12, 11, 'PlacePending', '2026-11-26 08:28:00.319202+00');
INSERT INTO public.commit VALUES (1, 13, '763c50cd-751a-4bb7-814f-2d0864cad32f', 'dbd56dcb-c95e-4a7a-82fb-0bac0f4817b8', 13, 11, 'DeleteObject', '2026-11-26 08:28:00.327233+00');
INSERT INTO public.commit VALUES (1, 14, '84ad6b1e-000a-4c8d-9e7b-c2726fa0408b', '763c50cd-751a-4bb7-814f-2d0864cad32f', 14, 13, 'PatchObject', '2026-11-26 08:28:00.342287+00');
INSERT INTO public.commit VALUES (1, 16, '8b59e374-a56a-44d2-9906-9acfe8ed04ec', '84ad6b1e-000a-4c8d-9e7b-c2726fa0408b', 15, 14, 'EvictViolating', '2026-11-26 08:28:00.348919+00');
INSERT INTO public.commit VALUES (1, 17, 'f9569809-dde5-435b-be06-869e5ad46ee9', '8b59e374-a56a-44d2-9906-9acfe8ed04ec', 17, 14, 'PatchObject', '2026-11-26 08:28:00.355822+00');
INSERT INTO public.commit VALUES (1, 19, '0c6e167a-9ff2-45ac-9a1d-fd2273280bee', 'f9569809-dde5-435b-be06-869e5ad46ee9', 18, 17, 'EvictViolating', '2026-11-26 08:28:00.59966+00');


--
-- Data for Name: event; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.event VALUES (1, 'shop', 'web-2.3600874d0607bcb4', 'web-2', '29a16c19-4191-48a6-ae2c-cf23c045869d', 'Warning', 'Evicted', 'spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-a.', 15, 1, '2026-11-26 08:28:00+00', '2026-11-26 08:28:00+00');
INSERT INTO public.event VALUES (1, 'shop', 'too-big.1a8f115c00c54f97', 'too-big', 'ca56b534-2ffd-4862-be02-b4523e76a1dd', 'Warning', 'FailedScheduling', '0/3 nodes are available: 3 Insufficient cpu.', 13, 2, '2026-11-26 08:28:00+00', '2026-11-26 08:28:00+00');
INSERT INTO public.event VALUES (1, 'shop', 'web-0.848376946fa13bc6', 'web-0', '81e45d40-704d-4819-9589-a76bb279ffd0', 'Normal', 'Scheduled', 'Successfully assigned shop/web-0 to node-b', 8, 1, '2026-11-26 08:28:00+00', '2026-11-26 08:28:00+00');
INSERT INTO public.event VALUES (1, 'shop', 'web-1.cc14adf7966e2bb9', 'web-1', 'cd822342-1ad8-47b2-8f40-7221e5bc5c5a', 'Normal', 'Scheduled', 'Successfully assigned shop/web-1 to node-a', 9, 1, '2026-11-26 08:28:00+00', '2026-11-26 08:28:00+00');
INSERT INTO public.event VALUES (1, 'shop', 'web-2.b8625b1833070157', 'web-2', '29a16c19-4191-48a6-ae2c-cf23c045869d', 'Normal', 'Scheduled', 'Successfully assigned shop/web-2 to node-a', 10, 1, '2026-11-26 08:28:00+00', '2026-11-26 08:28:00+00');
INSERT INTO public.event VALUES (1, 'shop', 'web-0.6d3262942b01206b', 'web-0', '81e45d40-704d-4819-9589-a76bb279ffd0', 'Warning', 'Evicted', 'spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-b.', 18, 1, '2026-11-26 08:28:00+00', '2026-11-26 08:28:00+00');


--
-- Data for Name: floor; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.floor VALUES (1, 0);
INSERT INTO public.floor VALUES (2, 0);


--
-- Data for Name: head; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.head VALUES (2, 1, '3abd95a8-2fe4-40ae-a269-5eea3e5d1364', '2026-11-26 08:27:59.943724+00');
INSERT INTO public.head VALUES (1, 19, '0c6e167a-9ff2-45ac-9a1d-fd2273280bee', '2026-11-26 08:28:00.59966+00');


--
-- Data for Name: history; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.history VALUES (1, 7712394064480887865, 1, 12784);


--
-- Data for Name: idempotency; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.idempotency VALUES (1, 'placePods', 'order-of-web-0', 0, 'x\203Y\226\272\025Q\211\253\214kEc?\360\351\376\357\3376\215N\316\332\226\362\035\221\257\200\303\273', '\225\305\001\015{"revision":8,"committed":true,"attempts":1,"results":[{"namespace":"shop","name":"web-0","uid":"81e45d40-704d-4819-9589-a76bb279ffd0","outcome":"Placed","nodeName":"node-b","score":485,"plannedRevision":7,"reason":null,"message":null,"explanation":null}],"group":null}\314\310\300\300\302', '2026-11-26 08:28:00.207565+00');
INSERT INTO public.idempotency VALUES (1, 'placePods', 'order-of-web-1', 0, '\275\352\001(7\0255\267z\346\003\270\205\033\204E\022a]$7\252\032\033s0\364\227\306\0273\205', '\225\305\001\015{"revision":9,"committed":true,"attempts":1,"results":[{"namespace":"shop","name":"web-1","uid":"cd822342-1ad8-47b2-8f40-7221e5bc5c5a","outcome":"Placed","nodeName":"node-a","score":485,"plannedRevision":8,"reason":null,"message":null,"explanation":null}],"group":null}\314\310\300\300\302', '2026-11-26 08:28:00.232891+00');
INSERT INTO public.idempotency VALUES (1, 'placePods', 'order-of-web-2', 0, 'M>\320\300\351\004\003\027\234\021R\000b\236@\202u\256o~\212\355{ZKw\320\232\013\312\305\236', '\225\305\001\016{"revision":10,"committed":true,"attempts":1,"results":[{"namespace":"shop","name":"web-2","uid":"29a16c19-4191-48a6-ae2c-cf23c045869d","outcome":"Placed","nodeName":"node-a","score":472,"plannedRevision":9,"reason":null,"message":null,"explanation":null}],"group":null}\314\310\300\300\302', '2026-11-26 08:28:00.257461+00');


--
-- Data for Name: lease; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.lease VALUES (1, 'requests@vm:45333', '9380c134-6c6c-43c3-9900-c6390f6cfdb9', '2026-11-26 08:28:10.021883+00');
INSERT INTO public.lease VALUES (1, 'evictions', '23c77dea-1eec-4b20-b4b2-73f2e86a622a', '2026-11-26 08:28:03.221892+00');
INSERT INTO public.lease VALUES (1, 'pending', '23c77dea-1eec-4b20-b4b2-73f2e86a622a', '2026-11-26 08:28:03.30581+00');
INSERT INTO public.lease VALUES (1, 'nodes', '23c77dea-1eec-4b20-b4b2-73f2e86a622a', '2026-11-26 08:28:03.587288+00');


--
-- Data for Name: node_lease; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.node_lease VALUES (1, 'node-c', '2026-11-26 08:28:00.36324+00');


--
-- Data for Name: object; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.object VALUES (1, 1, 'Cluster', '', 'config', '', NULL, '{}');
INSERT INTO public.object VALUES (2, 1, 'Cluster', '', 'config', '', NULL, '{"semantics":"Kubernetes","emptyNodeSelectorTerm":null,"requiredAffinityTerms":null,"emptyNamespaceList":null,"preferredTermWeight":null,"hardPodAffinityWeight":1,"symmetricPreferredAffinity":true,"symmetricPreferredAntiAffinity":true,"daemonNamespaces":["kube-system"],"restrictAllNamespacesAntiAffinity":true,"nodeTopologyKeys":["kubernetes.io/hostname"],"trustedNamespaces":[],"defaultTopologySpread":"List","defaultTopologySpreadConstraints":[],"scoringStrategy":"LeastAllocated","requestedToCapacityRatio":null,"profiles":[],"deviceClaims":"Allocate","volumes":"Honor","placePendingPods":true,"deviceSearchSteps":5000,"groupSearchSteps":10000,"priorityClasses":{},"limitedResources":[],"features":{"PodAffinityNamespaceSelector":true},"policies":[],"opportunityCostBasis":"Largest","queuePreemption":"Never","queuePreemptionScope":"Node","affinityViolationGraceSeconds":30,"antiAffinityVictim":"RuleOwner","evictionsPerMinute":60,"noExecuteTaints":null,"defaultNotReadyTolerationSeconds":300,"defaultUnreachableTolerationSeconds":300,"nodeConditions":null,"nodeMonitorGraceSeconds":40,"nodeEvictionRate":0.1,"secondaryNodeEvictionRate":0.01,"unhealthyZoneThreshold":0.55,"largeZoneNodes":50,"deletedNodePods":null,"orphanGraceSeconds":10}');
INSERT INTO public.object VALUES (1, 2, 'Namespace', '', 'shop', 'b0f99fc0-b59c-49f6-ab87-f43c91f0538a', NULL, '{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","labels":{"team":"shop"},"uid":"b0f99fc0-b59c-49f6-ab87-f43c91f0538a","creationTimestamp":"2026-11-26T08:28:00Z"}}');
INSERT INTO public.object VALUES (1, 5, 'Node', '', 'node-c', 'aea40473-4412-4be4-9d75-7ecfef19f283', NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-c","labels":{"zone":"c"},"uid":"aea40473-4412-4be4-9d75-7ecfef19f283","creationTimestamp":"2026-11-26T08:28:00Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}');
INSERT INTO public.object VALUES (1, 6, 'ResourceQuota', 'shop', 'pods', '453299fa-a1e2-49fb-bac0-153c46892054', NULL, '{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"pods","namespace":"shop","uid":"453299fa-a1e2-49fb-bac0-153c46892054","creationTimestamp":"2026-11-26T08:28:00Z"},"spec":{"hard":{"pods":"10"}}}');
INSERT INTO public.object VALUES (1, 7, 'PodGroup', 'shop', 'train', '2aa46865-c1dc-4ac0-8d13-d8a4583f99ed', NULL, '{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"PodGroup","metadata":{"name":"train","namespace":"shop","uid":"2aa46865-c1dc-4ac0-8d13-d8a4583f99ed","creationTimestamp":"2026-11-26T08:28:00Z"},"spec":{"minMember":2}}');
INSERT INTO public.object VALUES (1, 14, 'Node', '', 'node-a', 'fd4d573a-850b-4cad-adfd-e726d528f96f', NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-a","labels":{"zone":"c"},"uid":"fd4d573a-850b-4cad-adfd-e726d528f96f","creationTimestamp":"2026-11-26T08:28:00Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}');
INSERT INTO public.object VALUES (1, 15, 'Pod', 'shop', 'web-2', '29a16c19-4191-48a6-ae2c-cf23c045869d', 'node-a', '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-2","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"deletionTimestamp":"2026-11-26T08:28:00Z","uid":"29a16c19-4191-48a6-ae2c-cf23c045869d","creationTimestamp":"2026-11-26T08:28:00Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-26T08:28:00Z"},{"type":"DisruptionTarget","status":"True","reason":"NodeAffinityViolated","message":"spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-a.","lastTransitionTime":"2026-11-26T08:28:00Z"}]}}');
INSERT INTO public.object VALUES (1, 17, 'Node', '', 'node-b', '4d356ec8-165f-4f97-9514-1e555151037d', NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-b","labels":{"zone":"c"},"uid":"4d356ec8-165f-4f97-9514-1e555151037d","creationTimestamp":"2026-11-26T08:28:00Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}');
INSERT INTO public.object VALUES (1, 18, 'Pod', 'shop', 'web-0', '81e45d40-704d-4819-9589-a76bb279ffd0', 'node-b', '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"deletionTimestamp":"2026-11-26T08:28:00Z","uid":"81e45d40-704d-4819-9589-a76bb279ffd0","creationTimestamp":"2026-11-26T08:28:00Z"},"spec":{"nodeName":"node-b","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-26T08:28:00Z"},{"type":"DisruptionTarget","status":"True","reason":"NodeAffinityViolated","message":"spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-b.","lastTransitionTime":"2026-11-26T08:28:00Z"}]}}');
INSERT INTO public.object VALUES (1, 12, 'Pod', 'shop', 'too-big', 'ca56b534-2ffd-4862-be02-b4523e76a1dd', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"too-big","namespace":"shop","uid":"ca56b534-2ffd-4862-be02-b4523e76a1dd","creationTimestamp":"2026-11-26T08:28:00Z"},"spec":{"affinity":{},"containers":[{"name":"main","resources":{"requests":{"cpu":"64"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/3 nodes are available: 3 Insufficient cpu.","lastTransitionTime":"2026-11-26T08:28:00Z"}]}}');
INSERT INTO public.object VALUES (1, 19, 'Evictions', '', 'state', '', NULL, '{"timers":[],"recent":[{"at":"2026-11-26T08:28:00.344883Z","pods":1},{"at":"2026-11-26T08:28:00.585800Z","pods":1}],"blocked":[]}');


--
-- Data for Name: principal; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.principal VALUES ('User', 'root', '[{"role":"admin","cluster":null,"namespace":null}]', true, '2026-11-26 08:28:00.390299+00');


--
-- Data for Name: replica_report; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.replica_report VALUES ('host/25714', 1, 19, '309080ae815451a83801c4926e6db270f37aff7f81e9455ca40f83f0c6ea9be4-ae8afe2a2deaf0a4b3387d8b3a8e33cda0ddb186d6b5c8986d2149eb915a6d07', '2026-11-26 08:28:00.815974+00');


--
-- Data for Name: token; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.token VALUES ('d33a711a9a67512b', 'root', '\001\243\024K\012\214\305U\2526\301a\205Z\003\000>a\364\276\315e\370\244\357\177\200\312\222\345\257{', '', '2026-11-26 08:28:00.398015+00', NULL, NULL);


--
-- Data for Name: webhook; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.webhook VALUES (1, 'orchestrator', '13e48f7a-163b-49ae-9bb2-722c6402c64b', 1, 'https://orchestrator.example/', 'Bindings', NULL, true, 'whsec_sR7FHWeCk6X6c8wqtB2GYI7YXNHMNVfcDBrCtg/38Rw=', NULL, NULL, '2026-11-26 08:28:00.373153+00', 17, NULL, NULL, '2026-11-26 08:28:00.373153+00', 0, NULL, false, NULL, NULL);


--
-- Data for Name: worker; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.worker VALUES ('host:45333', '9380c134-6c6c-43c3-9900-c6390f6cfdb9', '2026-11-26 08:28:09.755391+00');
INSERT INTO public.worker VALUES ('host:45333', '79a6d40c-9ea9-41aa-865e-63af884067f9', '2026-11-26 08:28:10.293204+00');


--
-- Name: cluster_cluster_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.cluster_cluster_id_seq', 3, true);


--
-- Name: access_state access_state_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.access_state
    ADD CONSTRAINT access_state_pkey PRIMARY KEY (only_row);


--
-- Name: alembic_version alembic_version_pkc; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);


--
-- Name: audit_chain audit_chain_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_chain
    ADD CONSTRAINT audit_chain_pkey PRIMARY KEY (chain);


--
-- Name: audit audit_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (chain, number);


--
-- Name: change change_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.change
    ADD CONSTRAINT change_pkey PRIMARY KEY (cluster_id, revision);


--
-- Name: cluster cluster_name_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.cluster
    ADD CONSTRAINT cluster_name_key UNIQUE (name);


--
-- Name: cluster cluster_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.cluster
    ADD CONSTRAINT cluster_pkey PRIMARY KEY (cluster_id);


--
-- Name: commit commit_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.commit
    ADD CONSTRAINT commit_pkey PRIMARY KEY (cluster_id, last_revision, commit_id);


--
-- Name: event event_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.event
    ADD CONSTRAINT event_pkey PRIMARY KEY (cluster_id, namespace, name);


--
-- Name: floor floor_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.floor
    ADD CONSTRAINT floor_pkey PRIMARY KEY (cluster_id);


--
-- Name: head head_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.head
    ADD CONSTRAINT head_pkey PRIMARY KEY (cluster_id);


--
-- Name: history history_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.history
    ADD CONSTRAINT history_pkey PRIMARY KEY (cluster_id);


--
-- Name: idempotency idempotency_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.idempotency
    ADD CONSTRAINT idempotency_pkey PRIMARY KEY (cluster_id, operation, key, chunk);


--
-- Name: lease lease_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.lease
    ADD CONSTRAINT lease_pkey PRIMARY KEY (cluster_id, name);


--
-- Name: node_lease node_lease_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.node_lease
    ADD CONSTRAINT node_lease_pkey PRIMARY KEY (cluster_id, node);


--
-- Name: object object_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.object
    ADD CONSTRAINT object_pkey PRIMARY KEY (cluster_id, kind, namespace, name);


--
-- Name: principal principal_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.principal
    ADD CONSTRAINT principal_pkey PRIMARY KEY (kind, name);


--
-- Name: replica_report replica_report_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.replica_report
    ADD CONSTRAINT replica_report_pkey PRIMARY KEY (process, cluster_id);


--
-- Name: token token_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.token
    ADD CONSTRAINT token_pkey PRIMARY KEY (token_id);


--
-- Name: webhook webhook_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.webhook
    ADD CONSTRAINT webhook_pkey PRIMARY KEY (cluster_id, name);


--
-- Name: worker worker_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.worker
    ADD CONSTRAINT worker_pkey PRIMARY KEY (servers, name);


--
-- Name: event_last_at_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX event_last_at_idx ON public.event USING btree (cluster_id, reason, last_at);


--
-- Name: idempotency_recorded_at_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idempotency_recorded_at_idx ON public.idempotency USING btree (recorded_at);


--
-- Name: object_node_name_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX object_node_name_idx ON public.object USING btree (cluster_id, node_name) WHERE (node_name IS NOT NULL);


--
-- Name: token_principal_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX token_principal_idx ON public.token USING btree (principal);


--
-- Name: floor floor_cluster_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.floor
    ADD CONSTRAINT floor_cluster_id_fkey FOREIGN KEY (cluster_id) REFERENCES public.cluster(cluster_id);


--
-- Name: head head_cluster_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.head
    ADD CONSTRAINT head_cluster_id_fkey FOREIGN KEY (cluster_id) REFERENCES public.cluster(cluster_id);


--
-- Name: history history_cluster_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.history
    ADD CONSTRAINT history_cluster_id_fkey FOREIGN KEY (cluster_id) REFERENCES public.cluster(cluster_id);


--
-- Name: lease lease_cluster_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.lease
    ADD CONSTRAINT lease_cluster_id_fkey FOREIGN KEY (cluster_id) REFERENCES public.cluster(cluster_id);


--
-- Name: node_lease node_lease_cluster_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.node_lease
    ADD CONSTRAINT node_lease_cluster_id_fkey FOREIGN KEY (cluster_id) REFERENCES public.cluster(cluster_id);


--
-- Name: webhook webhook_cluster_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.webhook
    ADD CONSTRAINT webhook_cluster_id_fkey FOREIGN KEY (cluster_id) REFERENCES public.cluster(cluster_id);


--
-- PostgreSQL database dump complete
--


