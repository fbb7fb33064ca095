"""Add operating points: which threshold somebody chose for a calibration, and why."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "operating_point",
        sa.Column("tenant_id", sa.Uuid, nullable=False),
        sa.Column("calibration_id", sa.Uuid, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("name", sa.String(64)),
        sa.Column("threshold", sa.Double),
        sa.Column("chosen_by", sa.JSON),
        sa.Column("consequences", sa.JSON),
        sa.Column("author", sa.String(100), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "calibration_id"],
            ["calibration.tenant_id", "calibration.id"],
            name="fk_operating_point_calibration",
            ondelete="CASCADE",
        ),
        sa.CheckConstraint("number >= 1", name=op.f("ck_operating_point_number")),
        sa.CheckConstraint(
            "(threshold IS NULL) = (name IS NULL)", name=op.f("ck_operating_point_name")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "calibration_id", "number", name="pk_operating_point"),
    )


def downgrade() -> None:
    op.drop_table("operating_point")
