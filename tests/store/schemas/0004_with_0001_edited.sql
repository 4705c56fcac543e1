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


SET default_tablespace = '';

SET default_table_access_method = heap;

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
-- Data for Name: alembic_version; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.alembic_version VALUES ('0004');


--
-- Data for Name: change; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.change VALUES (1, 1, 'b3fa677f-e657-422a-b4fe-45b025a198cf', true, 'Put', 'Cluster', '', 'config', '', NULL, NULL, '{}');
INSERT INTO public.change VALUES (2, 1, 'c9097d88-1520-456a-a0f6-822374eccb1a', true, 'Put', 'Cluster', '', 'config', '', NULL, NULL, '{"semantics":"Kubernetes","emptyNodeSelectorTerm":null,"requiredAffinityTerms":null,"emptyNamespaceList":null,"preferredTermWeight":null,"hardPodAffinityWeight":1,"symmetricPreferredAffinity":true,"symmetricPreferredAntiAffinity":true,"daemonNamespaces":["kube-system"],"restrictAllNamespacesAntiAffinity":true,"nodeTopologyKeys":["kubernetes.io/hostname"],"trustedNamespaces":[],"defaultTopologySpreadConstraints":[],"scoringStrategy":"LeastAllocated","requestedToCapacityRatio":null,"profiles":[],"placePendingPods":true,"groupSearchSteps":10000,"priorityClasses":{},"limitedResources":[],"opportunityCostBasis":"Largest","affinityViolationGraceSeconds":30,"antiAffinityVictim":"RuleOwner","evictionsPerMinute":60}');
INSERT INTO public.change VALUES (1, 2, '05d1cfd8-66a1-459c-b3e4-02798bc17f57', true, 'Put', 'Namespace', '', 'shop', 'e87d9602-4be8-49e1-bdcd-a6d87ef8d2f1', NULL, NULL, '{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","labels":{"team":"shop"},"uid":"e87d9602-4be8-49e1-bdcd-a6d87ef8d2f1","creationTimestamp":"2026-11-22T16:46:45Z"}}');
INSERT INTO public.change VALUES (1, 3, '94a4a47a-83f8-42bd-9bf5-b70c90042f99', true, 'Put', 'Node', '', 'node-a', 'c21235bf-836e-43d6-b842-63d34f2dd40e', NULL, NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-a","labels":{"zone":"a"},"uid":"c21235bf-836e-43d6-b842-63d34f2dd40e","creationTimestamp":"2026-11-22T16:46:45Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}');
INSERT INTO public.change VALUES (1, 4, '0cc5861a-68fe-4b8a-ac28-e2a607537e1e', true, 'Put', 'Node', '', 'node-b', '3c800b9e-b13e-4513-93ca-c9e7aad441a6', NULL, NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-b","labels":{"zone":"b"},"uid":"3c800b9e-b13e-4513-93ca-c9e7aad441a6","creationTimestamp":"2026-11-22T16:46:45Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}');
INSERT INTO public.change VALUES (1, 5, '5430483b-fd78-40bd-9722-22b2f55f622b', true, 'Put', 'Node', '', 'node-c', 'c3de7607-8056-4310-bbe1-70eefab3a140', NULL, NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-c","labels":{"zone":"c"},"uid":"c3de7607-8056-4310-bbe1-70eefab3a140","creationTimestamp":"2026-11-22T16:46:45Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}');
INSERT INTO public.change VALUES (1, 6, 'fee4ba3a-d86e-44cb-8df8-194366396da0', true, 'Put', 'ResourceQuota', 'shop', 'pods', '7b3afdd7-d8d3-4c31-87f7-e7a1f3e682f2', NULL, NULL, '{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"pods","namespace":"shop","uid":"7b3afdd7-d8d3-4c31-87f7-e7a1f3e682f2","creationTimestamp":"2026-11-22T16:46:45Z"},"spec":{"hard":{"pods":"10"}}}');
INSERT INTO public.change VALUES (1, 7, '9d593ebf-5db5-4e2e-904b-f9f52d78c009', true, 'Put', 'PodGroup', 'shop', 'train', '8a1285f3-9c73-478f-8891-877be1b80acc', NULL, NULL, '{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"PodGroup","metadata":{"name":"train","namespace":"shop","uid":"8a1285f3-9c73-478f-8891-877be1b80acc","creationTimestamp":"2026-11-22T16:46:45Z"},"spec":{"minMember":2}}');
INSERT INTO public.change VALUES (1, 8, '44511586-dfe5-48f3-9e9f-e20092f5954f', true, 'Put', 'Pod', 'shop', 'web-0', '433b5c51-53f4-410b-a634-508afbc36652', 'node-b', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"uid":"433b5c51-53f4-410b-a634-508afbc36652","creationTimestamp":"2026-11-22T16:46:45Z"},"spec":{"nodeName":"node-b","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-22T16:46:45Z"}]}}');
INSERT INTO public.change VALUES (1, 9, '1e8ab049-73be-4329-8dab-4e86008efdb8', true, 'Put', 'Pod', 'shop', 'web-1', '5c44d1d4-2c2c-4d6d-aa6e-ccfd443ac4ac', 'node-a', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-1","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"uid":"5c44d1d4-2c2c-4d6d-aa6e-ccfd443ac4ac","creationTimestamp":"2026-11-22T16:46:45Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-22T16:46:45Z"}]}}');
INSERT INTO public.change VALUES (1, 10, '78346e3d-f2e8-4f8f-9fdf-d2d396f8b3c8', true, 'Put', 'Pod', 'shop', 'web-2', 'c1905e51-9000-4012-b9c7-0c17d5eee879', 'node-a', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-2","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"uid":"c1905e51-9000-4012-b9c7-0c17d5eee879","creationTimestamp":"2026-11-22T16:46:45Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-22T16:46:45Z"}]}}');
INSERT INTO public.change VALUES (1, 11, '9192c1ec-be27-41db-ba7a-c3d863c437d1', true, 'Put', 'Pod', 'shop', 'too-big', '8425af0f-e973-4793-a19a-d6f1ff1e38a2', NULL, NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"too-big","namespace":"shop","uid":"8425af0f-e973-4793-a19a-d6f1ff1e38a2","creationTimestamp":"2026-11-22T16:46:45Z"},"spec":{"affinity":{},"containers":[{"name":"main","resources":{"requests":{"cpu":"64"}}}]}}');
INSERT INTO public.change VALUES (1, 12, '009add2d-0fb4-4926-84e1-1b0d07fda86e', false, 'Delete', 'Pod', 'shop', 'web-1', '5c44d1d4-2c2c-4d6d-aa6e-ccfd443ac4ac', 'node-a', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-1","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"uid":"5c44d1d4-2c2c-4d6d-aa6e-ccfd443ac4ac","creationTimestamp":"2026-11-22T16:46:45Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-22T16:46:45Z"}]}}');
INSERT INTO public.change VALUES (1, 13, 'c8585620-0068-40fa-8509-1800f6b60d42', false, 'Put', 'Pod', 'shop', 'too-big', '8425af0f-e973-4793-a19a-d6f1ff1e38a2', NULL, NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"too-big","namespace":"shop","uid":"8425af0f-e973-4793-a19a-d6f1ff1e38a2","creationTimestamp":"2026-11-22T16:46:45Z"},"spec":{"affinity":{},"containers":[{"name":"main","resources":{"requests":{"cpu":"64"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/3 nodes are available: 3 Insufficient cpu.","lastTransitionTime":"2026-11-22T16:46:45Z"}]}}');
INSERT INTO public.change VALUES (1, 14, '4fce0373-99d8-4e95-ad01-d074161a9bcf', false, 'Put', 'Node', '', 'node-a', 'c21235bf-836e-43d6-b842-63d34f2dd40e', NULL, '{"zone":"a"}', '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-a","labels":{"zone":"c"},"uid":"c21235bf-836e-43d6-b842-63d34f2dd40e","creationTimestamp":"2026-11-22T16:46:45Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}');
INSERT INTO public.change VALUES (1, 15, '3b0a994b-ad53-4a88-9ece-120965c6eb43', false, 'Put', 'Node', '', 'node-b', '3c800b9e-b13e-4513-93ca-c9e7aad441a6', NULL, '{"zone":"b"}', '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-b","labels":{"zone":"c"},"uid":"3c800b9e-b13e-4513-93ca-c9e7aad441a6","creationTimestamp":"2026-11-22T16:46:45Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}');
INSERT INTO public.change VALUES (1, 16, '94ee37cc-0687-4916-9bd6-0a8355188be8', false, 'Put', 'Pod', 'shop', 'web-0', '433b5c51-53f4-410b-a634-508afbc36652', 'node-b', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"deletionTimestamp":"2026-11-22T16:46:45Z","uid":"433b5c51-53f4-410b-a634-508afbc36652","creationTimestamp":"2026-11-22T16:46:45Z"},"spec":{"nodeName":"node-b","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-22T16:46:45Z"},{"type":"DisruptionTarget","status":"True","reason":"NodeAffinityViolated","message":"spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-b.","lastTransitionTime":"2026-11-22T16:46:45Z"}]}}');
INSERT INTO public.change VALUES (1, 17, '94ee37cc-0687-4916-9bd6-0a8355188be8', false, 'Put', 'Pod', 'shop', 'web-2', 'c1905e51-9000-4012-b9c7-0c17d5eee879', 'node-a', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-2","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"deletionTimestamp":"2026-11-22T16:46:45Z","uid":"c1905e51-9000-4012-b9c7-0c17d5eee879","creationTimestamp":"2026-11-22T16:46:45Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-22T16:46:45Z"},{"type":"DisruptionTarget","status":"True","reason":"NodeAffinityViolated","message":"spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-a.","lastTransitionTime":"2026-11-22T16:46:45Z"}]}}');
INSERT INTO public.change VALUES (1, 18, '94ee37cc-0687-4916-9bd6-0a8355188be8', true, 'Put', 'Evictions', '', 'state', '', NULL, NULL, '{"timers":[],"recent":[{"at":"2026-11-22T16:46:45.719243Z","pods":2}]}');


--
-- Data for Name: cluster; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.cluster OVERRIDING SYSTEM VALUE VALUES (1, 'default', '2026-11-22 16:46:31.694392+00');
INSERT INTO public.cluster OVERRIDING SYSTEM VALUE VALUES (2, 'staging', '2026-11-22 16:46:44.968465+00');


--
-- Data for Name: commit; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.commit VALUES (1, 1, 'b3fa677f-e657-422a-b4fe-45b025a198cf', '00000000-0000-0000-0000-000000000000', 1, 0, 'CreateCluster', '2026-11-22 16:46:31.694216+00');
INSERT INTO public.commit VALUES (2, 1, 'c9097d88-1520-456a-a0f6-822374eccb1a', '00000000-0000-0000-0000-000000000000', 1, 0, 'CreateCluster', '2026-11-22 16:46:44.967978+00');
INSERT INTO public.commit VALUES (1, 2, '05d1cfd8-66a1-459c-b3e4-02798bc17f57', 'b3fa677f-e657-422a-b4fe-45b025a198cf', 2, 1, 'PutObject', '2026-11-22 16:46:45.113634+00');
INSERT INTO public.commit VALUES (1, 3, '94a4a47a-83f8-42bd-9bf5-b70c90042f99', '05d1cfd8-66a1-459c-b3e4-02798bc17f57', 3, 2, 'PutObject', '2026-11-22 16:46:45.153237+00');
INSERT INTO public.commit VALUES (1, 4, '0cc5861a-68fe-4b8a-ac28-e2a607537e1e', '94a4a47a-83f8-42bd-9bf5-b70c90042f99', 4, 3, 'PutObject', '2026-11-22 16:46:45.175491+00');
INSERT INTO public.commit VALUES (1, 5, '5430483b-fd78-40bd-9722-22b2f55f622b', '0cc5861a-68fe-4b8a-ac28-e2a607537e1e', 5, 4, 'PutObject', '2026-11-22 16:46:45.195286+00');
INSERT INTO public.commit VALUES (1, 6, 'fee4ba3a-d86e-44cb-8df8-194366396da0', '5430483b-fd78-40bd-9722-22b2f55f622b', 6, 5, 'PutObject', '2026-11-22 16:46:45.209885+00');
INSERT INTO public.commit VALUES (1, 7, '9d593ebf-5db5-4e2e-904b-f9f52d78c009', 'fee4ba3a-d86e-44cb-8df8-194366396da0', 7, 6, 'PutObject', '2026-11-22 16:46:45.223007+00');
INSERT INTO public.commit VALUES (1, 8, '44511586-dfe5-48f3-9e9f-e20092f5954f', '9d593ebf-5db5-4e2e-904b-f9f52d78c009', 8, 7, 'PlacePods', '2026-11-22 16:46:45.251666+00');
INSERT INTO public.commit VALUES (1, 9, '1e8ab049-73be-4329-8dab-4e86008efdb8', '44511586-dfe5-48f3-9e9f-e20092f5954f', 9, 8, 'PlacePods', '2026-11-22 16:46:45.279034+00');
INSERT INTO public.commit VALUES (1, 10, '78346e3d-f2e8-4f8f-9fdf-d2d396f8b3c8', '1e8ab049-73be-4329-8dab-4e86008efdb8', 10, 9, 'PlacePods', '2026-11-22 16:46:45.33572+00');
INSERT INTO public.commit VALUES (1, 11, '9192c1ec-be27-41db-ba7a-c3d863c437d1', '78346e3d-f2e8-4f8f-9fdf-d2d396f8b3c8', 11, 10, 'PutObject', '2026-11-22 16:46:45.34605+00');
INSERT INTO public.commit VALUES (1, 12, '009add2d-0fb4-4926-84e1-1b0d07fda86e', '9192c1ec-be27-41db-ba7a-c3d863c437d1', 12, 11, 'DeleteObject', '2026-11-22 16:46:45.402746+00');
INSERT INTO public.commit VALUES (1, 13, 'c8585620-0068-40fa-8509-1800f6b60d42', '009add2d-0fb4-4926-84e1-1b0d07fda86e', 13, 11, 'PlacePending', '2026-11-22 16:46:45.429579+00');
INSERT INTO public.commit VALUES (1, 14, '4fce0373-99d8-4e95-ad01-d074161a9bcf', 'c8585620-0068-40fa-8509-1800f6b60d42', 14, 12, 'Batch', '2026-11-22 16:46:45.440943+00');
INSERT INTO public.commit VALUES (1, 15, '3b0a994b-ad53-4a88-9ece-120965c6eb43', '4fce0373-99d8-4e95-ad01-d074161a9bcf', 15, 14, 'PatchObject', '2026-11-22 16:46:45.454304+00');
INSERT INTO public.commit VALUES (1, 18, '94ee37cc-0687-4916-9bd6-0a8355188be8', '3b0a994b-ad53-4a88-9ece-120965c6eb43', 16, 15, 'EvictViolating', '2026-11-22 16:46:45.726093+00');


--
-- Data for Name: event; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.event VALUES (1, 'shop', 'web-0.6358e437405bfc85', 'web-0', '433b5c51-53f4-410b-a634-508afbc36652', 'Normal', 'Scheduled', 'Successfully assigned shop/web-0 to node-b', 8, 1, '2026-11-22 16:46:45+00', '2026-11-22 16:46:45+00');
INSERT INTO public.event VALUES (1, 'shop', 'web-1.f60e9b0554ab5254', 'web-1', '5c44d1d4-2c2c-4d6d-aa6e-ccfd443ac4ac', 'Normal', 'Scheduled', 'Successfully assigned shop/web-1 to node-a', 9, 1, '2026-11-22 16:46:45+00', '2026-11-22 16:46:45+00');
INSERT INTO public.event VALUES (1, 'shop', 'web-2.daae63f9a0d87026', 'web-2', 'c1905e51-9000-4012-b9c7-0c17d5eee879', 'Normal', 'Scheduled', 'Successfully assigned shop/web-2 to node-a', 10, 1, '2026-11-22 16:46:45+00', '2026-11-22 16:46:45+00');
INSERT INTO public.event VALUES (1, 'shop', 'web-0.9dfc855d586b5e85', 'web-0', '433b5c51-53f4-410b-a634-508afbc36652', 'Warning', 'Evicted', 'spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-b.', 16, 1, '2026-11-22 16:46:45+00', '2026-11-22 16:46:45+00');
INSERT INTO public.event VALUES (1, 'shop', 'web-2.eeb7addd0da1ded4', 'web-2', 'c1905e51-9000-4012-b9c7-0c17d5eee879', 'Warning', 'Evicted', 'spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-a.', 17, 1, '2026-11-22 16:46:45+00', '2026-11-22 16:46:45+00');


--
-- Data for Name: floor; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.floor VALUES (1, 0);
INSERT INTO public.floor VALUES (2, 0);


--
-- Data for Name: head; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.head VALUES (2, 1, 'c9097d88-1520-456a-a0f6-822374eccb1a', '2026-11-22 16:46:44.967978+00');
INSERT INTO public.head VALUES (1, 18, '94ee37cc-0687-4916-9bd6-0a8355188be8', '2026-11-22 16:46:45.726093+00');


--
-- Data for Name: idempotency; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.idempotency VALUES (1, 'placePods', 'order-of-web-0', 0, 'E\307\267=;S3\375bEk\225\361d\323\032\352lA\\\355c\301\326d\373f?\313\242\025v', '\223\305\001\015{"revision":8,"committed":true,"attempts":1,"results":[{"namespace":"shop","name":"web-0","uid":"433b5c51-53f4-410b-a634-508afbc36652","outcome":"Placed","nodeName":"node-b","score":485,"plannedRevision":7,"reason":null,"message":null,"explanation":null}],"group":null}\314\310\300', '2026-11-22 16:46:45.251666+00');
INSERT INTO public.idempotency VALUES (1, 'placePods', 'order-of-web-1', 0, 'aD\275E\322\2348\250\243\315\334\242\212\272\370\237\246\002\362\301\022K\200\026"b&I\375{J.', '\223\305\001\015{"revision":9,"committed":true,"attempts":1,"results":[{"namespace":"shop","name":"web-1","uid":"5c44d1d4-2c2c-4d6d-aa6e-ccfd443ac4ac","outcome":"Placed","nodeName":"node-a","score":485,"plannedRevision":8,"reason":null,"message":null,"explanation":null}],"group":null}\314\310\300', '2026-11-22 16:46:45.279034+00');
INSERT INTO public.idempotency VALUES (1, 'placePods', 'order-of-web-2', 0, '\255\244\273,u\\\247@\004\002\200(\362q\242\250c\252\020\270\343\240M7\221\034\002\012\204\233o7', '\223\305\001\016{"revision":10,"committed":true,"attempts":1,"results":[{"namespace":"shop","name":"web-2","uid":"c1905e51-9000-4012-b9c7-0c17d5eee879","outcome":"Placed","nodeName":"node-a","score":472,"plannedRevision":9,"reason":null,"message":null,"explanation":null}],"group":null}\314\310\300', '2026-11-22 16:46:45.33572+00');


--
-- Data for Name: lease; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.lease VALUES (1, 'evictions', '667c73b3-7234-404d-b8ae-ac1f3a0b6cfd', '2026-11-22 16:46:48.269255+00');
INSERT INTO public.lease VALUES (1, 'pending', '667c73b3-7234-404d-b8ae-ac1f3a0b6cfd', '2026-11-22 16:46:48.351062+00');


--
-- Data for Name: object; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.object VALUES (1, 1, 'Cluster', '', 'config', '', NULL, '{}');
INSERT INTO public.object VALUES (2, 1, 'Cluster', '', 'config', '', NULL, '{"semantics":"Kubernetes","emptyNodeSelectorTerm":null,"requiredAffinityTerms":null,"emptyNamespaceList":null,"preferredTermWeight":null,"hardPodAffinityWeight":1,"symmetricPreferredAffinity":true,"symmetricPreferredAntiAffinity":true,"daemonNamespaces":["kube-system"],"restrictAllNamespacesAntiAffinity":true,"nodeTopologyKeys":["kubernetes.io/hostname"],"trustedNamespaces":[],"defaultTopologySpreadConstraints":[],"scoringStrategy":"LeastAllocated","requestedToCapacityRatio":null,"profiles":[],"placePendingPods":true,"groupSearchSteps":10000,"priorityClasses":{},"limitedResources":[],"opportunityCostBasis":"Largest","affinityViolationGraceSeconds":30,"antiAffinityVictim":"RuleOwner","evictionsPerMinute":60}');
INSERT INTO public.object VALUES (1, 2, 'Namespace', '', 'shop', 'e87d9602-4be8-49e1-bdcd-a6d87ef8d2f1', NULL, '{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","labels":{"team":"shop"},"uid":"e87d9602-4be8-49e1-bdcd-a6d87ef8d2f1","creationTimestamp":"2026-11-22T16:46:45Z"}}');
INSERT INTO public.object VALUES (1, 5, 'Node', '', 'node-c', 'c3de7607-8056-4310-bbe1-70eefab3a140', NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-c","labels":{"zone":"c"},"uid":"c3de7607-8056-4310-bbe1-70eefab3a140","creationTimestamp":"2026-11-22T16:46:45Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}');
INSERT INTO public.object VALUES (1, 6, 'ResourceQuota', 'shop', 'pods', '7b3afdd7-d8d3-4c31-87f7-e7a1f3e682f2', NULL, '{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"pods","namespace":"shop","uid":"7b3afdd7-d8d3-4c31-87f7-e7a1f3e682f2","creationTimestamp":"2026-11-22T16:46:45Z"},"spec":{"hard":{"pods":"10"}}}');
INSERT INTO public.object VALUES (1, 7, 'PodGroup', 'shop', 'train', '8a1285f3-9c73-478f-8891-877be1b80acc', NULL, '{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"PodGroup","metadata":{"name":"train","namespace":"shop","uid":"8a1285f3-9c73-478f-8891-877be1b80acc","creationTimestamp":"2026-11-22T16:46:45Z"},"spec":{"minMember":2}}');
INSERT INTO public.object VALUES (1, 13, 'Pod', 'shop', 'too-big', '8425af0f-e973-4793-a19a-d6f1ff1e38a2', NULL, '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"too-big","namespace":"shop","uid":"8425af0f-e973-4793-a19a-d6f1ff1e38a2","creationTimestamp":"2026-11-22T16:46:45Z"},"spec":{"affinity":{},"containers":[{"name":"main","resources":{"requests":{"cpu":"64"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/3 nodes are available: 3 Insufficient cpu.","lastTransitionTime":"2026-11-22T16:46:45Z"}]}}');
INSERT INTO public.object VALUES (1, 14, 'Node', '', 'node-a', 'c21235bf-836e-43d6-b842-63d34f2dd40e', NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-a","labels":{"zone":"c"},"uid":"c21235bf-836e-43d6-b842-63d34f2dd40e","creationTimestamp":"2026-11-22T16:46:45Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}');
INSERT INTO public.object VALUES (1, 15, 'Node', '', 'node-b', '3c800b9e-b13e-4513-93ca-c9e7aad441a6', NULL, '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-b","labels":{"zone":"c"},"uid":"3c800b9e-b13e-4513-93ca-c9e7aad441a6","creationTimestamp":"2026-11-22T16:46:45Z"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}');
INSERT INTO public.object VALUES (1, 18, 'Evictions', '', 'state', '', NULL, '{"timers":[],"recent":[{"at":"2026-11-22T16:46:45.719243Z","pods":2}]}');
INSERT INTO public.object VALUES (1, 16, 'Pod', 'shop', 'web-0', '433b5c51-53f4-410b-a634-508afbc36652', 'node-b', '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"deletionTimestamp":"2026-11-22T16:46:45Z","uid":"433b5c51-53f4-410b-a634-508afbc36652","creationTimestamp":"2026-11-22T16:46:45Z"},"spec":{"nodeName":"node-b","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-22T16:46:45Z"},{"type":"DisruptionTarget","status":"True","reason":"NodeAffinityViolated","message":"spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-b.","lastTransitionTime":"2026-11-22T16:46:45Z"}]}}');
INSERT INTO public.object VALUES (1, 17, 'Pod', 'shop', 'web-2', 'c1905e51-9000-4012-b9c7-0c17d5eee879', 'node-a', '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-2","namespace":"shop","labels":{"app":"web"},"annotations":{"note":"gr\303\266\303\237er als \\\\''"},"deletionTimestamp":"2026-11-22T16:46:45Z","uid":"c1905e51-9000-4012-b9c7-0c17d5eee879","creationTimestamp":"2026-11-22T16:46:45Z"},"spec":{"nodeName":"node-a","affinity":{"nodeAffinity":{"requiredDuringSchedulingRequiredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}},"containers":[{"name":"main","resources":{"requests":{"cpu":"500m"}}}]},"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-22T16:46:45Z"},{"type":"DisruptionTarget","status":"True","reason":"NodeAffinityViolated","message":"spec.affinity.nodeAffinity.requiredDuringSchedulingRequiredDuringExecution does not hold on node node-a.","lastTransitionTime":"2026-11-22T16:46:45Z"}]}}');


--
-- Data for Name: replica_report; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.replica_report VALUES ('host/17808', 1, 15, 'b4fefa67eb68747a2dd485da6caaef5eaacb6720238d7dd2c1f9409efd3dca10', '2026-11-22 16:46:45.485347+00');


--
-- Name: cluster_cluster_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.cluster_cluster_id_seq', 3, true);


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
-- Name: replica_report replica_report_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.replica_report
    ADD CONSTRAINT replica_report_pkey PRIMARY KEY (process, cluster_id);


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


