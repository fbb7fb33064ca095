"""Add the files that lost a row: a trigger writes each down, and the sweeper deletes it later.

On SQLite, a migration that alters the table `artifact` must create the trigger again.
"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

ON_SQLITE = [
    """
    CREATE TRIGGER artifact_released AFTER DELETE ON artifact
    BEGIN
        INSERT INTO released_file (tenant_id, key, released_at)
        VALUES (OLD.tenant_id, OLD.key, strftime('%Y-%m-%d %H:%M:%f000', 'now'))
        ON CONFLICT DO NOTHING;
    END
    """
]
# Two transactions that release one file write different times, so that none waits for the other.
ON_POSTGRESQL = [
    """
    CREATE FUNCTION release_file() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO released_file (tenant_id, key, released_at)
        VALUES (OLD.tenant_id, OLD.key, clock_timestamp())
        ON CONFLICT DO NOTHING;
        RETURN NULL;
    END $$
    """,
    """
    CREATE TRIGGER artifact_released AFTER DELETE ON artifact
    FOR EACH ROW EXECUTE FUNCTION release_file()
    """,
    "ALTER TABLE released_file ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE released_file FORCE ROW LEVEL SECURITY",
    # As revision 0011 does for the other tables.
    """
    CREATE POLICY tenant ON released_file USING (
    CASE current_setting('howsure.tenant', true) WHEN '*' THEN true WHEN '' THEN false
    ELSE tenant_id = current_setting('howsure.tenant', true)::uuid END
    )
    """,
]


def upgrade() -> None:
    op.create_table(
        "released_file",
        sa.Column("tenant_id", sa.Uuid, nullable=False),
        sa.Column("key", sa.String(500), nullable=False),
        sa.Column("released_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "key", "released_at", name="pk_released_file"),
    )
    on_sqlite = op.get_context().dialect.name == "sqlite"
    for statement in ON_SQLITE if on_sqlite else ON_POSTGRESQL:
        op.execute(statement)


def downgrade() -> None:
    if op.get_context().dialect.name == "sqlite":
        op.execute("DROP TRIGGER artifact_released")
    else:
        op.execute("DROP TRIGGER artifact_released ON artifact")
        op.execute("DROP FUNCTION release_file()")
    op.drop_table("released_file")
