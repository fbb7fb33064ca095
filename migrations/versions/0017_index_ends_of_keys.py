"""Index the ends of API keys, which are counted every second."""

from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

COLUMNS = ("expires_at", "revoked_at")


def upgrade() -> None:
    for column in COLUMNS:
        op.create_index(f"ix_api_key_{column}", "api_key", [column])


def downgrade() -> None:
    for column in COLUMNS:
        op.drop_index(f"ix_api_key_{column}", "api_key")
