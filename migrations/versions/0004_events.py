"""Events: what happened to pods, written with the commit that they are about or soon after."""

from migrations import scripts

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    scripts.run("0004_events.sql")
