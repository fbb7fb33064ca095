"""Add what a fair order of jobs needs, how fast a job goes, and idempotency keys."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

JOBS = ("calibration", "evaluation")


def upgrade() -> None:
    for table in JOBS:
        op.drop_index(f"ix_{table}_status_created_at", table)
        op.add_column(table, sa.Column("progress_rate", sa.Double))
        op.add_column(table, sa.Column("claimed_at", sa.DateTime(timezone=True)))
        op.execute(f"UPDATE {table} SET claimed_at = started_at")  # noqa: S608 - our own names
        order = ["status", "tenant_id", "created_at", "id"]
        op.create_index(f"ix_{table}_status_tenant_id_created_at_id", table, order)
        op.create_index(f"ix_{table}_tenant_id_claimed_at", table, ["tenant_id", "claimed_at"])
    _create_idempotency_key()


def downgrade() -> None:
    op.drop_table("idempotency_key")
    for table in JOBS:
        op.drop_index(f"ix_{table}_tenant_id_claimed_at", table)
        op.drop_index(f"ix_{table}_status_tenant_id_created_at_id", table)
        with op.batch_alter_table(table) as jobs:
            jobs.drop_column("claimed_at")
            jobs.drop_column("progress_rate")
        op.create_index(f"ix_{table}_status_created_at", table, ["status", "created_at"])


def _create_idempotency_key() -> None:
    op.create_table(
        "idempotency_key",
        sa.Column("tenant_id", sa.Uuid, nullable=False),
        sa.Column("key", sa.String(255), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("calibration_id", sa.Uuid, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "calibration_id"],
            ["calibration.tenant_id", "calibration.id"],
            name="fk_idempotency_key_calibration",
            ondelete="CASCADE",
        ),
        sa.CheckConstraint("length(digest) = 64", name=op.f("ck_idempotency_key_digest")),
        sa.PrimaryKeyConstraint("tenant_id", "key", name="pk_idempotency_key"),
    )
    op.create_index(
        "ix_idempotency_key_tenant_id_calibration_id",
        "idempotency_key",
        ["tenant_id", "calibration_id"],
    )
