"""What selectable fields of an object were before a change, for watches with field selectors."""

from migrations import scripts

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    scripts.run("0009_fields_before.sql")
