"""Alembic revisions make and change all tables; `service.store.schema.migrate` runs them."""
