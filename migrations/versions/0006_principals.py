"""Who may make requests: users, groups, and their tokens."""

from migrations import scripts

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    scripts.run("0006_principals.sql")
