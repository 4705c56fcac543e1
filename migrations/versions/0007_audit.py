"""Who wrote what, and who was refused: rows that are chained by hashes, written with the commit."""

from migrations import scripts

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    scripts.run("0007_audit.sql")
