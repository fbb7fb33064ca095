"""Add what a tenant may use, where that is not what the settings say."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

LIMITS = ("requests_per_second", "rows_per_minute", "stored_bytes", "jobs")


def upgrade() -> None:
    op.create_table(
        "tenant_limit",
        sa.Column("tenant_id", sa.Uuid, nullable=False),
        *(sa.Column(name, sa.BigInteger) for name in LIMITS),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name="fk_tenant_limit_tenant"),
        *(
            sa.CheckConstraint(f"{name} >= 0", name=op.f(f"ck_tenant_limit_{name}"))
            for name in LIMITS
        ),
        sa.PrimaryKeyConstraint("tenant_id", name="pk_tenant_limit"),
    )


def downgrade() -> None:
    op.drop_table("tenant_limit")
