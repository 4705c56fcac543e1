-- A restore sets the counter back, and later changes raise it to what servers already know. The tag is random, so two
-- states with one tag are the same state. A trigger sets it, so that it also holds for servers of the version before.
ALTER TABLE access_state ADD COLUMN tag uuid NOT NULL DEFAULT gen_random_uuid();

CREATE FUNCTION tag_access_v1() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    NEW.tag := gen_random_uuid();
    RETURN NEW;
END;
$$;

CREATE TRIGGER access_state_tag BEFORE UPDATE ON access_state
FOR EACH ROW EXECUTE FUNCTION tag_access_v1();
