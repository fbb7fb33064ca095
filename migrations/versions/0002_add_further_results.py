"""Add further sets, refits, paired differences and what else a fit shows."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

FINDINGS = ("model_scores", "verdicts", "baselines", "mislabelled")
DIFFERENCE_RULES = {
    "difference": "subject_kind = 'baseline' OR difference IS NULL",
    "difference_error": "difference_error IS NULL OR difference IS NOT NULL",
    "difference_pairs": "(difference IS NULL) = (difference_pairs IS NULL)",
}
OF_ITS_OWN = sa.text("evaluation_id IS NULL")


def upgrade() -> None:
    _extend_calibration()
    _create_evaluation()
    _extend_artifact()
    _extend_bin_table()
    _extend_score()


def downgrade() -> None:
    _reduce_score()
    _reduce_bin_table()
    _reduce_artifact()
    op.drop_table("evaluation")
    with op.batch_alter_table("calibration") as calibration:
        for column in ("refit_of", *FINDINGS):
            calibration.drop_column(column)


def _extend_calibration() -> None:
    with op.batch_alter_table("calibration") as calibration:
        calibration.add_column(sa.Column("refit_of", sa.Uuid))
        for column in FINDINGS:
            calibration.add_column(sa.Column(column, sa.JSON))


def _create_evaluation() -> None:
    op.create_table(
        "evaluation",
        sa.Column("id", sa.Uuid, nullable=False),
        sa.Column("tenant_id", sa.Uuid, nullable=False),
        sa.Column("calibration_id", sa.Uuid, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("labelled", sa.Boolean, nullable=False),
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
        sa.Column("error", sa.JSON),
        sa.Column("data", sa.JSON, nullable=False),
        sa.Column("result", sa.JSON),
        sa.ForeignKeyConstraint(
            ["tenant_id", "calibration_id"],
            ["calibration.tenant_id", "calibration.id"],
            name="fk_evaluation_calibration",
            ondelete="CASCADE",
        ),
        *_evaluation_checks(
            status="status IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')",
            error="(status = 'failed') = (error IS NOT NULL)",
            lease="(status = 'running') = (lease_owner IS NOT NULL)"
            " AND (status = 'running') = (lease_until IS NOT NULL)",
            finished_at="(status IN ('queued', 'running')) = (finished_at IS NULL)",
            attempt="attempt >= 0",
            progress="progress_done BETWEEN 0 AND progress_total",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_evaluation"),
        sa.UniqueConstraint(
            "tenant_id", "calibration_id", "id", name="uq_evaluation_tenant_id_calibration_id_id"
        ),
        sa.UniqueConstraint(
            "tenant_id",
            "calibration_id",
            "name",
            name="uq_evaluation_tenant_id_calibration_id_name",
        ),
    )
    op.create_index("ix_evaluation_status_created_at", "evaluation", ["status", "created_at"])


def _evaluation_checks(**rules: str) -> list[sa.CheckConstraint]:
    return [
        sa.CheckConstraint(rule, name=op.f(f"ck_evaluation_{name}")) for name, rule in rules.items()
    ]


def _extend_artifact() -> None:
    with op.batch_alter_table("artifact") as artifact:
        artifact.add_column(sa.Column("evaluation_id", sa.Uuid))
        artifact.drop_constraint("pk_artifact", type_="primary")
        artifact.create_primary_key("pk_artifact", ["tenant_id", "calibration_id", "key"])
        artifact.create_foreign_key(
            "fk_artifact_evaluation",
            "evaluation",
            ["tenant_id", "calibration_id", "evaluation_id"],
            ["tenant_id", "calibration_id", "id"],
            ondelete="CASCADE",
        )
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


def _reduce_artifact() -> None:
    # Their files stay behind without a row, and are removed as such.
    op.execute("DELETE FROM artifact WHERE evaluation_id IS NOT NULL")
    op.drop_index("uq_artifact_of_evaluation", "artifact")
    op.drop_index("uq_artifact_of_calibration", "artifact")
    with op.batch_alter_table("artifact") as artifact:
        artifact.drop_constraint("fk_artifact_evaluation", type_="foreignkey")
        artifact.drop_constraint("pk_artifact", type_="primary")
        artifact.create_primary_key(
            "pk_artifact", ["tenant_id", "calibration_id", "role", "position"]
        )
        artifact.drop_column("evaluation_id")


def _extend_bin_table() -> None:
    with op.batch_alter_table("bin_table") as bin_table:
        bin_table.add_column(sa.Column("quantile_bins", sa.Integer))
        bin_table.add_column(sa.Column("analysis", sa.JSON))
        bin_table.add_column(sa.Column("curves", sa.JSON))
    # Only monotone tables have pooled bins; how many they had before is not known any more, so it
    # is taken that no values were equal.
    op.execute(
        "UPDATE bin_table SET analysis = '{}', curves = '{}', quantile_bins = CASE"
        " WHEN monotone THEN requested_bins"
        " ELSE coalesce(nullif((SELECT count(*) FROM bin WHERE bin.tenant_id = bin_table.tenant_id"
        " AND bin.bin_table_id = bin_table.id), 0), requested_bins) END"
    )
    with op.batch_alter_table("bin_table") as bin_table:
        bin_table.alter_column("quantile_bins", existing_type=sa.Integer, nullable=False)
        bin_table.alter_column("analysis", existing_type=sa.JSON, nullable=False)
        bin_table.alter_column("curves", existing_type=sa.JSON, nullable=False)
        bin_table.create_check_constraint(op.f("ck_bin_table_quantile_bins"), "quantile_bins >= 1")


def _reduce_bin_table() -> None:
    with op.batch_alter_table("bin_table") as bin_table:
        bin_table.drop_constraint(op.f("ck_bin_table_quantile_bins"), type_="check")
        for column in ("quantile_bins", "analysis", "curves"):
            bin_table.drop_column(column)


def _extend_score() -> None:
    with op.batch_alter_table("score") as score:
        score.add_column(sa.Column("difference", sa.Double))
        score.add_column(sa.Column("difference_error", sa.Double))
        score.add_column(sa.Column("difference_pairs", sa.Integer))
        score.drop_constraint(op.f("ck_score_subject_kind"), type_="check")
        score.create_check_constraint(
            op.f("ck_score_subject_kind"), "subject_kind IN ('measure', 'baseline', 'oracle')"
        )
        for name, rule in DIFFERENCE_RULES.items():
            score.create_check_constraint(op.f(f"ck_score_{name}"), rule)


def _reduce_score() -> None:
    op.execute("DELETE FROM score WHERE subject_kind = 'oracle'")
    with op.batch_alter_table("score") as score:
        for name in DIFFERENCE_RULES:
            score.drop_constraint(op.f(f"ck_score_{name}"), type_="check")
        score.drop_constraint(op.f("ck_score_subject_kind"), type_="check")
        score.create_check_constraint(
            op.f("ck_score_subject_kind"), "subject_kind IN ('measure', 'baseline')"
        )
        for column in ("difference", "difference_error", "difference_pairs"):
            score.drop_column(column)
