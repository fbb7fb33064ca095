"""Add API keys: with none there, a service on loopback asks for none."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "api_key",
        sa.Column("id", sa.String(12), nullable=False),
        sa.Column("tenant_id", sa.Uuid, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("pepper_id", sa.String(16), nullable=False),
        sa.Column("scopes", sa.JSON, nullable=False),
        sa.Column("lifetime_days", sa.Integer, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_used_at", sa.DateTime(timezone=True)),
        sa.Column("revoked_at", sa.DateTime(timezone=True)),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name="fk_api_key_tenant"),
        sa.CheckConstraint("length(id) = 12", name=op.f("ck_api_key_id")),
        sa.CheckConstraint("length(digest) = 64", name=op.f("ck_api_key_digest")),
        sa.CheckConstraint("lifetime_days >= 1", name=op.f("ck_api_key_lifetime_days")),
        sa.PrimaryKeyConstraint("id", name="pk_api_key"),
    )
    op.create_index("ix_api_key_tenant_id_created_at", "api_key", ["tenant_id", "created_at"])


def downgrade() -> None:
    op.drop_table("api_key")
