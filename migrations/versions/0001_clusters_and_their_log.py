"""Clusters, their log and objects, the functions that write them, and views for people.

There is no way down: a backup is. Later revisions keep the functions of the one before, so that
old and new processes can run side by side during an upgrade.
"""

from migrations import scripts

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    scripts.run("0001_tables.sql")
    scripts.run("0001_functions.sql")
    scripts.run("0001_views.sql")
