"""Every change of principals and tokens is tagged, so that a restored counter cannot repeat itself unnoticed."""

from migrations import scripts

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    scripts.run("0015_access_tags.sql")
