"""Count the bytes of the documents and texts in rows, for the limits of tenants."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

JOB = ("error",)
COUNTED = {
    "calibration": (
        *("config", "onnx_model", "data", "versions", "accuracy", "serve", "warnings"),
        *("findings", "model_scores", "verdicts", "baselines", "mislabelled", *JOB),
    ),
    "evaluation": ("data", "result", *JOB),
    "operating_point": ("chosen_by", "consequences", "reason"),
}


def upgrade() -> None:
    is_sqlite = op.get_bind().dialect.name == "sqlite"
    length = "length(CAST({} AS BLOB))" if is_sqlite else "octet_length(CAST({} AS text))"
    for table, columns in COUNTED.items():
        op.add_column(table, sa.Column("row_bytes", sa.Integer, nullable=False, server_default="0"))
        lengths = (f"coalesce({length.format(column)}, 0)" for column in columns)
        op.execute(f"UPDATE {table} SET row_bytes = {' + '.join(lengths)}")  # noqa: S608 - only names of this file
        op.create_index(f"ix_{table}_tenant_id_row_bytes", table, ["tenant_id", "row_bytes"])


def downgrade() -> None:
    for table in COUNTED:
        op.drop_index(f"ix_{table}_tenant_id_row_bytes", table)
        op.drop_column(table, "row_bytes")
