"""Add the smooth lookup with its knots, and the formula and values of a learned measure."""

import sqlalchemy as sa
from alembic import context, op
from alembic.util import CommandError

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

ROLES = (
    *("model", "model_data", "calibration", "evaluation", "records", "evaluation_records"),
    *("export", "samples"),
)
MOST_NAMED = 5
BEFORE, AFTER = "lookup IN ('step', 'interpolated')", "lookup IN ('smooth', 'interpolated', 'step')"


def upgrade() -> None:
    with op.batch_alter_table("bin_table") as bin_table:
        bin_table.add_column(sa.Column("smooth", sa.JSON))
        bin_table.add_column(sa.Column("learned", sa.JSON))
        bin_table.drop_constraint(op.f("ck_bin_table_lookup"), type_="check")
        bin_table.create_check_constraint(op.f("ck_bin_table_lookup"), AFTER)
    _allow_roles(*ROLES, "learned")


def downgrade() -> None:
    if not context.is_offline_mode():
        _refuse_served_formulas()
    op.execute("DELETE FROM artifact WHERE role = 'learned'")
    _allow_roles(*ROLES)
    # The bins of a smooth table are those of a step table; a learned measure cannot be computed.
    # SQLite checks foreign keys after the migration and deletes nothing by itself.
    op.execute(
        "DELETE FROM bin WHERE bin_table_id IN (SELECT id FROM bin_table WHERE learned IS NOT NULL)"
    )
    op.execute("DELETE FROM bin_table WHERE learned IS NOT NULL")
    op.execute("UPDATE bin_table SET lookup = 'step' WHERE lookup = 'smooth'")
    with op.batch_alter_table("bin_table") as bin_table:
        bin_table.drop_constraint(op.f("ck_bin_table_lookup"), type_="check")
        bin_table.create_check_constraint(op.f("ck_bin_table_lookup"), BEFORE)
        bin_table.drop_column("learned")
        bin_table.drop_column("smooth")


def _refuse_served_formulas() -> None:
    found = op.get_bind().execute(
        sa.text(
            "SELECT DISTINCT name, version FROM calibration JOIN bin_table "
            "ON calibration_id = calibration.id WHERE learned IS NOT NULL AND served "
            "ORDER BY name, version"
        )
    )
    served = [f"{name}@{version}" for name, version in found]
    if served:
        more = f" and {len(served) - MOST_NAMED} more" if len(served) > MOST_NAMED else ""
        raise CommandError(
            f"The measure learned serves {', '.join(served[:MOST_NAMED])}{more}, and the older "
            "schema cannot hold its formula: refit with another measure in `serve`, then delete "
            "these calibrations; or restore a backup that is older than the upgrade."
        )


def _allow_roles(*roles: str) -> None:
    allowed = ", ".join(f"'{role}'" for role in roles)
    with op.batch_alter_table("artifact") as artifact:
        artifact.drop_constraint(op.f("ck_artifact_role"), type_="check")
        artifact.create_check_constraint(op.f("ck_artifact_role"), f"role IN ({allowed})")
