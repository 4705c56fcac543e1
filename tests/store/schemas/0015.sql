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
-- Name: tag_access_v1(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.tag_access_v1() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    NEW.tag := gen_random_uuid();
    RETURN NEW;
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
    tag uuid DEFAULT gen_random_uuid() NOT NULL,
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

INSERT INTO public.access_state VALUES (true, 3, 'c926f8d8-0430-4d9c-bb26-6aec9070323b');


--
-- Data for Name: alembic_version; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.alembic_version VALUES ('0015');


--
-- Data for Name: audit; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.audit VALUES (0, 1, '2026-11-28 03:12:05.225444+00', 'everybody', '127.0.0.1', 'putCluster', 2, 'staging', 1, '052607f0-03f1-4b32-9507-a58308947e8d', 200, 1, '', '\253^\232{\323\254\011\260\214\240\377\316z\353\375\017\220\243b\035\333O\364Si\273\005\276\272\263\023\214');
INSERT INTO public.audit VALUES (0, 2, '2026-11-28 03:12:05.232891+00', 'everybody', '127.0.0.1', 'putCluster', 3, 'given-up', 1, 'cd9d3523-a0bc-491f-9f11-53db03e2eb0b', 200, 1, '\253^\232{\323\254\011\260\214\240\377\316z\353\375\017\220\243b\035\333O\364Si\273\005\276\272\263\023\214', '\001|\2535\256\016\344\303\376\353Y\015\265\352\335_c\3265\372\301\255\253\205o\254\274)|\271v#');
INSERT INTO public.audit VALUES (0, 3, '2026-11-28 03:12:05.237434+00', 'everybody', '127.0.0.1', 'deleteCluster', 3, 'given-up', NULL, 'cc3793b8-c198-4ded-91fa-93af2f4f76cf', 200, 1, '\001|\2535\256\016\344\303\376\353Y\015\265\352\335_c\3265\372\301\255\253\205o\254\274)|\271v#', '\002*e\015v\3746\234\317\0358q\264\235;\360\366\006\370\273\233\246\251\360p\236\375\260\311ONh');
INSERT INTO public.audit VALUES (1, 1, '2026-11-28 03:12:05.254938+00', 'everybody', '127.0.0.1', 'putNamespace', 1, 'default', 2, '6c5a65df-f20b-4b9b-8e8b-4cea19adc1f2', 200, 1, '', '\023P\345\343\177\277\220\231\323\275\322\201\3157\365\350\021\226\350\321&\304iM|X\022]\230\206&$');
INSERT INTO public.audit VALUES (1, 2, '2026-11-28 03:12:05.262826+00', 'everybody', '127.0.0.1', 'putNode', 1, 'default', 3, 'e129fe25-5a8f-4e65-8be4-41cfa2f2ca98', 200, 1, '\023P\345\343\177\277\220\231\323\275\322\201\3157\365\350\021\226\350\321&\304iM|X\022]\230\206&$', '\253\304/\327\321wU\0202\350\006e\037\234\012\356Q\351\2212$\224\203\315\364\336qC\231\003\367\322');
INSERT INTO public.audit VALUES (1, 3, '2026-11-28 03:12:05.266398+00', 'everybody', '127.0.0.1', 'putNode', 1, 'default', 4, '2483d4e3-645c-447b-acab-db11eaf385e4', 200, 1, '\253\304/\327\321wU\0202\350\006e\037\234\012\356Q\351\2212$\224\203\315\364\336qC\231\003\367\322', '\277\206(\306\343e\2743\034j\2056\304\313\326\034L\361\301Ye\010Y\306~*\240\002\362\301f\216');
INSERT INTO public.audit VALUES (1, 4, '2026-11-28 03:12:05.268397+00', 'everybody', '127.0.0.1', 'putNode', 1, 'default', 5, '97b02825-baab-4490-ac94-0f7fac61df00', 200, 1, '\277\206(\306\343e\2743\034j\2056\304\313\326\034L\361\301Ye\010Y\306~*\240\002\362\301f\216', '\352g\352\374K\350\22775{\243\036,6\246F\301\036s\376\255\253\357/\36605\244E\345{e');
INSERT INTO public.audit VALUES (1, 5, '2026-11-28 03:12:05.270216+00', 'everybody', '127.0.0.1', 'putResourceQuota', 1, 'default', 6, 'bc114c62-e434-4f54-9bff-758334af88bc', 200, 1, '\352g\352\374K\350\22775{\243\036,6\246F\301\036s\376\255\253\357/\36605\244E\345{e', '\247\355\035\314\201\340\310V\337\224\033\010|&\3675\273\276\326L\216|\316\236Zd\000zG\256a\362');
INSERT INTO public.audit VALUES (1, 6, '2026-11-28 03:12:05.272022+00', 'everybody', '127.0.0.1', 'putPodGroup', 1, 'default', 7, 'b570bf0d-7da7-48dd-819c-88ccdb37002d', 200, 1, '\247\355\035\314\201\340\310V\337\224\033\010|&\3675\273\276\326L\216|\316\236Zd\000zG\256a\362', '\271c\344q\311\2068-H\323\030\244rr|\2167\002\357\3651\262\363Gf\233\226\217@\316\036-');
INSERT INTO public.audit VALUES (1, 7, '2026-11-28 03:12:05.278267+00', 'everybody', '127.0.0.1', 'placePods', 1, 'default', 8, 'fb822784-c245-49c3-9b07-6350bf10592c', 200, 1, '\271c\344q\311\2068-H\323\030\244rr|\2167\002\357\3651\262\363Gf\233\226\217@\316\036-', '\324\307\332\357\330\300\346?\357_\314\317\323\2527\242\232\360\344\352\235\3163\313\214\214\250b\361a\356d');
INSERT INTO public.audit VALUES (1, 8, '2026-11-28 03:12:05.281691+00', 'everybody', '127.0.0.1', 'placePods', 1, 'default', 9, 'd7dc34bb-a48b-42cf-9104-32cd4da705c2', 200, 1, '\324\307\332\357\330\300\346?\357_\314\317\323\2527\242\232\360\344\352\235\3163\313\214\214\250b\361a\356d', '''J\232M\345\303t\354\014\266\275r\312\006\270\256L"\210]\201b\014+F\312\2348\335\331!\367');
INSERT INTO public.audit VALUES (1, 9, '2026-11-28 03:12:05.283302+00', 'everybody', '127.0.0.1', 'placePods', 1, 'default', 10, '884be978-47ae-402a-ab6b-54fa0d98b08c', 200, 1, '''J\232M\345\303t\354\014\266\275r\312\006\270\256L"\210]\201b\014+F\312\2348\335\331!\367', '\366s\254\317La\246\002\335Q\353\207\201\0000\222P\201_\022Ro~\307\340K\304W\263\375\345\037');
INSERT INTO public.audit VALUES (1, 10, '2026-11-28 03:12:05.285217+00', 'everybody', '127.0.0.1', 'putPod', 1, 'default', 11, 'e5312786-fe67-4045-b076-361ec4537e90', 200, 1, '\366s\254\317La\246\002\335Q\353\207\201\0000\222P\201_\022Ro~\307\340K\304W\263\375\345\037', '\361K\226Wc\031\353\215\034\204\016W~\027^np[\336\317X\211\361W\263Y\326\231r*\237\316');
INSERT INTO public.audit VALUES (1, 11, '2026-11-28 03:12:05.287873+00', 'moorage', '', 'PlacePending', 1, 'default', 12, '', 200, 1, '\361K\226Wc\031\353\215\034\204\016W~\027^np[\336\317X\211\361W\263Y\326\231r*\237\316', 'n\265\365\315\226\030\033\205\344Bb\232=D\233\032\3111(\002o\177\224k\367w\221\303K\337\2176');
INSERT INTO public.audit VALUES (1, 12, '2026-11-28 03:12:05.28904+00', 'everybody', '127.0.0.1', 'deletePod', 1, 'default', 13, '1e83b898-c481-4643-bf25-131b588d19ce', 200, 1, 'n\265\365\315\226\030\033\205\344Bb\232=D\233\032\3111(\002o\177\224k\367w\221\303K\337\2176', '\372\235\366\030\017.+\360\237\3422\336\366\011\233>\032\032Iwl+\2042\2705"\343\316\012-\345');
INSERT INTO public.audit VALUES (1, 13, '2026-11-28 03:12:05.291481+00', 'everybody', '127.0.0.1', 'patchNode', 1, 'default', 14, 'df7e1a68-c136-4d97-a4b8-551d65a125d5', 200, 1, '\372\235\366\030\017.+\360\237\3422\336\366\011\233>\032\032Iwl+\2042\2705"\343\316\012-\345', '\033\335\313\347\365,_g\011\320C\277\033\335\207\353z\201\023\355\025$\367\303\371\273H$U\\\006A');
INSERT INTO public.audit VALUES (1, 14, '2026-11-28 03:12:05.292863+00', 'moorage', '', 'EvictViolating', 1, 'default', 16, '', 200, 1, '\033\335\313\347\365,_g\011\320C\277\033\335\207\353z\201\023\355\025$\367\303\371\273H$U\\\006A', '\247\203R\036.\304\366\201\253X?\226\337>\240q\256y\234LsK\327Ghf\367u\344\274\177/');
INSERT INTO public.audit VALUES (1, 15, '2026-11-28 03:12:05.294069+00', 'everybody', '127.0.0.1', 'patchNode', 1, 'default', 17, 'a6d813dc-105e-4ec0-86e3-4382b8da94a7', 200, 1, '\247\203R\036.\304\366\201\253X?\226\337>\240q\256y\234LsK\327Ghf\367u\344\274\177/', '\350qm\252\177kWJC\355]D\323\274{>\212\227J\036\274;\257\225n+e\347\224\2045\241');
INSERT INTO public.audit VALUES (0, 4, '2026-11-28 03:12:05.300603+00', 'everybody', '127.0.0.1', 'putWebhook', NULL, 'default', NULL, 'e3208d36-d1e5-4d92-b581-9b9430f7e471', 200, 1, '\002*e\015v\3746\234\317\0358q\264\235;\360\366\006\370\273\233\246\251\360p\236\375\260\311ONh', '\226\260\247\031\226\333u"\322\304\177\236\027Qs>\214\336cp\244\366=8mRe\220\374\015\350\265');
INSERT INTO public.audit VALUES (0, 5, '2026-11-28 03:12:05.303661+00', 'everybody', '127.0.0.1', 'putPrincipal', NULL, '', NULL, 'aa650870-d4dd-420b-bba6-f9273a2fae78', 200, 1, '\226\260\247\031\226\333u"\322\304\177\236\027Qs>\214\336cp\244\366=8mRe\220\374\015\350\265', '[\033o\335\022\237\336\335wJ\355+\021IR\330\334\227kVh\015\002\324S\000\263\316\236\202\367\016');
INSERT INTO public.audit VALUES (0, 6, '2026-11-28 03:12:05.30738+00', 'everybody', '127.0.0.1', 'createToken', NULL, '', NULL, '87c87d10-584f-4767-9216-a8c2204e676d', 200, 1, '[\033o\335\022\237\336\335wJ\355+\021IR\330\334\227kVh\015\002\324S\000\263\316\236\202\367\016', '#\244\006\3112\323N\306\010v\355\324\320\324#\013\303\323\230E\214\224\226\302C\212&z^\335w1');
INSERT INTO public.audit VALUES (1, 16, '2026-11-28 03:12:05.525332+00', 'moorage', '', 'EvictViolating', 1, 'default', 19, '', 200, 1, '\350qm\252\177kWJC\355]D\323\274{>\212\227J\036\274;\257\225n+e\347\224\2045\241', '\346\203\011Z\277U9\237\220BE\315\333\271\346=\250\272\021s\336\274\364\301\220\036&Mbx\370p');


--
-- Data for Name: audit_chain; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.audit_chain VALUES (0, '', 6, '#\244\006\3112\323N\306\010v\355\324\320\324#\013\303\323\230E\214\224\226\302C\212&z^\335w1', '2026-11-28 03:12:05.30738+00');
INSERT INTO public.audit_chain VALUES (1, 'default', 16, '\346\203\011Z\277U9\237\220BE\315\333\271\346=\250\272\021s\336\274\364\301\220\036&Mbx\370p', '2026-11-28 03:12:05.525332+00');


--
-- Data for Name: change; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.change VALUES (1, 1, '20b39c07-d573-484b-b9db-3d33ebf0999b', true, 'Put', 'Cluster', '', 'config', '', NULL, NULL, '{}', NULL);
INSERT INTO public.change VALUES (2, 1, '70f3aee9-461b-4760-ba2e-f5ce8c5a35bb', true, 'Put', 'Cluster', '', 'config', '', NULL, NULL, '{"semantics":"Kubernetes","emptyNodeSelectorTerm":null,"requiredAffinityTerms":null,"emptyNamespaceList":null,"preferredTermWeight":null,"hardPodAffinityWeight":1,"symmetricPreferredAffinity":true,"symmetricPreferredAntiAffinity":true,"daemonNamespaces":["kube-system"],"restrictAllNamespacesAntiAffinity":true,"nodeTopologyKeys":["kubernetes.io/hostname"],"trustedNamespaces":[],"defaultTopologySpread":"List","defaultTopologySpreadConstraints":[],"scoringStrategy":"LeastAllocated","requestedToCapacityRatio":null,"profiles":[],"deviceClaims":"Allocate","volumes":"Honor","placePendingPods":true,"deviceSearchSteps":5000,"groupSearchSteps":10000,"priorityClasses":{},"limitedResources":[],"features":{"PodAffinityNamespaceSelector":true},"policies":[],"opportunityCostBasis":"Largest","queuePreemption":"Never","queuePreemptionScope":"Node","affinityViolationGraceSeconds":30,"antiAffinityVictim":"RuleOwner","evictionsPerMinute":60,"noExecuteTaints":null,"defaultNotReadyTolerationSeconds":300,"defaultUnreachableTolerationSeconds":300,"nodeConditions":null,"nodeMonitorGraceSeconds":40,"nodeEvictionRate":0.1,"secondaryNodeEvictionRate":0.01,"unhealthyZoneThreshold":0.55,"largeZoneNodes":50,"deletedNodePods":null,"orphanGraceSeconds":10}', NULL);
INSERT INTO public.change VALUES (1, 2, '6775e8eb-2eac-494f-9346-b3a2db358437', true, 'Put', 'Namespace', '', 'shop', '09627818-4c14-4ea5-b84d-20faf90c4234', NULL, NULL, '{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","labels":{"team":"shop"},"uid":"09627818-4c14-4ea5-b84d-20faf90c4234","creationTimestamp":"2026-11-28T03:12:05Z"}}', NULL);
INSERT INTO public.change VALUES (1, 3, '8e0a48af-9df5-49ee-beca-4e4b670f208b', true, 'Put', 'Node', '', 'node-a', '06b6d19f-dd66-4354-9867-bdcfc1584918', NULL, NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-a","labels":{"zone":"a"},"uid":"06b6d19f-dd66-4354-9867-bdcfc1584918","creationTimestamp":"2026-11-28T03:12:05Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}', NULL);
INSERT INTO public.change VALUES (1, 4, 'f7251086-1e3c-4171-8d0f-36a99b34f6a0', true, 'Put', 'Node', '', 'node-b', '764f7af9-116c-4dd7-bf1c-29b0a68ba5e1', NULL, NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-b","labels":{"zone":"b"},"uid":"764f7af9-116c-4dd7-bf1c-29b0a68ba5e1","creationTimestamp":"2026-11-28T03:12:05Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}', NULL);
INSERT INTO public.change VALUES (1, 5, '6082750f-4e47-47db-8de1-f49f27bb996b', true, 'Put', 'Node', '', 'node-c', 'fdaed97a-6ec0-47b9-b8c0-50c6894a0b40', NULL, NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-c","labels":{"zone":"c"},"uid":"fdaed97a-6ec0-47b9-b8c0-50c6894a0b40","creationTimestamp":"2026-11-28T03:12:05Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}', NULL);
INSERT INTO public.change VALUES (1, 6, '7c3c3b83-af64-4c68-b1b0-103a2246ab80', true, 'Put', 'ResourceQuota', 'shop', 'pods', '9f50e046-f339-485b-bfa2-d3e650b5692b', NULL, NULL, '{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"pods","namespace":"shop","uid":"9f50e046-f339-485b-bfa2-d3e650b5692b","creationTimestamp":"2026-11-28T03:12:05Z"},"spec":{"hard":{"pods":"10"}}}', NULL);
INSERT INTO public.change VALUES (1, 7, 'c09bc850-5d9d-450b-9d2c-abb8a12facff', true, 'Put', 'PodGroup', 'shop', 'train', '912df831-a440-41bf-be33-ee7a51145bc6', NULL, NULL, '{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"PodGroup","metadata":{"name":"train","namespace":"shop","uid":"912df831-a440-41bf-be33-ee7a51145bc6","creationTimestamp":"2026-11-28T03:12:05Z"},"spec":{"minMember":2}}', NULL);
INSERT INTO public.change VALUES (1, 8, '4fa9229b-98f6-4dfd-a138-208e3f6bd28d', true, 'Put', 'Pod', 'shop', 'web-0', 'c5cc4c41-166f-4552-a546-da8db480df7b', 'node-b', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"uid":"c5cc4c41-166f-4552-a546-da8db480df7b","creationTimestamp":"2026-11-28T03:12:05Z"},"spec":{"nodeName":"node-b","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-28T03:12:05Z"}]}}', NULL);
INSERT INTO public.change VALUES (1, 9, '7435439f-01a9-4147-b3b7-39f366762fe3', true, 'Put', 'Pod', 'shop', 'web-1', '00d17d7a-8a0d-40d0-9c6d-14915ffb89ea', 'node-a', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-1","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"uid":"00d17d7a-8a0d-40d0-9c6d-14915ffb89ea","creationTimestamp":"2026-11-28T03:12:05Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-28T03:12:05Z"}]}}', NULL);
INSERT INTO public.change VALUES (1, 10, 'c226a4ce-3414-47c6-82e5-b5fd4c50e6bb', true, 'Put', 'Pod', 'shop', 'web-2', 'e8b55398-9725-47cd-b067-8603ff38e04b', 'node-a', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-2","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"uid":"e8b55398-9725-47cd-b067-8603ff38e04b","creationTimestamp":"2026-11-28T03:12:05Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-28T03:12:05Z"}]}}', NULL);
INSERT INTO public.change VALUES (1, 11, '62f28ea7-9ca3-4d58-8a79-46a3441db5c0', true, 'Put', 'Pod', 'shop', 'too-big', 'c3508c27-87c5-48ab-95b1-597fce2c3bc6', NULL, NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"too-big","namespace":"shop","uid":"c3508c27-87c5-48ab-95b1-597fce2c3bc6","creationTimestamp":"2026-11-28T03:12:05Z"},"spec":{"affinity":{},"containers":[{"name":"main","resources":{"requests":{"cpu":"64"}}}]}}', NULL);
INSERT INTO public.change VALUES (1, 12, 'c3604265-37ea-42be-ad99-45efba1042ca', false, 'Put', 'Pod', 'shop', 'too-big', 'c3508c27-87c5-48ab-95b1-597fce2c3bc6', NULL, NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"too-big","namespace":"shop","uid":"c3508c27-87c5-48ab-95b1-597fce2c3bc6","creationTimestamp":"2026-11-28T03:12:05Z"},"spec":{"affinity":{},"containers":[{"name":"main","resources":{"requests":{"cpu":"64"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/3 nodes are available: 3 Insufficient cpu.","lastTransitionTime":"2026-11-28T03:12:05Z"}]}}', '');
INSERT INTO public.change VALUES (1, 13, '0bc3cfc1-1bc2-4255-9cbf-fdfce84e5bba', false, 'Delete', 'Pod', 'shop', 'web-1', '00d17d7a-8a0d-40d0-9c6d-14915ffb89ea', 'node-a', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-1","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"uid":"00d17d7a-8a0d-40d0-9c6d-14915ffb89ea","creationTimestamp":"2026-11-28T03:12:05Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-28T03:12:05Z"}]}}', NULL);
INSERT INTO public.change VALUES (1, 14, 'd8dc9cb6-e435-4233-9351-d5d4d7afb20c', false, 'Put', 'Node', '', 'node-a', '06b6d19f-dd66-4354-9867-bdcfc1584918', NULL, '{"zone":"a"}', '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-a","labels":{"zone":"c"},"uid":"06b6d19f-dd66-4354-9867-bdcfc1584918","creationTimestamp":"2026-11-28T03:12:05Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}', '');
INSERT INTO public.change VALUES (1, 15, 'e9eea175-4185-4f33-b8ed-2ea511dea36c', false, 'Put', 'Pod', 'shop', 'web-2', 'e8b55398-9725-47cd-b067-8603ff38e04b', 'node-a', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-2","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"deletionTimestamp":"2026-11-28T03:12:05Z","uid":"e8b55398-9725-47cd-b067-8603ff38e04b","creationTimestamp":"2026-11-28T03:12:05Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-28T03:12:05Z"},{"type":"DisruptionTarget","status":"True","reason":"NodeAffinityViolated","message":"spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-a.","lastTransitionTime":"2026-11-28T03:12:05Z"}]}}', '{"metadata.deletionTimestamp":"false"}');
INSERT INTO public.change VALUES (1, 16, 'e9eea175-4185-4f33-b8ed-2ea511dea36c', true, 'Put', 'Evictions', '', 'state', '', NULL, NULL, '{"timers":[],"recent":[{"at":"2026-11-28T03:12:05.291149Z","pods":1}],"blocked":[]}', NULL);
INSERT INTO public.change VALUES (1, 17, '4d22b31b-8693-47b6-bfcd-57686390e50c', false, 'Put', 'Node', '', 'node-b', '764f7af9-116c-4dd7-bf1c-29b0a68ba5e1', NULL, '{"zone":"b"}', '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-b","labels":{"zone":"c"},"uid":"764f7af9-116c-4dd7-bf1c-29b0a68ba5e1","creationTimestamp":"2026-11-28T03:12:05Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}', '');
INSERT INTO public.change VALUES (1, 18, '79bc8e07-e491-4f01-9c62-79f784f4abd5', false, 'Put', 'Pod', 'shop', 'web-0', 'c5cc4c41-166f-4552-a546-da8db480df7b', 'node-b', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"deletionTimestamp":"2026-11-28T03:12:05Z","uid":"c5cc4c41-166f-4552-a546-da8db480df7b","creationTimestamp":"2026-11-28T03:12:05Z"},"spec":{"nodeName":"node-b","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-28T03:12:05Z"},{"type":"DisruptionTarget","status":"True","reason":"NodeAffinityViolated","message":"spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-b.","lastTransitionTime":"2026-11-28T03:12:05Z"}]}}', '{"metadata.deletionTimestamp":"false"}');
INSERT INTO public.change VALUES (1, 19, '79bc8e07-e491-4f01-9c62-79f784f4abd5', false, 'Put', 'Evictions', '', 'state', '', NULL, NULL, '{"timers":[],"recent":[{"at":"2026-11-28T03:12:05.291149Z","pods":1},{"at":"2026-11-28T03:12:05.516380Z","pods":1}],"blocked":[]}', NULL);


--
-- Data for Name: cluster; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.cluster OVERRIDING SYSTEM VALUE VALUES (1, 'default', '2026-11-28 03:12:03.853102+00');
INSERT INTO public.cluster OVERRIDING SYSTEM VALUE VALUES (2, 'staging', '2026-11-28 03:12:05.224572+00');


--
-- Data for Name: commit; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.commit VALUES (1, 1, '20b39c07-d573-484b-b9db-3d33ebf0999b', '00000000-0000-0000-0000-000000000000', 1, 0, 'CreateCluster', '2026-11-28 03:12:03.853015+00');
INSERT INTO public.commit VALUES (2, 1, '70f3aee9-461b-4760-ba2e-f5ce8c5a35bb', '00000000-0000-0000-0000-000000000000', 1, 0, 'CreateCluster', '2026-11-28 03:12:05.224364+00');
INSERT INTO public.commit VALUES (1, 2, '6775e8eb-2eac-494f-9346-b3a2db358437', '20b39c07-d573-484b-b9db-3d33ebf0999b', 2, 1, 'PutObject', '2026-11-28 03:12:05.254938+00');
INSERT INTO public.commit VALUES (1, 3, '8e0a48af-9df5-49ee-beca-4e4b670f208b', '6775e8eb-2eac-494f-9346-b3a2db358437', 3, 2, 'PutObject', '2026-11-28 03:12:05.262826+00');
INSERT INTO public.commit VALUES (1, 4, 'f7251086-1e3c-4171-8d0f-36a99b34f6a0', '8e0a48af-9df5-49ee-beca-4e4b670f208b', 4, 3, 'PutObject', '2026-11-28 03:12:05.266398+00');
INSERT INTO public.commit VALUES (1, 5, '6082750f-4e47-47db-8de1-f49f27bb996b', 'f7251086-1e3c-4171-8d0f-36a99b34f6a0', 5, 4, 'PutObject', '2026-11-28 03:12:05.268397+00');
INSERT INTO public.commit VALUES (1, 6, '7c3c3b83-af64-4c68-b1b0-103a2246ab80', '6082750f-4e47-47db-8de1-f49f27bb996b', 6, 5, 'PutObject', '2026-11-28 03:12:05.270216+00');
INSERT INTO public.commit VALUES (1, 7, 'c09bc850-5d9d-450b-9d2c-abb8a12facff', '7c3c3b83-af64-4c68-b1b0-103a2246ab80', 7, 6, 'PutObject', '2026-11-28 03:12:05.272022+00');
INSERT INTO public.commit VALUES (1, 8, '4fa9229b-98f6-4dfd-a138-208e3f6bd28d', 'c09bc850-5d9d-450b-9d2c-abb8a12facff', 8, 7, 'PlacePods', '2026-11-28 03:12:05.278267+00');
INSERT INTO public.commit VALUES (1, 9, '7435439f-01a9-4147-b3b7-39f366762fe3', '4fa9229b-98f6-4dfd-a138-208e3f6bd28d', 9, 8, 'PlacePods', '2026-11-28 03:12:05.281691+00');
INSERT INTO public.commit VALUES (1, 10, 'c226a4ce-3414-47c6-82e5-b5fd4c50e6bb', '7435439f-01a9-4147-b3b7-39f366762fe3', 10, 9, 'PlacePods', '2026-11-28 03:12:05.283302+00');
INSERT INTO public.commit VALUES (1, 11, '62f28ea7-9ca3-4d58-8a79-46a3441db5c0', 'c226a4ce-3414-47c6-82e5-b5fd4c50e6bb', 11, 10, 'PutObject', '2026-11-28 03:12:05.285217+00');
INSERT INTO public.commit VALUES (1, 12, 'c3604265-37ea-42be-ad99-45efba1042ca', '62f28ea7-9ca3-4d58-8a79-46a3441db5c0', 12, 11, 'PlacePending', '2026-11-28 03:12:05.287873+00');
INSERT INTO public.commit VALUES (1, 13, '0bc3cfc1-1bc2-4255-9cbf-fdfce84e5bba', 'c3604265-37ea-42be-ad99-45efba1042ca', 13, 11, 'DeleteObject', '2026-11-28 03:12:05.28904+00');
INSERT INTO public.commit VALUES (1, 14, 'd8dc9cb6-e435-4233-9351-d5d4d7afb20c', '0bc3cfc1-1bc2-4255-9cbf-fdfce84e5bba', 14, 13, 'PatchObject', '2026-11-28 03:12:05.291481+00');
INSERT INTO public.commit VALUES (1, 16, 'e9eea175-4185-4f33-b8ed-2ea511dea36c', 'd8dc9cb6-e435-4233-9351-d5d4d7afb20c', 15, 14, 'EvictViolating', '2026-11-28 03:12:05.292863+00');
INSERT INTO public.commit VALUES (1, 17, '4d22b31b-8693-47b6-bfcd-57686390e50c', 'e9eea175-4185-4f33-b8ed-2ea511dea36c', 17, 14, 'PatchObject', '2026-11-28 03:12:05.294069+00');
INSERT INTO public.commit VALUES (1, 19, '79bc8e07-e491-4f01-9c62-79f784f4abd5', '4d22b31b-8693-47b6-bfcd-57686390e50c', 18, 17, 'EvictViolating', '2026-11-28 03:12:05.525332+00');


--
-- Data for Name: event; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.event VALUES (1, 'shop', 'web-2.d57e508067e6f990', 'web-2', 'e8b55398-9725-47cd-b067-8603ff38e04b', 'Warning', 'Evicted', 'spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-a.', 15, 1, '2026-11-28 03:12:05+00', '2026-11-28 03:12:05+00');
INSERT INTO public.event VALUES (1, 'shop', 'web-0.4ec91ab04c149e0a', 'web-0', 'c5cc4c41-166f-4552-a546-da8db480df7b', 'Warning', 'Evicted', 'spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-b.', 18, 1, '2026-11-28 03:12:05+00', '2026-11-28 03:12:05+00');
INSERT INTO public.event VALUES (1, 'shop', 'too-big.8e675e62b231950c', 'too-big', 'c3508c27-87c5-48ab-95b1-597fce2c3bc6', 'Warning', 'FailedScheduling', '0/3 nodes are available: 3 Insufficient cpu.', 13, 2, '2026-11-28 03:12:05+00', '2026-11-28 03:12:05+00');
INSERT INTO public.event VALUES (1, 'shop', 'web-0.4d6dc2797a8b0527', 'web-0', 'c5cc4c41-166f-4552-a546-da8db480df7b', 'Normal', 'Scheduled', 'Successfully assigned shop/web-0 to node-b', 8, 1, '2026-11-28 03:12:05+00', '2026-11-28 03:12:05+00');
INSERT INTO public.event VALUES (1, 'shop', 'web-1.f0a000a1c25a3bee', 'web-1', '00d17d7a-8a0d-40d0-9c6d-14915ffb89ea', 'Normal', 'Scheduled', 'Successfully assigned shop/web-1 to node-a', 9, 1, '2026-11-28 03:12:05+00', '2026-11-28 03:12:05+00');
INSERT INTO public.event VALUES (1, 'shop', 'web-2.299f1cd1ff5ad82f', 'web-2', 'e8b55398-9725-47cd-b067-8603ff38e04b', 'Normal', 'Scheduled', 'Successfully assigned shop/web-2 to node-a', 10, 1, '2026-11-28 03:12:05+00', '2026-11-28 03:12:05+00');


--
-- Data for Name: floor; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.floor VALUES (1, 0);
INSERT INTO public.floor VALUES (2, 0);


--
-- Data for Name: head; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.head VALUES (2, 1, '70f3aee9-461b-4760-ba2e-f5ce8c5a35bb', '2026-11-28 03:12:05.224364+00');
INSERT INTO public.head VALUES (1, 19, '79bc8e07-e491-4f01-9c62-79f784f4abd5', '2026-11-28 03:12:05.525332+00');


--
-- Data for Name: history; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.history VALUES (1, 7713054838780464426, 1, 12784);


--
-- Data for Name: idempotency; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.idempotency VALUES (1, 'placePods', 'order-of-web-0', 0, 'x\203Y\226\272\025Q\211\253\214kEc?\360\351\376\357\3376\215N\316\332\226\362\035\221\257\200\303\273', '\225\305\001\015{"revision":8,"committed":true,"attempts":1,"results":[{"namespace":"shop","name":"web-0","uid":"c5cc4c41-166f-4552-a546-da8db480df7b","outcome":"Placed","nodeName":"node-b","score":485,"plannedRevision":7,"reason":null,"message":null,"explanation":null}],"group":null}\314\310\300\300\302', '2026-11-28 03:12:05.278267+00');
INSERT INTO public.idempotency VALUES (1, 'placePods', 'order-of-web-1', 0, '\275\352\001(7\0255\267z\346\003\270\205\033\204E\022a]$7\252\032\033s0\364\227\306\0273\205', '\225\305\001\015{"revision":9,"committed":true,"attempts":1,"results":[{"namespace":"shop","name":"web-1","uid":"00d17d7a-8a0d-40d0-9c6d-14915ffb89ea","outcome":"Placed","nodeName":"node-a","score":485,"plannedRevision":8,"reason":null,"message":null,"explanation":null}],"group":null}\314\310\300\300\302', '2026-11-28 03:12:05.281691+00');
INSERT INTO public.idempotency VALUES (1, 'placePods', 'order-of-web-2', 0, 'M>\320\300\351\004\003\027\234\021R\000b\236@\202u\256o~\212\355{ZKw\320\232\013\312\305\236', '\225\305\001\016{"revision":10,"committed":true,"attempts":1,"results":[{"namespace":"shop","name":"web-2","uid":"e8b55398-9725-47cd-b067-8603ff38e04b","outcome":"Placed","nodeName":"node-a","score":472,"plannedRevision":9,"reason":null,"message":null,"explanation":null}],"group":null}\314\310\300\300\302', '2026-11-28 03:12:05.283302+00');


--
-- Data for Name: lease; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.lease VALUES (1, 'requests@vm:39597', 'a2bbeec1-98c5-4726-90a6-875abeee9130', '2026-11-28 03:12:15.24135+00');
INSERT INTO public.lease VALUES (1, 'evictions', 'f15a30da-766b-4f43-bd51-588e5789feac', '2026-11-28 03:12:08.279401+00');
INSERT INTO public.lease VALUES (1, 'pending', 'f15a30da-766b-4f43-bd51-588e5789feac', '2026-11-28 03:12:08.285997+00');
INSERT INTO public.lease VALUES (1, 'nodes', 'f15a30da-766b-4f43-bd51-588e5789feac', '2026-11-28 03:12:08.518056+00');


--
-- Data for Name: node_lease; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.node_lease VALUES (1, 'node-c', '2026-11-28 03:12:05.295858+00');


--
-- Data for Name: object; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.object VALUES (1, 1, 'Cluster', '', 'config', '', NULL, '{}');
INSERT INTO public.object VALUES (2, 1, 'Cluster', '', 'config', '', NULL, '{"semantics":"Kubernetes","emptyNodeSelectorTerm":null,"requiredAffinityTerms":null,"emptyNamespaceList":null,"preferredTermWeight":null,"hardPodAffinityWeight":1,"symmetricPreferredAffinity":true,"symmetricPreferredAntiAffinity":true,"daemonNamespaces":["kube-system"],"restrictAllNamespacesAntiAffinity":true,"nodeTopologyKeys":["kubernetes.io/hostname"],"trustedNamespaces":[],"defaultTopologySpread":"List","defaultTopologySpreadConstraints":[],"scoringStrategy":"LeastAllocated","requestedToCapacityRatio":null,"profiles":[],"deviceClaims":"Allocate","volumes":"Honor","placePendingPods":true,"deviceSearchSteps":5000,"groupSearchSteps":10000,"priorityClasses":{},"limitedResources":[],"features":{"PodAffinityNamespaceSelector":true},"policies":[],"opportunityCostBasis":"Largest","queuePreemption":"Never","queuePreemptionScope":"Node","affinityViolationGraceSeconds":30,"antiAffinityVictim":"RuleOwner","evictionsPerMinute":60,"noExecuteTaints":null,"defaultNotReadyTolerationSeconds":300,"defaultUnreachableTolerationSeconds":300,"nodeConditions":null,"nodeMonitorGraceSeconds":40,"nodeEvictionRate":0.1,"secondaryNodeEvictionRate":0.01,"unhealthyZoneThreshold":0.55,"largeZoneNodes":50,"deletedNodePods":null,"orphanGraceSeconds":10}');
INSERT INTO public.object VALUES (1, 2, 'Namespace', '', 'shop', '09627818-4c14-4ea5-b84d-20faf90c4234', NULL, '{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","labels":{"team":"shop"},"uid":"09627818-4c14-4ea5-b84d-20faf90c4234","creationTimestamp":"2026-11-28T03:12:05Z"}}');
INSERT INTO public.object VALUES (1, 5, 'Node', '', 'node-c', 'fdaed97a-6ec0-47b9-b8c0-50c6894a0b40', NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-c","labels":{"zone":"c"},"uid":"fdaed97a-6ec0-47b9-b8c0-50c6894a0b40","creationTimestamp":"2026-11-28T03:12:05Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}');
INSERT INTO public.object VALUES (1, 6, 'ResourceQuota', 'shop', 'pods', '9f50e046-f339-485b-bfa2-d3e650b5692b', NULL, '{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"pods","namespace":"shop","uid":"9f50e046-f339-485b-bfa2-d3e650b5692b","creationTimestamp":"2026-11-28T03:12:05Z"},"spec":{"hard":{"pods":"10"}}}');
INSERT INTO public.object VALUES (1, 7, 'PodGroup', 'shop', 'train', '912df831-a440-41bf-be33-ee7a51145bc6', NULL, '{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"PodGroup","metadata":{"name":"train","namespace":"shop","uid":"912df831-a440-41bf-be33-ee7a51145bc6","creationTimestamp":"2026-11-28T03:12:05Z"},"spec":{"minMember":2}}');
INSERT INTO public.object VALUES (1, 14, 'Node', '', 'node-a', '06b6d19f-dd66-4354-9867-bdcfc1584918', NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-a","labels":{"zone":"c"},"uid":"06b6d19f-dd66-4354-9867-bdcfc1584918","creationTimestamp":"2026-11-28T03:12:05Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}');
INSERT INTO public.object VALUES (1, 15, 'Pod', 'shop', 'web-2', 'e8b55398-9725-47cd-b067-8603ff38e04b', 'node-a', '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-2","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"deletionTimestamp":"2026-11-28T03:12:05Z","uid":"e8b55398-9725-47cd-b067-8603ff38e04b","creationTimestamp":"2026-11-28T03:12:05Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-28T03:12:05Z"},{"type":"DisruptionTarget","status":"True","reason":"NodeAffinityViolated","message":"spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-a.","lastTransitionTime":"2026-11-28T03:12:05Z"}]}}');
INSERT INTO public.object VALUES (1, 17, 'Node', '', 'node-b', '764f7af9-116c-4dd7-bf1c-29b0a68ba5e1', NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-b","labels":{"zone":"c"},"uid":"764f7af9-116c-4dd7-bf1c-29b0a68ba5e1","creationTimestamp":"2026-11-28T03:12:05Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}');
INSERT INTO public.object VALUES (1, 18, 'Pod', 'shop', 'web-0', 'c5cc4c41-166f-4552-a546-da8db480df7b', 'node-b', '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"deletionTimestamp":"2026-11-28T03:12:05Z","uid":"c5cc4c41-166f-4552-a546-da8db480df7b","creationTimestamp":"2026-11-28T03:12:05Z"},"spec":{"nodeName":"node-b","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-28T03:12:05Z"},{"type":"DisruptionTarget","status":"True","reason":"NodeAffinityViolated","message":"spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-b.","lastTransitionTime":"2026-11-28T03:12:05Z"}]}}');
INSERT INTO public.object VALUES (1, 12, 'Pod', 'shop', 'too-big', 'c3508c27-87c5-48ab-95b1-597fce2c3bc6', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"too-big","namespace":"shop","uid":"c3508c27-87c5-48ab-95b1-597fce2c3bc6","creationTimestamp":"2026-11-28T03:12:05Z"},"spec":{"affinity":{},"containers":[{"name":"main","resources":{"requests":{"cpu":"64"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/3 nodes are available: 3 Insufficient cpu.","lastTransitionTime":"2026-11-28T03:12:05Z"}]}}');
INSERT INTO public.object VALUES (1, 19, 'Evictions', '', 'state', '', NULL, '{"timers":[],"recent":[{"at":"2026-11-28T03:12:05.291149Z","pods":1},{"at":"2026-11-28T03:12:05.516380Z","pods":1}],"blocked":[]}');


--
-- Data for Name: predecessor; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.predecessor VALUES ('given-up', 1);


--
-- Data for Name: principal; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.principal VALUES ('User', 'root', '[{"role":"admin","cluster":null,"namespace":null}]', true, '2026-11-28 03:12:05.303297+00');


--
-- Data for Name: replica_report; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.replica_report VALUES ('host/11589', 1, 19, '309080ae815451a83801c4926e6db270f37aff7f81e9455ca40f83f0c6ea9be4-ae8afe2a2deaf0a4b3387d8b3a8e33cda0ddb186d6b5c8986d2149eb915a6d07', '2026-11-28 03:12:06.156073+00');


--
-- Data for Name: token; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.token VALUES ('7e11f0386ebf74ba', 'root', 'f:\360\376\364\266X\217/\213*:\364\373s\337\002\335\360\210kv\000\232\230TRRo.\331\332', '', '2026-11-28 03:12:05.306936+00', NULL, NULL);


--
-- Data for Name: webhook; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.webhook VALUES (1, 'orchestrator', '1479aea7-11bb-4a38-9cec-aa7950a77fb9', 1, 'https://orchestrator.example/', 'Bindings', NULL, true, 'whsec_VDnhyNAUIOLDIQaMjV3CQ/PZH91ODtEYY4HOUELXnEA=', NULL, NULL, '2026-11-28 03:12:05.298796+00', 17, NULL, NULL, '2026-11-28 03:12:05.298796+00', 0, NULL, false, NULL, NULL);


--
-- Data for Name: worker; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.worker VALUES ('host:39597', 'a2bbeec1-98c5-4726-90a6-875abeee9130', '2026-11-28 03:12:15.015886+00');
INSERT INTO public.worker VALUES ('host:39597', '3b0c76c7-80fa-4828-acdd-63a8ab99f822', '2026-11-28 03:12:15.02372+00');


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
-- Name: access_state access_state_tag; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER access_state_tag BEFORE UPDATE ON public.access_state FOR EACH ROW EXECUTE FUNCTION public.tag_access_v1();


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


