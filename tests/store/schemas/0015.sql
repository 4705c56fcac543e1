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

INSERT INTO public.access_state VALUES (true, 3, '354d98a3-7bea-4345-a780-925c6adb84c6');


--
-- Data for Name: alembic_version; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.alembic_version VALUES ('0015');


--
-- Data for Name: audit; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.audit VALUES (0, 1, '2026-11-28 01:23:12.8808+00', 'everybody', '127.0.0.1', 'putCluster', 2, 'staging', 1, '44f7796b-94f3-4698-ad17-defe7d276930', 200, 1, '', '\222pq\217V\227^\012\246\2417[\022\226\216/Z\317\251k\262\312f\254{\2529\351\233\342]_');
INSERT INTO public.audit VALUES (0, 2, '2026-11-28 01:23:12.919777+00', 'everybody', '127.0.0.1', 'putCluster', 3, 'given-up', 1, 'f2cbae57-d746-4221-977a-5b413d065f6e', 200, 1, '\222pq\217V\227^\012\246\2417[\022\226\216/Z\317\251k\262\312f\254{\2529\351\233\342]_', '\016\007v\364\257A\314i\204\277VEr\321\317\330\376.hD?\355\345\331X\364R\324\230\\\031\362');
INSERT INTO public.audit VALUES (0, 3, '2026-11-28 01:23:12.936666+00', 'everybody', '127.0.0.1', 'deleteCluster', 3, 'given-up', NULL, '6c1de4ed-fbdf-46a8-ad0d-efbd5babfad6', 200, 1, '\016\007v\364\257A\314i\204\277VEr\321\317\330\376.hD?\355\345\331X\364R\324\230\\\031\362', '<\333\221D7\373v\234\011\246xXs\243-\2673\307p\265W\204\307x9\032\015\033\371\274\321\330');
INSERT INTO public.audit VALUES (1, 1, '2026-11-28 01:23:12.985046+00', 'everybody', '127.0.0.1', 'putNamespace', 1, 'default', 2, '8eb5c049-b5d5-46b9-af3a-c17b2f32e70a', 200, 1, '', '\226o\332\365\360\2006\223\034\203C\313\006k\311s9\370on\320~\267h\200CD+\314K\311\357');
INSERT INTO public.audit VALUES (1, 2, '2026-11-28 01:23:13.006294+00', 'everybody', '127.0.0.1', 'putNode', 1, 'default', 3, '37c5f091-fb48-4044-8d39-8d159deb7192', 200, 1, '\226o\332\365\360\2006\223\034\203C\313\006k\311s9\370on\320~\267h\200CD+\314K\311\357', '\2000`%\370\031\372\237K\012S\272\337|\3312n\321!qbl\372F\355\226E\272{\363\254\313');
INSERT INTO public.audit VALUES (1, 3, '2026-11-28 01:23:13.011825+00', 'everybody', '127.0.0.1', 'putNode', 1, 'default', 4, '8e147d37-87c8-4d7a-a34a-1b8a594a7b4a', 200, 1, '\2000`%\370\031\372\237K\012S\272\337|\3312n\321!qbl\372F\355\226E\272{\363\254\313', '\367\1775-b''L\010z\201\203P\331\240\202\214u\004\346\276\311\221R\364\263\330\241\206\323\212\012\021');
INSERT INTO public.audit VALUES (1, 4, '2026-11-28 01:23:13.021729+00', 'everybody', '127.0.0.1', 'putNode', 1, 'default', 5, 'a35ce928-5b10-4f93-bf34-5aa47fe97f74', 200, 1, '\367\1775-b''L\010z\201\203P\331\240\202\214u\004\346\276\311\221R\364\263\330\241\206\323\212\012\021', '\272\375\010\332\207\263x\334\011\330\261\020\362(\312\330\334\025S8\373\366$\274\012Q\210\341\252g\014\315');
INSERT INTO public.audit VALUES (1, 5, '2026-11-28 01:23:13.031593+00', 'everybody', '127.0.0.1', 'putResourceQuota', 1, 'default', 6, 'c7925efe-2e25-4e7f-874b-bdd2b4ed6681', 200, 1, '\272\375\010\332\207\263x\334\011\330\261\020\362(\312\330\334\025S8\373\366$\274\012Q\210\341\252g\014\315', '\320\324_\031\256\254\213\220\322{\3071\005,\242\327\260\356$\012J>\357n}\020O\214s\232\010\017');
INSERT INTO public.audit VALUES (1, 6, '2026-11-28 01:23:13.03815+00', 'everybody', '127.0.0.1', 'putPodGroup', 1, 'default', 7, '10bc7984-5691-4c2c-ba8f-2c41df449f76', 200, 1, '\320\324_\031\256\254\213\220\322{\3071\005,\242\327\260\356$\012J>\357n}\020O\214s\232\010\017', 'Sh\210\001\347\225\021\372\363\303\224\212\\\341\273-U\005)\207\261A\025\224\334\030\242y\370\205\014v');
INSERT INTO public.audit VALUES (1, 7, '2026-11-28 01:23:13.052365+00', 'everybody', '127.0.0.1', 'placePods', 1, 'default', 8, '57ca21ef-ff71-40a9-addd-7a4a402bdbd6', 200, 1, 'Sh\210\001\347\225\021\372\363\303\224\212\\\341\273-U\005)\207\261A\025\224\334\030\242y\370\205\014v', 'w\302\230\204\301^\273@\270\037\206\002\351Z`\336I\246\242\277\237I/$\302\223qt3\223e\235');
INSERT INTO public.audit VALUES (1, 8, '2026-11-28 01:23:13.062202+00', 'everybody', '127.0.0.1', 'placePods', 1, 'default', 9, 'd8e564e8-0052-4e66-b5ab-0ecdc0eb8397', 200, 1, 'w\302\230\204\301^\273@\270\037\206\002\351Z`\336I\246\242\277\237I/$\302\223qt3\223e\235', '\207\345\317\367\177\251\375\371\205\034\212\247O\031\221\370\340q\354\216\023*\357[\001$\177\260\343\213\302\204');
INSERT INTO public.audit VALUES (1, 9, '2026-11-28 01:23:13.069448+00', 'everybody', '127.0.0.1', 'placePods', 1, 'default', 10, 'b0b3fb58-15de-49a2-a510-ff3915780234', 200, 1, '\207\345\317\367\177\251\375\371\205\034\212\247O\031\221\370\340q\354\216\023*\357[\001$\177\260\343\213\302\204', '?\235\200W!";\022u\223\2015\331\360\032\317\362(\307B!\347\010\002\277\001\021\214<5+\030');
INSERT INTO public.audit VALUES (1, 10, '2026-11-28 01:23:13.075736+00', 'everybody', '127.0.0.1', 'putPod', 1, 'default', 11, '99f87e0b-e01f-4e51-80cd-c01d4f7eed89', 200, 1, '?\235\200W!";\022u\223\2015\331\360\032\317\362(\307B!\347\010\002\277\001\021\214<5+\030', '\004\201\031\325d\214\240Y \004#G=>\017\0236c\245\207\266\251\306R\276\331\320U\247\375\274\314');
INSERT INTO public.audit VALUES (1, 11, '2026-11-28 01:23:13.091909+00', 'everybody', '127.0.0.1', 'deletePod', 1, 'default', 12, 'ee42c303-96bd-4648-8103-20afc8da0723', 200, 1, '\004\201\031\325d\214\240Y \004#G=>\017\0236c\245\207\266\251\306R\276\331\320U\247\375\274\314', 'o\022\277S\004\005B\333\004",\202\3701\230&_\225\352\353\331\254\347EtW\212Q4\230\030P');
INSERT INTO public.audit VALUES (1, 12, '2026-11-28 01:23:13.100455+00', 'moorage', '', 'PlacePending', 1, 'default', 13, '', 200, 1, 'o\022\277S\004\005B\333\004",\202\3701\230&_\225\352\353\331\254\347EtW\212Q4\230\030P', 'A\0214`\204c\014\017\010A\231^\273k\221s\323\247}\034\272,\265\301\355H$\250\300\351\362U');
INSERT INTO public.audit VALUES (1, 13, '2026-11-28 01:23:13.102137+00', 'everybody', '127.0.0.1', 'patchNode', 1, 'default', 14, 'd1b7cff5-dcb2-4677-9a8a-7973aad38622', 200, 1, 'A\0214`\204c\014\017\010A\231^\273k\221s\323\247}\034\272,\265\301\355H$\250\300\351\362U', '\335,x\332\344\215\264\240\370P4\355}d&\214\0070R\267\332K\254\0106Fj\263\232\364\275\305');
INSERT INTO public.audit VALUES (1, 14, '2026-11-28 01:23:13.105944+00', 'everybody', '127.0.0.1', 'patchNode', 1, 'default', 15, 'e12a187d-137e-4ba3-9b76-e24bfe75dc5f', 200, 1, '\335,x\332\344\215\264\240\370P4\355}d&\214\0070R\267\332K\254\0106Fj\263\232\364\275\305', 'a/\313\262\364\303\264+Q5G\276\360\376\336\246\306\317\3676\020\246\201\224\374\000\276N6P\350\360');
INSERT INTO public.audit VALUES (0, 4, '2026-11-28 01:23:13.141601+00', 'everybody', '127.0.0.1', 'putWebhook', NULL, 'default', NULL, 'a81a9d44-bfdd-47ba-b7ac-2d7e2201d029', 200, 1, '<\333\221D7\373v\234\011\246xXs\243-\2673\307p\265W\204\307x9\032\015\033\371\274\321\330', '\216\011\253W\022\037\244un\030\200R\336''~y\312ws\255\304\037#\037\250w\3062@\005\022\350');
INSERT INTO public.audit VALUES (0, 5, '2026-11-28 01:23:13.159196+00', 'everybody', '127.0.0.1', 'putPrincipal', NULL, '', NULL, '309fa46d-9d37-402f-910b-ea9934cb7a5d', 200, 1, '\216\011\253W\022\037\244un\030\200R\336''~y\312ws\255\304\037#\037\250w\3062@\005\022\350', '\215G\012c\232\237\344\026\013\270@\311\230\362\247\247\331 \267\364)\030\374\020\037\347\262qk\267\231\375');
INSERT INTO public.audit VALUES (1, 15, '2026-11-28 01:23:13.166393+00', 'moorage', '', 'EvictViolating', 1, 'default', 18, '', 200, 1, 'a/\313\262\364\303\264+Q5G\276\360\376\336\246\306\317\3676\020\246\201\224\374\000\276N6P\350\360', 'K\351\256\261V\014b?\272\350G\254fE\013\336\260\331\356\373\032\036\323eOO,\321\353\245!5');
INSERT INTO public.audit VALUES (0, 6, '2026-11-28 01:23:13.183072+00', 'everybody', '127.0.0.1', 'createToken', NULL, '', NULL, '7306aaef-5e1a-4c1a-9731-89f5219899fa', 200, 1, '\215G\012c\232\237\344\026\013\270@\311\230\362\247\247\331 \267\364)\030\374\020\037\347\262qk\267\231\375', '\365\352\362eRg\017\210\207\261)\351\202)\205\222\213AI\265y\200@\254\037\001\357si8Be');


--
-- Data for Name: audit_chain; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.audit_chain VALUES (1, 'default', 15, 'K\351\256\261V\014b?\272\350G\254fE\013\336\260\331\356\373\032\036\323eOO,\321\353\245!5', '2026-11-28 01:23:13.166393+00');
INSERT INTO public.audit_chain VALUES (0, '', 6, '\365\352\362eRg\017\210\207\261)\351\202)\205\222\213AI\265y\200@\254\037\001\357si8Be', '2026-11-28 01:23:13.183072+00');


--
-- Data for Name: change; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.change VALUES (1, 1, 'bb7537d7-d763-42a3-ad6d-9d5ed8fb088e', true, 'Put', 'Cluster', '', 'config', '', NULL, NULL, '{}', NULL);
INSERT INTO public.change VALUES (2, 1, '7b80d381-1ff8-4676-871d-67eb4c221797', true, 'Put', 'Cluster', '', 'config', '', NULL, NULL, '{"semantics":"Kubernetes","emptyNodeSelectorTerm":null,"requiredAffinityTerms":null,"emptyNamespaceList":null,"preferredTermWeight":null,"hardPodAffinityWeight":1,"symmetricPreferredAffinity":true,"symmetricPreferredAntiAffinity":true,"daemonNamespaces":["kube-system"],"restrictAllNamespacesAntiAffinity":true,"nodeTopologyKeys":["kubernetes.io/hostname"],"trustedNamespaces":[],"defaultTopologySpread":"List","defaultTopologySpreadConstraints":[],"scoringStrategy":"LeastAllocated","requestedToCapacityRatio":null,"profiles":[],"deviceClaims":"Allocate","volumes":"Honor","placePendingPods":true,"deviceSearchSteps":5000,"groupSearchSteps":10000,"priorityClasses":{},"limitedResources":[],"features":{"PodAffinityNamespaceSelector":true},"policies":[],"opportunityCostBasis":"Largest","queuePreemption":"Never","queuePreemptionScope":"Node","affinityViolationGraceSeconds":30,"antiAffinityVictim":"RuleOwner","evictionsPerMinute":60,"noExecuteTaints":null,"defaultNotReadyTolerationSeconds":300,"defaultUnreachableTolerationSeconds":300,"nodeConditions":null,"nodeMonitorGraceSeconds":40,"nodeEvictionRate":0.1,"secondaryNodeEvictionRate":0.01,"unhealthyZoneThreshold":0.55,"largeZoneNodes":50,"deletedNodePods":null,"orphanGraceSeconds":10}', NULL);
INSERT INTO public.change VALUES (1, 2, 'c5a9ddd4-ca9d-4111-b343-a0dfce02f328', true, 'Put', 'Namespace', '', 'shop', '3c6f2235-dd68-47b0-99d6-140c8690453e', NULL, NULL, '{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","labels":{"team":"shop"},"uid":"3c6f2235-dd68-47b0-99d6-140c8690453e","creationTimestamp":"2026-11-28T01:23:12Z"}}', NULL);
INSERT INTO public.change VALUES (1, 3, 'efb627dc-26fd-4a18-a155-3e9473e51ced', true, 'Put', 'Node', '', 'node-a', 'a1fd5186-2a19-4aa7-822a-beb6bba8d51f', NULL, NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-a","labels":{"zone":"a"},"uid":"a1fd5186-2a19-4aa7-822a-beb6bba8d51f","creationTimestamp":"2026-11-28T01:23:13Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}', NULL);
INSERT INTO public.change VALUES (1, 4, 'ff810ebb-b2d4-4db7-bb58-84ebadc09e60', true, 'Put', 'Node', '', 'node-b', 'b07a3db0-abdb-4875-8881-ef6f171f1ddd', NULL, NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-b","labels":{"zone":"b"},"uid":"b07a3db0-abdb-4875-8881-ef6f171f1ddd","creationTimestamp":"2026-11-28T01:23:13Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}', NULL);
INSERT INTO public.change VALUES (1, 5, '83bcfbe6-d040-42a2-bcb1-ce618fadfd95', true, 'Put', 'Node', '', 'node-c', 'bb0e761c-1bb9-4cd4-b68d-9ea731f3e402', NULL, NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-c","labels":{"zone":"c"},"uid":"bb0e761c-1bb9-4cd4-b68d-9ea731f3e402","creationTimestamp":"2026-11-28T01:23:13Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}', NULL);
INSERT INTO public.change VALUES (1, 6, 'd9533974-7870-4907-beed-f6ad6b3de7f1', true, 'Put', 'ResourceQuota', 'shop', 'pods', 'e185bd17-5c19-4755-a1fb-f3adfe19473d', NULL, NULL, '{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"pods","namespace":"shop","uid":"e185bd17-5c19-4755-a1fb-f3adfe19473d","creationTimestamp":"2026-11-28T01:23:13Z"},"spec":{"hard":{"pods":"10"}}}', NULL);
INSERT INTO public.change VALUES (1, 7, 'cad6e7d1-f264-47ee-8dd9-1cdf670590e2', true, 'Put', 'PodGroup', 'shop', 'train', '5623ab9b-7047-4466-8668-df833fe4581c', NULL, NULL, '{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"PodGroup","metadata":{"name":"train","namespace":"shop","uid":"5623ab9b-7047-4466-8668-df833fe4581c","creationTimestamp":"2026-11-28T01:23:13Z"},"spec":{"minMember":2}}', NULL);
INSERT INTO public.change VALUES (1, 8, '6611010d-608f-4c18-aa72-9d16bf138449', true, 'Put', 'Pod', 'shop', 'web-0', '01208232-ff71-4543-8f23-e81ff4a6417b', 'node-b', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"uid":"01208232-ff71-4543-8f23-e81ff4a6417b","creationTimestamp":"2026-11-28T01:23:13Z"},"spec":{"nodeName":"node-b","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-28T01:23:13Z"}]}}', NULL);
INSERT INTO public.change VALUES (1, 9, '0f3317fd-b819-4ff6-a2ca-c3e6285cf303', true, 'Put', 'Pod', 'shop', 'web-1', 'f7a47135-3c37-4649-b076-3dc9a210bb46', 'node-a', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-1","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"uid":"f7a47135-3c37-4649-b076-3dc9a210bb46","creationTimestamp":"2026-11-28T01:23:13Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-28T01:23:13Z"}]}}', NULL);
INSERT INTO public.change VALUES (1, 10, 'b903962d-e1ce-4d82-ba2c-36615174e262', true, 'Put', 'Pod', 'shop', 'web-2', '01b3eaaa-9f29-4d5e-a76b-8548756cd4e0', 'node-a', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-2","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"uid":"01b3eaaa-9f29-4d5e-a76b-8548756cd4e0","creationTimestamp":"2026-11-28T01:23:13Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-28T01:23:13Z"}]}}', NULL);
INSERT INTO public.change VALUES (1, 11, '30b1d39d-909c-4980-b4ca-5498a3f32970', true, 'Put', 'Pod', 'shop', 'too-big', '12fcea13-44b9-4cd5-92de-7c56d0ef3f6a', NULL, NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"too-big","namespace":"shop","uid":"12fcea13-44b9-4cd5-92de-7c56d0ef3f6a","creationTimestamp":"2026-11-28T01:23:13Z"},"spec":{"affinity":{},"containers":[{"name":"main","resources":{"requests":{"cpu":"64"}}}]}}', NULL);
INSERT INTO public.change VALUES (1, 12, '589ed3e8-e1e1-4915-a2ff-b14725d6f1b2', false, 'Delete', 'Pod', 'shop', 'web-1', 'f7a47135-3c37-4649-b076-3dc9a210bb46', 'node-a', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-1","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"uid":"f7a47135-3c37-4649-b076-3dc9a210bb46","creationTimestamp":"2026-11-28T01:23:13Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-28T01:23:13Z"}]}}', NULL);
INSERT INTO public.change VALUES (1, 13, '95ed7e1d-1ad2-4b50-bb7b-68ac044b22ae', false, 'Put', 'Pod', 'shop', 'too-big', '12fcea13-44b9-4cd5-92de-7c56d0ef3f6a', NULL, NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"too-big","namespace":"shop","uid":"12fcea13-44b9-4cd5-92de-7c56d0ef3f6a","creationTimestamp":"2026-11-28T01:23:13Z"},"spec":{"affinity":{},"containers":[{"name":"main","resources":{"requests":{"cpu":"64"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/3 nodes are available: 3 Insufficient cpu.","lastTransitionTime":"2026-11-28T01:23:13Z"}]}}', '');
INSERT INTO public.change VALUES (1, 14, 'e6b4f22f-fc4d-41cf-868e-846eed74d831', false, 'Put', 'Node', '', 'node-a', 'a1fd5186-2a19-4aa7-822a-beb6bba8d51f', NULL, '{"zone":"a"}', '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-a","labels":{"zone":"c"},"uid":"a1fd5186-2a19-4aa7-822a-beb6bba8d51f","creationTimestamp":"2026-11-28T01:23:13Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}', '');
INSERT INTO public.change VALUES (1, 15, '127701f2-c6fc-422f-84b3-6cbbf3a0fd90', false, 'Put', 'Node', '', 'node-b', 'b07a3db0-abdb-4875-8881-ef6f171f1ddd', NULL, '{"zone":"b"}', '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-b","labels":{"zone":"c"},"uid":"b07a3db0-abdb-4875-8881-ef6f171f1ddd","creationTimestamp":"2026-11-28T01:23:13Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}', '');
INSERT INTO public.change VALUES (1, 16, '0cca5561-d813-4b9f-aee1-96a68833c4db', false, 'Put', 'Pod', 'shop', 'web-0', '01208232-ff71-4543-8f23-e81ff4a6417b', 'node-b', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"deletionTimestamp":"2026-11-28T01:23:13Z","uid":"01208232-ff71-4543-8f23-e81ff4a6417b","creationTimestamp":"2026-11-28T01:23:13Z"},"spec":{"nodeName":"node-b","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-28T01:23:13Z"},{"type":"DisruptionTarget","status":"True","reason":"NodeAffinityViolated","message":"spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-b.","lastTransitionTime":"2026-11-28T01:23:13Z"}]}}', '{"metadata.deletionTimestamp":"false"}');
INSERT INTO public.change VALUES (1, 17, '0cca5561-d813-4b9f-aee1-96a68833c4db', false, 'Put', 'Pod', 'shop', 'web-2', '01b3eaaa-9f29-4d5e-a76b-8548756cd4e0', 'node-a', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-2","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"deletionTimestamp":"2026-11-28T01:23:13Z","uid":"01b3eaaa-9f29-4d5e-a76b-8548756cd4e0","creationTimestamp":"2026-11-28T01:23:13Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-28T01:23:13Z"},{"type":"DisruptionTarget","status":"True","reason":"NodeAffinityViolated","message":"spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-a.","lastTransitionTime":"2026-11-28T01:23:13Z"}]}}', '{"metadata.deletionTimestamp":"false"}');
INSERT INTO public.change VALUES (1, 18, '0cca5561-d813-4b9f-aee1-96a68833c4db', true, 'Put', 'Evictions', '', 'state', '', NULL, NULL, '{"timers":[],"recent":[{"at":"2026-11-28T01:23:13.163422Z","pods":2}],"blocked":[]}', NULL);


--
-- Data for Name: cluster; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.cluster OVERRIDING SYSTEM VALUE VALUES (1, 'default', '2026-11-28 01:23:09.37393+00');
INSERT INTO public.cluster OVERRIDING SYSTEM VALUE VALUES (2, 'staging', '2026-11-28 01:23:12.879804+00');


--
-- Data for Name: commit; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.commit VALUES (1, 1, 'bb7537d7-d763-42a3-ad6d-9d5ed8fb088e', '00000000-0000-0000-0000-000000000000', 1, 0, 'CreateCluster', '2026-11-28 01:23:09.373825+00');
INSERT INTO public.commit VALUES (2, 1, '7b80d381-1ff8-4676-871d-67eb4c221797', '00000000-0000-0000-0000-000000000000', 1, 0, 'CreateCluster', '2026-11-28 01:23:12.87956+00');
INSERT INTO public.commit VALUES (1, 2, 'c5a9ddd4-ca9d-4111-b343-a0dfce02f328', 'bb7537d7-d763-42a3-ad6d-9d5ed8fb088e', 2, 1, 'PutObject', '2026-11-28 01:23:12.985046+00');
INSERT INTO public.commit VALUES (1, 3, 'efb627dc-26fd-4a18-a155-3e9473e51ced', 'c5a9ddd4-ca9d-4111-b343-a0dfce02f328', 3, 2, 'PutObject', '2026-11-28 01:23:13.006294+00');
INSERT INTO public.commit VALUES (1, 4, 'ff810ebb-b2d4-4db7-bb58-84ebadc09e60', 'efb627dc-26fd-4a18-a155-3e9473e51ced', 4, 3, 'PutObject', '2026-11-28 01:23:13.011825+00');
INSERT INTO public.commit VALUES (1, 5, '83bcfbe6-d040-42a2-bcb1-ce618fadfd95', 'ff810ebb-b2d4-4db7-bb58-84ebadc09e60', 5, 4, 'PutObject', '2026-11-28 01:23:13.021729+00');
INSERT INTO public.commit VALUES (1, 6, 'd9533974-7870-4907-beed-f6ad6b3de7f1', '83bcfbe6-d040-42a2-bcb1-ce618fadfd95', 6, 5, 'PutObject', '2026-11-28 01:23:13.031593+00');
INSERT INTO public.commit VALUES (1, 7, 'cad6e7d1-f264-47ee-8dd9-1cdf670590e2', 'd9533974-7870-4907-beed-f6ad6b3de7f1', 7, 6, 'PutObject', '2026-11-28 01:23:13.03815+00');
INSERT INTO public.commit VALUES (1, 8, '6611010d-608f-4c18-aa72-9d16bf138449', 'cad6e7d1-f264-47ee-8dd9-1cdf670590e2', 8, 7, 'PlacePods', '2026-11-28 01:23:13.052365+00');
INSERT INTO public.commit VALUES (1, 9, '0f3317fd-b819-4ff6-a2ca-c3e6285cf303', '6611010d-608f-4c18-aa72-9d16bf138449', 9, 8, 'PlacePods', '2026-11-28 01:23:13.062202+00');
INSERT INTO public.commit VALUES (1, 10, 'b903962d-e1ce-4d82-ba2c-36615174e262', '0f3317fd-b819-4ff6-a2ca-c3e6285cf303', 10, 9, 'PlacePods', '2026-11-28 01:23:13.069448+00');
INSERT INTO public.commit VALUES (1, 11, '30b1d39d-909c-4980-b4ca-5498a3f32970', 'b903962d-e1ce-4d82-ba2c-36615174e262', 11, 10, 'PutObject', '2026-11-28 01:23:13.075736+00');
INSERT INTO public.commit VALUES (1, 12, '589ed3e8-e1e1-4915-a2ff-b14725d6f1b2', '30b1d39d-909c-4980-b4ca-5498a3f32970', 12, 11, 'DeleteObject', '2026-11-28 01:23:13.091909+00');
INSERT INTO public.commit VALUES (1, 13, '95ed7e1d-1ad2-4b50-bb7b-68ac044b22ae', '589ed3e8-e1e1-4915-a2ff-b14725d6f1b2', 13, 11, 'PlacePending', '2026-11-28 01:23:13.100455+00');
INSERT INTO public.commit VALUES (1, 14, 'e6b4f22f-fc4d-41cf-868e-846eed74d831', '95ed7e1d-1ad2-4b50-bb7b-68ac044b22ae', 14, 12, 'Batch', '2026-11-28 01:23:13.102137+00');
INSERT INTO public.commit VALUES (1, 15, '127701f2-c6fc-422f-84b3-6cbbf3a0fd90', 'e6b4f22f-fc4d-41cf-868e-846eed74d831', 15, 14, 'PatchObject', '2026-11-28 01:23:13.105944+00');
INSERT INTO public.commit VALUES (1, 18, '0cca5561-d813-4b9f-aee1-96a68833c4db', '127701f2-c6fc-422f-84b3-6cbbf3a0fd90', 16, 15, 'EvictViolating', '2026-11-28 01:23:13.166393+00');


--
-- Data for Name: event; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.event VALUES (1, 'shop', 'web-0.cb104582d372a2de', 'web-0', '01208232-ff71-4543-8f23-e81ff4a6417b', 'Warning', 'Evicted', 'spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-b.', 16, 1, '2026-11-28 01:23:13+00', '2026-11-28 01:23:13+00');
INSERT INTO public.event VALUES (1, 'shop', 'web-2.2515abc4a928324a', 'web-2', '01b3eaaa-9f29-4d5e-a76b-8548756cd4e0', 'Warning', 'Evicted', 'spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-a.', 17, 1, '2026-11-28 01:23:13+00', '2026-11-28 01:23:13+00');
INSERT INTO public.event VALUES (1, 'shop', 'too-big.8185da498044f68b', 'too-big', '12fcea13-44b9-4cd5-92de-7c56d0ef3f6a', 'Warning', 'FailedScheduling', '0/3 nodes are available: 3 Insufficient cpu.', 13, 1, '2026-11-28 01:23:13+00', '2026-11-28 01:23:13+00');
INSERT INTO public.event VALUES (1, 'shop', 'web-0.711579733edce840', 'web-0', '01208232-ff71-4543-8f23-e81ff4a6417b', 'Normal', 'Scheduled', 'Successfully assigned shop/web-0 to node-b', 8, 1, '2026-11-28 01:23:13+00', '2026-11-28 01:23:13+00');
INSERT INTO public.event VALUES (1, 'shop', 'web-1.08e8ba07b5ff1460', 'web-1', 'f7a47135-3c37-4649-b076-3dc9a210bb46', 'Normal', 'Scheduled', 'Successfully assigned shop/web-1 to node-a', 9, 1, '2026-11-28 01:23:13+00', '2026-11-28 01:23:13+00');
INSERT INTO public.event VALUES (1, 'shop', 'web-2.7a72e35b3440dca9', 'web-2', '01b3eaaa-9f29-4d5e-a76b-8548756cd4e0', 'Normal', 'Scheduled', 'Successfully assigned shop/web-2 to node-a', 10, 1, '2026-11-28 01:23:13+00', '2026-11-28 01:23:13+00');


--
-- Data for Name: floor; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.floor VALUES (1, 0);
INSERT INTO public.floor VALUES (2, 0);


--
-- Data for Name: head; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.head VALUES (2, 1, '7b80d381-1ff8-4676-871d-67eb4c221797', '2026-11-28 01:23:12.87956+00');
INSERT INTO public.head VALUES (1, 18, '0cca5561-d813-4b9f-aee1-96a68833c4db', '2026-11-28 01:23:13.166393+00');


--
-- Data for Name: history; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.history VALUES (1, 7713026768556447501, 1, 12784);


--
-- Data for Name: idempotency; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.idempotency VALUES (1, 'placePods', 'order-of-web-0', 0, 'x\203Y\226\272\025Q\211\253\214kEc?\360\351\376\357\3376\215N\316\332\226\362\035\221\257\200\303\273', '\225\305\001\015{"revision":8,"committed":true,"attempts":1,"results":[{"namespace":"shop","name":"web-0","uid":"01208232-ff71-4543-8f23-e81ff4a6417b","outcome":"Placed","nodeName":"node-b","score":485,"plannedRevision":7,"reason":null,"message":null,"explanation":null}],"group":null}\314\310\300\300\302', '2026-11-28 01:23:13.052365+00');
INSERT INTO public.idempotency VALUES (1, 'placePods', 'order-of-web-1', 0, '\275\352\001(7\0255\267z\346\003\270\205\033\204E\022a]$7\252\032\033s0\364\227\306\0273\205', '\225\305\001\015{"revision":9,"committed":true,"attempts":1,"results":[{"namespace":"shop","name":"web-1","uid":"f7a47135-3c37-4649-b076-3dc9a210bb46","outcome":"Placed","nodeName":"node-a","score":485,"plannedRevision":8,"reason":null,"message":null,"explanation":null}],"group":null}\314\310\300\300\302', '2026-11-28 01:23:13.062202+00');
INSERT INTO public.idempotency VALUES (1, 'placePods', 'order-of-web-2', 0, 'M>\320\300\351\004\003\027\234\021R\000b\236@\202u\256o~\212\355{ZKw\320\232\013\312\305\236', '\225\305\001\016{"revision":10,"committed":true,"attempts":1,"results":[{"namespace":"shop","name":"web-2","uid":"01b3eaaa-9f29-4d5e-a76b-8548756cd4e0","outcome":"Placed","nodeName":"node-a","score":472,"plannedRevision":9,"reason":null,"message":null,"explanation":null}],"group":null}\314\310\300\300\302', '2026-11-28 01:23:13.069448+00');


--
-- Data for Name: lease; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.lease VALUES (1, 'requests@vm:46145', '9f12e439-307a-4bdd-9ba6-7bcddff9ff62', '2026-11-28 01:23:22.94743+00');
INSERT INTO public.lease VALUES (1, 'evictions', 'fd2e7ed8-af9c-4864-ad4c-9210ef3daf65', '2026-11-28 01:23:16.056387+00');
INSERT INTO public.lease VALUES (1, 'pending', 'fd2e7ed8-af9c-4864-ad4c-9210ef3daf65', '2026-11-28 01:23:16.081618+00');
INSERT INTO public.lease VALUES (1, 'nodes', 'fd2e7ed8-af9c-4864-ad4c-9210ef3daf65', '2026-11-28 01:23:16.165983+00');


--
-- Data for Name: node_lease; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.node_lease VALUES (1, 'node-c', '2026-11-28 01:23:13.116242+00');


--
-- Data for Name: object; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.object VALUES (1, 1, 'Cluster', '', 'config', '', NULL, '{}');
INSERT INTO public.object VALUES (2, 1, 'Cluster', '', 'config', '', NULL, '{"semantics":"Kubernetes","emptyNodeSelectorTerm":null,"requiredAffinityTerms":null,"emptyNamespaceList":null,"preferredTermWeight":null,"hardPodAffinityWeight":1,"symmetricPreferredAffinity":true,"symmetricPreferredAntiAffinity":true,"daemonNamespaces":["kube-system"],"restrictAllNamespacesAntiAffinity":true,"nodeTopologyKeys":["kubernetes.io/hostname"],"trustedNamespaces":[],"defaultTopologySpread":"List","defaultTopologySpreadConstraints":[],"scoringStrategy":"LeastAllocated","requestedToCapacityRatio":null,"profiles":[],"deviceClaims":"Allocate","volumes":"Honor","placePendingPods":true,"deviceSearchSteps":5000,"groupSearchSteps":10000,"priorityClasses":{},"limitedResources":[],"features":{"PodAffinityNamespaceSelector":true},"policies":[],"opportunityCostBasis":"Largest","queuePreemption":"Never","queuePreemptionScope":"Node","affinityViolationGraceSeconds":30,"antiAffinityVictim":"RuleOwner","evictionsPerMinute":60,"noExecuteTaints":null,"defaultNotReadyTolerationSeconds":300,"defaultUnreachableTolerationSeconds":300,"nodeConditions":null,"nodeMonitorGraceSeconds":40,"nodeEvictionRate":0.1,"secondaryNodeEvictionRate":0.01,"unhealthyZoneThreshold":0.55,"largeZoneNodes":50,"deletedNodePods":null,"orphanGraceSeconds":10}');
INSERT INTO public.object VALUES (1, 2, 'Namespace', '', 'shop', '3c6f2235-dd68-47b0-99d6-140c8690453e', NULL, '{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","labels":{"team":"shop"},"uid":"3c6f2235-dd68-47b0-99d6-140c8690453e","creationTimestamp":"2026-11-28T01:23:12Z"}}');
INSERT INTO public.object VALUES (1, 5, 'Node', '', 'node-c', 'bb0e761c-1bb9-4cd4-b68d-9ea731f3e402', NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-c","labels":{"zone":"c"},"uid":"bb0e761c-1bb9-4cd4-b68d-9ea731f3e402","creationTimestamp":"2026-11-28T01:23:13Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}');
INSERT INTO public.object VALUES (1, 6, 'ResourceQuota', 'shop', 'pods', 'e185bd17-5c19-4755-a1fb-f3adfe19473d', NULL, '{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"pods","namespace":"shop","uid":"e185bd17-5c19-4755-a1fb-f3adfe19473d","creationTimestamp":"2026-11-28T01:23:13Z"},"spec":{"hard":{"pods":"10"}}}');
INSERT INTO public.object VALUES (1, 7, 'PodGroup', 'shop', 'train', '5623ab9b-7047-4466-8668-df833fe4581c', NULL, '{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"PodGroup","metadata":{"name":"train","namespace":"shop","uid":"5623ab9b-7047-4466-8668-df833fe4581c","creationTimestamp":"2026-11-28T01:23:13Z"},"spec":{"minMember":2}}');
INSERT INTO public.object VALUES (1, 14, 'Node', '', 'node-a', 'a1fd5186-2a19-4aa7-822a-beb6bba8d51f', NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-a","labels":{"zone":"c"},"uid":"a1fd5186-2a19-4aa7-822a-beb6bba8d51f","creationTimestamp":"2026-11-28T01:23:13Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}');
INSERT INTO public.object VALUES (1, 15, 'Node', '', 'node-b', 'b07a3db0-abdb-4875-8881-ef6f171f1ddd', NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-b","labels":{"zone":"c"},"uid":"b07a3db0-abdb-4875-8881-ef6f171f1ddd","creationTimestamp":"2026-11-28T01:23:13Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}');
INSERT INTO public.object VALUES (1, 16, 'Pod', 'shop', 'web-0', '01208232-ff71-4543-8f23-e81ff4a6417b', 'node-b', '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"deletionTimestamp":"2026-11-28T01:23:13Z","uid":"01208232-ff71-4543-8f23-e81ff4a6417b","creationTimestamp":"2026-11-28T01:23:13Z"},"spec":{"nodeName":"node-b","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-28T01:23:13Z"},{"type":"DisruptionTarget","status":"True","reason":"NodeAffinityViolated","message":"spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-b.","lastTransitionTime":"2026-11-28T01:23:13Z"}]}}');
INSERT INTO public.object VALUES (1, 17, 'Pod', 'shop', 'web-2', '01b3eaaa-9f29-4d5e-a76b-8548756cd4e0', 'node-a', '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-2","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"deletionTimestamp":"2026-11-28T01:23:13Z","uid":"01b3eaaa-9f29-4d5e-a76b-8548756cd4e0","creationTimestamp":"2026-11-28T01:23:13Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-28T01:23:13Z"},{"type":"DisruptionTarget","status":"True","reason":"NodeAffinityViolated","message":"spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-a.","lastTransitionTime":"2026-11-28T01:23:13Z"}]}}');
INSERT INTO public.object VALUES (1, 13, 'Pod', 'shop', 'too-big', '12fcea13-44b9-4cd5-92de-7c56d0ef3f6a', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"too-big","namespace":"shop","uid":"12fcea13-44b9-4cd5-92de-7c56d0ef3f6a","creationTimestamp":"2026-11-28T01:23:13Z"},"spec":{"affinity":{},"containers":[{"name":"main","resources":{"requests":{"cpu":"64"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/3 nodes are available: 3 Insufficient cpu.","lastTransitionTime":"2026-11-28T01:23:13Z"}]}}');
INSERT INTO public.object VALUES (1, 18, 'Evictions', '', 'state', '', NULL, '{"timers":[],"recent":[{"at":"2026-11-28T01:23:13.163422Z","pods":2}],"blocked":[]}');


--
-- Data for Name: predecessor; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.predecessor VALUES ('given-up', 1);


--
-- Data for Name: principal; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.principal VALUES ('User', 'root', '[{"role":"admin","cluster":null,"namespace":null}]', true, '2026-11-28 01:23:13.158139+00');


--
-- Data for Name: replica_report; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.replica_report VALUES ('host/2111', 1, 18, '9c229f699b3f193b890eda1d13999169441f6056d15c27747a782df4a1a525c4-ae8afe2a2deaf0a4b3387d8b3a8e33cda0ddb186d6b5c8986d2149eb915a6d07', '2026-11-28 01:23:13.695145+00');


--
-- Data for Name: token; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.token VALUES ('48b5fd2757b3b8b9', 'root', '\003\307\011\035\224\341n\324\205Kf\351\231\304~\314\201\330\243|\351\345\363\2312R\345\243\237R2\326', '', '2026-11-28 01:23:13.181297+00', NULL, NULL);


--
-- Data for Name: webhook; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.webhook VALUES (1, 'orchestrator', 'b5d1b4db-a7b0-4087-89bc-2f38788aa350', 1, 'https://orchestrator.example/', 'Bindings', NULL, true, 'whsec_hpyZKiaKthnKmrC2W2dWs6ZPXhotdSd9cobptRbD3tk=', NULL, NULL, '2026-11-28 01:23:13.126424+00', 15, NULL, NULL, '2026-11-28 01:23:13.126424+00', 0, NULL, false, NULL, NULL);


--
-- Data for Name: worker; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.worker VALUES ('host:46145', '25c0eaef-4787-4bd0-8cf9-f76faaafa3f0', '2026-11-28 01:23:22.142994+00');
INSERT INTO public.worker VALUES ('host:46145', '9f12e439-307a-4bdd-9ba6-7bcddff9ff62', '2026-11-28 01:23:22.279594+00');


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


