"""Create the tables, and the tenant of a fresh installation.

On SQLite, a later revision that alters the table `artifact` or `audit_entry` must create its
triggers again.
"""

from collections.abc import Mapping
from typing import Any, Literal
from uuid import UUID

import sqlalchemy as sa
from alembic import op
from sqlalchemy.schema import SchemaItem

SqlType = sa.types.TypeEngine[Any] | type[sa.types.TypeEngine[Any]]

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

DEFAULT_TENANT_ID = UUID("00000000-0000-4000-8000-000000000001")
LIMITS = ("requests_per_second", "rows_per_minute", "stored_bytes", "jobs")
ROLES = (
    *("model", "model_data", "calibration", "evaluation", "records", "evaluation_records"),
    *("export", "samples", "learned"),
)
STATES = ("queued", "running", "succeeded", "failed", "cancelled")
JOB_RULES = {
    "error": "(status = 'failed') = (error IS NOT NULL)",
    "lease": "(status = 'running') = (lease_owner IS NOT NULL)"
    " AND (status = 'running') = (lease_until IS NOT NULL)",
    "finished_at": "(status IN ('queued', 'running')) = (finished_at IS NULL)",
    "attempt": "attempt >= 0",
    "progress": "progress_done BETWEEN 0 AND progress_total",
}
TIME = sa.DateTime(timezone=True)
OF_ITS_OWN = sa.text("evaluation_id IS NULL")
IS_SERVED = sa.text("served")

AUDIT_TRIGGERS = {
    "sqlite": [
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
    ],
    "postgresql": [
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
    ],
}
# Each file that lost a row is written down, and the sweeper deletes it later. Two transactions that
# release one file on PostgreSQL write different times, so that none waits for the other.
RELEASE_TRIGGERS = {
    "sqlite": [
        """
        CREATE TRIGGER artifact_released AFTER DELETE ON artifact
        BEGIN
            INSERT INTO released_file (tenant_id, key, released_at)
            VALUES (OLD.tenant_id, OLD.key, strftime('%Y-%m-%d %H:%M:%f000', 'now'))
            ON CONFLICT DO NOTHING;
        END
        """
    ],
    "postgresql": [
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
    ],
}
FUNCTIONS = ("audit_entry_is_append_only", "release_file")

# Children before their parents.
TABLES = (
    *("idempotency_key", "operating_point", "export", "bin", "bin_table", "released_file"),
    *("artifact", "evaluation", "calibration", "calibration_name"),
    *("audit_entry", "api_key", "tenant_limit", "tenant"),
)
# On PostgreSQL a transaction sees the rows of the tenant that it names, and none if it names none.
# The service's role owns the tables, and an owner is exempt unless row-level security is forced.
# The setting is null or empty in a transaction that names no tenant. Of several forms that say the
# same, PostgreSQL plans queries under this one as it does without row-level security.
IS_VISIBLE = """
    CASE current_setting('howsure.tenant', true) WHEN '*' THEN true WHEN '' THEN false
    ELSE {column} = current_setting('howsure.tenant', true)::uuid END
"""


def upgrade() -> None:
    _create_tenants()
    _create_api_key()
    _create_audit_entry()
    _create_calibration()
    _create_evaluation()
    _create_files()
    _create_bin_table()
    _create_bin()
    _create_export()
    _create_operating_point()
    _create_idempotency_key()
    dialect = op.get_context().dialect.name
    for statement in AUDIT_TRIGGERS[dialect] + RELEASE_TRIGGERS[dialect]:
        op.execute(statement)
    if dialect == "postgresql":
        for table in TABLES:
            column = "id" if table == "tenant" else "tenant_id"
            op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
            op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
            rule = IS_VISIBLE.format(column=column)
            op.execute(f"CREATE POLICY tenant ON {table} USING ({rule})")


def downgrade() -> None:
    for table in TABLES:
        op.drop_table(table)
    if op.get_context().dialect.name == "postgresql":
        for function in FUNCTIONS:
            op.execute(f"DROP FUNCTION {function}()")


def _create_tenants() -> None:
    tenant = _create(
        "tenant",
        _column("id", sa.Uuid),
        _column("name", sa.String(100)),
        sa.UniqueConstraint("name", name="uq_tenant_name"),
        key=["id"],
    )
    op.bulk_insert(tenant, [{"id": DEFAULT_TENANT_ID, "name": "default"}])
    _create(
        "tenant_limit",
        _column("tenant_id", sa.Uuid),
        *(sa.Column(name, sa.BigInteger) for name in LIMITS),
        _of_tenant("tenant_limit"),
        key=["tenant_id"],
        rules={name: f"{name} >= 0" for name in LIMITS},
    )


def _create_api_key() -> None:
    _create(
        "api_key",
        _column("id", sa.String(12)),
        _column("tenant_id", sa.Uuid),
        _column("name", sa.String(100)),
        _column("digest", sa.String(64)),
        _column("pepper_id", sa.String(16)),
        _column("scopes", sa.JSON),
        _column("lifetime_days", sa.Integer),
        _column("created_at", TIME),
        _column("expires_at", TIME),
        sa.Column("last_used_at", TIME),
        sa.Column("revoked_at", TIME),
        _of_tenant("api_key"),
        key=["id"],
        rules={
            "id": "length(id) = 12",
            "digest": "length(digest) = 64",
            "lifetime_days": "lifetime_days >= 1",
        },
    )
    _index("api_key", "tenant_id", "created_at")
    _index("api_key", "expires_at")
    _index("api_key", "revoked_at")


def _create_audit_entry() -> None:
    _create(
        "audit_entry",
        _column("id", sa.Uuid),
        _column("tenant_id", sa.Uuid),
        _column("created_at", TIME),
        _column("via", sa.String(32)),
        sa.Column("key_id", sa.String(12)),
        _column("action", sa.String(40)),
        sa.Column("subject", sa.String(300)),
        _column("result", sa.String(32)),
        sa.Column("code", sa.String(100)),
        sa.Column("request_id", sa.String(200)),
        _of_tenant("audit_entry"),
        key=["id"],
        rules={
            "via": _one_of("via", "api", "page", "command"),
            "result": _one_of("result", "accepted", "refused"),
            "code": "(result = 'refused') = (code IS NOT NULL)",
        },
    )
    _index("audit_entry", "tenant_id", "created_at", "id")


def _create_calibration() -> None:
    _create(
        "calibration_name",
        _column("tenant_id", sa.Uuid),
        _column("name", sa.String(100)),
        _column("last_version", sa.Integer),
        sa.Column("promoted_version", sa.Integer),
        _of_tenant("calibration_name"),
        key=["tenant_id", "name"],
        rules={
            "last_version": "last_version >= 1",
            "promoted_version": "promoted_version BETWEEN 1 AND last_version",
        },
    )
    _create(
        "calibration",
        *_of_a_job(),
        _column("name", sa.String(100)),
        _column("version", sa.Integer),
        sa.Column("refit_of", sa.Uuid),
        _column("config", sa.JSON),
        sa.Column("onnx_model", sa.JSON),
        _column("data", sa.JSON),
        _column("versions", sa.JSON),
        sa.Column("accuracy", sa.JSON),
        sa.Column("serve", sa.JSON),
        _column("warnings", sa.JSON),
        _column("findings", sa.JSON, server_default=sa.text("'[]'")),
        sa.Column("model_scores", sa.JSON),
        sa.Column("verdicts", sa.JSON),
        sa.Column("baselines", sa.JSON),
        sa.Column("oracles", sa.JSON),
        sa.Column("mislabelled", sa.JSON),
        sa.Column("digest", sa.String(64)),
        sa.Column("decision_digest", sa.String(64)),
        sa.ForeignKeyConstraint(
            ["tenant_id", "name"],
            ["calibration_name.tenant_id", "calibration_name.name"],
            name="fk_calibration_calibration_name",
        ),
        _unique("calibration", "tenant_id", "id"),
        _unique("calibration", "tenant_id", "name", "version"),
        key=["id"],
        rules={"status": _one_of("status", *STATES), "version": "version >= 1", **JOB_RULES},
    )
    _index("calibration", "tenant_id", "created_at", "id")
    _index_jobs("calibration")


def _create_evaluation() -> None:
    _create(
        "evaluation",
        *_of_a_job(),
        _column("calibration_id", sa.Uuid),
        _column("name", sa.String(100)),
        _column("labelled", sa.Boolean),
        _column("data", sa.JSON),
        sa.Column("result", sa.JSON),
        _child_of("calibration", "evaluation"),
        _unique("evaluation", "tenant_id", "calibration_id", "id"),
        _unique("evaluation", "tenant_id", "calibration_id", "name"),
        key=["id"],
        rules={"status": _one_of("status", *STATES), **JOB_RULES},
    )
    _index_jobs("evaluation")


def _create_files() -> None:
    _create(
        "artifact",
        _column("tenant_id", sa.Uuid),
        _column("calibration_id", sa.Uuid),
        _column("key", sa.String(500)),
        sa.Column("evaluation_id", sa.Uuid),
        _column("role", sa.String(32)),
        _column("position", sa.Integer),
        _column("label", sa.Text),
        _column("sha256", sa.String(64)),
        _column("size", sa.BigInteger),
        _child_of("calibration", "artifact"),
        sa.ForeignKeyConstraint(
            ["tenant_id", "calibration_id", "evaluation_id"],
            ["evaluation.tenant_id", "evaluation.calibration_id", "evaluation.id"],
            name="fk_artifact_evaluation",
            ondelete="CASCADE",
        ),
        key=["tenant_id", "calibration_id", "key"],
        rules={
            "role": _one_of("role", *ROLES),
            "sha256": "length(sha256) = 64",
            "position": "position >= 0",
            "size": "size >= 0",
        },
    )
    _index("artifact", "tenant_id", "key")
    op.create_index(
        "uq_artifact_of_calibration",
        "artifact",
        ["tenant_id", "calibration_id", "role", "position"],
        unique=True,
        sqlite_where=OF_ITS_OWN,
        postgresql_where=OF_ITS_OWN,
    )
    op.create_index(
        "uq_artifact_of_evaluation",
        "artifact",
        ["tenant_id", "calibration_id", "evaluation_id", "role", "position"],
        unique=True,
    )
    _create(
        "released_file",
        _column("tenant_id", sa.Uuid),
        _column("key", sa.String(500)),
        _column("released_at", TIME),
        key=["tenant_id", "key", "released_at"],
    )


def _create_bin_table() -> None:
    _create(
        "bin_table",
        _column("id", sa.Integer),
        _column("tenant_id", sa.Uuid),
        _column("calibration_id", sa.Uuid),
        _column("k", sa.Integer),
        _column("measure", sa.String(100)),
        _column("column", sa.String(100)),
        _column("served", sa.Boolean),
        _column("requested_bins", sa.Integer),
        _column("quantile_bins", sa.Integer),
        _column("lookup", sa.String(32)),
        _column("monotone", sa.Boolean),
        _column("interval_method", sa.String(50)),
        _column("interval_level", sa.Double),
        _column("interval_simultaneous", sa.Boolean),
        _column("prior_accuracy", sa.Double),
        _column("prior_strength", sa.Double),
        _column("prior_degenerate", sa.Boolean),
        _column("n_samples", sa.BigInteger),
        _column("candidates", sa.JSON),
        _column("analysis", sa.JSON),
        _column("curves", sa.JSON),
        sa.Column("smooth", sa.JSON),
        sa.Column("learned", sa.JSON),
        _child_of("calibration", "bin_table"),
        _unique("bin_table", "tenant_id", "calibration_id", "k", "measure"),
        _unique("bin_table", "tenant_id", "id"),
        key=["id"],
        rules={
            "lookup": _one_of("lookup", "smooth", "interpolated", "step"),
            "interval_level": "interval_level > 0 AND interval_level < 1",
            "k": "k >= 1",
            "n_samples": "n_samples >= 0",
            "prior_accuracy": "prior_accuracy > 0 AND prior_accuracy < 1",
            "prior_strength": "prior_strength > 0",
            "requested_bins": "requested_bins >= 1",
            "quantile_bins": "quantile_bins >= 1",
        },
    )
    op.create_index(
        "uq_bin_table_served",
        "bin_table",
        ["tenant_id", "calibration_id", "k"],
        unique=True,
        sqlite_where=IS_SERVED,
        postgresql_where=IS_SERVED,
    )


def _create_bin() -> None:
    _create(
        "bin",
        _column("tenant_id", sa.Uuid),
        _column("bin_table_id", sa.Integer, autoincrement=False),
        _column("index", sa.Integer, autoincrement=False),
        sa.Column("lower", sa.Double),
        sa.Column("upper", sa.Double),
        _column("count", sa.BigInteger),
        _column("hits", sa.BigInteger),
        _column("probability", sa.Double),
        _column("interval_lower", sa.Double),
        _column("interval_upper", sa.Double),
        sa.Column("mean_uncertainty", sa.Double),
        sa.Column("odds_ratio", sa.Double),
        _child_of("bin_table", "bin"),
        key=["tenant_id", "bin_table_id", "index"],
        rules={
            "index": '"index" >= 0',
            "hits": "hits BETWEEN 0 AND count",
            "interval": "interval_lower >= 0 AND interval_upper <= 1",
            "edges": "lower < upper",
            "probability": "probability BETWEEN interval_lower AND interval_upper",
        },
    )


def _create_export() -> None:
    _create(
        "export",
        _column("tenant_id", sa.Uuid),
        _column("calibration_id", sa.Uuid),
        _column("samples", sa.Integer),
        _column("classes", sa.Integer),
        _column("bins", sa.Integer),
        _column("probability", sa.Double),
        _column("created_at", TIME),
        _child_of("calibration", "export"),
        key=["tenant_id", "calibration_id"],
        rules={
            "samples": "samples >= 1",
            "classes": "classes BETWEEN 0 AND samples",
            "bins": "bins BETWEEN 0 AND samples",
            "probability": "probability BETWEEN 0 AND 1",
        },
    )


def _create_operating_point() -> None:
    _create(
        "operating_point",
        _column("tenant_id", sa.Uuid),
        _column("calibration_id", sa.Uuid),
        _column("number", sa.Integer),
        sa.Column("name", sa.String(64)),
        sa.Column("threshold", sa.Double),
        sa.Column("chosen_by", sa.JSON),
        sa.Column("consequences", sa.JSON),
        _column("author", sa.String(100)),
        _column("reason", sa.Text),
        _column("created_at", TIME),
        _column("row_bytes", sa.Integer, server_default="0"),
        _child_of("calibration", "operating_point"),
        key=["tenant_id", "calibration_id", "number"],
        rules={"number": "number >= 1", "name": "(threshold IS NULL) = (name IS NULL)"},
    )
    _index("operating_point", "tenant_id", "row_bytes")


def _create_idempotency_key() -> None:
    _create(
        "idempotency_key",
        _column("tenant_id", sa.Uuid),
        _column("key", sa.String(255)),
        _column("digest", sa.String(64)),
        _column("calibration_id", sa.Uuid),
        _column("created_at", TIME),
        _child_of("calibration", "idempotency_key"),
        key=["tenant_id", "key"],
        rules={"digest": "length(digest) = 64"},
    )
    _index("idempotency_key", "tenant_id", "calibration_id")


def _of_a_job() -> list[sa.Column[Any]]:
    return [
        _column("id", sa.Uuid),
        _column("tenant_id", sa.Uuid),
        _column("status", sa.String(32)),
        _column("attempt", sa.Integer),
        sa.Column("lease_owner", sa.String(200)),
        sa.Column("lease_until", TIME),
        _column("cancel_requested", sa.Boolean),
        sa.Column("progress_stage", sa.Text),
        _column("progress_done", sa.Integer),
        _column("progress_total", sa.Integer),
        sa.Column("progress_rate", sa.Double),
        _column("created_at", TIME),
        sa.Column("started_at", TIME),
        sa.Column("claimed_at", TIME),
        sa.Column("finished_at", TIME),
        sa.Column("error", sa.JSON),
        _column("row_bytes", sa.Integer, server_default="0"),
    ]


def _index_jobs(table: str) -> None:
    _index(table, "status", "tenant_id", "created_at", "id")
    _index(table, "tenant_id", "claimed_at")
    _index(table, "tenant_id", "row_bytes")


def _create(
    table: str, *parts: SchemaItem, key: list[str], rules: Mapping[str, str] = {}
) -> sa.Table:
    """Create a table with this primary key and these CHECK constraints."""
    checks = [
        sa.CheckConstraint(rule, name=op.f(f"ck_{table}_{name}")) for name, rule in rules.items()
    ]
    primary = sa.PrimaryKeyConstraint(*key, name=f"pk_{table}")
    return op.create_table(table, *parts, *checks, primary)


def _column(
    name: str,
    kind: SqlType,
    *,
    server_default: str | sa.TextClause | None = None,
    autoincrement: bool | Literal["auto"] = "auto",
) -> sa.Column[Any]:
    """Return a column that is never null."""
    return sa.Column(
        name, kind, nullable=False, server_default=server_default, autoincrement=autoincrement
    )


def _one_of(column: str, *words: str) -> str:
    allowed = ", ".join(f"'{word}'" for word in words)
    return f"{column} IN ({allowed})"


def _unique(table: str, *columns: str) -> sa.UniqueConstraint:
    return sa.UniqueConstraint(*columns, name=f"uq_{table}_{'_'.join(columns)}")


def _index(table: str, *columns: str) -> None:
    op.create_index(f"ix_{table}_{'_'.join(columns)}", table, list(columns))


def _of_tenant(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name=f"fk_{table}_tenant")


def _child_of(parent: str, table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["tenant_id", f"{parent}_id"],
        [f"{parent}.tenant_id", f"{parent}.id"],
        name=f"fk_{table}_{parent}",
        ondelete="CASCADE",
    )
