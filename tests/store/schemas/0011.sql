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
    PERFORM 1 FROM cluster WHERE cluster_id = p_cluster_id FOR KEY SHARE;
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
-- Name: compact_v1(bigint, bigint, interval, bigint); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.compact_v1(p_cluster_id bigint, p_keep_changes bigint, p_keep_for interval, p_rows bigint, OUT floor_revision bigint, OUT rose boolean) RETURNS record
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_target bigint;
BEGIN
    SELECT f.revision INTO floor_revision FROM floor AS f
    WHERE f.cluster_id = p_cluster_id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    -- Commits are in order of time too, so the last old one within reach bounds the step.
    SELECT least(coalesce(max(c.last_revision), 0), floor_revision + p_rows,
            (SELECT h.revision - p_keep_changes FROM head AS h WHERE h.cluster_id = p_cluster_id))
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
BEGIN
    UPDATE head AS h
    SET tip = p_fence_id, at = greatest(clock_timestamp(), h.at)
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
    v_revision bigint;
BEGIN
    UPDATE head AS h
    SET revision = h.revision + p_by, tip = gen_random_uuid(),
        at = greatest(clock_timestamp(), h.at)
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
-- Data for Name: access_state; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.access_state VALUES (true, 3);


--
-- Data for Name: alembic_version; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.alembic_version VALUES ('0011');


--
-- Data for Name: audit; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.audit VALUES (0, 1, '2026-11-26 05:00:37.210199+00', 'everybody', '127.0.0.1', 'putCluster', 2, 'staging', 1, 'eb05c2e8-b68f-4b0a-9e7f-bc0d30dda9a6', 200, 1, '', '\327%/\017\305\225\001\202T\272\022+\250\244\314\327N\031\216\251Q\372h\332\346\004\017>\372\006\226M');
INSERT INTO public.audit VALUES (0, 2, '2026-11-26 05:00:37.221955+00', 'everybody', '127.0.0.1', 'putCluster', 3, 'given-up', 1, '1a559eb7-2667-4479-be05-0ce69e48bc92', 200, 1, '\327%/\017\305\225\001\202T\272\022+\250\244\314\327N\031\216\251Q\372h\332\346\004\017>\372\006\226M', '\246\336\351ed\372\266y\033\011\261U\227\253\300\250\303Uy\3377\005\352\252\217\274}Jr\254\260\343');
INSERT INTO public.audit VALUES (0, 3, '2026-11-26 05:00:37.229341+00', 'everybody', '127.0.0.1', 'deleteCluster', 3, 'given-up', NULL, '1cf11c5c-7564-4068-a669-8dbe48aed318', 200, 1, '\246\336\351ed\372\266y\033\011\261U\227\253\300\250\303Uy\3377\005\352\252\217\274}Jr\254\260\343', '{v\300\230\033\331''\217\374\350\305\275\215V[\253\031\203\265\210\215\367\022\311\346\237y|\3073_c');
INSERT INTO public.audit VALUES (1, 1, '2026-11-26 05:00:37.245296+00', 'everybody', '127.0.0.1', 'putNamespace', 1, 'default', 2, 'acabd6f2-33da-4457-bcea-a1d99e483226', 200, 1, '', 'qh\323\206\247B\013f\320a\312,)\207\373\365L\006~\372\343\031\310B\036,w\336\342YeK');
INSERT INTO public.audit VALUES (1, 2, '2026-11-26 05:00:37.250179+00', 'everybody', '127.0.0.1', 'putNode', 1, 'default', 3, '36a37df9-4f98-4380-9924-635426a1b3f0', 200, 1, 'qh\323\206\247B\013f\320a\312,)\207\373\365L\006~\372\343\031\310B\036,w\336\342YeK', '\325\3644%e\353\244\354&\215\373I(\210"`\016\201\352\3312\332G\204<\235\320(0\353\256\375');
INSERT INTO public.audit VALUES (1, 3, '2026-11-26 05:00:37.255513+00', 'everybody', '127.0.0.1', 'putNode', 1, 'default', 4, 'cd6d2737-c671-42a2-a021-45c56f40ef2c', 200, 1, '\325\3644%e\353\244\354&\215\373I(\210"`\016\201\352\3312\332G\204<\235\320(0\353\256\375', ',T#b\013#\366\325zU\331\314\032\006\335\333\3430\264\240\357,\241\372\305\251nK\277!\333\250');
INSERT INTO public.audit VALUES (1, 4, '2026-11-26 05:00:37.257985+00', 'everybody', '127.0.0.1', 'putNode', 1, 'default', 5, '083e5aee-041e-4e8b-8f43-936568082b7c', 200, 1, ',T#b\013#\366\325zU\331\314\032\006\335\333\3430\264\240\357,\241\372\305\251nK\277!\333\250', 'y\011\203\016\027\313k\0006m\344)\222X\262\304\000\235D#\317\311X\032\236\343\377\210\250s\3209');
INSERT INTO public.audit VALUES (1, 5, '2026-11-26 05:00:37.260712+00', 'everybody', '127.0.0.1', 'putResourceQuota', 1, 'default', 6, '229ee39b-8f1a-4d46-b032-0e4323801e1e', 200, 1, 'y\011\203\016\027\313k\0006m\344)\222X\262\304\000\235D#\317\311X\032\236\343\377\210\250s\3209', '[\322\333Zp\346|e\341_\302\356\232\271]+g\340\321t\373\234\344L''\242\037\312\323W-\336');
INSERT INTO public.audit VALUES (1, 6, '2026-11-26 05:00:37.263562+00', 'everybody', '127.0.0.1', 'putPodGroup', 1, 'default', 7, 'ab1f6480-2927-410f-a6d1-5ecd142224f6', 200, 1, '[\322\333Zp\346|e\341_\302\356\232\271]+g\340\321t\373\234\344L''\242\037\312\323W-\336', '\354p\272 \202\221\015\341\337\014ZJ\300\273\361\273y\341\301%s\320\006\307\233_\234Z\251\201w\231');
INSERT INTO public.audit VALUES (1, 7, '2026-11-26 05:00:37.272163+00', 'everybody', '127.0.0.1', 'placePods', 1, 'default', 8, '289429c5-4acd-41eb-94c7-75b98b3b8423', 200, 1, '\354p\272 \202\221\015\341\337\014ZJ\300\273\361\273y\341\301%s\320\006\307\233_\234Z\251\201w\231', '\2644\035\313@\362\243\316c\215*\330R\006\367\264\031\017:9i\364\332\306\211{\350O7\037\330\356');
INSERT INTO public.audit VALUES (1, 8, '2026-11-26 05:00:37.29137+00', 'everybody', '127.0.0.1', 'placePods', 1, 'default', 9, '8d21e337-9a5d-48b7-bcee-7506a2483829', 200, 1, '\2644\035\313@\362\243\316c\215*\330R\006\367\264\031\017:9i\364\332\306\211{\350O7\037\330\356', 'a\346d\345\011_\356\0212\2019\023\247Y\037\023\3067\217\303v\236\017t\246;\312\340\006\025\033\276');
INSERT INTO public.audit VALUES (1, 9, '2026-11-26 05:00:37.297508+00', 'everybody', '127.0.0.1', 'placePods', 1, 'default', 10, '018aacfe-df52-4ad3-ba12-b626122b2f64', 200, 1, 'a\346d\345\011_\356\0212\2019\023\247Y\037\023\3067\217\303v\236\017t\246;\312\340\006\025\033\276', '\305\302\225\023\216nEf\206\255\333\235\352\320\177\236WG\375\342\362\221oe\272\267\024\011\3751\034\223');
INSERT INTO public.audit VALUES (1, 10, '2026-11-26 05:00:37.300534+00', 'everybody', '127.0.0.1', 'putPod', 1, 'default', 11, 'a99fdf2a-c6bc-44f5-94fd-085881204240', 200, 1, '\305\302\225\023\216nEf\206\255\333\235\352\320\177\236WG\375\342\362\221oe\272\267\024\011\3751\034\223', '\342R\317)\301A\271\230\027X\370A8\232\347\330\364\3141\302-\016\264` \330\362\244\317O+\265');
INSERT INTO public.audit VALUES (1, 11, '2026-11-26 05:00:37.303406+00', 'everybody', '127.0.0.1', 'deletePod', 1, 'default', 12, '8edd8d59-ef46-4e14-b841-ace9cfcfa823', 200, 1, '\342R\317)\301A\271\230\027X\370A8\232\347\330\364\3141\302-\016\264` \330\362\244\317O+\265', '\225Q\270\306\245\264\201p.\334\034#b\017\036\270\365\236\327\232\177\310\327\224\207\016\216\204\201U\021l');
INSERT INTO public.audit VALUES (1, 12, '2026-11-26 05:00:37.307455+00', 'everybody', '127.0.0.1', 'patchNode', 1, 'default', 13, '3397f408-5337-4439-95a0-8f485235f6aa', 200, 1, '\225Q\270\306\245\264\201p.\334\034#b\017\036\270\365\236\327\232\177\310\327\224\207\016\216\204\201U\021l', ',\304\363i\315\015}\310\220\015SZ\006\\c\224\246\010\266\323\332\020\007b\003\026\235\246\037X{_');
INSERT INTO public.audit VALUES (1, 13, '2026-11-26 05:00:37.310533+00', 'everybody', '127.0.0.1', 'patchNode', 1, 'default', 14, '871801c2-f411-4e70-ad82-3157b915ee0a', 200, 1, ',\304\363i\315\015}\310\220\015SZ\006\\c\224\246\010\266\323\332\020\007b\003\026\235\246\037X{_', '\342\333\017\262\220\271\\Q\211s`\317\005f{\347\364\255{Q1m\034T*\347h\373\241\307b\265');
INSERT INTO public.audit VALUES (1, 14, '2026-11-26 05:00:37.315025+00', 'moorage', '', 'PlacePending', 1, 'default', 15, '', 200, 1, '\342\333\017\262\220\271\\Q\211s`\317\005f{\347\364\255{Q1m\034T*\347h\373\241\307b\265', 'Pv\307\312\206W\227\320\342\033o\250\341J\304\324P\214\276\331\234\332\221\220\037\3400d\276\374\266E');
INSERT INTO public.audit VALUES (1, 15, '2026-11-26 05:00:37.320074+00', 'moorage', '', 'EvictViolating', 1, 'default', 18, '', 200, 1, 'Pv\307\312\206W\227\320\342\033o\250\341J\304\324P\214\276\331\234\332\221\220\037\3400d\276\374\266E', 'b\364q\3515\012\275u\371_R\255\021_\006\032\323\035\244\235\204Uo\370s\002Y*&N\372g');
INSERT INTO public.audit VALUES (0, 4, '2026-11-26 05:00:37.323125+00', 'everybody', '127.0.0.1', 'putWebhook', NULL, 'default', NULL, 'c0460008-a255-4510-8a9c-3a26ea5092aa', 200, 1, '{v\300\230\033\331''\217\374\350\305\275\215V[\253\031\203\265\210\215\367\022\311\346\237y|\3073_c', '\266\216\027p9\260\363\001\337 <\205t\216\013\366=\275\334LA\264\312KT\215\031\325\030\240K\340');
INSERT INTO public.audit VALUES (0, 5, '2026-11-26 05:00:37.329093+00', 'everybody', '127.0.0.1', 'putPrincipal', NULL, '', NULL, '2178d76c-bec1-4a1e-ad6a-5091f8ef50d7', 200, 1, '\266\216\027p9\260\363\001\337 <\205t\216\013\366=\275\334LA\264\312KT\215\031\325\030\240K\340', '\016\224\362\262p\231\010B\360\014*\312\025\343z\304\327\17760\364\206>\265\225\016l\301\247Y\\O');
INSERT INTO public.audit VALUES (0, 6, '2026-11-26 05:00:37.334827+00', 'everybody', '127.0.0.1', 'createToken', NULL, '', NULL, 'b4f3985c-3ab7-4b46-99e6-549966ddaf74', 200, 1, '\016\224\362\262p\231\010B\360\014*\312\025\343z\304\327\17760\364\206>\265\225\016l\301\247Y\\O', '\000\267\311r\305f\345\3309\372\215$\0078Y-D\320\325\377\272C\316\235Z\013\220\331m\213\252!');


--
-- Data for Name: audit_chain; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.audit_chain VALUES (1, 'default', 15, 'b\364q\3515\012\275u\371_R\255\021_\006\032\323\035\244\235\204Uo\370s\002Y*&N\372g', '2026-11-26 05:00:37.320074+00');
INSERT INTO public.audit_chain VALUES (0, '', 6, '\000\267\311r\305f\345\3309\372\215$\0078Y-D\320\325\377\272C\316\235Z\013\220\331m\213\252!', '2026-11-26 05:00:37.334827+00');


--
-- Data for Name: change; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.change VALUES (1, 1, '8a7c782c-287c-4fe6-82a2-de86ea32d01e', true, 'Put', 'Cluster', '', 'config', '', NULL, NULL, '{}', NULL);
INSERT INTO public.change VALUES (2, 1, 'bda78799-0eca-4a7e-854a-3ce8979ff66d', true, 'Put', 'Cluster', '', 'config', '', NULL, NULL, '{"semantics":"Kubernetes","emptyNodeSelectorTerm":null,"requiredAffinityTerms":null,"emptyNamespaceList":null,"preferredTermWeight":null,"hardPodAffinityWeight":1,"symmetricPreferredAffinity":true,"symmetricPreferredAntiAffinity":true,"daemonNamespaces":["kube-system"],"restrictAllNamespacesAntiAffinity":true,"nodeTopologyKeys":["kubernetes.io/hostname"],"trustedNamespaces":[],"defaultTopologySpread":"List","defaultTopologySpreadConstraints":[],"scoringStrategy":"LeastAllocated","requestedToCapacityRatio":null,"profiles":[],"deviceClaims":"Allocate","volumes":"Honor","placePendingPods":true,"deviceSearchSteps":5000,"groupSearchSteps":10000,"priorityClasses":{},"limitedResources":[],"features":{"PodAffinityNamespaceSelector":true},"policies":[],"opportunityCostBasis":"Largest","queuePreemption":"Never","queuePreemptionScope":"Node","affinityViolationGraceSeconds":30,"antiAffinityVictim":"RuleOwner","evictionsPerMinute":60,"noExecuteTaints":null,"defaultNotReadyTolerationSeconds":300,"defaultUnreachableTolerationSeconds":300,"nodeConditions":null,"nodeMonitorGraceSeconds":40,"nodeEvictionRate":0.1,"secondaryNodeEvictionRate":0.01,"unhealthyZoneThreshold":0.55,"largeZoneNodes":50,"deletedNodePods":null,"orphanGraceSeconds":10}', NULL);
INSERT INTO public.change VALUES (1, 2, '6fa43a5a-b11c-4cb7-b078-abfe7a59aad9', true, 'Put', 'Namespace', '', 'shop', '8dde03b3-9adc-4082-a2fa-4d1281ad9256', NULL, NULL, '{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","labels":{"team":"shop"},"uid":"8dde03b3-9adc-4082-a2fa-4d1281ad9256","creationTimestamp":"2026-11-26T05:00:37Z"}}', NULL);
INSERT INTO public.change VALUES (1, 3, 'e192ef54-003d-4ab2-ba36-61d1add045f2', true, 'Put', 'Node', '', 'node-a', '9e8c5809-c4d8-4ddf-9515-3c5d4a5afdc6', NULL, NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-a","labels":{"zone":"a"},"uid":"9e8c5809-c4d8-4ddf-9515-3c5d4a5afdc6","creationTimestamp":"2026-11-26T05:00:37Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}', NULL);
INSERT INTO public.change VALUES (1, 4, 'ec896e32-4f70-420d-9e1b-bc33a80866e6', true, 'Put', 'Node', '', 'node-b', 'd39dc4c1-55d1-4f20-b950-f828c286b2ca', NULL, NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-b","labels":{"zone":"b"},"uid":"d39dc4c1-55d1-4f20-b950-f828c286b2ca","creationTimestamp":"2026-11-26T05:00:37Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}', NULL);
INSERT INTO public.change VALUES (1, 5, '8b07e80f-b3ba-4ed9-8e28-6624d7b08b22', true, 'Put', 'Node', '', 'node-c', '4db0f5df-d99e-47f3-9af0-349e634a47a2', NULL, NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-c","labels":{"zone":"c"},"uid":"4db0f5df-d99e-47f3-9af0-349e634a47a2","creationTimestamp":"2026-11-26T05:00:37Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}', NULL);
INSERT INTO public.change VALUES (1, 6, '99795645-f097-40a0-9995-2360b7f91fdb', true, 'Put', 'ResourceQuota', 'shop', 'pods', '7447e139-e5d3-4ddb-8d18-a7e9374ed7e0', NULL, NULL, '{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"pods","namespace":"shop","uid":"7447e139-e5d3-4ddb-8d18-a7e9374ed7e0","creationTimestamp":"2026-11-26T05:00:37Z"},"spec":{"hard":{"pods":"10"}}}', NULL);
INSERT INTO public.change VALUES (1, 7, '8909df3c-cdac-4199-85b7-282939dc7ecb', true, 'Put', 'PodGroup', 'shop', 'train', 'fcab3a39-a7ae-4b9d-b753-c628595a2519', NULL, NULL, '{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"PodGroup","metadata":{"name":"train","namespace":"shop","uid":"fcab3a39-a7ae-4b9d-b753-c628595a2519","creationTimestamp":"2026-11-26T05:00:37Z"},"spec":{"minMember":2}}', NULL);
INSERT INTO public.change VALUES (1, 8, '8bc07bcf-1da1-4e45-a1f2-b0c3366c4288', true, 'Put', 'Pod', 'shop', 'web-0', 'ecde0628-ea79-4ace-87df-67aec1f726b8', 'node-b', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"uid":"ecde0628-ea79-4ace-87df-67aec1f726b8","creationTimestamp":"2026-11-26T05:00:37Z"},"spec":{"nodeName":"node-b","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-26T05:00:37Z"}]}}', NULL);
INSERT INTO public.change VALUES (1, 9, 'e6c275d5-e97c-437e-9f10-49245fcb575d', true, 'Put', 'Pod', 'shop', 'web-1', '31f5cef3-46de-461d-9e44-8a04e6545998', 'node-a', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-1","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"uid":"31f5cef3-46de-461d-9e44-8a04e6545998","creationTimestamp":"2026-11-26T05:00:37Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-26T05:00:37Z"}]}}', NULL);
INSERT INTO public.change VALUES (1, 10, 'd762c952-7e02-4622-affe-7a9ea720efcb', true, 'Put', 'Pod', 'shop', 'web-2', 'f11ffc01-d0b6-4e99-bdad-582c1b34b229', 'node-a', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-2","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"uid":"f11ffc01-d0b6-4e99-bdad-582c1b34b229","creationTimestamp":"2026-11-26T05:00:37Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-26T05:00:37Z"}]}}', NULL);
INSERT INTO public.change VALUES (1, 11, '59ee0cdc-ba0f-4f82-8d42-7ffc6a9706dc', true, 'Put', 'Pod', 'shop', 'too-big', '1c708260-a119-495e-b0c2-99b14af13010', NULL, NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"too-big","namespace":"shop","uid":"1c708260-a119-495e-b0c2-99b14af13010","creationTimestamp":"2026-11-26T05:00:37Z"},"spec":{"affinity":{},"containers":[{"name":"main","resources":{"requests":{"cpu":"64"}}}]}}', NULL);
INSERT INTO public.change VALUES (1, 12, '3adec323-0b24-4b78-adc8-689a2a34eafb', false, 'Delete', 'Pod', 'shop', 'web-1', '31f5cef3-46de-461d-9e44-8a04e6545998', 'node-a', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-1","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"uid":"31f5cef3-46de-461d-9e44-8a04e6545998","creationTimestamp":"2026-11-26T05:00:37Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-26T05:00:37Z"}]}}', NULL);
INSERT INTO public.change VALUES (1, 13, '1247a0f2-a6c1-465e-ad0b-e33c23dc4825', false, 'Put', 'Node', '', 'node-a', '9e8c5809-c4d8-4ddf-9515-3c5d4a5afdc6', NULL, '{"zone":"a"}', '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-a","labels":{"zone":"c"},"uid":"9e8c5809-c4d8-4ddf-9515-3c5d4a5afdc6","creationTimestamp":"2026-11-26T05:00:37Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}', '');
INSERT INTO public.change VALUES (1, 14, 'f8987af8-4389-48be-97b9-5730cc02ed8e', false, 'Put', 'Node', '', 'node-b', 'd39dc4c1-55d1-4f20-b950-f828c286b2ca', NULL, '{"zone":"b"}', '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-b","labels":{"zone":"c"},"uid":"d39dc4c1-55d1-4f20-b950-f828c286b2ca","creationTimestamp":"2026-11-26T05:00:37Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}', '');
INSERT INTO public.change VALUES (1, 15, 'bc8ea789-7afe-43be-bbc3-d592b4c4d571', false, 'Put', 'Pod', 'shop', 'too-big', '1c708260-a119-495e-b0c2-99b14af13010', NULL, NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"too-big","namespace":"shop","uid":"1c708260-a119-495e-b0c2-99b14af13010","creationTimestamp":"2026-11-26T05:00:37Z"},"spec":{"affinity":{},"containers":[{"name":"main","resources":{"requests":{"cpu":"64"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/3 nodes are available: 3 Insufficient cpu.","lastTransitionTime":"2026-11-26T05:00:37Z"}]}}', '');
INSERT INTO public.change VALUES (1, 16, '38e0b575-e021-4c40-a3af-5891912941bd', false, 'Put', 'Pod', 'shop', 'web-0', 'ecde0628-ea79-4ace-87df-67aec1f726b8', 'node-b', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"deletionTimestamp":"2026-11-26T05:00:37Z","uid":"ecde0628-ea79-4ace-87df-67aec1f726b8","creationTimestamp":"2026-11-26T05:00:37Z"},"spec":{"nodeName":"node-b","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-26T05:00:37Z"},{"type":"DisruptionTarget","status":"True","reason":"NodeAffinityViolated","message":"spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-b.","lastTransitionTime":"2026-11-26T05:00:37Z"}]}}', '{"metadata.deletionTimestamp":"false"}');
INSERT INTO public.change VALUES (1, 17, '38e0b575-e021-4c40-a3af-5891912941bd', false, 'Put', 'Pod', 'shop', 'web-2', 'f11ffc01-d0b6-4e99-bdad-582c1b34b229', 'node-a', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-2","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"deletionTimestamp":"2026-11-26T05:00:37Z","uid":"f11ffc01-d0b6-4e99-bdad-582c1b34b229","creationTimestamp":"2026-11-26T05:00:37Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-26T05:00:37Z"},{"type":"DisruptionTarget","status":"True","reason":"NodeAffinityViolated","message":"spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-a.","lastTransitionTime":"2026-11-26T05:00:37Z"}]}}', '{"metadata.deletionTimestamp":"false"}');
INSERT INTO public.change VALUES (1, 18, '38e0b575-e021-4c40-a3af-5891912941bd', true, 'Put', 'Evictions', '', 'state', '', NULL, NULL, '{"timers":[],"recent":[{"at":"2026-11-26T05:00:37.315879Z","pods":2}],"blocked":[]}', NULL);


--
-- Data for Name: cluster; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.cluster OVERRIDING SYSTEM VALUE VALUES (1, 'default', '2026-11-26 05:00:35.799141+00');
INSERT INTO public.cluster OVERRIDING SYSTEM VALUE VALUES (2, 'staging', '2026-11-26 05:00:37.209277+00');


--
-- Data for Name: commit; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.commit VALUES (1, 1, '8a7c782c-287c-4fe6-82a2-de86ea32d01e', '00000000-0000-0000-0000-000000000000', 1, 0, 'CreateCluster', '2026-11-26 05:00:35.799008+00');
INSERT INTO public.commit VALUES (2, 1, 'bda78799-0eca-4a7e-854a-3ce8979ff66d', '00000000-0000-0000-0000-000000000000', 1, 0, 'CreateCluster', '2026-11-26 05:00:37.208996+00');
INSERT INTO public.commit VALUES (1, 2, '6fa43a5a-b11c-4cb7-b078-abfe7a59aad9', '8a7c782c-287c-4fe6-82a2-de86ea32d01e', 2, 1, 'PutObject', '2026-11-26 05:00:37.245296+00');
INSERT INTO public.commit VALUES (1, 3, 'e192ef54-003d-4ab2-ba36-61d1add045f2', '6fa43a5a-b11c-4cb7-b078-abfe7a59aad9', 3, 2, 'PutObject', '2026-11-26 05:00:37.250179+00');
INSERT INTO public.commit VALUES (1, 4, 'ec896e32-4f70-420d-9e1b-bc33a80866e6', 'e192ef54-003d-4ab2-ba36-61d1add045f2', 4, 3, 'PutObject', '2026-11-26 05:00:37.255513+00');
INSERT INTO public.commit VALUES (1, 5, '8b07e80f-b3ba-4ed9-8e28-6624d7b08b22', 'ec896e32-4f70-420d-9e1b-bc33a80866e6', 5, 4, 'PutObject', '2026-11-26 05:00:37.257985+00');
INSERT INTO public.commit VALUES (1, 6, '99795645-f097-40a0-9995-2360b7f91fdb', '8b07e80f-b3ba-4ed9-8e28-6624d7b08b22', 6, 5, 'PutObject', '2026-11-26 05:00:37.260712+00');
INSERT INTO public.commit VALUES (1, 7, '8909df3c-cdac-4199-85b7-282939dc7ecb', '99795645-f097-40a0-9995-2360b7f91fdb', 7, 6, 'PutObject', '2026-11-26 05:00:37.263562+00');
INSERT INTO public.commit VALUES (1, 8, '8bc07bcf-1da1-4e45-a1f2-b0c3366c4288', '8909df3c-cdac-4199-85b7-282939dc7ecb', 8, 7, 'PlacePods', '2026-11-26 05:00:37.272163+00');
INSERT INTO public.commit VALUES (1, 9, 'e6c275d5-e97c-437e-9f10-49245fcb575d', '8bc07bcf-1da1-4e45-a1f2-b0c3366c4288', 9, 8, 'PlacePods', '2026-11-26 05:00:37.29137+00');
INSERT INTO public.commit VALUES (1, 10, 'd762c952-7e02-4622-affe-7a9ea720efcb', 'e6c275d5-e97c-437e-9f10-49245fcb575d', 10, 9, 'PlacePods', '2026-11-26 05:00:37.297508+00');
INSERT INTO public.commit VALUES (1, 11, '59ee0cdc-ba0f-4f82-8d42-7ffc6a9706dc', 'd762c952-7e02-4622-affe-7a9ea720efcb', 11, 10, 'PutObject', '2026-11-26 05:00:37.300534+00');
INSERT INTO public.commit VALUES (1, 12, '3adec323-0b24-4b78-adc8-689a2a34eafb', '59ee0cdc-ba0f-4f82-8d42-7ffc6a9706dc', 12, 11, 'DeleteObject', '2026-11-26 05:00:37.303406+00');
INSERT INTO public.commit VALUES (1, 13, '1247a0f2-a6c1-465e-ad0b-e33c23dc4825', '3adec323-0b24-4b78-adc8-689a2a34eafb', 13, 12, 'PatchObject', '2026-11-26 05:00:37.307455+00');
INSERT INTO public.commit VALUES (1, 14, 'f8987af8-4389-48be-97b9-5730cc02ed8e', '1247a0f2-a6c1-465e-ad0b-e33c23dc4825', 14, 13, 'PatchObject', '2026-11-26 05:00:37.310533+00');
INSERT INTO public.commit VALUES (1, 15, 'bc8ea789-7afe-43be-bbc3-d592b4c4d571', 'f8987af8-4389-48be-97b9-5730cc02ed8e', 15, 14, 'PlacePending', '2026-11-26 05:00:37.315025+00');
INSERT INTO public.commit VALUES (1, 18, '38e0b575-e021-4c40-a3af-5891912941bd', 'bc8ea789-7afe-43be-bbc3-d592b4c4d571', 16, 15, 'EvictViolating', '2026-11-26 05:00:37.320074+00');


--
-- Data for Name: event; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.event VALUES (1, 'shop', 'web-0.460f9ebe7fbf9e0a', 'web-0', 'ecde0628-ea79-4ace-87df-67aec1f726b8', 'Warning', 'Evicted', 'spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-b.', 16, 1, '2026-11-26 05:00:37+00', '2026-11-26 05:00:37+00');
INSERT INTO public.event VALUES (1, 'shop', 'web-2.ed0227623bcf95ee', 'web-2', 'f11ffc01-d0b6-4e99-bdad-582c1b34b229', 'Warning', 'Evicted', 'spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-a.', 17, 1, '2026-11-26 05:00:37+00', '2026-11-26 05:00:37+00');
INSERT INTO public.event VALUES (1, 'shop', 'too-big.4f4721877c65e301', 'too-big', '1c708260-a119-495e-b0c2-99b14af13010', 'Warning', 'FailedScheduling', '0/3 nodes are available: 3 Insufficient cpu.', 15, 1, '2026-11-26 05:00:37+00', '2026-11-26 05:00:37+00');
INSERT INTO public.event VALUES (1, 'shop', 'web-0.f0d504a682799fe8', 'web-0', 'ecde0628-ea79-4ace-87df-67aec1f726b8', 'Normal', 'Scheduled', 'Successfully assigned shop/web-0 to node-b', 8, 1, '2026-11-26 05:00:37+00', '2026-11-26 05:00:37+00');
INSERT INTO public.event VALUES (1, 'shop', 'web-1.87abec9104f90b7c', 'web-1', '31f5cef3-46de-461d-9e44-8a04e6545998', 'Normal', 'Scheduled', 'Successfully assigned shop/web-1 to node-a', 9, 1, '2026-11-26 05:00:37+00', '2026-11-26 05:00:37+00');
INSERT INTO public.event VALUES (1, 'shop', 'web-2.7049c919ee4f1535', 'web-2', 'f11ffc01-d0b6-4e99-bdad-582c1b34b229', 'Normal', 'Scheduled', 'Successfully assigned shop/web-2 to node-a', 10, 1, '2026-11-26 05:00:37+00', '2026-11-26 05:00:37+00');


--
-- Data for Name: floor; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.floor VALUES (1, 0);
INSERT INTO public.floor VALUES (2, 0);


--
-- Data for Name: head; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.head VALUES (2, 1, 'bda78799-0eca-4a7e-854a-3ce8979ff66d', '2026-11-26 05:00:37.208996+00');
INSERT INTO public.head VALUES (1, 18, '38e0b575-e021-4c40-a3af-5891912941bd', '2026-11-26 05:00:37.320074+00');


--
-- Data for Name: history; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.history VALUES (1, 7712340635566200613, 1, 12784);


--
-- Data for Name: idempotency; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.idempotency VALUES (1, 'placePods', 'order-of-web-0', 0, 'x\203Y\226\272\025Q\211\253\214kEc?\360\351\376\357\3376\215N\316\332\226\362\035\221\257\200\303\273', '\225\305\001\015{"revision":8,"committed":true,"attempts":1,"results":[{"namespace":"shop","name":"web-0","uid":"ecde0628-ea79-4ace-87df-67aec1f726b8","outcome":"Placed","nodeName":"node-b","score":485,"plannedRevision":7,"reason":null,"message":null,"explanation":null}],"group":null}\314\310\300\300\302', '2026-11-26 05:00:37.272163+00');
INSERT INTO public.idempotency VALUES (1, 'placePods', 'order-of-web-1', 0, '\275\352\001(7\0255\267z\346\003\270\205\033\204E\022a]$7\252\032\033s0\364\227\306\0273\205', '\225\305\001\015{"revision":9,"committed":true,"attempts":1,"results":[{"namespace":"shop","name":"web-1","uid":"31f5cef3-46de-461d-9e44-8a04e6545998","outcome":"Placed","nodeName":"node-a","score":485,"plannedRevision":8,"reason":null,"message":null,"explanation":null}],"group":null}\314\310\300\300\302', '2026-11-26 05:00:37.29137+00');
INSERT INTO public.idempotency VALUES (1, 'placePods', 'order-of-web-2', 0, 'M>\320\300\351\004\003\027\234\021R\000b\236@\202u\256o~\212\355{ZKw\320\232\013\312\305\236', '\225\305\001\016{"revision":10,"committed":true,"attempts":1,"results":[{"namespace":"shop","name":"web-2","uid":"f11ffc01-d0b6-4e99-bdad-582c1b34b229","outcome":"Placed","nodeName":"node-a","score":472,"plannedRevision":9,"reason":null,"message":null,"explanation":null}],"group":null}\314\310\300\300\302', '2026-11-26 05:00:37.297508+00');


--
-- Data for Name: lease; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.lease VALUES (1, 'evictions', 'f164a8de-798d-4c89-b21c-e13212eb1495', '2026-11-26 05:00:40.276668+00');
INSERT INTO public.lease VALUES (1, 'pending', 'f164a8de-798d-4c89-b21c-e13212eb1495', '2026-11-26 05:00:40.310927+00');
INSERT INTO public.lease VALUES (1, 'nodes', 'f164a8de-798d-4c89-b21c-e13212eb1495', '2026-11-26 05:00:40.323982+00');


--
-- Data for Name: node_lease; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.node_lease VALUES (1, 'node-c', '2026-11-26 05:00:37.313118+00');


--
-- Data for Name: object; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.object VALUES (1, 1, 'Cluster', '', 'config', '', NULL, '{}');
INSERT INTO public.object VALUES (2, 1, 'Cluster', '', 'config', '', NULL, '{"semantics":"Kubernetes","emptyNodeSelectorTerm":null,"requiredAffinityTerms":null,"emptyNamespaceList":null,"preferredTermWeight":null,"hardPodAffinityWeight":1,"symmetricPreferredAffinity":true,"symmetricPreferredAntiAffinity":true,"daemonNamespaces":["kube-system"],"restrictAllNamespacesAntiAffinity":true,"nodeTopologyKeys":["kubernetes.io/hostname"],"trustedNamespaces":[],"defaultTopologySpread":"List","defaultTopologySpreadConstraints":[],"scoringStrategy":"LeastAllocated","requestedToCapacityRatio":null,"profiles":[],"deviceClaims":"Allocate","volumes":"Honor","placePendingPods":true,"deviceSearchSteps":5000,"groupSearchSteps":10000,"priorityClasses":{},"limitedResources":[],"features":{"PodAffinityNamespaceSelector":true},"policies":[],"opportunityCostBasis":"Largest","queuePreemption":"Never","queuePreemptionScope":"Node","affinityViolationGraceSeconds":30,"antiAffinityVictim":"RuleOwner","evictionsPerMinute":60,"noExecuteTaints":null,"defaultNotReadyTolerationSeconds":300,"defaultUnreachableTolerationSeconds":300,"nodeConditions":null,"nodeMonitorGraceSeconds":40,"nodeEvictionRate":0.1,"secondaryNodeEvictionRate":0.01,"unhealthyZoneThreshold":0.55,"largeZoneNodes":50,"deletedNodePods":null,"orphanGraceSeconds":10}');
INSERT INTO public.object VALUES (1, 2, 'Namespace', '', 'shop', '8dde03b3-9adc-4082-a2fa-4d1281ad9256', NULL, '{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","labels":{"team":"shop"},"uid":"8dde03b3-9adc-4082-a2fa-4d1281ad9256","creationTimestamp":"2026-11-26T05:00:37Z"}}');
INSERT INTO public.object VALUES (1, 5, 'Node', '', 'node-c', '4db0f5df-d99e-47f3-9af0-349e634a47a2', NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-c","labels":{"zone":"c"},"uid":"4db0f5df-d99e-47f3-9af0-349e634a47a2","creationTimestamp":"2026-11-26T05:00:37Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}');
INSERT INTO public.object VALUES (1, 6, 'ResourceQuota', 'shop', 'pods', '7447e139-e5d3-4ddb-8d18-a7e9374ed7e0', NULL, '{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"pods","namespace":"shop","uid":"7447e139-e5d3-4ddb-8d18-a7e9374ed7e0","creationTimestamp":"2026-11-26T05:00:37Z"},"spec":{"hard":{"pods":"10"}}}');
INSERT INTO public.object VALUES (1, 7, 'PodGroup', 'shop', 'train', 'fcab3a39-a7ae-4b9d-b753-c628595a2519', NULL, '{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"PodGroup","metadata":{"name":"train","namespace":"shop","uid":"fcab3a39-a7ae-4b9d-b753-c628595a2519","creationTimestamp":"2026-11-26T05:00:37Z"},"spec":{"minMember":2}}');
INSERT INTO public.object VALUES (1, 13, 'Node', '', 'node-a', '9e8c5809-c4d8-4ddf-9515-3c5d4a5afdc6', NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-a","labels":{"zone":"c"},"uid":"9e8c5809-c4d8-4ddf-9515-3c5d4a5afdc6","creationTimestamp":"2026-11-26T05:00:37Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}');
INSERT INTO public.object VALUES (1, 14, 'Node', '', 'node-b', 'd39dc4c1-55d1-4f20-b950-f828c286b2ca', NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-b","labels":{"zone":"c"},"uid":"d39dc4c1-55d1-4f20-b950-f828c286b2ca","creationTimestamp":"2026-11-26T05:00:37Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}');
INSERT INTO public.object VALUES (1, 16, 'Pod', 'shop', 'web-0', 'ecde0628-ea79-4ace-87df-67aec1f726b8', 'node-b', '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"deletionTimestamp":"2026-11-26T05:00:37Z","uid":"ecde0628-ea79-4ace-87df-67aec1f726b8","creationTimestamp":"2026-11-26T05:00:37Z"},"spec":{"nodeName":"node-b","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-26T05:00:37Z"},{"type":"DisruptionTarget","status":"True","reason":"NodeAffinityViolated","message":"spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-b.","lastTransitionTime":"2026-11-26T05:00:37Z"}]}}');
INSERT INTO public.object VALUES (1, 17, 'Pod', 'shop', 'web-2', 'f11ffc01-d0b6-4e99-bdad-582c1b34b229', 'node-a', '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-2","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"deletionTimestamp":"2026-11-26T05:00:37Z","uid":"f11ffc01-d0b6-4e99-bdad-582c1b34b229","creationTimestamp":"2026-11-26T05:00:37Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-26T05:00:37Z"},{"type":"DisruptionTarget","status":"True","reason":"NodeAffinityViolated","message":"spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-a.","lastTransitionTime":"2026-11-26T05:00:37Z"}]}}');
INSERT INTO public.object VALUES (1, 15, 'Pod', 'shop', 'too-big', '1c708260-a119-495e-b0c2-99b14af13010', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"too-big","namespace":"shop","uid":"1c708260-a119-495e-b0c2-99b14af13010","creationTimestamp":"2026-11-26T05:00:37Z"},"spec":{"affinity":{},"containers":[{"name":"main","resources":{"requests":{"cpu":"64"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/3 nodes are available: 3 Insufficient cpu.","lastTransitionTime":"2026-11-26T05:00:37Z"}]}}');
INSERT INTO public.object VALUES (1, 18, 'Evictions', '', 'state', '', NULL, '{"timers":[],"recent":[{"at":"2026-11-26T05:00:37.315879Z","pods":2}],"blocked":[]}');


--
-- Data for Name: principal; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.principal VALUES ('User', 'root', '[{"role":"admin","cluster":null,"namespace":null}]', true, '2026-11-26 05:00:37.328622+00');


--
-- Data for Name: replica_report; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.replica_report VALUES ('host/14144', 1, 18, '1267d11067dacf1836634541615675b3472e9e914a8e6b4e38f56a369b81c18f-ae8afe2a2deaf0a4b3387d8b3a8e33cda0ddb186d6b5c8986d2149eb915a6d07', '2026-11-26 05:00:38.081944+00');


--
-- Data for Name: token; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.token VALUES ('31eeb97c77b8687a', 'root', '\262\031RC0i\270^\263\322\216\261\2146\007\333O\361\036\210\006\257l\031VpI\367\342\302\213\037', '', '2026-11-26 05:00:37.334085+00', NULL, NULL);


--
-- Data for Name: webhook; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.webhook VALUES (1, 'orchestrator', 'e232140b-c4db-4217-b98a-61212350697d', 1, 'https://orchestrator.example/', 'Bindings', NULL, true, 'whsec_FQ+SwjYRV0cneZMZNHbM27DMxa7kehO9lBmrmHSpMBQ=', NULL, NULL, '2026-11-26 05:00:37.32131+00', 15, NULL, NULL, '2026-11-26 05:00:37.32131+00', 0, NULL, false, NULL, NULL);


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


