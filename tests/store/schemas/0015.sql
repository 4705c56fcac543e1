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


--
-- Name: create_cluster_v2(text, bytea, uuid, text, text, text, text); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.create_cluster_v2(p_name text, p_config bytea, p_commit_id uuid, p_principal text, p_address text, p_operation text, p_request_id text) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
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
-- Name: predecessor; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.predecessor (
    name text NOT NULL COLLATE pg_catalog."C",
    revision bigint NOT NULL
);


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

INSERT INTO public.alembic_version VALUES ('0015');


--
-- Data for Name: audit; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.audit VALUES (0, 1, '2026-11-28 01:08:10.710763+00', 'everybody', '127.0.0.1', 'putCluster', 2, 'staging', 1, '165258aa-bce4-4c88-8440-0f2e0ccdba18', 200, 1, '', 'M\324\222\004\217^\347Hn\245#XA\222f\216\004\375Q\255\012\263\267\346\221QA\345^\365\230\011');
INSERT INTO public.audit VALUES (0, 2, '2026-11-28 01:08:10.786924+00', 'everybody', '127.0.0.1', 'putCluster', 3, 'given-up', 1, '03f622c6-e65e-45e5-a688-f79e617014e5', 200, 1, 'M\324\222\004\217^\347Hn\245#XA\222f\216\004\375Q\255\012\263\267\346\221QA\345^\365\230\011', '\314\337g\010\012\347>Mw9{\307>\373Q''\234\245D\246\231\262Nt\210\005\002\311\024`h\341');
INSERT INTO public.audit VALUES (0, 3, '2026-11-28 01:08:10.82774+00', 'everybody', '127.0.0.1', 'deleteCluster', 3, 'given-up', NULL, '78b8c914-7fe9-4fd5-92e8-3233a9ab632b', 200, 1, '\314\337g\010\012\347>Mw9{\307>\373Q''\234\245D\246\231\262Nt\210\005\002\311\024`h\341', 'o;Z\216x\233bY\326\221m\251T\337F\021\034?\033\301\227\361\206\017N\240\305S\217\266\352\264');
INSERT INTO public.audit VALUES (1, 1, '2026-11-28 01:08:10.910519+00', 'everybody', '127.0.0.1', 'putNamespace', 1, 'default', 2, '9d37f62f-a651-40bb-aa11-5f26c88e3d62', 200, 1, '', '\224h\226\340}(\276&\257\016\310\342\203''\201\312\362-I\027\250\375\033\037\354S#oK\011\201\367');
INSERT INTO public.audit VALUES (1, 2, '2026-11-28 01:08:10.937218+00', 'everybody', '127.0.0.1', 'putNode', 1, 'default', 3, '1e374817-1a33-4481-a664-02f1c27c361c', 200, 1, '\224h\226\340}(\276&\257\016\310\342\203''\201\312\362-I\027\250\375\033\037\354S#oK\011\201\367', '\235\031\240Fa\026\021\206\034\221"P)\255\3417\375\261\004z\037\010\034\220\357\327\227\216s-^\225');
INSERT INTO public.audit VALUES (1, 3, '2026-11-28 01:08:10.961652+00', 'everybody', '127.0.0.1', 'putNode', 1, 'default', 4, 'fa31c1f1-ed26-44a5-839f-70b7a6e60794', 200, 1, '\235\031\240Fa\026\021\206\034\221"P)\255\3417\375\261\004z\037\010\034\220\357\327\227\216s-^\225', '\303/eP\216#\270\356hD\202\260\355\215\336\217"\233\316\021<\206\242\000\234\342\177J\034c\203\306');
INSERT INTO public.audit VALUES (1, 4, '2026-11-28 01:08:10.977516+00', 'everybody', '127.0.0.1', 'putNode', 1, 'default', 5, 'd3854739-3d0a-43df-a3e1-7f37008a1efc', 200, 1, '\303/eP\216#\270\356hD\202\260\355\215\336\217"\233\316\021<\206\242\000\234\342\177J\034c\203\306', 'z$\356R\323\224<\315%G\016\200\372\366r-&\375\0205Ib\273\324b\213\341\030P.u\254');
INSERT INTO public.audit VALUES (1, 5, '2026-11-28 01:08:10.993737+00', 'everybody', '127.0.0.1', 'putResourceQuota', 1, 'default', 6, '409ce765-55da-422b-9000-c7560649fcb1', 200, 1, 'z$\356R\323\224<\315%G\016\200\372\366r-&\375\0205Ib\273\324b\213\341\030P.u\254', '\\2r\250\204\002\317J\255\354\371\333d\336\302T\020x\263&y\012\215\350a\2749t\312\026XJ');
INSERT INTO public.audit VALUES (1, 6, '2026-11-28 01:08:11.000606+00', 'everybody', '127.0.0.1', 'putPodGroup', 1, 'default', 7, 'd864c9d7-cb6d-4e06-9f97-3f797b4beb69', 200, 1, '\\2r\250\204\002\317J\255\354\371\333d\336\302T\020x\263&y\012\215\350a\2749t\312\026XJ', 'R\313?U45F\310,\256W<\353O\340m/_\265\352\010\264\221\2063\024\344\255\271\033\322\204');
INSERT INTO public.audit VALUES (1, 7, '2026-11-28 01:08:11.027271+00', 'everybody', '127.0.0.1', 'placePods', 1, 'default', 8, '4c56d3c0-38d6-483a-aba1-f7c71c3f40f3', 200, 1, 'R\313?U45F\310,\256W<\353O\340m/_\265\352\010\264\221\2063\024\344\255\271\033\322\204', '\327\252o\027K\006\000\010\002"2fL\025D\274\232~\027\330E\343\275t\177{\367#\351\023\322\221');
INSERT INTO public.audit VALUES (1, 8, '2026-11-28 01:08:11.069044+00', 'everybody', '127.0.0.1', 'placePods', 1, 'default', 9, '060768f4-4f9f-4fa0-a889-667597ebddfa', 200, 1, '\327\252o\027K\006\000\010\002"2fL\025D\274\232~\027\330E\343\275t\177{\367#\351\023\322\221', '2\212Ks\322\227\377\352\265\216\273yxu\260\031\020\015m#\220u\020[\250\350\252.\232M\255\014');
INSERT INTO public.audit VALUES (1, 9, '2026-11-28 01:08:11.116954+00', 'everybody', '127.0.0.1', 'placePods', 1, 'default', 10, '74c02735-7777-4ad0-8906-ecccefd345c4', 200, 1, '2\212Ks\322\227\377\352\265\216\273yxu\260\031\020\015m#\220u\020[\250\350\252.\232M\255\014', '\017\331\362\370\250\213\237\332''\371\331\277\337\335\315\223\2223\371\265\374\235\371\270\374G[\243\242\262\230H');
INSERT INTO public.audit VALUES (1, 10, '2026-11-28 01:08:11.176628+00', 'everybody', '127.0.0.1', 'putPod', 1, 'default', 11, 'ad185fe5-883d-4cc3-bc6a-55271ec26f07', 200, 1, '\017\331\362\370\250\213\237\332''\371\331\277\337\335\315\223\2223\371\265\374\235\371\270\374G[\243\242\262\230H', 'HI\301\017\252\347\247\372?\256\267\273i\035\3354\2071\200\375\335\212_(\377Y\360{k\240{\236');
INSERT INTO public.audit VALUES (1, 11, '2026-11-28 01:08:11.216474+00', 'moorage', '', 'PlacePending', 1, 'default', 12, '', 200, 1, 'HI\301\017\252\347\247\372?\256\267\273i\035\3354\2071\200\375\335\212_(\377Y\360{k\240{\236', '\317\257\274:we#\033E$i\212>p\243Ms\373\346R\356{\340\021\350\371;y\266V\202V');
INSERT INTO public.audit VALUES (1, 12, '2026-11-28 01:08:11.243249+00', 'everybody', '127.0.0.1', 'deletePod', 1, 'default', 13, '76143185-026e-4a11-a637-1a1c951d1223', 200, 1, '\317\257\274:we#\033E$i\212>p\243Ms\373\346R\356{\340\021\350\371;y\266V\202V', '\266\370\300\340\350\314\323-\226\211z\246\323\340^\225\307\243\217S\240\365tq\370\234t/\300\201\353\023');
INSERT INTO public.audit VALUES (1, 13, '2026-11-28 01:08:11.276589+00', 'everybody', '127.0.0.1', 'patchNode', 1, 'default', 14, 'ab1e958b-3b9e-4a04-a026-262ed144a2a7', 200, 1, '\266\370\300\340\350\314\323-\226\211z\246\323\340^\225\307\243\217S\240\365tq\370\234t/\300\201\353\023', '{\277\357\276%\274\011BQ\246\2212\222IY\361\221\331>\317E\323\\/\216\232u\234\343-\300\220');
INSERT INTO public.audit VALUES (1, 14, '2026-11-28 01:08:11.292623+00', 'everybody', '127.0.0.1', 'patchNode', 1, 'default', 15, 'e3777916-28a2-489c-a51f-ded67e6b8ef6', 200, 1, '{\277\357\276%\274\011BQ\246\2212\222IY\361\221\331>\317E\323\\/\216\232u\234\343-\300\220', '7^BRtJ\320a2\037\036!Gs\361\036q\037\037\331\007\2003\012\036xy\252\277j\261m');
INSERT INTO public.audit VALUES (0, 4, '2026-11-28 01:08:11.391173+00', 'everybody', '127.0.0.1', 'putWebhook', NULL, 'default', NULL, '28804a6f-cb78-40e6-961c-1d1fac87ef39', 200, 1, 'o;Z\216x\233bY\326\221m\251T\337F\021\034?\033\301\227\361\206\017N\240\305S\217\266\352\264', 'b\237\002\2265\015\367\254~\306t\032\230m\274\257Y\360)\326\376s\363\367k\231(\307\004\252\260\344');
INSERT INTO public.audit VALUES (0, 5, '2026-11-28 01:08:11.433167+00', 'everybody', '127.0.0.1', 'putPrincipal', NULL, '', NULL, 'a5d0db2e-841f-484a-b159-a3c57095a797', 200, 1, 'b\237\002\2265\015\367\254~\306t\032\230m\274\257Y\360)\326\376s\363\367k\231(\307\004\252\260\344', '<\367O\327y\204i$)\340\346=\334\344\311\313\344\033Z\246\3569P\352\334\202\177\274\012v\346@');
INSERT INTO public.audit VALUES (0, 6, '2026-11-28 01:08:11.515196+00', 'everybody', '127.0.0.1', 'createToken', NULL, '', NULL, 'eb495ed3-37f6-499a-b39c-1cf3acef2b4a', 200, 1, '<\367O\327y\204i$)\340\346=\334\344\311\313\344\033Z\246\3569P\352\334\202\177\274\012v\346@', '\232\267\331N\260JS\301\021:\204F\365\344\340\310-Ux\350]\363\233t\015\031\254K\231$0+');
INSERT INTO public.audit VALUES (1, 15, '2026-11-28 01:08:11.555813+00', 'moorage', '', 'EvictViolating', 1, 'default', 18, '', 200, 1, '7^BRtJ\320a2\037\036!Gs\361\036q\037\037\331\007\2003\012\036xy\252\277j\261m', 'a\362ndDX\\z\302\331\012m\326\013\035f%\301\211\337\352\353\026\211*\231j!\371\275_0');


--
-- Data for Name: audit_chain; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.audit_chain VALUES (0, '', 6, '\232\267\331N\260JS\301\021:\204F\365\344\340\310-Ux\350]\363\233t\015\031\254K\231$0+', '2026-11-28 01:08:11.515196+00');
INSERT INTO public.audit_chain VALUES (1, 'default', 15, 'a\362ndDX\\z\302\331\012m\326\013\035f%\301\211\337\352\353\026\211*\231j!\371\275_0', '2026-11-28 01:08:11.555813+00');


--
-- Data for Name: change; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.change VALUES (1, 1, 'd7c5d67f-9d9f-48f0-9d19-aaab68ad34e8', true, 'Put', 'Cluster', '', 'config', '', NULL, NULL, '{}', NULL);
INSERT INTO public.change VALUES (2, 1, 'c372c540-7533-4fee-89bc-42e195ec1f2b', true, 'Put', 'Cluster', '', 'config', '', NULL, NULL, '{"semantics":"Kubernetes","emptyNodeSelectorTerm":null,"requiredAffinityTerms":null,"emptyNamespaceList":null,"preferredTermWeight":null,"hardPodAffinityWeight":1,"symmetricPreferredAffinity":true,"symmetricPreferredAntiAffinity":true,"daemonNamespaces":["kube-system"],"restrictAllNamespacesAntiAffinity":true,"nodeTopologyKeys":["kubernetes.io/hostname"],"trustedNamespaces":[],"defaultTopologySpread":"List","defaultTopologySpreadConstraints":[],"scoringStrategy":"LeastAllocated","requestedToCapacityRatio":null,"profiles":[],"deviceClaims":"Allocate","volumes":"Honor","placePendingPods":true,"deviceSearchSteps":5000,"groupSearchSteps":10000,"priorityClasses":{},"limitedResources":[],"features":{"PodAffinityNamespaceSelector":true},"policies":[],"opportunityCostBasis":"Largest","queuePreemption":"Never","queuePreemptionScope":"Node","affinityViolationGraceSeconds":30,"antiAffinityVictim":"RuleOwner","evictionsPerMinute":60,"noExecuteTaints":null,"defaultNotReadyTolerationSeconds":300,"defaultUnreachableTolerationSeconds":300,"nodeConditions":null,"nodeMonitorGraceSeconds":40,"nodeEvictionRate":0.1,"secondaryNodeEvictionRate":0.01,"unhealthyZoneThreshold":0.55,"largeZoneNodes":50,"deletedNodePods":null,"orphanGraceSeconds":10}', NULL);
INSERT INTO public.change VALUES (1, 2, '36ef7cb4-580f-40a3-b39a-83b81c8cd19d', true, 'Put', 'Namespace', '', 'shop', '6bf9550f-8d9d-424a-aa71-fdc6c169d60b', NULL, NULL, '{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","labels":{"team":"shop"},"uid":"6bf9550f-8d9d-424a-aa71-fdc6c169d60b","creationTimestamp":"2026-11-28T01:08:10Z"}}', NULL);
INSERT INTO public.change VALUES (1, 3, '631af09d-ffc8-49c5-a679-6b352c92d51a', true, 'Put', 'Node', '', 'node-a', '03321c8e-e98f-49d1-9e7e-e419ce0c398a', NULL, NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-a","labels":{"zone":"a"},"uid":"03321c8e-e98f-49d1-9e7e-e419ce0c398a","creationTimestamp":"2026-11-28T01:08:10Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}', NULL);
INSERT INTO public.change VALUES (1, 4, '14603e54-f4f7-4888-afe1-7b050cdc445d', true, 'Put', 'Node', '', 'node-b', '726e5005-c4a4-44ba-a6b6-f73205c52903', NULL, NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-b","labels":{"zone":"b"},"uid":"726e5005-c4a4-44ba-a6b6-f73205c52903","creationTimestamp":"2026-11-28T01:08:10Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}', NULL);
INSERT INTO public.change VALUES (1, 5, '65b3c6bb-69db-4dc7-bc46-c6ab22fdf811', true, 'Put', 'Node', '', 'node-c', 'e7640adf-eeda-410a-844a-923d0b528673', NULL, NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-c","labels":{"zone":"c"},"uid":"e7640adf-eeda-410a-844a-923d0b528673","creationTimestamp":"2026-11-28T01:08:10Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}', NULL);
INSERT INTO public.change VALUES (1, 6, 'b4e6ec2b-fbdb-4432-9ab8-d06c66239bf7', true, 'Put', 'ResourceQuota', 'shop', 'pods', '85d13c45-cab2-436b-8113-add2595ccb02', NULL, NULL, '{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"pods","namespace":"shop","uid":"85d13c45-cab2-436b-8113-add2595ccb02","creationTimestamp":"2026-11-28T01:08:10Z"},"spec":{"hard":{"pods":"10"}}}', NULL);
INSERT INTO public.change VALUES (1, 7, 'e4441329-7f2b-4b6b-ab35-7755563e52c7', true, 'Put', 'PodGroup', 'shop', 'train', '9af12d5c-cb75-48ca-9fc6-7b3765a02ea6', NULL, NULL, '{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"PodGroup","metadata":{"name":"train","namespace":"shop","uid":"9af12d5c-cb75-48ca-9fc6-7b3765a02ea6","creationTimestamp":"2026-11-28T01:08:10Z"},"spec":{"minMember":2}}', NULL);
INSERT INTO public.change VALUES (1, 8, '09fad485-0894-4710-836f-41d71d56bbaf', true, 'Put', 'Pod', 'shop', 'web-0', '8878f428-ff2e-4da1-9b1b-b69463eae767', 'node-b', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"uid":"8878f428-ff2e-4da1-9b1b-b69463eae767","creationTimestamp":"2026-11-28T01:08:11Z"},"spec":{"nodeName":"node-b","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-28T01:08:11Z"}]}}', NULL);
INSERT INTO public.change VALUES (1, 9, 'f237e36b-143d-4e79-afaf-c6f2a2ad5909', true, 'Put', 'Pod', 'shop', 'web-1', '2b91a904-aadb-445c-8910-ed9d0959aec9', 'node-a', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-1","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"uid":"2b91a904-aadb-445c-8910-ed9d0959aec9","creationTimestamp":"2026-11-28T01:08:11Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-28T01:08:11Z"}]}}', NULL);
INSERT INTO public.change VALUES (1, 10, 'a1b32fb0-794a-4ef1-9031-d137b90506c7', true, 'Put', 'Pod', 'shop', 'web-2', '0b6d2579-109b-404a-9caf-3dd07f2c98bf', 'node-a', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-2","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"uid":"0b6d2579-109b-404a-9caf-3dd07f2c98bf","creationTimestamp":"2026-11-28T01:08:11Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-28T01:08:11Z"}]}}', NULL);
INSERT INTO public.change VALUES (1, 11, '7de960f6-8a26-4df7-ae3f-49fe395e2949', true, 'Put', 'Pod', 'shop', 'too-big', '210d0918-3a06-453b-a4de-80460498e209', NULL, NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"too-big","namespace":"shop","uid":"210d0918-3a06-453b-a4de-80460498e209","creationTimestamp":"2026-11-28T01:08:11Z"},"spec":{"affinity":{},"containers":[{"name":"main","resources":{"requests":{"cpu":"64"}}}]}}', NULL);
INSERT INTO public.change VALUES (1, 12, '1e9c6121-1946-4a88-95c1-f747e536ea6b', false, 'Put', 'Pod', 'shop', 'too-big', '210d0918-3a06-453b-a4de-80460498e209', NULL, NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"too-big","namespace":"shop","uid":"210d0918-3a06-453b-a4de-80460498e209","creationTimestamp":"2026-11-28T01:08:11Z"},"spec":{"affinity":{},"containers":[{"name":"main","resources":{"requests":{"cpu":"64"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/3 nodes are available: 3 Insufficient cpu.","lastTransitionTime":"2026-11-28T01:08:11Z"}]}}', '');
INSERT INTO public.change VALUES (1, 13, 'b4da6a92-f370-4dda-bf05-cc3cb750865a', false, 'Delete', 'Pod', 'shop', 'web-1', '2b91a904-aadb-445c-8910-ed9d0959aec9', 'node-a', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-1","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"uid":"2b91a904-aadb-445c-8910-ed9d0959aec9","creationTimestamp":"2026-11-28T01:08:11Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-28T01:08:11Z"}]}}', NULL);
INSERT INTO public.change VALUES (1, 14, '7c6282db-b65e-4f80-a16e-a30b52ac2abc', false, 'Put', 'Node', '', 'node-a', '03321c8e-e98f-49d1-9e7e-e419ce0c398a', NULL, '{"zone":"a"}', '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-a","labels":{"zone":"c"},"uid":"03321c8e-e98f-49d1-9e7e-e419ce0c398a","creationTimestamp":"2026-11-28T01:08:10Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}', '');
INSERT INTO public.change VALUES (1, 15, 'f21990fd-227a-4628-85ed-885345f5a0d2', false, 'Put', 'Node', '', 'node-b', '726e5005-c4a4-44ba-a6b6-f73205c52903', NULL, '{"zone":"b"}', '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-b","labels":{"zone":"c"},"uid":"726e5005-c4a4-44ba-a6b6-f73205c52903","creationTimestamp":"2026-11-28T01:08:10Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}', '');
INSERT INTO public.change VALUES (1, 16, 'd9498018-e8ab-4d6f-a35b-a98750e0a506', false, 'Put', 'Pod', 'shop', 'web-0', '8878f428-ff2e-4da1-9b1b-b69463eae767', 'node-b', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"deletionTimestamp":"2026-11-28T01:08:11Z","uid":"8878f428-ff2e-4da1-9b1b-b69463eae767","creationTimestamp":"2026-11-28T01:08:11Z"},"spec":{"nodeName":"node-b","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-28T01:08:11Z"},{"type":"DisruptionTarget","status":"True","reason":"NodeAffinityViolated","message":"spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-b.","lastTransitionTime":"2026-11-28T01:08:11Z"}]}}', '{"metadata.deletionTimestamp":"false"}');
INSERT INTO public.change VALUES (1, 17, 'd9498018-e8ab-4d6f-a35b-a98750e0a506', false, 'Put', 'Pod', 'shop', 'web-2', '0b6d2579-109b-404a-9caf-3dd07f2c98bf', 'node-a', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-2","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"deletionTimestamp":"2026-11-28T01:08:11Z","uid":"0b6d2579-109b-404a-9caf-3dd07f2c98bf","creationTimestamp":"2026-11-28T01:08:11Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-28T01:08:11Z"},{"type":"DisruptionTarget","status":"True","reason":"NodeAffinityViolated","message":"spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-a.","lastTransitionTime":"2026-11-28T01:08:11Z"}]}}', '{"metadata.deletionTimestamp":"false"}');
INSERT INTO public.change VALUES (1, 18, 'd9498018-e8ab-4d6f-a35b-a98750e0a506', true, 'Put', 'Evictions', '', 'state', '', NULL, NULL, '{"timers":[],"recent":[{"at":"2026-11-28T01:08:11.498305Z","pods":2}],"blocked":[]}', NULL);


--
-- Data for Name: cluster; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.cluster OVERRIDING SYSTEM VALUE VALUES (1, 'default', '2026-11-28 01:08:02.088803+00');
INSERT INTO public.cluster OVERRIDING SYSTEM VALUE VALUES (2, 'staging', '2026-11-28 01:08:10.70004+00');


--
-- Data for Name: commit; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.commit VALUES (1, 1, 'd7c5d67f-9d9f-48f0-9d19-aaab68ad34e8', '00000000-0000-0000-0000-000000000000', 1, 0, 'CreateCluster', '2026-11-28 01:08:02.088694+00');
INSERT INTO public.commit VALUES (2, 1, 'c372c540-7533-4fee-89bc-42e195ec1f2b', '00000000-0000-0000-0000-000000000000', 1, 0, 'CreateCluster', '2026-11-28 01:08:10.699712+00');
INSERT INTO public.commit VALUES (1, 2, '36ef7cb4-580f-40a3-b39a-83b81c8cd19d', 'd7c5d67f-9d9f-48f0-9d19-aaab68ad34e8', 2, 1, 'PutObject', '2026-11-28 01:08:10.910519+00');
INSERT INTO public.commit VALUES (1, 3, '631af09d-ffc8-49c5-a679-6b352c92d51a', '36ef7cb4-580f-40a3-b39a-83b81c8cd19d', 3, 2, 'PutObject', '2026-11-28 01:08:10.937218+00');
INSERT INTO public.commit VALUES (1, 4, '14603e54-f4f7-4888-afe1-7b050cdc445d', '631af09d-ffc8-49c5-a679-6b352c92d51a', 4, 3, 'PutObject', '2026-11-28 01:08:10.961652+00');
INSERT INTO public.commit VALUES (1, 5, '65b3c6bb-69db-4dc7-bc46-c6ab22fdf811', '14603e54-f4f7-4888-afe1-7b050cdc445d', 5, 4, 'PutObject', '2026-11-28 01:08:10.977516+00');
INSERT INTO public.commit VALUES (1, 6, 'b4e6ec2b-fbdb-4432-9ab8-d06c66239bf7', '65b3c6bb-69db-4dc7-bc46-c6ab22fdf811', 6, 5, 'PutObject', '2026-11-28 01:08:10.993737+00');
INSERT INTO public.commit VALUES (1, 7, 'e4441329-7f2b-4b6b-ab35-7755563e52c7', 'b4e6ec2b-fbdb-4432-9ab8-d06c66239bf7', 7, 6, 'PutObject', '2026-11-28 01:08:11.000606+00');
INSERT INTO public.commit VALUES (1, 8, '09fad485-0894-4710-836f-41d71d56bbaf', 'e4441329-7f2b-4b6b-ab35-7755563e52c7', 8, 7, 'PlacePods', '2026-11-28 01:08:11.027271+00');
INSERT INTO public.commit VALUES (1, 9, 'f237e36b-143d-4e79-afaf-c6f2a2ad5909', '09fad485-0894-4710-836f-41d71d56bbaf', 9, 8, 'PlacePods', '2026-11-28 01:08:11.069044+00');
INSERT INTO public.commit VALUES (1, 10, 'a1b32fb0-794a-4ef1-9031-d137b90506c7', 'f237e36b-143d-4e79-afaf-c6f2a2ad5909', 10, 9, 'PlacePods', '2026-11-28 01:08:11.116954+00');
INSERT INTO public.commit VALUES (1, 11, '7de960f6-8a26-4df7-ae3f-49fe395e2949', 'a1b32fb0-794a-4ef1-9031-d137b90506c7', 11, 10, 'PutObject', '2026-11-28 01:08:11.176628+00');
INSERT INTO public.commit VALUES (1, 12, '1e9c6121-1946-4a88-95c1-f747e536ea6b', '7de960f6-8a26-4df7-ae3f-49fe395e2949', 12, 11, 'PlacePending', '2026-11-28 01:08:11.216474+00');
INSERT INTO public.commit VALUES (1, 13, 'b4da6a92-f370-4dda-bf05-cc3cb750865a', '1e9c6121-1946-4a88-95c1-f747e536ea6b', 13, 11, 'DeleteObject', '2026-11-28 01:08:11.243249+00');
INSERT INTO public.commit VALUES (1, 14, '7c6282db-b65e-4f80-a16e-a30b52ac2abc', 'b4da6a92-f370-4dda-bf05-cc3cb750865a', 14, 13, 'PatchObject', '2026-11-28 01:08:11.276589+00');
INSERT INTO public.commit VALUES (1, 15, 'f21990fd-227a-4628-85ed-885345f5a0d2', '7c6282db-b65e-4f80-a16e-a30b52ac2abc', 15, 14, 'PatchObject', '2026-11-28 01:08:11.292623+00');
INSERT INTO public.commit VALUES (1, 18, 'd9498018-e8ab-4d6f-a35b-a98750e0a506', 'f21990fd-227a-4628-85ed-885345f5a0d2', 16, 15, 'EvictViolating', '2026-11-28 01:08:11.555813+00');


--
-- Data for Name: event; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.event VALUES (1, 'shop', 'too-big.8a47bbb1ad82d965', 'too-big', '210d0918-3a06-453b-a4de-80460498e209', 'Warning', 'FailedScheduling', '0/3 nodes are available: 3 Insufficient cpu.', 13, 2, '2026-11-28 01:08:11+00', '2026-11-28 01:08:11+00');
INSERT INTO public.event VALUES (1, 'shop', 'web-0.31fe6cc90a9168ab', 'web-0', '8878f428-ff2e-4da1-9b1b-b69463eae767', 'Normal', 'Scheduled', 'Successfully assigned shop/web-0 to node-b', 8, 1, '2026-11-28 01:08:11+00', '2026-11-28 01:08:11+00');
INSERT INTO public.event VALUES (1, 'shop', 'web-1.a36992d01ec8193c', 'web-1', '2b91a904-aadb-445c-8910-ed9d0959aec9', 'Normal', 'Scheduled', 'Successfully assigned shop/web-1 to node-a', 9, 1, '2026-11-28 01:08:11+00', '2026-11-28 01:08:11+00');
INSERT INTO public.event VALUES (1, 'shop', 'web-2.7dfa62c4af7520d4', 'web-2', '0b6d2579-109b-404a-9caf-3dd07f2c98bf', 'Normal', 'Scheduled', 'Successfully assigned shop/web-2 to node-a', 10, 1, '2026-11-28 01:08:11+00', '2026-11-28 01:08:11+00');
INSERT INTO public.event VALUES (1, 'shop', 'web-0.5679a2323984b556', 'web-0', '8878f428-ff2e-4da1-9b1b-b69463eae767', 'Warning', 'Evicted', 'spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-b.', 16, 1, '2026-11-28 01:08:11+00', '2026-11-28 01:08:11+00');
INSERT INTO public.event VALUES (1, 'shop', 'web-2.62e64835f1ad26ec', 'web-2', '0b6d2579-109b-404a-9caf-3dd07f2c98bf', 'Warning', 'Evicted', 'spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-a.', 17, 1, '2026-11-28 01:08:11+00', '2026-11-28 01:08:11+00');


--
-- Data for Name: floor; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.floor VALUES (1, 0);
INSERT INTO public.floor VALUES (2, 0);


--
-- Data for Name: head; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.head VALUES (2, 1, 'c372c540-7533-4fee-89bc-42e195ec1f2b', '2026-11-28 01:08:10.699712+00');
INSERT INTO public.head VALUES (1, 18, 'd9498018-e8ab-4d6f-a35b-a98750e0a506', '2026-11-28 01:08:11.555813+00');


--
-- Data for Name: history; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.history VALUES (1, 7713022817949721353, 1, 12784);


--
-- Data for Name: idempotency; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.idempotency VALUES (1, 'placePods', 'order-of-web-0', 0, 'x\203Y\226\272\025Q\211\253\214kEc?\360\351\376\357\3376\215N\316\332\226\362\035\221\257\200\303\273', '\225\305\001\015{"revision":8,"committed":true,"attempts":1,"results":[{"namespace":"shop","name":"web-0","uid":"8878f428-ff2e-4da1-9b1b-b69463eae767","outcome":"Placed","nodeName":"node-b","score":485,"plannedRevision":7,"reason":null,"message":null,"explanation":null}],"group":null}\314\310\300\300\302', '2026-11-28 01:08:11.027271+00');
INSERT INTO public.idempotency VALUES (1, 'placePods', 'order-of-web-1', 0, '\275\352\001(7\0255\267z\346\003\270\205\033\204E\022a]$7\252\032\033s0\364\227\306\0273\205', '\225\305\001\015{"revision":9,"committed":true,"attempts":1,"results":[{"namespace":"shop","name":"web-1","uid":"2b91a904-aadb-445c-8910-ed9d0959aec9","outcome":"Placed","nodeName":"node-a","score":485,"plannedRevision":8,"reason":null,"message":null,"explanation":null}],"group":null}\314\310\300\300\302', '2026-11-28 01:08:11.069044+00');
INSERT INTO public.idempotency VALUES (1, 'placePods', 'order-of-web-2', 0, 'M>\320\300\351\004\003\027\234\021R\000b\236@\202u\256o~\212\355{ZKw\320\232\013\312\305\236', '\225\305\001\016{"revision":10,"committed":true,"attempts":1,"results":[{"namespace":"shop","name":"web-2","uid":"0b6d2579-109b-404a-9caf-3dd07f2c98bf","outcome":"Placed","nodeName":"node-a","score":472,"plannedRevision":9,"reason":null,"message":null,"explanation":null}],"group":null}\314\310\300\300\302', '2026-11-28 01:08:11.116954+00');


--
-- Data for Name: lease; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.lease VALUES (1, 'requests@vm:43707', '1d92aa40-99a2-4f1c-bfa8-f703a4b39997', '2026-11-28 01:08:20.852354+00');
INSERT INTO public.lease VALUES (1, 'pending', '5f01a0ba-6c04-438a-a6c9-2cbaf7fd8b93', '2026-11-28 01:08:15.264978+00');
INSERT INTO public.lease VALUES (1, 'evictions', '5f01a0ba-6c04-438a-a6c9-2cbaf7fd8b93', '2026-11-28 01:08:15.267046+00');
INSERT INTO public.lease VALUES (1, 'nodes', '5f01a0ba-6c04-438a-a6c9-2cbaf7fd8b93', '2026-11-28 01:08:15.518025+00');


--
-- Data for Name: node_lease; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.node_lease VALUES (1, 'node-c', '2026-11-28 01:08:11.315167+00');


--
-- Data for Name: object; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.object VALUES (1, 1, 'Cluster', '', 'config', '', NULL, '{}');
INSERT INTO public.object VALUES (2, 1, 'Cluster', '', 'config', '', NULL, '{"semantics":"Kubernetes","emptyNodeSelectorTerm":null,"requiredAffinityTerms":null,"emptyNamespaceList":null,"preferredTermWeight":null,"hardPodAffinityWeight":1,"symmetricPreferredAffinity":true,"symmetricPreferredAntiAffinity":true,"daemonNamespaces":["kube-system"],"restrictAllNamespacesAntiAffinity":true,"nodeTopologyKeys":["kubernetes.io/hostname"],"trustedNamespaces":[],"defaultTopologySpread":"List","defaultTopologySpreadConstraints":[],"scoringStrategy":"LeastAllocated","requestedToCapacityRatio":null,"profiles":[],"deviceClaims":"Allocate","volumes":"Honor","placePendingPods":true,"deviceSearchSteps":5000,"groupSearchSteps":10000,"priorityClasses":{},"limitedResources":[],"features":{"PodAffinityNamespaceSelector":true},"policies":[],"opportunityCostBasis":"Largest","queuePreemption":"Never","queuePreemptionScope":"Node","affinityViolationGraceSeconds":30,"antiAffinityVictim":"RuleOwner","evictionsPerMinute":60,"noExecuteTaints":null,"defaultNotReadyTolerationSeconds":300,"defaultUnreachableTolerationSeconds":300,"nodeConditions":null,"nodeMonitorGraceSeconds":40,"nodeEvictionRate":0.1,"secondaryNodeEvictionRate":0.01,"unhealthyZoneThreshold":0.55,"largeZoneNodes":50,"deletedNodePods":null,"orphanGraceSeconds":10}');
INSERT INTO public.object VALUES (1, 2, 'Namespace', '', 'shop', '6bf9550f-8d9d-424a-aa71-fdc6c169d60b', NULL, '{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","labels":{"team":"shop"},"uid":"6bf9550f-8d9d-424a-aa71-fdc6c169d60b","creationTimestamp":"2026-11-28T01:08:10Z"}}');
INSERT INTO public.object VALUES (1, 5, 'Node', '', 'node-c', 'e7640adf-eeda-410a-844a-923d0b528673', NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-c","labels":{"zone":"c"},"uid":"e7640adf-eeda-410a-844a-923d0b528673","creationTimestamp":"2026-11-28T01:08:10Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}');
INSERT INTO public.object VALUES (1, 6, 'ResourceQuota', 'shop', 'pods', '85d13c45-cab2-436b-8113-add2595ccb02', NULL, '{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"pods","namespace":"shop","uid":"85d13c45-cab2-436b-8113-add2595ccb02","creationTimestamp":"2026-11-28T01:08:10Z"},"spec":{"hard":{"pods":"10"}}}');
INSERT INTO public.object VALUES (1, 7, 'PodGroup', 'shop', 'train', '9af12d5c-cb75-48ca-9fc6-7b3765a02ea6', NULL, '{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"PodGroup","metadata":{"name":"train","namespace":"shop","uid":"9af12d5c-cb75-48ca-9fc6-7b3765a02ea6","creationTimestamp":"2026-11-28T01:08:10Z"},"spec":{"minMember":2}}');
INSERT INTO public.object VALUES (1, 14, 'Node', '', 'node-a', '03321c8e-e98f-49d1-9e7e-e419ce0c398a', NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-a","labels":{"zone":"c"},"uid":"03321c8e-e98f-49d1-9e7e-e419ce0c398a","creationTimestamp":"2026-11-28T01:08:10Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}');
INSERT INTO public.object VALUES (1, 15, 'Node', '', 'node-b', '726e5005-c4a4-44ba-a6b6-f73205c52903', NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-b","labels":{"zone":"c"},"uid":"726e5005-c4a4-44ba-a6b6-f73205c52903","creationTimestamp":"2026-11-28T01:08:10Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}');
INSERT INTO public.object VALUES (1, 16, 'Pod', 'shop', 'web-0', '8878f428-ff2e-4da1-9b1b-b69463eae767', 'node-b', '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"deletionTimestamp":"2026-11-28T01:08:11Z","uid":"8878f428-ff2e-4da1-9b1b-b69463eae767","creationTimestamp":"2026-11-28T01:08:11Z"},"spec":{"nodeName":"node-b","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-28T01:08:11Z"},{"type":"DisruptionTarget","status":"True","reason":"NodeAffinityViolated","message":"spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-b.","lastTransitionTime":"2026-11-28T01:08:11Z"}]}}');
INSERT INTO public.object VALUES (1, 17, 'Pod', 'shop', 'web-2', '0b6d2579-109b-404a-9caf-3dd07f2c98bf', 'node-a', '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-2","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"deletionTimestamp":"2026-11-28T01:08:11Z","uid":"0b6d2579-109b-404a-9caf-3dd07f2c98bf","creationTimestamp":"2026-11-28T01:08:11Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-28T01:08:11Z"},{"type":"DisruptionTarget","status":"True","reason":"NodeAffinityViolated","message":"spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-a.","lastTransitionTime":"2026-11-28T01:08:11Z"}]}}');
INSERT INTO public.object VALUES (1, 12, 'Pod', 'shop', 'too-big', '210d0918-3a06-453b-a4de-80460498e209', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"too-big","namespace":"shop","uid":"210d0918-3a06-453b-a4de-80460498e209","creationTimestamp":"2026-11-28T01:08:11Z"},"spec":{"affinity":{},"containers":[{"name":"main","resources":{"requests":{"cpu":"64"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/3 nodes are available: 3 Insufficient cpu.","lastTransitionTime":"2026-11-28T01:08:11Z"}]}}');
INSERT INTO public.object VALUES (1, 18, 'Evictions', '', 'state', '', NULL, '{"timers":[],"recent":[{"at":"2026-11-28T01:08:11.498305Z","pods":2}],"blocked":[]}');


--
-- Data for Name: predecessor; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.predecessor VALUES ('given-up', 1);


--
-- Data for Name: principal; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.principal VALUES ('User', 'root', '[{"role":"admin","cluster":null,"namespace":null}]', true, '2026-11-28 01:08:11.431171+00');


--
-- Data for Name: replica_report; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.replica_report VALUES ('host/13608', 1, 18, '5ee5ae3d1858d80581dd2832ee6db62da18e28b9c9ad671dffbc791349445bec-ae8afe2a2deaf0a4b3387d8b3a8e33cda0ddb186d6b5c8986d2149eb915a6d07', '2026-11-28 01:08:12.572052+00');


--
-- Data for Name: token; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.token VALUES ('b9eef1cd0e97774a', 'root', '\264\012\224\014\237\300_\202\203c|V\312\253\200\345''\340OL\011\235\371ak\361t\256\257\324$\027', '', '2026-11-28 01:08:11.50017+00', NULL, NULL);


--
-- Data for Name: webhook; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.webhook VALUES (1, 'orchestrator', '68368a38-d09b-4d33-9f93-b086cbd4586f', 1, 'https://orchestrator.example/', 'Bindings', NULL, true, 'whsec_iyQ985duabmTxP1tD4hBOntnOcJUGOnm8NKE1pfvqIM=', NULL, NULL, '2026-11-28 01:08:11.365711+00', 15, NULL, NULL, '2026-11-28 01:08:11.365711+00', 0, NULL, false, NULL, NULL);


--
-- Data for Name: worker; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.worker VALUES ('host:43707', '1d92aa40-99a2-4f1c-bfa8-f703a4b39997', '2026-11-28 01:08:18.922426+00');
INSERT INTO public.worker VALUES ('host:43707', 'a10c32b7-7cbc-4b5f-99b1-c6fcffb3ded7', '2026-11-28 01:08:18.940219+00');


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
-- Name: predecessor predecessor_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.predecessor
    ADD CONSTRAINT predecessor_pkey PRIMARY KEY (name);


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


