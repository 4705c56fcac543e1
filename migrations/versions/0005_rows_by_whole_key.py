"""Commits find rows by their whole key in every database, also where an earlier 0001 was applied."""

from migrations import scripts

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    scripts.run("0005_rows_by_whole_key.sql")
