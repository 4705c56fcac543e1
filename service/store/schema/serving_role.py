"""The role that servers use in the embedded database; it can only read and write rows.

If a mistake in the service lets an attacker run a statement, they are not superuser: they can run
no program, read no file, and create no extension or table. Only migrations run as the superuser.
"""

from service.store.db.connector import STARTERS_LOCK, connector
from service.store.db.failures import unavailable_on_failure
from service.store.embedded.config import SERVING_ROLE

_ADMIT = f"""
SELECT pg_advisory_xact_lock({STARTERS_LOCK});
DO $$ BEGIN
    CREATE ROLE {SERVING_ROLE};
EXCEPTION WHEN duplicate_object OR unique_violation THEN
    NULL;
END $$;
ALTER ROLE {SERVING_ROLE} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS NOINHERIT;
DO $$ BEGIN
    EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO {SERVING_ROLE}', current_database());
END $$;
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO {SERVING_ROLE};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {SERVING_ROLE};
REVOKE INSERT, UPDATE, DELETE ON alembic_version FROM {SERVING_ROLE};
REVOKE UPDATE ON audit FROM {SERVING_ROLE};
"""  # noqa: S608 - of constants


async def admit_servers(url: str) -> None:
    """Create the role if it does not exist, and grant its rights, as the superuser of `url`.

    The role needs rights on tables, since functions that write run with the rights of their caller.

    Raises:
        StorageUnavailable: the database cannot be reached.
    """
    with unavailable_on_failure():
        connection = await connector(url, {})()
        try:
            await connection.execute(_ADMIT)
        finally:
            await connection.close()
