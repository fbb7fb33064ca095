"""Add samples: the rows of a calibration set that are kept when its shards go."""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

ROLES = (
    "model",
    "model_data",
    "calibration",
    "evaluation",
    "records",
    "evaluation_records",
    "export",
)


def upgrade() -> None:
    _allow_roles(*ROLES, "samples")


def downgrade() -> None:
    # Their files stay behind without a row, and are removed as such.
    op.execute("DELETE FROM artifact WHERE role = 'samples'")
    _allow_roles(*ROLES)


def _allow_roles(*roles: str) -> None:
    allowed = ", ".join(f"'{role}'" for role in roles)
    with op.batch_alter_table("artifact") as artifact:
        artifact.drop_constraint(op.f("ck_artifact_role"), type_="check")
        artifact.create_check_constraint(op.f("ck_artifact_role"), f"role IN ({allowed})")
