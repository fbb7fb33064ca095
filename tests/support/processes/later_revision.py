"""A revision after the last one, to test how a database goes from one to the next."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import migrations
from service.storage import schema

LATER = "9999"
SCRIPT = '''
"""Add a column that rows before it have a value for."""

import sqlalchemy as sa
from alembic import op

revision = "{later}"
down_revision = "{head}"


def upgrade():
    with op.batch_alter_table("bin_table") as bin_table:
        bin_table.add_column(sa.Column("note", sa.Integer))
    op.execute("UPDATE bin_table SET note = k")
    with op.batch_alter_table("bin_table") as bin_table:
        bin_table.alter_column("note", existing_type=sa.Integer, nullable=False)


def downgrade():
    with op.batch_alter_table("bin_table") as bin_table:
        bin_table.drop_column("note")
'''


@contextmanager
def later_revision(folder: Path) -> Iterator[str]:
    """Add a revision to those of this process, in a new folder; return its name."""
    before = schema.head()
    shutil.copytree(Path(migrations.__file__).parent, folder)
    script = SCRIPT.format(later=LATER, head=before)
    (folder / "versions" / f"{LATER}_add_note.py").write_text(script)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrations, "__file__", str(folder / "__init__.py"))
        schema._scripts.cache_clear()
        yield LATER
    schema._scripts.cache_clear()
