"""A cluster that is deleted, and a lease that is taken, no longer wait for each other."""

from migrations import scripts

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    scripts.run("0014_order_of_deletion.sql")
