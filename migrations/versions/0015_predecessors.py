"""A cluster that is made again under its name begins above where its predecessor's log ended."""

from migrations import scripts

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    scripts.run("0015_predecessors.sql")
