"""Notes which history a cluster's revisions belong to, so that they are lifted after a restore."""

from migrations import scripts

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    scripts.run("0011_histories.sql")
