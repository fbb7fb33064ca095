"""Every migration keeps every row, there and back, as far as the older schema can hold it."""

import json
from itertools import pairwise
from types import MappingProxyType

import pytest
import sqlalchemy as sa
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from schema_rows import HEAD_ROWS, fill, go_to, held, in_order, revision

from service.storage.database import make_engine
from service.storage.schema import migration_config
from service.storage.tenants import ALL_TENANTS, set_tenant

# Oldest first; the first one makes the tables.
REVISIONS = sorted(
    script.revision for script in ScriptDirectory.from_config(migration_config("")).walk_revisions()
)
# What the schema before a revision has no room for.
ROWS_WITHOUT_ROOM = {
    "0002": lambda table, row: (
        (table == "artifact" and row["evaluation_id"] is not None)
        or (table == "score" and row["subject_kind"] == "oracle")
    ),
    "0003": lambda table, row: table == "artifact" and row["role"] == "export",
    "0004": lambda table, row: table == "artifact" and row["role"] == "samples",
    "0012": lambda table, row: (
        (table == "artifact" and row["role"] == "learned")
        or (table == "bin_table" and row["measure"] == "learned")
        or (table == "bin" and row["bin_table_id"] == 11)
    ),
}
# Values that the schema before a revision has others for.
VALUES_BEFORE = {"0012": {"bin_table": {"lookup": {"smooth": "step"}}}}

# What a revision fills in for rows that were there: any other column begins as a null. How many
# bins a table had before some were pooled is known if none were; else they were as many as asked
# for at most.
FILLED_IN = {
    "0002": {
        "bin_table": {
            "quantile_bins": lambda row: {3: 3}.get(row["id"], row["requested_bins"]),
            "analysis": lambda _: {},
            "curves": lambda _: {},
        }
    },
    "0005": {
        "calibration": {"claimed_at": lambda row: row["started_at"]},
        "evaluation": {"claimed_at": lambda row: row["started_at"]},
    },
    "0006": {"calibration": {"findings": lambda _: []}},
}


@pytest.fixture
def url(database_url):
    fill(database_url)
    return database_url


def data(url):
    """Return the rows of the tables that have any."""
    return {name: of for name, of in held(url).items() if of and name != "alembic_version"}


def none(table, row):
    return False


def projected(rows, onto, lost=none, changed=MappingProxyType({})):
    """Return what of the rows there are tables and columns for in another state of the schema."""

    def value_of(table, column, value):
        of_column = changed.get(table, {}).get(column)
        return value if of_column is None else of_column.get(value, value)

    return {
        name: in_order(
            [
                {
                    column: value_of(name, column, value)
                    for column, value in row.items()
                    if column in onto[name][0]
                }
                for row in of
                if not lost(name, row)
            ]
        )
        for name, of in rows.items()
        if name in onto
    }


def test_the_way_back_and_forth_keeps_every_row_that_there_is_room_for(url):
    newest = data(url)
    added = {"tenant": 1}
    expected = {name: len(of) + added.get(name, 0) for name, of in HEAD_ROWS.items()}
    assert {name: len(of) for name, of in newest.items()} == expected
    steps = list(pairwise(REVISIONS))
    for older, newer in reversed(steps):
        before = data(url)
        go_to(url, older)
        after = data(url)
        lost, changed = ROWS_WITHOUT_ROOM.get(newer, none), VALUES_BEFORE.get(newer, {})
        assert after == projected(before, after, lost, changed), newer
    for _, newer in steps:
        before = data(url)
        go_to(url, newer)
        after = data(url)
        assert projected(after, before) == before, newer
        assert_new_columns_are_filled_in(before, after, FILLED_IN.get(newer, {}))
    assert revision(url) == REVISIONS[-1]


def serve_learned(url, *, served):
    engine = make_engine(url)
    with engine.begin() as connection:
        set_tenant(connection, ALL_TENANTS)
        found = sa.text("UPDATE bin_table SET served = :served WHERE id = 12")
        assert connection.execute(found, {"served": served}).rowcount == 1
    engine.dispose()


def test_the_way_back_is_refused_where_a_learned_measure_serves(url):
    serve_learned(url, served=True)
    before = data(url)
    with pytest.raises(CommandError, match=r"learned serves digits@1, .*refit .*or restore"):
        go_to(url, "0010")
    assert data(url) == before
    assert revision(url) == REVISIONS[-1]
    serve_learned(url, served=False)
    go_to(url, "0011")
    assert revision(url) == "0011"
    go_to(url, REVISIONS[-1])  # other tests get this schema next


def assert_new_columns_are_filled_in(before, after, filled_in):
    for table, rows in before.items():
        for column in set(after[table][0]) - set(rows[0]):
            fill_in = filled_in.get(table, {}).get(column, lambda _: None)
            for row in after[table]:
                assert plain(row[column]) == fill_in(row), (table, column)


def plain(value):
    """Return the value of a column that was reflected as text."""
    return json.loads(value) if value in ("{}", "[]") else value
