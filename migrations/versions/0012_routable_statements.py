"""Each statement about a cluster can be sent to the one server that has the cluster's rows."""

from migrations import scripts

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    scripts.run("0012_routable_statements.sql")
