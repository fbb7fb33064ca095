"""Add the audit table, and triggers that let rows be added to it and nothing else."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

ON_SQLITE = [
    """
    CREATE TRIGGER audit_entry_update BEFORE UPDATE ON audit_entry
    BEGIN SELECT RAISE(ABORT, 'audit_entry is append-only'); END
    """,
    """
    CREATE TRIGGER audit_entry_delete BEFORE DELETE ON audit_entry
    BEGIN SELECT RAISE(ABORT, 'audit_entry is append-only'); END
    """,
    # INSERT OR REPLACE deletes without a trigger for deletions.
    """
    CREATE TRIGGER audit_entry_replace BEFORE INSERT ON audit_entry
    WHEN EXISTS (SELECT 1 FROM audit_entry WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'audit_entry is append-only'); END
    """,
]
ON_POSTGRESQL = [
    """
    CREATE FUNCTION audit_entry_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'audit_entry is append-only'; END $$
    """,
    """
    CREATE TRIGGER audit_entry_change BEFORE UPDATE OR DELETE ON audit_entry
    FOR EACH ROW EXECUTE FUNCTION audit_entry_is_append_only()
    """,
    """
    CREATE TRIGGER audit_entry_truncate BEFORE TRUNCATE ON audit_entry
    FOR EACH STATEMENT EXECUTE FUNCTION audit_entry_is_append_only()
    """,
]


def upgrade() -> None:
    op.create_table(
        "audit_entry",
        sa.Column("id", sa.Uuid, nullable=False),
        sa.Column("tenant_id", sa.Uuid, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("via", sa.String(32), nullable=False),
        sa.Column("key_id", sa.String(12)),
        sa.Column("action", sa.String(40), nullable=False),
        sa.Column("subject", sa.String(300)),
        sa.Column("result", sa.String(32), nullable=False),
        sa.Column("code", sa.String(100)),
        sa.Column("request_id", sa.String(200)),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name="fk_audit_entry_tenant"),
        sa.CheckConstraint("via IN ('api', 'page', 'command')", name=op.f("ck_audit_entry_via")),
        sa.CheckConstraint("result IN ('accepted', 'refused')", name=op.f("ck_audit_entry_result")),
        sa.CheckConstraint(
            "(result = 'refused') = (code IS NOT NULL)", name=op.f("ck_audit_entry_code")
        ),
        sa.PrimaryKeyConstraint("id", name="pk_audit_entry"),
    )
    op.create_index(
        "ix_audit_entry_tenant_id_created_at_id", "audit_entry", ["tenant_id", "created_at", "id"]
    )
    on_sqlite = op.get_context().dialect.name == "sqlite"
    for statement in ON_SQLITE if on_sqlite else ON_POSTGRESQL:
        op.execute(statement)


def downgrade() -> None:
    op.drop_table("audit_entry")
    if op.get_context().dialect.name == "postgresql":
        op.execute("DROP FUNCTION audit_entry_is_append_only()")
