"""Add row-level security on PostgreSQL: a transaction sees the rows of the tenant that it names.

A transaction without a tenant sees no rows. The service's role owns the tables, and an owner is
exempt unless row-level security is forced.
"""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

# The column that names the tenant of a row.
TENANT_COLUMNS = {
    "tenant": "id",
    "tenant_limit": "tenant_id",
    "api_key": "tenant_id",
    "audit_entry": "tenant_id",
    "calibration_name": "tenant_id",
    "calibration": "tenant_id",
    "evaluation": "tenant_id",
    "artifact": "tenant_id",
    "bin_table": "tenant_id",
    "bin": "tenant_id",
    "score": "tenant_id",
    "export": "tenant_id",
    "operating_point": "tenant_id",
    "idempotency_key": "tenant_id",
}

# The setting is null or empty in a transaction that names no tenant. Of several forms that say the
# same, PostgreSQL plans queries under this one as it does without row-level security.
IS_VISIBLE = """
    CASE current_setting('howsure.tenant', true) WHEN '*' THEN true WHEN '' THEN false
    ELSE {column} = current_setting('howsure.tenant', true)::uuid END
"""


def upgrade() -> None:
    if op.get_context().dialect.name == "sqlite":
        return
    for table, column in TENANT_COLUMNS.items():
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY tenant ON {table} USING ({IS_VISIBLE.format(column=column)})")


def downgrade() -> None:
    if op.get_context().dialect.name == "sqlite":
        return
    for table in TENANT_COLUMNS:
        op.execute(f"DROP POLICY tenant ON {table}")
        op.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")
