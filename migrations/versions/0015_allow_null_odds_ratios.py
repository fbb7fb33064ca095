"""Let the odds ratio of a bin be null instead of infinite; such calibrations lose their digest."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

INFINITY = sa.literal(float("inf"), sa.Double)
BIN = sa.table("bin", sa.column("bin_table_id"), sa.column("odds_ratio", sa.Double))
TABLE = sa.table("bin_table", sa.column("id"), sa.column("calibration_id"))
CALIBRATION = sa.table("calibration", sa.column("id"), sa.column("digest"))


def upgrade() -> None:
    with op.batch_alter_table("bin") as altered:
        altered.alter_column("odds_ratio", existing_type=sa.Double, nullable=True)
    endless = sa.select(BIN.c.bin_table_id).where(BIN.c.odds_ratio == INFINITY)
    changed = sa.select(TABLE.c.calibration_id).where(TABLE.c.id.in_(endless))
    op.execute(sa.update(CALIBRATION).where(CALIBRATION.c.id.in_(changed)).values(digest=None))
    op.execute(sa.update(BIN).where(BIN.c.odds_ratio == INFINITY).values(odds_ratio=None))


def downgrade() -> None:
    op.execute(sa.update(BIN).where(BIN.c.odds_ratio.is_(None)).values(odds_ratio=INFINITY))
    with op.batch_alter_table("bin") as altered:
        altered.alter_column("odds_ratio", existing_type=sa.Double, nullable=False)
