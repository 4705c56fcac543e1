"""Deleting a cluster waits for whoever takes a lease of it at that moment."""

from migrations import scripts

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    scripts.run("0003_deleting_clusters.sql")
