"""A cluster made again begins above its predecessor's log, and every change of access has a tag."""

from migrations import scripts

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    scripts.run("0015_predecessors.sql")
    scripts.run("0015_access_tags.sql")
