"""Add digests of what answers depend on; calibrations that were stored before have none."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

COLUMNS = ("digest", "decision_digest")


def upgrade() -> None:
    for name in COLUMNS:
        op.add_column("calibration", sa.Column(name, sa.String(64)))


def downgrade() -> None:
    with op.batch_alter_table("calibration") as calibration:
        for name in COLUMNS:
            calibration.drop_column(name)
