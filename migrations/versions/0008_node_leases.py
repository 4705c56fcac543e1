"""When nodes last reported, in a table of its own."""

from migrations import scripts

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    scripts.run("0008_node_leases.sql")
