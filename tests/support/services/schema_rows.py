"""Rows of every table, as a service in use has them, and what a database holds at any revision."""

import uuid
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from alembic import command

import models
from service.storage.database import make_engine
from service.storage.schema import migration_config

TENANT_ID = uuid.UUID("00000000-0000-4000-8000-000000000001")
OTHER_TENANT_ID = uuid.UUID(int=7)
NOON = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
Rows = dict[str, list[dict[str, Any]]]

RUNNING = {
    "status": "running",
    "attempt": 2,
    "lease_owner": "host/1/abc",
    "lease_until": NOON,
    "finished_at": None,
    "progress_done": 3,
    "progress_total": 9,
}


def _calibration(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "id": uuid.UUID(int=number),
        "tenant_id": TENANT_ID,
        "name": "digits",
        "version": number,
        "status": "succeeded",
        "created_at": NOON,
        "started_at": NOON,
        "claimed_at": NOON,
        "finished_at": NOON,
        "config": {"bins": "auto", "name": "Grüße, “digits”"},
        "onnx_model": {"sha256": "0" * 64},
        "data": {"samples": 30, "tenth": 0.1},
        "versions": {"numpy": "2"},
        "accuracy": {"1": 1 / 3},
        "serve": {"1": "margin"},
        "warnings": ["few samples"],
        "findings": [{"code": "labels-shifted", "figures": {"accuracy": 0.1 + 2**-55}}],
        "progress_rate": 1e-300,
    } | changes


def _artifact(number: int, role: str, position: int = 0, **changes: Any) -> dict[str, Any]:
    within = changes.get("evaluation_id") or "own"
    return {
        "tenant_id": TENANT_ID,
        "calibration_id": uuid.UUID(int=number),
        "role": role,
        "position": position,
        "label": f"{role}.npz",
        "key": f"calibrations/{uuid.UUID(int=number)}/{within}/{role}-{position}",
        "sha256": f"{position:064x}",
        "size": 2**40 + position,
    } | changes


def _bin_table(number: int, measure: str, **changes: Any) -> dict[str, Any]:
    return {
        "id": number,
        "tenant_id": TENANT_ID,
        "calibration_id": uuid.UUID(int=1),
        "k": 1,
        "measure": measure,
        "column": measure,
        "served": False,
        "requested_bins": 10,
        "quantile_bins": 3,
        "lookup": "step",
        "monotone": False,
        "interval_method": "wilson",
        "interval_level": 0.95,
        "interval_simultaneous": True,
        "prior_accuracy": 0.1 + 2**-55,
        "prior_strength": 1.0,
        "prior_degenerate": False,
        "n_samples": 2**40,
        "candidates": [{"bins": 10, "nll": 0.1}],
        "analysis": {"guarantee": {"odds": 0.1 + 2**-55}},
        "curves": {"roc": [0.5, 1e-300]},
    } | changes


def _bin(table_id: int, index: int, n_bins: int) -> dict[str, Any]:
    return {
        "tenant_id": TENANT_ID,
        "bin_table_id": table_id,
        "index": index,
        "lower": None if index == 0 else index + 2**-30,
        "upper": None if index == n_bins - 1 else index + 1 + 2**-30,
        "count": 10,
        "hits": 9,
        "probability": 0.9,
        "interval_lower": 0.5,
        "interval_upper": 1.0,
        "mean_uncertainty": None if index else 1 / 3,
        "odds_ratio": float("inf") if index else 1.0,
    }


def _score(kind: str, name: str, **changes: Any) -> dict[str, Any]:
    return {
        "tenant_id": TENANT_ID,
        "calibration_id": uuid.UUID(int=1),
        "k": 1,
        "subject_kind": kind,
        "subject": "any",
        "phase": "cross_validation",
        "name": name,
        "position": 0,
        "mean": 0.25,
        "std": None,
        "folds": 10,
        "pooled": 0.1,
        "value": None,
    } | changes


_EVALUATION_ID = uuid.UUID(int=100)
_OF_EVALUATION = {
    "tenant_id": TENANT_ID,
    "calibration_id": uuid.UUID(int=1),
    "data": {"samples": 9},
    "labelled": True,
    "created_at": NOON,
}
HEAD_ROWS: Rows = {
    "tenant": [{"id": OTHER_TENANT_ID, "name": "second"}],
    "tenant_limit": [
        {"tenant_id": OTHER_TENANT_ID, "requests_per_second": 0, "rows_per_minute": None}
        | {"stored_bytes": 2**40, "jobs": 7}
    ],
    "api_key": [
        {"id": "0123456789Ab", "tenant_id": OTHER_TENANT_ID, "name": "a job", "digest": "0" * 64}
        | {"pepper_id": "1" * 16, "scopes": ["predict", "read"], "lifetime_days": 365}
        | {"created_at": NOON, "expires_at": NOON, "last_used_at": None, "revoked_at": NOON}
    ],
    "audit_entry": [
        {"id": uuid.UUID(int=200), "tenant_id": TENANT_ID, "created_at": NOON, "via": "command"}
        | {"action": "create-key", "subject": "0123456789Ab", "result": "accepted"},
        {"id": uuid.UUID(int=201), "tenant_id": OTHER_TENANT_ID, "created_at": NOON, "via": "api"}
        | {"key_id": "0123456789Ab", "action": "calibrate", "result": "refused"}
        | {"code": "forbidden", "request_id": "“one”"},
    ],
    "calibration_name": [
        {"tenant_id": TENANT_ID, "name": "digits", "last_version": 9, "promoted_version": 1},
        {"tenant_id": OTHER_TENANT_ID, "name": "digits", "last_version": 6},
    ],
    "calibration": [
        _calibration(1, verdicts={"1": {}}, model_scores={"nll": 0.1}),
        _calibration(2, refit_of=uuid.UUID(int=1)),
        _calibration(3, **RUNNING),
        _calibration(4, status="queued", started_at=None, claimed_at=None, finished_at=None),
        _calibration(5, status="failed", error={"title": "Worker died"}, accuracy=None),
        _calibration(6, tenant_id=OTHER_TENANT_ID, status="cancelled", cancel_requested=True),
    ],
    "evaluation": [
        {**_OF_EVALUATION, "id": _EVALUATION_ID, "name": "rotated", "status": "succeeded"}
        | {"finished_at": NOON, "result": {"shifted": True}},
        {**_OF_EVALUATION, "id": uuid.UUID(int=101), "name": "dark"} | RUNNING,
    ],
    "artifact": [
        _artifact(1, "model"),
        _artifact(1, "model_data"),
        *(_artifact(1, "records", position) for position in range(3)),
        _artifact(1, "evaluation_records"),
        _artifact(1, "samples"),
        _artifact(1, "export"),
        _artifact(1, "records", evaluation_id=_EVALUATION_ID),
        _artifact(2, "model", key=_artifact(1, "model")["key"]),
        *(_artifact(3, "calibration", position) for position in range(3)),
        _artifact(3, "evaluation"),
    ],
    "bin_table": [
        _bin_table(3, "margin", served=True),
        _bin_table(8, "entropy", monotone=True, k=5, lookup="interpolated"),
        _bin_table(9, "margin", k=5, n_samples=0),
    ],
    "bin": [_bin(3, 0, 3), _bin(3, 1, 3), _bin(3, 2, 3), _bin(8, 0, 1)],
    "score": [
        _score("measure", "nll"),
        _score("oracle", "nll"),
        _score("baseline", "nll", difference=0.5, difference_error=0.1, difference_pairs=10),
        _score("measure", "brier", phase="evaluation", folds=None, mean=None, value=1 / 3),
    ],
    "export": [
        {"tenant_id": TENANT_ID, "calibration_id": uuid.UUID(int=1), "samples": 9}
        | {"classes": 0, "bins": 1, "probability": 1e-9, "created_at": NOON}
    ],
    "operating_point": [
        {"tenant_id": TENANT_ID, "calibration_id": uuid.UUID(int=1), "number": 1}
        | {"name": "automatic", "threshold": 0.1, "chosen_by": {"coverage": 0.8}}
        | {"consequences": {"n_samples": 9}, "author": "Å", "reason": "why", "created_at": NOON},
        {"tenant_id": TENANT_ID, "calibration_id": uuid.UUID(int=1), "number": 2}
        | {"name": None, "threshold": None, "chosen_by": None, "consequences": None}
        | {"author": "Å", "reason": "why not", "created_at": NOON},
    ],
    "idempotency_key": [
        {"tenant_id": TENANT_ID, "key": "“a key”", "digest": "0" * 64}
        | {"calibration_id": uuid.UUID(int=3), "created_at": NOON}
    ],
}


def fill(url: str) -> None:
    """Put rows into each table of a database that is up to date."""
    assert set(HEAD_ROWS) == set(models.Base.metadata.tables), "a table has no rows here"
    engine = make_engine(url)
    with engine.begin() as connection:
        for table in models.Base.metadata.sorted_tables:
            for row in HEAD_ROWS[table.name]:
                connection.execute(sa.insert(table).values(row))
    engine.dispose()


def held(url: str) -> Rows:
    """Return all rows of a database at whatever revision, in no order."""
    engine = make_engine(url)
    with engine.connect() as connection:
        found = sa.MetaData()
        found.reflect(connection)
        rows = {
            name: [dict(row) for row in connection.execute(sa.select(table)).mappings()]
            for name, table in found.tables.items()
        }
    engine.dispose()
    return {name: in_order(of) for name, of in rows.items()}


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows in an order that depends on nothing but their values."""
    return sorted(rows, key=lambda row: repr(sorted(row.items())))


def revision(url: str) -> str | None:
    rows = held(url).get("alembic_version", [])
    return rows[0]["version_num"] if rows else None


def go_to(url: str, wanted: str) -> None:
    """Migrate to a revision, older or newer."""
    move = command.upgrade if wanted >= (revision(url) or "") else command.downgrade
    move(migration_config(url), wanted)
