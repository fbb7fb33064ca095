"""Add exports: a finished calibration as one ONNX file."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

ROLES = ("model", "model_data", "calibration", "evaluation", "records", "evaluation_records")


def upgrade() -> None:
    _allow_roles(*ROLES, "export")
    op.create_table(
        "export",
        sa.Column("tenant_id", sa.Uuid, nullable=False),
        sa.Column("calibration_id", sa.Uuid, nullable=False),
        sa.Column("samples", sa.Integer, nullable=False),
        sa.Column("classes", sa.Integer, nullable=False),
        sa.Column("bins", sa.Integer, nullable=False),
        sa.Column("probability", sa.Double, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "calibration_id"],
            ["calibration.tenant_id", "calibration.id"],
            name="fk_export_calibration",
            ondelete="CASCADE",
        ),
        sa.CheckConstraint("samples >= 1", name=op.f("ck_export_samples")),
        sa.CheckConstraint("classes BETWEEN 0 AND samples", name=op.f("ck_export_classes")),
        sa.CheckConstraint("bins BETWEEN 0 AND samples", name=op.f("ck_export_bins")),
        sa.CheckConstraint("probability BETWEEN 0 AND 1", name=op.f("ck_export_probability")),
        sa.PrimaryKeyConstraint("tenant_id", "calibration_id", name="pk_export"),
    )


def downgrade() -> None:
    op.drop_table("export")
    # Their files stay behind without a row, and are removed as such.
    op.execute("DELETE FROM artifact WHERE role = 'export'")
    _allow_roles(*ROLES)


def _allow_roles(*roles: str) -> None:
    allowed = ", ".join(f"'{role}'" for role in roles)
    with op.batch_alter_table("artifact") as artifact:
        artifact.drop_constraint(op.f("ck_artifact_role"), type_="check")
        artifact.create_check_constraint(op.f("ck_artifact_role"), f"role IN ({allowed})")
