"""Create the tables and the tenant of a fresh installation."""

from uuid import UUID

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

DEFAULT_TENANT_ID = UUID("00000000-0000-4000-8000-000000000001")


def upgrade() -> None:
    _create_tenant()
    _create_calibration_name()
    _create_calibration()
    _create_artifact()
    _create_bin_table()
    _create_score()
    _create_bin()


def downgrade() -> None:
    for table in (
        "bin",
        "score",
        "bin_table",
        "artifact",
        "calibration",
        "calibration_name",
        "tenant",
    ):
        op.drop_table(table)


def _create_tenant() -> None:
    tenant = op.create_table(
        "tenant",
        sa.Column("id", sa.Uuid, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_tenant"),
        sa.UniqueConstraint("name", name="uq_tenant_name"),
    )
    op.bulk_insert(tenant, [{"id": DEFAULT_TENANT_ID, "name": "default"}])


def _create_calibration_name() -> None:
    op.create_table(
        "calibration_name",
        sa.Column("tenant_id", sa.Uuid, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("last_version", sa.Integer, nullable=False),
        sa.Column("promoted_version", sa.Integer),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name="fk_calibration_name_tenant"),
        *_checks(
            "calibration_name",
            last_version="last_version >= 1",
            promoted_version="promoted_version BETWEEN 1 AND last_version",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "name", name="pk_calibration_name"),
    )


def _create_calibration() -> None:
    op.create_table(
        "calibration",
        sa.Column("id", sa.Uuid, nullable=False),
        sa.Column("tenant_id", sa.Uuid, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("status", sa.String(32), nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("lease_owner", sa.String(200)),
        sa.Column("lease_until", sa.DateTime(timezone=True)),
        sa.Column("cancel_requested", sa.Boolean, nullable=False),
        sa.Column("progress_stage", sa.Text),
        sa.Column("progress_done", sa.Integer, nullable=False),
        sa.Column("progress_total", sa.Integer, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True)),
        sa.Column("finished_at", sa.DateTime(timezone=True)),
        sa.Column("config", sa.JSON, nullable=False),
        sa.Column("onnx_model", sa.JSON),
        sa.Column("data", sa.JSON, nullable=False),
        sa.Column("versions", sa.JSON, nullable=False),
        sa.Column("accuracy", sa.JSON),
        sa.Column("serve", sa.JSON),
        sa.Column("warnings", sa.JSON, nullable=False),
        sa.Column("error", sa.JSON),
        sa.ForeignKeyConstraint(
            ["tenant_id", "name"],
            ["calibration_name.tenant_id", "calibration_name.name"],
            name="fk_calibration_calibration_name",
        ),
        *_checks(
            "calibration",
            status="status IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')",
            error="(status = 'failed') = (error IS NOT NULL)",
            lease="(status = 'running') = (lease_owner IS NOT NULL)"
            " AND (status = 'running') = (lease_until IS NOT NULL)",
            finished_at="(status IN ('queued', 'running')) = (finished_at IS NULL)",
            attempt="attempt >= 0",
            progress="progress_done BETWEEN 0 AND progress_total",
            version="version >= 1",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_calibration"),
        sa.UniqueConstraint("tenant_id", "id", name="uq_calibration_tenant_id_id"),
        sa.UniqueConstraint(
            "tenant_id", "name", "version", name="uq_calibration_tenant_id_name_version"
        ),
    )
    op.create_index("ix_calibration_status_created_at", "calibration", ["status", "created_at"])
    op.create_index(
        "ix_calibration_tenant_id_created_at_id", "calibration", ["tenant_id", "created_at", "id"]
    )


def _create_artifact() -> None:
    op.create_table(
        "artifact",
        sa.Column("tenant_id", sa.Uuid, nullable=False),
        sa.Column("calibration_id", sa.Uuid, nullable=False),
        sa.Column("role", sa.String(32), nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("key", sa.String(500), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        _child_of("calibration", "artifact"),
        *_checks(
            "artifact",
            role="role IN ('model', 'model_data', 'calibration', 'evaluation', 'records',"
            " 'evaluation_records')",
            sha256="length(sha256) = 64",
            position="position >= 0",
            size="size >= 0",
        ),
        sa.PrimaryKeyConstraint(
            "tenant_id", "calibration_id", "role", "position", name="pk_artifact"
        ),
    )
    op.create_index("ix_artifact_tenant_id_key", "artifact", ["tenant_id", "key"])


def _create_bin_table() -> None:
    op.create_table(
        "bin_table",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("tenant_id", sa.Uuid, nullable=False),
        sa.Column("calibration_id", sa.Uuid, nullable=False),
        sa.Column("k", sa.Integer, nullable=False),
        sa.Column("measure", sa.String(100), nullable=False),
        sa.Column("column", sa.String(100), nullable=False),
        sa.Column("served", sa.Boolean, nullable=False),
        sa.Column("requested_bins", sa.Integer, nullable=False),
        sa.Column("lookup", sa.String(32), nullable=False),
        sa.Column("monotone", sa.Boolean, nullable=False),
        sa.Column("interval_method", sa.String(50), nullable=False),
        sa.Column("interval_level", sa.Double, nullable=False),
        sa.Column("interval_simultaneous", sa.Boolean, nullable=False),
        sa.Column("prior_accuracy", sa.Double, nullable=False),
        sa.Column("prior_strength", sa.Double, nullable=False),
        sa.Column("prior_degenerate", sa.Boolean, nullable=False),
        sa.Column("n_samples", sa.BigInteger, nullable=False),
        sa.Column("candidates", sa.JSON, nullable=False),
        _child_of("calibration", "bin_table"),
        *_checks(
            "bin_table",
            lookup="lookup IN ('step', 'interpolated')",
            interval_level="interval_level > 0 AND interval_level < 1",
            k="k >= 1",
            n_samples="n_samples >= 0",
            prior_accuracy="prior_accuracy > 0 AND prior_accuracy < 1",
            prior_strength="prior_strength > 0",
            requested_bins="requested_bins >= 1",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_bin_table"),
        sa.UniqueConstraint(
            "tenant_id",
            "calibration_id",
            "k",
            "measure",
            name="uq_bin_table_tenant_id_calibration_id_k_measure",
        ),
        sa.UniqueConstraint("tenant_id", "id", name="uq_bin_table_tenant_id_id"),
    )
    op.create_index(
        "uq_bin_table_served",
        "bin_table",
        ["tenant_id", "calibration_id", "k"],
        unique=True,
        sqlite_where=sa.text("served"),
        postgresql_where=sa.text("served"),
    )


def _create_score() -> None:
    op.create_table(
        "score",
        sa.Column("tenant_id", sa.Uuid, nullable=False),
        sa.Column("calibration_id", sa.Uuid, nullable=False),
        sa.Column("k", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("subject_kind", sa.String(32), nullable=False),
        sa.Column("subject", sa.String(100), nullable=False),
        sa.Column("phase", sa.String(32), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("mean", sa.Double),
        sa.Column("std", sa.Double),
        sa.Column("folds", sa.Integer),
        sa.Column("pooled", sa.Double),
        sa.Column("value", sa.Double),
        _child_of("calibration", "score"),
        *_checks(
            "score",
            subject_kind="subject_kind IN ('measure', 'baseline')",
            phase="phase IN ('cross_validation', 'evaluation')",
            phase_folds="(phase = 'cross_validation') = (folds IS NOT NULL)",
            phase_mean="phase = 'cross_validation' OR mean IS NULL",
            phase_value="phase = 'evaluation' OR value IS NULL",
            folds="folds >= 0",
            k="k >= 1",
        ),
        sa.PrimaryKeyConstraint(
            "tenant_id",
            "calibration_id",
            "k",
            "subject_kind",
            "subject",
            "phase",
            "name",
            name="pk_score",
        ),
    )


def _create_bin() -> None:
    op.create_table(
        "bin",
        sa.Column("tenant_id", sa.Uuid, nullable=False),
        sa.Column("bin_table_id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("index", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("lower", sa.Double),
        sa.Column("upper", sa.Double),
        sa.Column("count", sa.BigInteger, nullable=False),
        sa.Column("hits", sa.BigInteger, nullable=False),
        sa.Column("probability", sa.Double, nullable=False),
        sa.Column("interval_lower", sa.Double, nullable=False),
        sa.Column("interval_upper", sa.Double, nullable=False),
        sa.Column("mean_uncertainty", sa.Double),
        sa.Column("odds_ratio", sa.Double, nullable=False),
        _child_of("bin_table", "bin"),
        *_checks(
            "bin",
            index='"index" >= 0',
            hits="hits BETWEEN 0 AND count",
            interval="interval_lower >= 0 AND interval_upper <= 1",
            edges="lower < upper",
            probability="probability BETWEEN interval_lower AND interval_upper",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "bin_table_id", "index", name="pk_bin"),
    )


def _checks(table: str, **rules: str) -> list[sa.CheckConstraint]:
    return [
        sa.CheckConstraint(rule, name=op.f(f"ck_{table}_{name}")) for name, rule in rules.items()
    ]


def _child_of(parent: str, table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["tenant_id", f"{parent}_id"],
        [f"{parent}.tenant_id", f"{parent}.id"],
        name=f"fk_{table}_{parent}",
        ondelete="CASCADE",
    )
