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
    DELETE FROM cluster WHERE cluster_id = p_cluster_id;
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
-- Data for Name: access_state; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.access_state VALUES (true, 3);


--
-- Data for Name: alembic_version; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.alembic_version VALUES ('0006');


--
-- Data for Name: change; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.change VALUES (1, 1, '3e0dc199-a051-44e7-9920-32aada1db4c9', true, 'Put', 'Cluster', '', 'config', '', NULL, NULL, '{}');
INSERT INTO public.change VALUES (2, 1, '4229c6d3-6e54-4ede-88c1-51a73431aace', true, 'Put', 'Cluster', '', 'config', '', NULL, NULL, '{"semantics":"Kubernetes","emptyNodeSelectorTerm":null,"requiredAffinityTerms":null,"emptyNamespaceList":null,"preferredTermWeight":null,"hardPodAffinityWeight":1,"symmetricPreferredAffinity":true,"symmetricPreferredAntiAffinity":true,"daemonNamespaces":["kube-system"],"restrictAllNamespacesAntiAffinity":true,"nodeTopologyKeys":["kubernetes.io/hostname"],"trustedNamespaces":[],"defaultTopologySpreadConstraints":[],"scoringStrategy":"LeastAllocated","requestedToCapacityRatio":null,"profiles":[],"placePendingPods":true,"groupSearchSteps":10000,"priorityClasses":{},"limitedResources":[],"opportunityCostBasis":"Largest","affinityViolationGraceSeconds":30,"antiAffinityVictim":"RuleOwner","evictionsPerMinute":60}');
INSERT INTO public.change VALUES (1, 2, 'd3c09270-0615-465f-8490-32f256ecebd3', true, 'Put', 'Namespace', '', 'shop', '17e36514-589d-4892-a0de-11224e782a60', NULL, NULL, '{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","labels":{"team":"shop"},"uid":"17e36514-589d-4892-a0de-11224e782a60","creationTimestamp":"2026-11-22T23:20:31Z"}}');
INSERT INTO public.change VALUES (1, 3, '979a8d02-4741-4b08-b2a2-f24b55e191be', true, 'Put', 'Node', '', 'node-a', '66b77562-64d5-4c15-ac21-a22cf3946ae0', NULL, NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-a","labels":{"zone":"a"},"uid":"66b77562-64d5-4c15-ac21-a22cf3946ae0","creationTimestamp":"2026-11-22T23:20:31Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}');
INSERT INTO public.change VALUES (1, 4, '8d547a97-ffd5-422e-adf1-2d169a78b596', true, 'Put', 'Node', '', 'node-b', '5fa82f1f-66eb-47d0-8e8a-ae9f724d1e61', NULL, NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-b","labels":{"zone":"b"},"uid":"5fa82f1f-66eb-47d0-8e8a-ae9f724d1e61","creationTimestamp":"2026-11-22T23:20:31Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}');
INSERT INTO public.change VALUES (1, 5, 'd2efa93d-41c1-402e-ad00-7a30067a577d', true, 'Put', 'Node', '', 'node-c', '06ce9e63-581d-4c04-87ae-4f712433b866', NULL, NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-c","labels":{"zone":"c"},"uid":"06ce9e63-581d-4c04-87ae-4f712433b866","creationTimestamp":"2026-11-22T23:20:31Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}');
INSERT INTO public.change VALUES (1, 6, '1a608957-7068-42c7-898e-f4ea1021af54', true, 'Put', 'ResourceQuota', 'shop', 'pods', 'a0c2d341-3f75-41f1-bb80-77b5bac0a068', NULL, NULL, '{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"pods","namespace":"shop","uid":"a0c2d341-3f75-41f1-bb80-77b5bac0a068","creationTimestamp":"2026-11-22T23:20:31Z"},"spec":{"hard":{"pods":"10"}}}');
INSERT INTO public.change VALUES (1, 7, '8a77abd0-423d-4d5f-a036-a51574974730', true, 'Put', 'PodGroup', 'shop', 'train', '0d653adf-39f0-4d5a-a8f4-2131a87e75d2', NULL, NULL, '{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"PodGroup","metadata":{"name":"train","namespace":"shop","uid":"0d653adf-39f0-4d5a-a8f4-2131a87e75d2","creationTimestamp":"2026-11-22T23:20:31Z"},"spec":{"minMember":2}}');
INSERT INTO public.change VALUES (1, 8, 'fb520558-0371-43aa-a64f-847bcda41d87', true, 'Put', 'Pod', 'shop', 'web-0', '117ba97a-987c-435c-ba1f-0f0c213ab6c0', 'node-b', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"uid":"117ba97a-987c-435c-ba1f-0f0c213ab6c0","creationTimestamp":"2026-11-22T23:20:31Z"},"spec":{"nodeName":"node-b","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-22T23:20:31Z"}]}}');
INSERT INTO public.change VALUES (1, 9, 'b10d3b1c-7cdf-4005-81f2-e1917018a2d4', true, 'Put', 'Pod', 'shop', 'web-1', '2613cd8e-dd9d-46a5-be69-80ca47e52421', 'node-a', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-1","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"uid":"2613cd8e-dd9d-46a5-be69-80ca47e52421","creationTimestamp":"2026-11-22T23:20:31Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-22T23:20:31Z"}]}}');
INSERT INTO public.change VALUES (1, 10, '408d6984-d5d0-4875-8c24-582be425575f', true, 'Put', 'Pod', 'shop', 'web-2', 'eed231af-748a-4172-ad10-477f90af4818', 'node-a', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-2","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"uid":"eed231af-748a-4172-ad10-477f90af4818","creationTimestamp":"2026-11-22T23:20:31Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-22T23:20:31Z"}]}}');
INSERT INTO public.change VALUES (1, 11, '95b51b22-3d8c-40c3-8322-0f8aa9e5c6a8', true, 'Put', 'Pod', 'shop', 'too-big', 'dc2e57ba-d604-4d4a-97e7-ffd761b105ef', NULL, NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"too-big","namespace":"shop","uid":"dc2e57ba-d604-4d4a-97e7-ffd761b105ef","creationTimestamp":"2026-11-22T23:20:31Z"},"spec":{"affinity":{},"containers":[{"name":"main","resources":{"requests":{"cpu":"64"}}}]}}');
INSERT INTO public.change VALUES (1, 12, '2da89283-9f3c-4c9a-8f9e-6d29516e43ea', false, 'Delete', 'Pod', 'shop', 'web-1', '2613cd8e-dd9d-46a5-be69-80ca47e52421', 'node-a', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-1","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"uid":"2613cd8e-dd9d-46a5-be69-80ca47e52421","creationTimestamp":"2026-11-22T23:20:31Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-22T23:20:31Z"}]}}');
INSERT INTO public.change VALUES (1, 13, '0c4846c5-35e9-4fd4-ae29-85f32da0618d', false, 'Put', 'Node', '', 'node-a', '66b77562-64d5-4c15-ac21-a22cf3946ae0', NULL, '{"zone":"a"}', '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-a","labels":{"zone":"c"},"uid":"66b77562-64d5-4c15-ac21-a22cf3946ae0","creationTimestamp":"2026-11-22T23:20:31Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}');
INSERT INTO public.change VALUES (1, 14, '38206e1b-235f-4722-ba94-dd166adf0ad8', false, 'Put', 'Node', '', 'node-b', '5fa82f1f-66eb-47d0-8e8a-ae9f724d1e61', NULL, '{"zone":"b"}', '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-b","labels":{"zone":"c"},"uid":"5fa82f1f-66eb-47d0-8e8a-ae9f724d1e61","creationTimestamp":"2026-11-22T23:20:31Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}');
INSERT INTO public.change VALUES (1, 15, '20fb04f8-a9c7-4d64-aa5f-9b28d5be91bf', false, 'Put', 'Pod', 'shop', 'web-0', '117ba97a-987c-435c-ba1f-0f0c213ab6c0', 'node-b', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"deletionTimestamp":"2026-11-22T23:20:31Z","uid":"117ba97a-987c-435c-ba1f-0f0c213ab6c0","creationTimestamp":"2026-11-22T23:20:31Z"},"spec":{"nodeName":"node-b","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-22T23:20:31Z"},{"type":"DisruptionTarget","status":"True","reason":"NodeAffinityViolated","message":"spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-b.","lastTransitionTime":"2026-11-22T23:20:31Z"}]}}');
INSERT INTO public.change VALUES (1, 16, '20fb04f8-a9c7-4d64-aa5f-9b28d5be91bf', false, 'Put', 'Pod', 'shop', 'web-2', 'eed231af-748a-4172-ad10-477f90af4818', 'node-a', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-2","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"deletionTimestamp":"2026-11-22T23:20:31Z","uid":"eed231af-748a-4172-ad10-477f90af4818","creationTimestamp":"2026-11-22T23:20:31Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-22T23:20:31Z"},{"type":"DisruptionTarget","status":"True","reason":"NodeAffinityViolated","message":"spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-a.","lastTransitionTime":"2026-11-22T23:20:31Z"}]}}');
INSERT INTO public.change VALUES (1, 17, '20fb04f8-a9c7-4d64-aa5f-9b28d5be91bf', true, 'Put', 'Evictions', '', 'state', '', NULL, NULL, '{"timers":[],"recent":[{"at":"2026-11-22T23:20:31.604747Z","pods":2}]}');
INSERT INTO public.change VALUES (1, 18, '8b59a0e3-afb4-437e-bd50-098c76b2eba6', false, 'Put', 'Pod', 'shop', 'too-big', 'dc2e57ba-d604-4d4a-97e7-ffd761b105ef', NULL, NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"too-big","namespace":"shop","uid":"dc2e57ba-d604-4d4a-97e7-ffd761b105ef","creationTimestamp":"2026-11-22T23:20:31Z"},"spec":{"affinity":{},"containers":[{"name":"main","resources":{"requests":{"cpu":"64"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/3 nodes are available: 3 Insufficient cpu.","lastTransitionTime":"2026-11-22T23:20:31Z"}]}}');


--
-- Data for Name: cluster; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.cluster OVERRIDING SYSTEM VALUE VALUES (1, 'default', '2026-11-22 23:20:19.995131+00');
INSERT INTO public.cluster OVERRIDING SYSTEM VALUE VALUES (2, 'staging', '2026-11-22 23:20:31.416538+00');


--
-- Data for Name: commit; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.commit VALUES (1, 1, '3e0dc199-a051-44e7-9920-32aada1db4c9', '00000000-0000-0000-0000-000000000000', 1, 0, 'CreateCluster', '2026-11-22 23:20:19.994866+00');
INSERT INTO public.commit VALUES (2, 1, '4229c6d3-6e54-4ede-88c1-51a73431aace', '00000000-0000-0000-0000-000000000000', 1, 0, 'CreateCluster', '2026-11-22 23:20:31.416034+00');
INSERT INTO public.commit VALUES (1, 2, 'd3c09270-0615-465f-8490-32f256ecebd3', '3e0dc199-a051-44e7-9920-32aada1db4c9', 2, 1, 'PutObject', '2026-11-22 23:20:31.483389+00');
INSERT INTO public.commit VALUES (1, 3, '979a8d02-4741-4b08-b2a2-f24b55e191be', 'd3c09270-0615-465f-8490-32f256ecebd3', 3, 2, 'PutObject', '2026-11-22 23:20:31.496717+00');
INSERT INTO public.commit VALUES (1, 4, '8d547a97-ffd5-422e-adf1-2d169a78b596', '979a8d02-4741-4b08-b2a2-f24b55e191be', 4, 3, 'PutObject', '2026-11-22 23:20:31.502765+00');
INSERT INTO public.commit VALUES (1, 5, 'd2efa93d-41c1-402e-ad00-7a30067a577d', '8d547a97-ffd5-422e-adf1-2d169a78b596', 5, 4, 'PutObject', '2026-11-22 23:20:31.507743+00');
INSERT INTO public.commit VALUES (1, 6, '1a608957-7068-42c7-898e-f4ea1021af54', 'd2efa93d-41c1-402e-ad00-7a30067a577d', 6, 5, 'PutObject', '2026-11-22 23:20:31.512928+00');
INSERT INTO public.commit VALUES (1, 7, '8a77abd0-423d-4d5f-a036-a51574974730', '1a608957-7068-42c7-898e-f4ea1021af54', 7, 6, 'PutObject', '2026-11-22 23:20:31.518067+00');
INSERT INTO public.commit VALUES (1, 8, 'fb520558-0371-43aa-a64f-847bcda41d87', '8a77abd0-423d-4d5f-a036-a51574974730', 8, 7, 'PlacePods', '2026-11-22 23:20:31.532882+00');
INSERT INTO public.commit VALUES (1, 9, 'b10d3b1c-7cdf-4005-81f2-e1917018a2d4', 'fb520558-0371-43aa-a64f-847bcda41d87', 9, 8, 'PlacePods', '2026-11-22 23:20:31.565814+00');
INSERT INTO public.commit VALUES (1, 10, '408d6984-d5d0-4875-8c24-582be425575f', 'b10d3b1c-7cdf-4005-81f2-e1917018a2d4', 10, 9, 'PlacePods', '2026-11-22 23:20:31.576534+00');
INSERT INTO public.commit VALUES (1, 11, '95b51b22-3d8c-40c3-8322-0f8aa9e5c6a8', '408d6984-d5d0-4875-8c24-582be425575f', 11, 10, 'PutObject', '2026-11-22 23:20:31.585813+00');
INSERT INTO public.commit VALUES (1, 12, '2da89283-9f3c-4c9a-8f9e-6d29516e43ea', '95b51b22-3d8c-40c3-8322-0f8aa9e5c6a8', 12, 11, 'DeleteObject', '2026-11-22 23:20:31.59098+00');
INSERT INTO public.commit VALUES (1, 13, '0c4846c5-35e9-4fd4-ae29-85f32da0618d', '2da89283-9f3c-4c9a-8f9e-6d29516e43ea', 13, 12, 'PatchObject', '2026-11-22 23:20:31.598235+00');
INSERT INTO public.commit VALUES (1, 14, '38206e1b-235f-4722-ba94-dd166adf0ad8', '0c4846c5-35e9-4fd4-ae29-85f32da0618d', 14, 13, 'PatchObject', '2026-11-22 23:20:31.604176+00');
INSERT INTO public.commit VALUES (1, 17, '20fb04f8-a9c7-4d64-aa5f-9b28d5be91bf', '38206e1b-235f-4722-ba94-dd166adf0ad8', 15, 14, 'EvictViolating', '2026-11-22 23:20:31.611552+00');
INSERT INTO public.commit VALUES (1, 18, '8b59a0e3-afb4-437e-bd50-098c76b2eba6', '20fb04f8-a9c7-4d64-aa5f-9b28d5be91bf', 18, 14, 'PlacePending', '2026-11-22 23:20:31.622274+00');


--
-- Data for Name: event; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.event VALUES (1, 'shop', 'web-0.1f7602764f74ca31', 'web-0', '117ba97a-987c-435c-ba1f-0f0c213ab6c0', 'Warning', 'Evicted', 'spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-b.', 15, 1, '2026-11-22 23:20:31+00', '2026-11-22 23:20:31+00');
INSERT INTO public.event VALUES (1, 'shop', 'web-2.4218046ce45854c6', 'web-2', 'eed231af-748a-4172-ad10-477f90af4818', 'Warning', 'Evicted', 'spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-a.', 16, 1, '2026-11-22 23:20:31+00', '2026-11-22 23:20:31+00');
INSERT INTO public.event VALUES (1, 'shop', 'too-big.e4a21af5268f82eb', 'too-big', 'dc2e57ba-d604-4d4a-97e7-ffd761b105ef', 'Warning', 'FailedScheduling', '0/3 nodes are available: 3 Insufficient cpu.', 18, 1, '2026-11-22 23:20:31+00', '2026-11-22 23:20:31+00');
INSERT INTO public.event VALUES (1, 'shop', 'web-0.c227dc305467c68d', 'web-0', '117ba97a-987c-435c-ba1f-0f0c213ab6c0', 'Normal', 'Scheduled', 'Successfully assigned shop/web-0 to node-b', 8, 1, '2026-11-22 23:20:31+00', '2026-11-22 23:20:31+00');
INSERT INTO public.event VALUES (1, 'shop', 'web-1.4d67ecedd25d7389', 'web-1', '2613cd8e-dd9d-46a5-be69-80ca47e52421', 'Normal', 'Scheduled', 'Successfully assigned shop/web-1 to node-a', 9, 1, '2026-11-22 23:20:31+00', '2026-11-22 23:20:31+00');
INSERT INTO public.event VALUES (1, 'shop', 'web-2.d2f0bad41e742248', 'web-2', 'eed231af-748a-4172-ad10-477f90af4818', 'Normal', 'Scheduled', 'Successfully assigned shop/web-2 to node-a', 10, 1, '2026-11-22 23:20:31+00', '2026-11-22 23:20:31+00');


--
-- Data for Name: floor; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.floor VALUES (1, 0);
INSERT INTO public.floor VALUES (2, 0);


--
-- Data for Name: head; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.head VALUES (2, 1, '4229c6d3-6e54-4ede-88c1-51a73431aace', '2026-11-22 23:20:31.416034+00');
INSERT INTO public.head VALUES (1, 18, '8b59a0e3-afb4-437e-bd50-098c76b2eba6', '2026-11-22 23:20:31.622274+00');


--
-- Data for Name: idempotency; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.idempotency VALUES (1, 'placePods', 'order-of-web-0', 0, 'x\203Y\226\272\025Q\211\253\214kEc?\360\351\376\357\3376\215N\316\332\226\362\035\221\257\200\303\273', '\223\305\001\015{"revision":8,"committed":true,"attempts":1,"results":[{"namespace":"shop","name":"web-0","uid":"117ba97a-987c-435c-ba1f-0f0c213ab6c0","outcome":"Placed","nodeName":"node-b","score":485,"plannedRevision":7,"reason":null,"message":null,"explanation":null}],"group":null}\314\310\300', '2026-11-22 23:20:31.532882+00');
INSERT INTO public.idempotency VALUES (1, 'placePods', 'order-of-web-1', 0, '\275\352\001(7\0255\267z\346\003\270\205\033\204E\022a]$7\252\032\033s0\364\227\306\0273\205', '\223\305\001\015{"revision":9,"committed":true,"attempts":1,"results":[{"namespace":"shop","name":"web-1","uid":"2613cd8e-dd9d-46a5-be69-80ca47e52421","outcome":"Placed","nodeName":"node-a","score":485,"plannedRevision":8,"reason":null,"message":null,"explanation":null}],"group":null}\314\310\300', '2026-11-22 23:20:31.565814+00');
INSERT INTO public.idempotency VALUES (1, 'placePods', 'order-of-web-2', 0, 'M>\320\300\351\004\003\027\234\021R\000b\236@\202u\256o~\212\355{ZKw\320\232\013\312\305\236', '\223\305\001\016{"revision":10,"committed":true,"attempts":1,"results":[{"namespace":"shop","name":"web-2","uid":"eed231af-748a-4172-ad10-477f90af4818","outcome":"Placed","nodeName":"node-a","score":472,"plannedRevision":9,"reason":null,"message":null,"explanation":null}],"group":null}\314\310\300', '2026-11-22 23:20:31.576534+00');


--
-- Data for Name: lease; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.lease VALUES (1, 'evictions', '3da28208-cd91-4c42-82e3-2e777222f5ab', '2026-11-22 23:20:34.545307+00');
INSERT INTO public.lease VALUES (1, 'pending', '3da28208-cd91-4c42-82e3-2e777222f5ab', '2026-11-22 23:20:34.613599+00');


--
-- Data for Name: object; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.object VALUES (1, 1, 'Cluster', '', 'config', '', NULL, '{}');
INSERT INTO public.object VALUES (2, 1, 'Cluster', '', 'config', '', NULL, '{"semantics":"Kubernetes","emptyNodeSelectorTerm":null,"requiredAffinityTerms":null,"emptyNamespaceList":null,"preferredTermWeight":null,"hardPodAffinityWeight":1,"symmetricPreferredAffinity":true,"symmetricPreferredAntiAffinity":true,"daemonNamespaces":["kube-system"],"restrictAllNamespacesAntiAffinity":true,"nodeTopologyKeys":["kubernetes.io/hostname"],"trustedNamespaces":[],"defaultTopologySpreadConstraints":[],"scoringStrategy":"LeastAllocated","requestedToCapacityRatio":null,"profiles":[],"placePendingPods":true,"groupSearchSteps":10000,"priorityClasses":{},"limitedResources":[],"opportunityCostBasis":"Largest","affinityViolationGraceSeconds":30,"antiAffinityVictim":"RuleOwner","evictionsPerMinute":60}');
INSERT INTO public.object VALUES (1, 2, 'Namespace', '', 'shop', '17e36514-589d-4892-a0de-11224e782a60', NULL, '{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","labels":{"team":"shop"},"uid":"17e36514-589d-4892-a0de-11224e782a60","creationTimestamp":"2026-11-22T23:20:31Z"}}');
INSERT INTO public.object VALUES (1, 5, 'Node', '', 'node-c', '06ce9e63-581d-4c04-87ae-4f712433b866', NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-c","labels":{"zone":"c"},"uid":"06ce9e63-581d-4c04-87ae-4f712433b866","creationTimestamp":"2026-11-22T23:20:31Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}');
INSERT INTO public.object VALUES (1, 6, 'ResourceQuota', 'shop', 'pods', 'a0c2d341-3f75-41f1-bb80-77b5bac0a068', NULL, '{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"pods","namespace":"shop","uid":"a0c2d341-3f75-41f1-bb80-77b5bac0a068","creationTimestamp":"2026-11-22T23:20:31Z"},"spec":{"hard":{"pods":"10"}}}');
INSERT INTO public.object VALUES (1, 7, 'PodGroup', 'shop', 'train', '0d653adf-39f0-4d5a-a8f4-2131a87e75d2', NULL, '{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"PodGroup","metadata":{"name":"train","namespace":"shop","uid":"0d653adf-39f0-4d5a-a8f4-2131a87e75d2","creationTimestamp":"2026-11-22T23:20:31Z"},"spec":{"minMember":2}}');
INSERT INTO public.object VALUES (1, 13, 'Node', '', 'node-a', '66b77562-64d5-4c15-ac21-a22cf3946ae0', NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-a","labels":{"zone":"c"},"uid":"66b77562-64d5-4c15-ac21-a22cf3946ae0","creationTimestamp":"2026-11-22T23:20:31Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}');
INSERT INTO public.object VALUES (1, 14, 'Node', '', 'node-b', '5fa82f1f-66eb-47d0-8e8a-ae9f724d1e61', NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-b","labels":{"zone":"c"},"uid":"5fa82f1f-66eb-47d0-8e8a-ae9f724d1e61","creationTimestamp":"2026-11-22T23:20:31Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}');
INSERT INTO public.object VALUES (1, 15, 'Pod', 'shop', 'web-0', '117ba97a-987c-435c-ba1f-0f0c213ab6c0', 'node-b', '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"deletionTimestamp":"2026-11-22T23:20:31Z","uid":"117ba97a-987c-435c-ba1f-0f0c213ab6c0","creationTimestamp":"2026-11-22T23:20:31Z"},"spec":{"nodeName":"node-b","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-22T23:20:31Z"},{"type":"DisruptionTarget","status":"True","reason":"NodeAffinityViolated","message":"spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-b.","lastTransitionTime":"2026-11-22T23:20:31Z"}]}}');
INSERT INTO public.object VALUES (1, 18, 'Pod', 'shop', 'too-big', 'dc2e57ba-d604-4d4a-97e7-ffd761b105ef', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"too-big","namespace":"shop","uid":"dc2e57ba-d604-4d4a-97e7-ffd761b105ef","creationTimestamp":"2026-11-22T23:20:31Z"},"spec":{"affinity":{},"containers":[{"name":"main","resources":{"requests":{"cpu":"64"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/3 nodes are available: 3 Insufficient cpu.","lastTransitionTime":"2026-11-22T23:20:31Z"}]}}');
INSERT INTO public.object VALUES (1, 17, 'Evictions', '', 'state', '', NULL, '{"timers":[],"recent":[{"at":"2026-11-22T23:20:31.604747Z","pods":2}]}');
INSERT INTO public.object VALUES (1, 16, 'Pod', 'shop', 'web-2', 'eed231af-748a-4172-ad10-477f90af4818', 'node-a', '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-2","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"deletionTimestamp":"2026-11-22T23:20:31Z","uid":"eed231af-748a-4172-ad10-477f90af4818","creationTimestamp":"2026-11-22T23:20:31Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-22T23:20:31Z"},{"type":"DisruptionTarget","status":"True","reason":"NodeAffinityViolated","message":"spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-a.","lastTransitionTime":"2026-11-22T23:20:31Z"}]}}');


--
-- Data for Name: principal; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.principal VALUES ('User', 'root', '[{"role":"admin","cluster":null,"namespace":null}]', true, '2026-11-22 23:20:31.62684+00');


--
-- Data for Name: replica_report; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.replica_report VALUES ('host/4831', 1, 18, '25b42e8096e6098e65d2ca4a14e646412c8fedb959f6274daae722ac383e48a6-ae8afe2a2deaf0a4b3387d8b3a8e33cda0ddb186d6b5c8986d2149eb915a6d07', '2026-11-22 23:20:32.248147+00');


--
-- Data for Name: token; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.token VALUES ('12c0d1985c3db752', 'root', 'Z[+\353L\376\021\202\276>3X\026\300\313\205[\332%6\315\316\323\350L\025\302n8\371\276\022', '', '2026-11-22 23:20:31.651833+00', NULL, NULL);


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
-- Name: lease lease_cluster_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.lease
    ADD CONSTRAINT lease_cluster_id_fkey FOREIGN KEY (cluster_id) REFERENCES public.cluster(cluster_id);


--
-- PostgreSQL database dump complete
--


