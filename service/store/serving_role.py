"""The role by which servers use the embedded database: it reads and writes rows, and can do nothing else.

Whoever gets a statement of their own past the service, by whatever mistake, is no superuser then: no program is run, no file read, no
extension or table made. Migrations alone are run by the superuser.
"""

from service.store.connections import STARTERS_LOCK, connector
from service.store.embedded.configuration import SERVING_ROLE
from service.store.failures import unavailable_on_failure

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
    """Make the role, if it lacks, and give it what it needs of the tables; `url` is the superuser's.

    The functions that write are run with the rights of their caller.

    Raises:
        StorageUnavailable: the database cannot be reached.
    """
    with unavailable_on_failure():
        connection = await connector(url, {})()
        try:
            await connection.execute(_ADMIT)
        finally:
            await connection.close()
