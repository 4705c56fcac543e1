-- The functions that change principals and tokens. Each raises the version of access_state first, and
-- ends with change_access_v1.

CREATE FUNCTION has_tokens_v1() RETURNS boolean
LANGUAGE sql STABLE AS $$ SELECT EXISTS (SELECT FROM token) $$;

-- Error MR003: there were tokens, or are now, and none is an admin's that has not expired. p_keep_admin
-- is false where a server has an admin of another kind.
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

-- Returns whether it is new.
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

-- Deletes a principal with all its tokens; false if there was none.
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

-- Returns when the token was created; null if there is no such user.
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

-- Returns false if there was none.
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

-- Records when tokens were last used. That changes nobody's rights, so the version stays.
CREATE FUNCTION note_use_v1(p_token_ids text[], p_used_at timestamptz[]) RETURNS void
LANGUAGE sql AS $$
    UPDATE token AS t SET last_used_at = greatest(t.last_used_at, u.used_at)
    FROM unnest(p_token_ids, p_used_at) AS u (token_id, used_at)
    WHERE t.token_id = u.token_id
$$;

-- A trigger sets the tag, so that no function can forget it.
CREATE FUNCTION tag_access_v1() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    NEW.tag := gen_random_uuid();
    RETURN NEW;
END;
$$;

CREATE TRIGGER access_state_tag BEFORE UPDATE ON access_state
FOR EACH ROW EXECUTE FUNCTION tag_access_v1();
