"""What the processes of a database say of their replicas, for those who look for differences."""

from migrations import scripts

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    scripts.run("0002_replica_reports.sql")
