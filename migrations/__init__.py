"""Alembic revisions make and change all tables; `service.store.migrate` runs them."""
