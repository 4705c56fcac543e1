"""The only way a table comes to be: Alembic revisions, run by `service.store.migrate`."""
