"""Notes which worker processes there are, among which clusters are shared out."""

from migrations import scripts

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    scripts.run("0013_workers.sql")
