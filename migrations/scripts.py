"""Runs the SQL files in which the migrations are written."""

from pathlib import Path

from alembic import op

FOLDER = Path(__file__).parent / "sql"


def run(name: str) -> None:
    """Run all statements of one file, within the migration's transaction."""
    script = (FOLDER / name).read_text(encoding="utf-8")
    adapted = op.get_bind().connection.dbapi_connection
    adapted.run_async(lambda connection: connection.execute(script))
