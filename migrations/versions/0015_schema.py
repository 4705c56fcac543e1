"""The whole schema: tables, the functions that write them, and views for people.

It has the number of the last migration of 0.2.0, whose databases it equals. There is no way down: a
backup is. Later revisions keep the functions of the one before, so that old and new processes can
run side by side during an upgrade.
"""

from migrations import scripts

revision = "0015"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    for part in ("tables", "log", "clusters", "access", "views"):
        scripts.run(f"0015_{part}.sql")
