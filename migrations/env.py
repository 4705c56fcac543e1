"""Runs the revisions on the connection that `service.store.schema.alembic_runner` passes to Alembic."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
with context.begin_transaction():
    context.run_migrations()
