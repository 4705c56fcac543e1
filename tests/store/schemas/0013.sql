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

INSERT INTO public.audit VALUES (0, 1, '2026-11-26 07:21:05.615767+00', 'everybody', '127.0.0.1', 'putCluster', 2, 'staging', 1, '7be95cd5-3ef8-4ab8-a711-96e110a0b5b8', 200, 1, '', 'f\354\276\323\302\326m!A\363h$\006\241%\3230\236\243\373\327\235\234/["\200\275s\300b\011');
INSERT INTO public.audit VALUES (0, 2, '2026-11-26 07:21:05.687318+00', 'everybody', '127.0.0.1', 'putCluster', 3, 'given-up', 1, '5b6cb647-b27e-426a-8e32-28405d7fd499', 200, 1, 'f\354\276\323\302\326m!A\363h$\006\241%\3230\236\243\373\327\235\234/["\200\275s\300b\011', 'J\026\027\325\322\037\321\353!]\246\0036l\337Ax"\355\262KtqXv\021|j\315\227\2638');
INSERT INTO public.audit VALUES (0, 3, '2026-11-26 07:21:05.762699+00', 'everybody', '127.0.0.1', 'deleteCluster', 3, 'given-up', NULL, 'bc733d77-1244-4836-8246-5acdfd293403', 200, 1, 'J\026\027\325\322\037\321\353!]\246\0036l\337Ax"\355\262KtqXv\021|j\315\227\2638', '\362\351i\3007K\245P;\0304~\025+.\313G7\207\032G\340\224U4Q\251s[OZ ');
INSERT INTO public.audit VALUES (1, 1, '2026-11-26 07:21:05.909614+00', 'everybody', '127.0.0.1', 'putNamespace', 1, 'default', 2, '14b7d96a-6f3d-425e-aa69-e5c515d72e6c', 200, 1, '', 'xq\220\356@\321\030\3124\250\356b\022Ua\265m\305Y\271\334\343\216*\320\334\243l\377\352\030t');
INSERT INTO public.audit VALUES (1, 2, '2026-11-26 07:21:05.993899+00', 'everybody', '127.0.0.1', 'putNode', 1, 'default', 3, '277447ac-a4e1-4554-b0e1-98f617342f2c', 200, 1, 'xq\220\356@\321\030\3124\250\356b\022Ua\265m\305Y\271\334\343\216*\320\334\243l\377\352\030t', '\363xw\362K\251\372|t\372\271\013\224m\014\211\266\365\246m\273\243RR\272\34596\240\205-h');
INSERT INTO public.audit VALUES (1, 3, '2026-11-26 07:21:06.062044+00', 'everybody', '127.0.0.1', 'putNode', 1, 'default', 4, 'd557305e-dc92-479c-8a24-e3f1be77a694', 200, 1, '\363xw\362K\251\372|t\372\271\013\224m\014\211\266\365\246m\273\243RR\272\34596\240\205-h', '\301N\375f\232\375\013\344\\\213b\010''\004u\017\0352s\201\021W\313\034\255\220\363\252^x\242\330');
INSERT INTO public.audit VALUES (1, 4, '2026-11-26 07:21:06.122209+00', 'everybody', '127.0.0.1', 'putNode', 1, 'default', 5, '551f371a-3fe1-4171-b33c-f87e130a6b60', 200, 1, '\301N\375f\232\375\013\344\\\213b\010''\004u\017\0352s\201\021W\313\034\255\220\363\252^x\242\330', 'FM<\003\373[\007(\211\237\331;\242j\337\365)\005UYb\035 \311\010ZB\231\306\031.V');
INSERT INTO public.audit VALUES (1, 5, '2026-11-26 07:21:06.139175+00', 'everybody', '127.0.0.1', 'putResourceQuota', 1, 'default', 6, '38911a92-5605-4753-9e70-b3de140f14de', 200, 1, 'FM<\003\373[\007(\211\237\331;\242j\337\365)\005UYb\035 \311\010ZB\231\306\031.V', 'o\345bGxr\366\207\2056\036\357\264\321\343\370\361\376\334\240x\337,\223R\257\016\213\300#\330\235');
INSERT INTO public.audit VALUES (1, 6, '2026-11-26 07:21:06.169185+00', 'everybody', '127.0.0.1', 'putPodGroup', 1, 'default', 7, '9266d6ab-48c6-4932-af40-3088652ea2bc', 200, 1, 'o\345bGxr\366\207\2056\036\357\264\321\343\370\361\376\334\240x\337,\223R\257\016\213\300#\330\235', 'Rl\230\250\022(\366\327\362[\322\261\210>\230N#\317\325\267\003\365\373]\275X\004\310_\251b\265');
INSERT INTO public.audit VALUES (1, 7, '2026-11-26 07:21:06.279625+00', 'everybody', '127.0.0.1', 'placePods', 1, 'default', 8, '6db5ce6b-ca67-438c-8a19-3c5748457b82', 200, 1, 'Rl\230\250\022(\366\327\362[\322\261\210>\230N#\317\325\267\003\365\373]\275X\004\310_\251b\265', 'W?\307\324\303\012\237\300c,\357P-\020\005\364u\254\351\033Ca~\0244&3o\374A\3312');
INSERT INTO public.audit VALUES (1, 8, '2026-11-26 07:21:06.341864+00', 'everybody', '127.0.0.1', 'placePods', 1, 'default', 9, 'e544965d-fa33-4f28-8338-7d3c42782aeb', 200, 1, 'W?\307\324\303\012\237\300c,\357P-\020\005\364u\254\351\033Ca~\0244&3o\374A\3312', '\3348 \374\340\236d\240\373\011D\003\247jkr~\031\365\264J\212\207\237v\273L\255\213\017\356\307');
INSERT INTO public.audit VALUES (1, 9, '2026-11-26 07:21:06.36942+00', 'everybody', '127.0.0.1', 'placePods', 1, 'default', 10, '43c87428-98ec-42d9-9f67-3ea64b86e046', 200, 1, '\3348 \374\340\236d\240\373\011D\003\247jkr~\031\365\264J\212\207\237v\273L\255\213\017\356\307', '\016\326\223O.o;\254\364to\203\\\216N<\212\377\301\336\342\005Vu-X\250\315\357\275WV');
INSERT INTO public.audit VALUES (1, 10, '2026-11-26 07:21:06.4253+00', 'everybody', '127.0.0.1', 'putPod', 1, 'default', 11, '634c0780-3299-4342-90c5-3e8481877079', 200, 1, '\016\326\223O.o;\254\364to\203\\\216N<\212\377\301\336\342\005Vu-X\250\315\357\275WV', 'of\015KD\377\227\253\270\372\271\214\341\002\221_\352q\330\202(A\324\035\003\266u\210\203u\351\005');
INSERT INTO public.audit VALUES (1, 11, '2026-11-26 07:21:06.529209+00', 'moorage', '', 'PlacePending', 1, 'default', 12, '', 200, 1, 'of\015KD\377\227\253\270\372\271\214\341\002\221_\352q\330\202(A\324\035\003\266u\210\203u\351\005', '\313\330\015M/+\037*\243\343[Is\301X2\036\177@\372\304\262\032\203\2219\304\027\030\367-1');
INSERT INTO public.audit VALUES (1, 12, '2026-11-26 07:21:06.547459+00', 'everybody', '127.0.0.1', 'deletePod', 1, 'default', 13, 'b9dc9825-e936-4871-86ed-e6f1cbc00048', 200, 1, '\313\330\015M/+\037*\243\343[Is\301X2\036\177@\372\304\262\032\203\2219\304\027\030\367-1', '.cq\213\033\262z\\\262\302\006/\322\014D\343\374\272\335\251\001\236=W\270\032Y\341\221W\267w');
INSERT INTO public.audit VALUES (1, 13, '2026-11-26 07:21:06.65474+00', 'everybody', '127.0.0.1', 'patchNode', 1, 'default', 14, 'c2654481-7ec0-438f-8e02-151a6024c363', 200, 1, '.cq\213\033\262z\\\262\302\006/\322\014D\343\374\272\335\251\001\236=W\270\032Y\341\221W\267w', '\243v*\373\322GC\226q\276t\025MoY\257-~Z\037\201\225j\303\344\217&%''\205\371\245');
INSERT INTO public.audit VALUES (1, 14, '2026-11-26 07:21:06.703963+00', 'moorage', '', 'EvictViolating', 1, 'default', 16, '', 200, 1, '\243v*\373\322GC\226q\276t\025MoY\257-~Z\037\201\225j\303\344\217&%''\205\371\245', ';\307\310\017H\004\3525(\024\312\243\311R4\357e\227+r\242\353\356\264w\244\025\352\236\016\306\225');
INSERT INTO public.audit VALUES (1, 15, '2026-11-26 07:21:06.73044+00', 'everybody', '127.0.0.1', 'patchNode', 1, 'default', 17, 'fce18a2b-9c77-4cc2-ba40-421792c2bdf0', 200, 1, ';\307\310\017H\004\3525(\024\312\243\311R4\357e\227+r\242\353\356\264w\244\025\352\236\016\306\225', 'W\327h\366\022\263U\327\363&M\321\227\314\260\024gM\252\002\021P\357\021\375P\223\267cg\021\304');
INSERT INTO public.audit VALUES (1, 16, '2026-11-26 07:21:06.91502+00', 'moorage', '', 'EvictViolating', 1, 'default', 19, '', 200, 1, 'W\327h\366\022\263U\327\363&M\321\227\314\260\024gM\252\002\021P\357\021\375P\223\267cg\021\304', '\274\004i\222\346kc|\256\023\216Jp\360\274\355\016\350\370\346\\\277\316\362)\330\323\244r\212iH');
INSERT INTO public.audit VALUES (0, 4, '2026-11-26 07:21:06.981523+00', 'everybody', '127.0.0.1', 'putWebhook', NULL, 'default', NULL, '307d7f23-a129-49df-ac57-978318ceb582', 200, 1, '\362\351i\3007K\245P;\0304~\025+.\313G7\207\032G\340\224U4Q\251s[OZ ', 'mQ\202\374\361\316\201P\344\266\034\310\347\016!/Y9>\027C\325u$\353\227/\343]\335y\017');
INSERT INTO public.audit VALUES (0, 5, '2026-11-26 07:21:07.060132+00', 'everybody', '127.0.0.1', 'putPrincipal', NULL, '', NULL, '7e064feb-6b82-4d7a-ba79-21f8cb7eb23b', 200, 1, 'mQ\202\374\361\316\201P\344\266\034\310\347\016!/Y9>\027C\325u$\353\227/\343]\335y\017', '\336`\224U\004Lp\340)\352\325\263*\211\2229\205\360e\311\025\365\363\2119\3774`\256,(\366');
INSERT INTO public.audit VALUES (0, 6, '2026-11-26 07:21:07.234624+00', 'everybody', '127.0.0.1', 'createToken', NULL, '', NULL, '3c2ad1ff-0365-4b93-8cc4-4262a3812fd2', 200, 1, '\336`\224U\004Lp\340)\352\325\263*\211\2229\205\360e\311\025\365\363\2119\3774`\256,(\366', 'X\031\030\253;Hw\302b\247m),\247\336\227\361W\325\35026K\342sE_\002iE^\031');


--
-- Data for Name: audit_chain; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.audit_chain VALUES (1, 'default', 16, '\274\004i\222\346kc|\256\023\216Jp\360\274\355\016\350\370\346\\\277\316\362)\330\323\244r\212iH', '2026-11-26 07:21:06.91502+00');
INSERT INTO public.audit_chain VALUES (0, '', 6, 'X\031\030\253;Hw\302b\247m),\247\336\227\361W\325\35026K\342sE_\002iE^\031', '2026-11-26 07:21:07.234624+00');


--
-- Data for Name: change; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.change VALUES (1, 1, '1eba5e35-3a52-457d-a159-692783c2bee1', true, 'Put', 'Cluster', '', 'config', '', NULL, NULL, '{}', NULL);
INSERT INTO public.change VALUES (2, 1, 'b06c5fe5-8db1-4dc7-ac9c-9cb1efc7e92f', true, 'Put', 'Cluster', '', 'config', '', NULL, NULL, '{"semantics":"Kubernetes","emptyNodeSelectorTerm":null,"requiredAffinityTerms":null,"emptyNamespaceList":null,"preferredTermWeight":null,"hardPodAffinityWeight":1,"symmetricPreferredAffinity":true,"symmetricPreferredAntiAffinity":true,"daemonNamespaces":["kube-system"],"restrictAllNamespacesAntiAffinity":true,"nodeTopologyKeys":["kubernetes.io/hostname"],"trustedNamespaces":[],"defaultTopologySpread":"List","defaultTopologySpreadConstraints":[],"scoringStrategy":"LeastAllocated","requestedToCapacityRatio":null,"profiles":[],"deviceClaims":"Allocate","volumes":"Honor","placePendingPods":true,"deviceSearchSteps":5000,"groupSearchSteps":10000,"priorityClasses":{},"limitedResources":[],"features":{"PodAffinityNamespaceSelector":true},"policies":[],"opportunityCostBasis":"Largest","queuePreemption":"Never","queuePreemptionScope":"Node","affinityViolationGraceSeconds":30,"antiAffinityVictim":"RuleOwner","evictionsPerMinute":60,"noExecuteTaints":null,"defaultNotReadyTolerationSeconds":300,"defaultUnreachableTolerationSeconds":300,"nodeConditions":null,"nodeMonitorGraceSeconds":40,"nodeEvictionRate":0.1,"secondaryNodeEvictionRate":0.01,"unhealthyZoneThreshold":0.55,"largeZoneNodes":50,"deletedNodePods":null,"orphanGraceSeconds":10}', NULL);
INSERT INTO public.change VALUES (1, 2, '44b4acb2-7f59-429c-a7ec-a13a16b9a2ac', true, 'Put', 'Namespace', '', 'shop', 'dfcb0bc1-5db9-42e6-9340-e6f117e79ff9', NULL, NULL, '{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","labels":{"team":"shop"},"uid":"dfcb0bc1-5db9-42e6-9340-e6f117e79ff9","creationTimestamp":"2026-11-26T07:21:05Z"}}', NULL);
INSERT INTO public.change VALUES (1, 3, 'fd9c9858-78e1-4669-97b6-fbd4bdeeb8ff', true, 'Put', 'Node', '', 'node-a', 'f2e7b8c5-f666-4271-bc3b-137cc7326683', NULL, NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-a","labels":{"zone":"a"},"uid":"f2e7b8c5-f666-4271-bc3b-137cc7326683","creationTimestamp":"2026-11-26T07:21:05Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}', NULL);
INSERT INTO public.change VALUES (1, 4, 'e5b6a724-d807-436f-82d3-62e222e46fdc', true, 'Put', 'Node', '', 'node-b', '5acdfd9e-e8fa-4598-a598-bcda10e39f44', NULL, NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-b","labels":{"zone":"b"},"uid":"5acdfd9e-e8fa-4598-a598-bcda10e39f44","creationTimestamp":"2026-11-26T07:21:06Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}', NULL);
INSERT INTO public.change VALUES (1, 5, '1e990f26-658a-4979-bc17-b8100c00c9b0', true, 'Put', 'Node', '', 'node-c', '1aad29e5-ef3f-45e8-b350-138a571c0cbf', NULL, NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-c","labels":{"zone":"c"},"uid":"1aad29e5-ef3f-45e8-b350-138a571c0cbf","creationTimestamp":"2026-11-26T07:21:06Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}', NULL);
INSERT INTO public.change VALUES (1, 6, '9534e12a-db65-4cc9-9c5c-7d12d52972be', true, 'Put', 'ResourceQuota', 'shop', 'pods', 'eecf818a-a496-4582-a10e-3e993a7e9539', NULL, NULL, '{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"pods","namespace":"shop","uid":"eecf818a-a496-4582-a10e-3e993a7e9539","creationTimestamp":"2026-11-26T07:21:06Z"},"spec":{"hard":{"pods":"10"}}}', NULL);
INSERT INTO public.change VALUES (1, 7, '514c850c-c6d3-4487-b3b1-e01af8318bb8', true, 'Put', 'PodGroup', 'shop', 'train', '0d67e00f-dc2c-41e7-98ad-3ad343d74c52', NULL, NULL, '{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"PodGroup","metadata":{"name":"train","namespace":"shop","uid":"0d67e00f-dc2c-41e7-98ad-3ad343d74c52","creationTimestamp":"2026-11-26T07:21:06Z"},"spec":{"minMember":2}}', NULL);
INSERT INTO public.change VALUES (1, 8, '519401d7-f347-4893-b9c0-b8305e780512', true, 'Put', 'Pod', 'shop', 'web-0', '05b9fdd1-2257-4d14-bef4-bc018f48e657', 'node-b', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"uid":"05b9fdd1-2257-4d14-bef4-bc018f48e657","creationTimestamp":"2026-11-26T07:21:06Z"},"spec":{"nodeName":"node-b","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-26T07:21:06Z"}]}}', NULL);
INSERT INTO public.change VALUES (1, 9, '3a1216f5-626c-45b3-a16a-6873dd50de48', true, 'Put', 'Pod', 'shop', 'web-1', 'de167e2c-f15a-49ab-bd8a-a110f9939dd8', 'node-a', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-1","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"uid":"de167e2c-f15a-49ab-bd8a-a110f9939dd8","creationTimestamp":"2026-11-26T07:21:06Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-26T07:21:06Z"}]}}', NULL);
INSERT INTO public.change VALUES (1, 10, 'ddcf62ab-a404-4c75-86a2-9a4aafa2bb2c', true, 'Put', 'Pod', 'shop', 'web-2', 'db315292-7734-4f43-9faf-18ac50de2e26', 'node-a', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-2","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"uid":"db315292-7734-4f43-9faf-18ac50de2e26","creationTimestamp":"2026-11-26T07:21:06Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-26T07:21:06Z"}]}}', NULL);
INSERT INTO public.change VALUES (1, 11, '45981494-e8da-4432-8b95-1ddae8835428', true, 'Put', 'Pod', 'shop', 'too-big', '8ffbafa4-d53b-4cf2-8dbb-10c1272ae519', NULL, NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"too-big","namespace":"shop","uid":"8ffbafa4-d53b-4cf2-8dbb-10c1272ae519","creationTimestamp":"2026-11-26T07:21:06Z"},"spec":{"affinity":{},"containers":[{"name":"main","resources":{"requests":{"cpu":"64"}}}]}}', NULL);
INSERT INTO public.change VALUES (1, 12, '1eadcafe-e69e-4cba-a7ae-d915f96f11ea', false, 'Put', 'Pod', 'shop', 'too-big', '8ffbafa4-d53b-4cf2-8dbb-10c1272ae519', NULL, NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"too-big","namespace":"shop","uid":"8ffbafa4-d53b-4cf2-8dbb-10c1272ae519","creationTimestamp":"2026-11-26T07:21:06Z"},"spec":{"affinity":{},"containers":[{"name":"main","resources":{"requests":{"cpu":"64"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/3 nodes are available: 3 Insufficient cpu.","lastTransitionTime":"2026-11-26T07:21:06Z"}]}}', '');
INSERT INTO public.change VALUES (1, 13, '1102869e-1c41-4cb4-b3f4-eec99e6cb2ea', false, 'Delete', 'Pod', 'shop', 'web-1', 'de167e2c-f15a-49ab-bd8a-a110f9939dd8', 'node-a', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-1","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"uid":"de167e2c-f15a-49ab-bd8a-a110f9939dd8","creationTimestamp":"2026-11-26T07:21:06Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-26T07:21:06Z"}]}}', NULL);
INSERT INTO public.change VALUES (1, 14, '1014e8d2-1679-4a9f-8119-6522037e2e12', false, 'Put', 'Node', '', 'node-a', 'f2e7b8c5-f666-4271-bc3b-137cc7326683', NULL, '{"zone":"a"}', '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-a","labels":{"zone":"c"},"uid":"f2e7b8c5-f666-4271-bc3b-137cc7326683","creationTimestamp":"2026-11-26T07:21:05Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}', '');
INSERT INTO public.change VALUES (1, 15, 'ef9259cb-1d17-4e57-bbb8-198ef3a658ae', false, 'Put', 'Pod', 'shop', 'web-2', 'db315292-7734-4f43-9faf-18ac50de2e26', 'node-a', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-2","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"deletionTimestamp":"2026-11-26T07:21:06Z","uid":"db315292-7734-4f43-9faf-18ac50de2e26","creationTimestamp":"2026-11-26T07:21:06Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-26T07:21:06Z"},{"type":"DisruptionTarget","status":"True","reason":"NodeAffinityViolated","message":"spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-a.","lastTransitionTime":"2026-11-26T07:21:06Z"}]}}', '{"metadata.deletionTimestamp":"false"}');
INSERT INTO public.change VALUES (1, 16, 'ef9259cb-1d17-4e57-bbb8-198ef3a658ae', true, 'Put', 'Evictions', '', 'state', '', NULL, NULL, '{"timers":[],"recent":[{"at":"2026-11-26T07:21:06.656645Z","pods":1}],"blocked":[]}', NULL);
INSERT INTO public.change VALUES (1, 17, 'b7b6a90e-3bd0-4d26-a628-86644a02732d', false, 'Put', 'Node', '', 'node-b', '5acdfd9e-e8fa-4598-a598-bcda10e39f44', NULL, '{"zone":"b"}', '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-b","labels":{"zone":"c"},"uid":"5acdfd9e-e8fa-4598-a598-bcda10e39f44","creationTimestamp":"2026-11-26T07:21:06Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}', '');
INSERT INTO public.change VALUES (1, 18, 'bf51707d-0f74-43f3-bb34-535b15b12379', false, 'Put', 'Pod', 'shop', 'web-0', '05b9fdd1-2257-4d14-bef4-bc018f48e657', 'node-b', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"deletionTimestamp":"2026-11-26T07:21:06Z","uid":"05b9fdd1-2257-4d14-bef4-bc018f48e657","creationTimestamp":"2026-11-26T07:21:06Z"},"spec":{"nodeName":"node-b","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-26T07:21:06Z"},{"type":"DisruptionTarget","status":"True","reason":"NodeAffinityViolated","message":"spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-b.","lastTransitionTime":"2026-11-26T07:21:06Z"}]}}', '{"metadata.deletionTimestamp":"false"}');
INSERT INTO public.change VALUES (1, 19, 'bf51707d-0f74-43f3-bb34-535b15b12379', false, 'Put', 'Evictions', '', 'state', '', NULL, NULL, '{"timers":[],"recent":[{"at":"2026-11-26T07:21:06.656645Z","pods":1},{"at":"2026-11-26T07:21:06.882449Z","pods":1}],"blocked":[]}', NULL);


--
-- Data for Name: cluster; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.cluster OVERRIDING SYSTEM VALUE VALUES (1, 'default', '2026-11-26 07:20:41.959986+00');
INSERT INTO public.cluster OVERRIDING SYSTEM VALUE VALUES (2, 'staging', '2026-11-26 07:21:05.609559+00');


--
-- Data for Name: commit; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.commit VALUES (1, 1, '1eba5e35-3a52-457d-a159-692783c2bee1', '00000000-0000-0000-0000-000000000000', 1, 0, 'CreateCluster', '2026-11-26 07:20:41.959869+00');
INSERT INTO public.commit VALUES (2, 1, 'b06c5fe5-8db1-4dc7-ac9c-9cb1efc7e92f', '00000000-0000-0000-0000-000000000000', 1, 0, 'CreateCluster', '2026-11-26 07:21:05.609225+00');
INSERT INTO public.commit VALUES (1, 2, '44b4acb2-7f59-429c-a7ec-a13a16b9a2ac', '1eba5e35-3a52-457d-a159-692783c2bee1', 2, 1, 'PutObject', '2026-11-26 07:21:05.909614+00');
INSERT INTO public.commit VALUES (1, 3, 'fd9c9858-78e1-4669-97b6-fbd4bdeeb8ff', '44b4acb2-7f59-429c-a7ec-a13a16b9a2ac', 3, 2, 'PutObject', '2026-11-26 07:21:05.993899+00');
INSERT INTO public.commit VALUES (1, 4, 'e5b6a724-d807-436f-82d3-62e222e46fdc', 'fd9c9858-78e1-4669-97b6-fbd4bdeeb8ff', 4, 3, 'PutObject', '2026-11-26 07:21:06.062044+00');
INSERT INTO public.commit VALUES (1, 5, '1e990f26-658a-4979-bc17-b8100c00c9b0', 'e5b6a724-d807-436f-82d3-62e222e46fdc', 5, 4, 'PutObject', '2026-11-26 07:21:06.122209+00');
INSERT INTO public.commit VALUES (1, 6, '9534e12a-db65-4cc9-9c5c-7d12d52972be', '1e990f26-658a-4979-bc17-b8100c00c9b0', 6, 5, 'PutObject', '2026-11-26 07:21:06.139175+00');
INSERT INTO public.commit VALUES (1, 7, '514c850c-c6d3-4487-b3b1-e01af8318bb8', '9534e12a-db65-4cc9-9c5c-7d12d52972be', 7, 6, 'PutObject', '2026-11-26 07:21:06.169185+00');
INSERT INTO public.commit VALUES (1, 8, '519401d7-f347-4893-b9c0-b8305e780512', '514c850c-c6d3-4487-b3b1-e01af8318bb8', 8, 7, 'PlacePods', '2026-11-26 07:21:06.279625+00');
INSERT INTO public.commit VALUES (1, 9, '3a1216f5-626c-45b3-a16a-6873dd50de48', '519401d7-f347-4893-b9c0-b8305e780512', 9, 8, 'PlacePods', '2026-11-26 07:21:06.341864+00');
INSERT INTO public.commit VALUES (1, 10, 'ddcf62ab-a404-4c75-86a2-9a4aafa2bb2c', '3a1216f5-626c-45b3-a16a-6873dd50de48', 10, 9, 'PlacePods', '2026-11-26 07:21:06.36942+00');
INSERT INTO public.commit VALUES (1, 11, '45981494-e8da-4432-8b95-1ddae8835428', 'ddcf62ab-a404-4c75-86a2-9a4aafa2bb2c', 11, 10, 'PutObject', '2026-11-26 07:21:06.4253+00');
INSERT INTO public.commit VALUES (1, 12, '1eadcafe-e69e-4cba-a7ae-d915f96f11ea', '45981494-e8da-4432-8b95-1ddae8835428', 12, 11, 'PlacePending', '2026-11-26 07:21:06.529209+00');
INSERT INTO public.commit VALUES (1, 13, '1102869e-1c41-4cb4-b3f4-eec99e6cb2ea', '1eadcafe-e69e-4cba-a7ae-d915f96f11ea', 13, 11, 'DeleteObject', '2026-11-26 07:21:06.547459+00');
INSERT INTO public.commit VALUES (1, 14, '1014e8d2-1679-4a9f-8119-6522037e2e12', '1102869e-1c41-4cb4-b3f4-eec99e6cb2ea', 14, 13, 'PatchObject', '2026-11-26 07:21:06.65474+00');
INSERT INTO public.commit VALUES (1, 16, 'ef9259cb-1d17-4e57-bbb8-198ef3a658ae', '1014e8d2-1679-4a9f-8119-6522037e2e12', 15, 14, 'EvictViolating', '2026-11-26 07:21:06.703963+00');
INSERT INTO public.commit VALUES (1, 17, 'b7b6a90e-3bd0-4d26-a628-86644a02732d', 'ef9259cb-1d17-4e57-bbb8-198ef3a658ae', 17, 14, 'PatchObject', '2026-11-26 07:21:06.73044+00');
INSERT INTO public.commit VALUES (1, 19, 'bf51707d-0f74-43f3-bb34-535b15b12379', 'b7b6a90e-3bd0-4d26-a628-86644a02732d', 18, 17, 'EvictViolating', '2026-11-26 07:21:06.91502+00');


--
-- Data for Name: event; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.event VALUES (1, 'shop', 'web-2.6a5ba72e20430688', 'web-2', 'db315292-7734-4f43-9faf-18ac50de2e26', 'Warning', 'Evicted', 'spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-a.', 15, 1, '2026-11-26 07:21:06+00', '2026-11-26 07:21:06+00');
INSERT INTO public.event VALUES (1, 'shop', 'too-big.9eaa44bc113e9f98', 'too-big', '8ffbafa4-d53b-4cf2-8dbb-10c1272ae519', 'Warning', 'FailedScheduling', '0/3 nodes are available: 3 Insufficient cpu.', 13, 2, '2026-11-26 07:21:06+00', '2026-11-26 07:21:06+00');
INSERT INTO public.event VALUES (1, 'shop', 'web-0.41051524d8573ff5', 'web-0', '05b9fdd1-2257-4d14-bef4-bc018f48e657', 'Normal', 'Scheduled', 'Successfully assigned shop/web-0 to node-b', 8, 1, '2026-11-26 07:21:06+00', '2026-11-26 07:21:06+00');
INSERT INTO public.event VALUES (1, 'shop', 'web-1.ebe45e5a97ea6431', 'web-1', 'de167e2c-f15a-49ab-bd8a-a110f9939dd8', 'Normal', 'Scheduled', 'Successfully assigned shop/web-1 to node-a', 9, 1, '2026-11-26 07:21:06+00', '2026-11-26 07:21:06+00');
INSERT INTO public.event VALUES (1, 'shop', 'web-2.3847f9daddcd331c', 'web-2', 'db315292-7734-4f43-9faf-18ac50de2e26', 'Normal', 'Scheduled', 'Successfully assigned shop/web-2 to node-a', 10, 1, '2026-11-26 07:21:06+00', '2026-11-26 07:21:06+00');
INSERT INTO public.event VALUES (1, 'shop', 'web-0.724498d927532461', 'web-0', '05b9fdd1-2257-4d14-bef4-bc018f48e657', 'Warning', 'Evicted', 'spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-b.', 18, 1, '2026-11-26 07:21:06+00', '2026-11-26 07:21:06+00');


--
-- Data for Name: floor; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.floor VALUES (1, 0);
INSERT INTO public.floor VALUES (2, 0);


--
-- Data for Name: head; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.head VALUES (2, 1, 'b06c5fe5-8db1-4dc7-ac9c-9cb1efc7e92f', '2026-11-26 07:21:05.609225+00');
INSERT INTO public.head VALUES (1, 19, 'bf51707d-0f74-43f3-bb34-535b15b12379', '2026-11-26 07:21:06.91502+00');


--
-- Data for Name: history; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.history VALUES (1, 7712376586633826530, 1, 12784);


--
-- Data for Name: idempotency; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.idempotency VALUES (1, 'placePods', 'order-of-web-0', 0, 'x\203Y\226\272\025Q\211\253\214kEc?\360\351\376\357\3376\215N\316\332\226\362\035\221\257\200\303\273', '\225\305\001\015{"revision":8,"committed":true,"attempts":1,"results":[{"namespace":"shop","name":"web-0","uid":"05b9fdd1-2257-4d14-bef4-bc018f48e657","outcome":"Placed","nodeName":"node-b","score":485,"plannedRevision":7,"reason":null,"message":null,"explanation":null}],"group":null}\314\310\300\300\302', '2026-11-26 07:21:06.279625+00');
INSERT INTO public.idempotency VALUES (1, 'placePods', 'order-of-web-1', 0, '\275\352\001(7\0255\267z\346\003\270\205\033\204E\022a]$7\252\032\033s0\364\227\306\0273\205', '\225\305\001\015{"revision":9,"committed":true,"attempts":1,"results":[{"namespace":"shop","name":"web-1","uid":"de167e2c-f15a-49ab-bd8a-a110f9939dd8","outcome":"Placed","nodeName":"node-a","score":485,"plannedRevision":8,"reason":null,"message":null,"explanation":null}],"group":null}\314\310\300\300\302', '2026-11-26 07:21:06.341864+00');
INSERT INTO public.idempotency VALUES (1, 'placePods', 'order-of-web-2', 0, 'M>\320\300\351\004\003\027\234\021R\000b\236@\202u\256o~\212\355{ZKw\320\232\013\312\305\236', '\225\305\001\016{"revision":10,"committed":true,"attempts":1,"results":[{"namespace":"shop","name":"web-2","uid":"db315292-7734-4f43-9faf-18ac50de2e26","outcome":"Placed","nodeName":"node-a","score":472,"plannedRevision":9,"reason":null,"message":null,"explanation":null}],"group":null}\314\310\300\300\302', '2026-11-26 07:21:06.36942+00');


--
-- Data for Name: lease; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.lease VALUES (1, 'requests@vm:41995', 'e64f8169-3fa4-42e7-838f-5a0c4a5b3e4e', '2026-11-26 07:21:15.813575+00');
INSERT INTO public.lease VALUES (1, 'evictions', '1ff887a9-786a-4818-8f6a-4f2c5f696c40', '2026-11-26 07:21:10.456535+00');
INSERT INTO public.lease VALUES (1, 'pending', '1ff887a9-786a-4818-8f6a-4f2c5f696c40', '2026-11-26 07:21:10.458681+00');
INSERT INTO public.lease VALUES (1, 'nodes', '1ff887a9-786a-4818-8f6a-4f2c5f696c40', '2026-11-26 07:21:10.978534+00');


--
-- Data for Name: node_lease; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.node_lease VALUES (1, 'node-c', '2026-11-26 07:21:06.791993+00');


--
-- Data for Name: object; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.object VALUES (1, 1, 'Cluster', '', 'config', '', NULL, '{}');
INSERT INTO public.object VALUES (2, 1, 'Cluster', '', 'config', '', NULL, '{"semantics":"Kubernetes","emptyNodeSelectorTerm":null,"requiredAffinityTerms":null,"emptyNamespaceList":null,"preferredTermWeight":null,"hardPodAffinityWeight":1,"symmetricPreferredAffinity":true,"symmetricPreferredAntiAffinity":true,"daemonNamespaces":["kube-system"],"restrictAllNamespacesAntiAffinity":true,"nodeTopologyKeys":["kubernetes.io/hostname"],"trustedNamespaces":[],"defaultTopologySpread":"List","defaultTopologySpreadConstraints":[],"scoringStrategy":"LeastAllocated","requestedToCapacityRatio":null,"profiles":[],"deviceClaims":"Allocate","volumes":"Honor","placePendingPods":true,"deviceSearchSteps":5000,"groupSearchSteps":10000,"priorityClasses":{},"limitedResources":[],"features":{"PodAffinityNamespaceSelector":true},"policies":[],"opportunityCostBasis":"Largest","queuePreemption":"Never","queuePreemptionScope":"Node","affinityViolationGraceSeconds":30,"antiAffinityVictim":"RuleOwner","evictionsPerMinute":60,"noExecuteTaints":null,"defaultNotReadyTolerationSeconds":300,"defaultUnreachableTolerationSeconds":300,"nodeConditions":null,"nodeMonitorGraceSeconds":40,"nodeEvictionRate":0.1,"secondaryNodeEvictionRate":0.01,"unhealthyZoneThreshold":0.55,"largeZoneNodes":50,"deletedNodePods":null,"orphanGraceSeconds":10}');
INSERT INTO public.object VALUES (1, 2, 'Namespace', '', 'shop', 'dfcb0bc1-5db9-42e6-9340-e6f117e79ff9', NULL, '{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","labels":{"team":"shop"},"uid":"dfcb0bc1-5db9-42e6-9340-e6f117e79ff9","creationTimestamp":"2026-11-26T07:21:05Z"}}');
INSERT INTO public.object VALUES (1, 5, 'Node', '', 'node-c', '1aad29e5-ef3f-45e8-b350-138a571c0cbf', NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-c","labels":{"zone":"c"},"uid":"1aad29e5-ef3f-45e8-b350-138a571c0cbf","creationTimestamp":"2026-11-26T07:21:06Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}');
INSERT INTO public.object VALUES (1, 6, 'ResourceQuota', 'shop', 'pods', 'eecf818a-a496-4582-a10e-3e993a7e9539', NULL, '{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"pods","namespace":"shop","uid":"eecf818a-a496-4582-a10e-3e993a7e9539","creationTimestamp":"2026-11-26T07:21:06Z"},"spec":{"hard":{"pods":"10"}}}');
INSERT INTO public.object VALUES (1, 7, 'PodGroup', 'shop', 'train', '0d67e00f-dc2c-41e7-98ad-3ad343d74c52', NULL, '{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"PodGroup","metadata":{"name":"train","namespace":"shop","uid":"0d67e00f-dc2c-41e7-98ad-3ad343d74c52","creationTimestamp":"2026-11-26T07:21:06Z"},"spec":{"minMember":2}}');
INSERT INTO public.object VALUES (1, 14, 'Node', '', 'node-a', 'f2e7b8c5-f666-4271-bc3b-137cc7326683', NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-a","labels":{"zone":"c"},"uid":"f2e7b8c5-f666-4271-bc3b-137cc7326683","creationTimestamp":"2026-11-26T07:21:05Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}');
INSERT INTO public.object VALUES (1, 15, 'Pod', 'shop', 'web-2', 'db315292-7734-4f43-9faf-18ac50de2e26', 'node-a', '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-2","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"deletionTimestamp":"2026-11-26T07:21:06Z","uid":"db315292-7734-4f43-9faf-18ac50de2e26","creationTimestamp":"2026-11-26T07:21:06Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-26T07:21:06Z"},{"type":"DisruptionTarget","status":"True","reason":"NodeAffinityViolated","message":"spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-a.","lastTransitionTime":"2026-11-26T07:21:06Z"}]}}');
INSERT INTO public.object VALUES (1, 17, 'Node', '', 'node-b', '5acdfd9e-e8fa-4598-a598-bcda10e39f44', NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-b","labels":{"zone":"c"},"uid":"5acdfd9e-e8fa-4598-a598-bcda10e39f44","creationTimestamp":"2026-11-26T07:21:06Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}');
INSERT INTO public.object VALUES (1, 18, 'Pod', 'shop', 'web-0', '05b9fdd1-2257-4d14-bef4-bc018f48e657', 'node-b', '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"deletionTimestamp":"2026-11-26T07:21:06Z","uid":"05b9fdd1-2257-4d14-bef4-bc018f48e657","creationTimestamp":"2026-11-26T07:21:06Z"},"spec":{"nodeName":"node-b","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-26T07:21:06Z"},{"type":"DisruptionTarget","status":"True","reason":"NodeAffinityViolated","message":"spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-b.","lastTransitionTime":"2026-11-26T07:21:06Z"}]}}');
INSERT INTO public.object VALUES (1, 12, 'Pod', 'shop', 'too-big', '8ffbafa4-d53b-4cf2-8dbb-10c1272ae519', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"too-big","namespace":"shop","uid":"8ffbafa4-d53b-4cf2-8dbb-10c1272ae519","creationTimestamp":"2026-11-26T07:21:06Z"},"spec":{"affinity":{},"containers":[{"name":"main","resources":{"requests":{"cpu":"64"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/3 nodes are available: 3 Insufficient cpu.","lastTransitionTime":"2026-11-26T07:21:06Z"}]}}');
INSERT INTO public.object VALUES (1, 19, 'Evictions', '', 'state', '', NULL, '{"timers":[],"recent":[{"at":"2026-11-26T07:21:06.656645Z","pods":1},{"at":"2026-11-26T07:21:06.882449Z","pods":1}],"blocked":[]}');


--
-- Data for Name: principal; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.principal VALUES ('User', 'root', '[{"role":"admin","cluster":null,"namespace":null}]', true, '2026-11-26 07:21:07.056332+00');


--
-- Data for Name: replica_report; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.replica_report VALUES ('host/15146', 1, 19, '309080ae815451a83801c4926e6db270f37aff7f81e9455ca40f83f0c6ea9be4-ae8afe2a2deaf0a4b3387d8b3a8e33cda0ddb186d6b5c8986d2149eb915a6d07', '2026-11-26 07:21:07.210137+00');


--
-- Data for Name: token; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.token VALUES ('3f786e3617ce2820', 'root', '\202\002\250\250\363_+\255''5sX\236\020\220\311\001\321\363\325\213\330\031\375ML\2736\251\364H\356', '', '2026-11-26 07:21:07.198236+00', NULL, NULL);


--
-- Data for Name: webhook; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.webhook VALUES (1, 'orchestrator', '6ef8c6f2-a703-4327-a453-f096b97a17e1', 1, 'https://orchestrator.example/', 'Bindings', NULL, true, 'whsec_Fiuc9BbxBGCrhrNM8yr/98bkSV5sjDObf0nXlgCllP8=', NULL, NULL, '2026-11-26 07:21:06.88667+00', 17, NULL, NULL, '2026-11-26 07:21:06.88667+00', 0, NULL, false, NULL, NULL);


--
-- Data for Name: worker; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.worker VALUES ('host:41995', 'e64f8169-3fa4-42e7-838f-5a0c4a5b3e4e', '2026-11-26 07:21:14.854686+00');
INSERT INTO public.worker VALUES ('host:41995', '26400e6e-a746-4215-81f3-d36304e18380', '2026-11-26 07:21:18.069868+00');


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


