"""Rows of every table, as a service in use has them, and what a database holds at any revision."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from alembic import command

import models
from service.storage.database import make_engine
from service.storage.schema import migration_config, revision_of
from service.storage.tenants import ALL_TENANTS, set_tenant

TENANT_ID = uuid.UUID("00000000-0000-4000-8000-000000000001")
OTHER_TENANT_ID = uuid.UUID(int=7)
EVALUATION_ID = uuid.UUID(int=100)
NOON = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
# No shorter decimal stands for this number: a database that rounds would show.
EXACT = 0.1 + 2**-55
VALUES = {
    sa.Boolean: False,
    sa.Integer: 1,
    models.FiniteNumber: EXACT,
    sa.String: "Grüße, “digits”",
    sa.JSON: {"Grüße": [EXACT, 1e-300]},
    models.UtcDateTime: NOON,
}
RUNNING = {
    "status": "running",
    "attempt": 2,
    "lease_owner": "host/1/abc",
    "lease_until": NOON,
    "finished_at": None,
    "progress_done": 3,
    "progress_total": 9,
}
Rows = dict[str, list[dict[str, Any]]]


def _row(table: str, **given: Any) -> dict[str, Any]:
    """Return a row with a value in each column that needs one."""
    columns = models.Base.metadata.tables[table].columns
    filled = {c.name: _value(c) for c in columns if not (c.nullable or c.name in given)}
    return filled | given


def _value(column: sa.Column[Any]) -> Any:
    owners = {"tenant_id": TENANT_ID, "calibration_id": uuid.UUID(int=1)}
    if column.name in owners:
        return owners[column.name]
    if isinstance(column.type, sa.Enum):
        return column.type.enums[0]
    return next(found for kind, found in VALUES.items() if isinstance(column.type, kind))


def _calibration(number: int, **changes: Any) -> dict[str, Any]:
    times = dict.fromkeys(("started_at", "claimed_at", "finished_at"), NOON)
    given = {"status": "succeeded", "accuracy": {"1": 1 / 3}, "serve": {"1": "margin"}, **times}
    given |= {"id": uuid.UUID(int=number), "name": "digits", "version": number}
    return _row("calibration", **given | changes)


def _artifact(number: int, role: str, position: int = 0, **changes: Any) -> dict[str, Any]:
    made, within = uuid.UUID(int=number), changes.get("evaluation_id") or "own"
    key = f"calibrations/{made}/{within}/{role}-{position}"
    given = {"calibration_id": made, "role": role, "position": position, "key": key}
    given |= {"sha256": f"{position:064x}", "size": 2**40 + position}
    return _row("artifact", **given | changes)


def _bin_table(number: int, measure: str, **changes: Any) -> dict[str, Any]:
    given = {"id": number, "measure": measure, "requested_bins": 10, "quantile_bins": 3}
    given |= {"interval_simultaneous": True, "n_samples": 2**40}
    return _row("bin_table", **given | changes)


def _bin(table_id: int, index: int, n_bins: int) -> dict[str, Any]:
    return _row(
        "bin",
        bin_table_id=table_id,
        index=index,
        lower=None if index == 0 else index + 2**-30,
        upper=None if index == n_bins - 1 else index + 1 + 2**-30,
        count=10,
        hits=9,
        probability=0.9,
        interval_lower=0.5,
        interval_upper=1.0,
        mean_uncertainty=None if index else 1 / 3,
        odds_ratio=None if index else 1.0,
    )


KEY_ID = "0123456789Ab"
KEY = {"id": KEY_ID, "digest": "0" * 64, "pepper_id": "1" * 16, "revoked_at": NOON}
REFUSED = {"result": "refused", "code": "forbidden", "key_id": KEY_ID, "request_id": "“one”"}
LEARNED = {"smooth": {"lower": [0.25]}, "learned": {"offset": [EXACT, -1.0]}}
HEAD_ROWS: Rows = {
    "tenant": [{"id": OTHER_TENANT_ID, "name": "second"}],
    "tenant_limit": [
        {"tenant_id": OTHER_TENANT_ID, "requests_per_second": 0, "stored_bytes": 2**40, "jobs": 7}
    ],
    "api_key": [_row("api_key", tenant_id=OTHER_TENANT_ID, **KEY)],
    "audit_entry": [
        _row("audit_entry", id=uuid.UUID(int=200), result="accepted", subject=KEY_ID),
        _row("audit_entry", id=uuid.UUID(int=201), tenant_id=OTHER_TENANT_ID, **REFUSED),
    ],
    "calibration_name": [
        _row("calibration_name", name="digits", last_version=9, promoted_version=1),
        _row("calibration_name", tenant_id=OTHER_TENANT_ID, name="digits", last_version=6),
    ],
    "calibration": [
        _calibration(1, verdicts={"1": {}}, model_scores={"nll": 0.1}, progress_rate=1e-300),
        _calibration(2, refit_of=uuid.UUID(int=1)),
        _calibration(3, **RUNNING),
        _calibration(4, status="queued", started_at=None, claimed_at=None, finished_at=None),
        _calibration(5, status="failed", error={"title": "Worker died"}, accuracy=None),
        _calibration(6, tenant_id=OTHER_TENANT_ID, status="cancelled", cancel_requested=True),
    ],
    "evaluation": [
        _row("evaluation", id=EVALUATION_ID, name="rotated", status="succeeded", finished_at=NOON),
        _row("evaluation", id=uuid.UUID(int=101), name="dark", labelled=True, **RUNNING),
    ],
    "artifact": [
        *(_artifact(1, role) for role in ("model", "model_data", "samples", "export", "learned")),
        *(_artifact(1, "records", position) for position in range(3)),
        _artifact(1, "evaluation_records"),
        _artifact(1, "records", evaluation_id=EVALUATION_ID),
        _artifact(2, "model", key=_artifact(1, "model")["key"]),
        *(_artifact(3, "calibration", position) for position in range(3)),
        _artifact(3, "evaluation"),
    ],
    "released_file": [_row("released_file", key=_artifact(1, "calibration")["key"])],
    "bin_table": [
        _bin_table(3, "margin", served=True, lookup="step"),
        _bin_table(8, "entropy", monotone=True, k=5, lookup="interpolated"),
        _bin_table(9, "margin", k=5, n_samples=0, lookup="step"),
        _bin_table(10, "entropy", lookup="smooth", smooth={"uncertainty": [EXACT, 1e-300]}),
        _bin_table(11, "learned", lookup="step", learned={"intercept": EXACT}),
        _bin_table(12, "learned", k=5, lookup="smooth", **LEARNED),
    ],
    "bin": [_bin(3, 0, 3), _bin(3, 1, 3), _bin(3, 2, 3), _bin(8, 0, 1), _bin(11, 0, 1)],
    "export": [_row("export", samples=9, bins=0, probability=1e-9)],
    "operating_point": [
        _row("operating_point", number=1, name="automatic", threshold=0.1, chosen_by={"at": 0.8}),
        _row("operating_point", number=2),
    ],
    "idempotency_key": [
        _row("idempotency_key", key="“a key”", digest="0" * 64, calibration_id=uuid.UUID(int=3))
    ],
}


def fill(url: str) -> None:
    """Put rows into each table of a database that is up to date."""
    assert set(HEAD_ROWS) == set(models.Base.metadata.tables), "a table has no rows here"
    with connected(url) as connection:
        for table in models.Base.metadata.sorted_tables:
            for row in HEAD_ROWS[table.name]:
                connection.execute(sa.insert(table).values(row))


@contextmanager
def connected(url: str) -> Iterator[sa.Connection]:
    """Open a transaction of all tenants."""
    engine = make_engine(url)
    try:
        with engine.begin() as connection:
            set_tenant(connection, ALL_TENANTS)
            yield connection
    finally:
        engine.dispose()


def held(url: str) -> Rows:
    """Return all rows of a database at whatever revision, in no order, as its driver reads them."""
    every_column = sa.select(sa.text("*"))
    with connected(url) as connection:
        names = sa.inspect(connection).get_table_names()
        rows = {
            name: connection.execute(every_column.select_from(sa.table(name))) for name in names
        }
        return {name: in_order([dict(row) for row in of.mappings()]) for name, of in rows.items()}


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows in an order that depends on nothing but their values."""
    return sorted(rows, key=lambda row: repr(sorted(row.items())))


def revision(url: str) -> str | None:
    with connected(url) as connection:
        return revision_of(connection)


def go_to(url: str, wanted: str) -> None:
    """Migrate to a revision, older or newer."""
    move = command.upgrade if wanted >= (revision(url) or "") else command.downgrade
    move(migration_config(url), wanted)
