-- Who may make requests. A principal is a user, or a group of users of an identity provider; its grants are JSON, as
-- the API shows them. `admin` says whether they make an admin of the whole server.
CREATE TABLE principal (
    kind text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    grants bytea NOT NULL,
    admin boolean NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT principal_pkey PRIMARY KEY (kind, name),
    CONSTRAINT principal_kind_check CHECK (kind IN ('User', 'Group'))
);

-- What users prove with who they are. Of a secret only its SHA-256 is kept: 256 random bits need no slow hash.
CREATE TABLE token (
    token_id text COLLATE "C" NOT NULL,
    principal text COLLATE "C" NOT NULL,
    secret_hash bytea NOT NULL,
    description text NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    last_used_at timestamptz,
    CONSTRAINT token_pkey PRIMARY KEY (token_id),
    CONSTRAINT token_secret_hash_check CHECK (octet_length(secret_hash) = 32)
);
CREATE INDEX token_principal_idx ON token (principal);

-- One row, which every change of the two tables counts up and so queues up at; processes look at it to see that
-- they know the present state.
CREATE TABLE access_state (
    only_row boolean NOT NULL,
    version bigint NOT NULL,
    CONSTRAINT access_state_pkey PRIMARY KEY (only_row),
    CONSTRAINT access_state_only_row_check CHECK (only_row)
);
INSERT INTO access_state (only_row, version) VALUES (true, 1);

CREATE FUNCTION has_tokens_v1() RETURNS boolean
LANGUAGE sql STABLE AS $$ SELECT EXISTS (SELECT FROM token) $$;

-- Every change ends with this. Error MR003: there were tokens, or are now, and none is an admin's that has not expired.
-- p_keep_admin is false where a server has an admin of another kind.
CREATE FUNCTION change_access_v1(p_had_tokens boolean, p_keep_admin boolean) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF p_keep_admin AND (p_had_tokens OR has_tokens_v1()) AND NOT EXISTS (
        SELECT FROM token AS t JOIN principal AS p ON p.kind = 'User' AND p.name = t.principal
        WHERE p.admin AND (t.expires_at IS NULL OR t.expires_at > clock_timestamp())
    ) THEN
        RAISE EXCEPTION 'no token of an admin would be left' USING ERRCODE = 'MR003';
    END IF;
END;
$$;

-- Whether it is new.
CREATE FUNCTION put_principal_v1(
    p_kind text, p_name text, p_grants bytea, p_admin boolean, p_keep_admin boolean
) RETURNS boolean
LANGUAGE plpgsql AS $$
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

-- With all its tokens; false if there was none.
CREATE FUNCTION delete_principal_v1(p_kind text, p_name text, p_keep_admin boolean) RETURNS boolean
LANGUAGE plpgsql AS $$
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

-- When it was made; null if there is no such user.
CREATE FUNCTION create_token_v1(
    p_token_id text,
    p_principal text,
    p_secret_hash bytea,
    p_description text,
    p_expires_in interval,
    p_keep_admin boolean,
    OUT created_at timestamptz,
    OUT expires_at timestamptz
)
LANGUAGE plpgsql AS $$
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

-- False if there was none.
CREATE FUNCTION delete_token_v1(p_token_id text, p_keep_admin boolean) RETURNS boolean
LANGUAGE plpgsql AS $$
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

-- Notes when tokens were used last. It is no change of what anybody may do, so the version stays.
CREATE FUNCTION note_use_v1(p_token_ids text[], p_used_at timestamptz[]) RETURNS void
LANGUAGE sql AS $$
    UPDATE token AS t SET last_used_at = greatest(t.last_used_at, u.used_at)
    FROM unnest(p_token_ids, p_used_at) AS u (token_id, used_at)
    WHERE t.token_id = u.token_id
$$;
