"""Where records of a cluster are sent, in a table of its own."""

from migrations import scripts

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    scripts.run("0010_webhooks.sql")
