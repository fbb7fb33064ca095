"""The audit table: rows are added, and nothing that the service's role can say changes one."""

import re
import uuid
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DatabaseError
from stored_rows import tenant_of

from models import AuditEntry
from service.access.audit_log import AuditEvent
from service.storage.audit_log import audit_of_all, audit_page
from service.storage.tenants import ALL_TENANTS


@pytest.fixture
def tenant_id(database) -> uuid.UUID:
    return tenant_of(database)


def add(database, tenant_id, action="promote", subject="one", **options) -> None:
    with database.session(ALL_TENANTS) as session:
        AuditEvent(tenant_id, action, **options).accepted(session, subject)


def rows(database) -> list[tuple]:
    with database.reading(ALL_TENANTS) as session:
        return session.execute(sa.select(AuditEntry.__table__)).all()


def assert_refused(database, statement) -> None:
    refused = pytest.raises(DatabaseError, match="append-only")
    with refused, database.session(ALL_TENANTS) as session:
        session.execute(statement)


CHANGES = [
    "UPDATE audit_entry SET subject = 'two'",
    "UPDATE audit_entry SET result = 'refused', code = 'forbidden' WHERE action = 'promote'",
    "DELETE FROM audit_entry",
    "TRUNCATE audit_entry",
]


def test_a_row_is_neither_changed_nor_deleted_nor_replaced(database, tenant_id) -> None:
    add(database, tenant_id)
    [row] = rows(database)
    changed = dict(row._mapping) | {"action": "x"}
    statements = [sa.text(statement) for statement in CHANGES]
    if database.dialect == "sqlite":
        statements[-1] = sqlite.insert(AuditEntry).values(changed).prefix_with("OR REPLACE")
    else:
        replace = postgresql.insert(AuditEntry).values(changed)
        replace = replace.on_conflict_do_update(index_elements=["id"], set_={"action": "x"})
        statements.append(replace)
    for statement in statements:
        assert_refused(database, statement)
    assert rows(database) == [row]


def pruning(dialect: str) -> list[str]:
    """Return the statements of docs/audit.md, without the transaction around them."""
    text = (Path(__file__).parents[2] / "docs" / "audit.md").read_text(encoding="utf-8")
    on_postgresql, on_sqlite = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
    found = on_sqlite if dialect == "sqlite" else on_postgresql
    body = found.split(";\n", 1)[1].rsplit("COMMIT;", 1)[0]
    # The last of three is a trigger, which has a semicolon of its own.
    statements = body.split(";\n", 2 if dialect == "sqlite" else -1)
    return [statement for statement in statements if statement.strip()]


def test_its_owner_prunes_it_as_the_document_says(database, tenant_id) -> None:
    old = {"id": uuid.uuid4(), "tenant_id": tenant_id, "via": "api", "action": "x"}
    old |= {"created_at": datetime(2020, 1, 1, tzinfo=UTC), "result": "accepted"}
    with database.session(ALL_TENANTS) as session:
        session.add(AuditEntry(**old))
    add(database, tenant_id)
    with database.engine.begin() as connection:
        for statement in pruning(database.dialect):
            connection.execute(sa.text(statement))
    assert len(rows(database)) == 1
    assert_refused(database, sa.text("DELETE FROM audit_entry"))


def test_a_row_is_kept_with_what_it_tells_of_or_not_at_all(database, tenant_id) -> None:
    act = AuditEvent(tenant_id, "delete")
    with suppress(RuntimeError), database.session(ALL_TENANTS) as session:
        act.accepted(session, "one")
        session.flush()
        raise RuntimeError
    assert (rows(database), act.is_committed) == ([], False)
    with database.session(ALL_TENANTS) as session:
        act.accepted(session, "one")
        assert not act.is_committed
    assert act.is_committed


FILTERS = [
    ({"subject": "a"}, {"a"}),
    ({"key_id": "0123456789Ab", "action": "refit"}, {"b"}),
    ({"key_id": "0123456789Ab", "result": "refused"}, {"c"}),
    ({"subject": "\x00"}, set()),
]


def test_filters_narrow_what_is_shown(database, tenant_id) -> None:
    add(database, tenant_id, subject="a")
    add(database, tenant_id, "refit", subject="b", key_id="0123456789Ab")
    refused = AuditEvent(tenant_id, "promote", key_id="0123456789Ab")
    refused.refused(database, "c", "forbidden")
    late = datetime.now(UTC) + timedelta(days=1)
    with database.reading(ALL_TENANTS) as session:
        for only, expected in FILTERS:
            page, _ = audit_page(session, tenant_id, limit=9, only=only)
            assert {row.subject for row in page} == expected
            of_all = audit_of_all(session, tenant="default", limit=9, only=only)
            assert {row.subject for _, row in of_all} == expected
            assert audit_of_all(session, tenant=None, limit=9, since=late, only=only) == []


def test_what_a_path_names_is_shown_as_text(database, tenant_id) -> None:
    hostile = "a\x00b\n\x1b[31m\ud800\u202e" + "x" * 1000
    AuditEvent(tenant_id, "promote").refused(database, hostile, "not-found")
    [row] = rows(database)
    assert row.subject.startswith("a?b??[31m??xxx")
    assert len(row.subject) == 300
