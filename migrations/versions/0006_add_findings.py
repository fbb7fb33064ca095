"""Add findings: what looks wrong with what was uploaded."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    none_yet = sa.text("'[]'")
    op.add_column(
        "calibration", sa.Column("findings", sa.JSON, server_default=none_yet, nullable=False)
    )


def downgrade() -> None:
    with op.batch_alter_table("calibration") as calibrations:
        calibrations.drop_column("findings")
