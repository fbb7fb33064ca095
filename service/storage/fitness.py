"""What the fitness of calibrations depends on, in three queries for any number of them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from models import BinTable, Calibration, Evaluation, OperatingPoint
from service.storage.operating_points import OperatingPointRepository


@dataclass(frozen=True)
class FitnessRow:
    """A calibration that has succeeded, with the served table of its first event.

    ``shifted`` are the names and results of its labelled further sets that are shifted.
    """

    id: UUID
    findings: list[dict[str, Any]]
    data: dict[str, Any]
    accuracy: dict[str, float]
    k: int
    measure: str
    selective: list[dict[str, Any]]
    point: OperatingPoint | None
    shifted: list[tuple[str, dict[str, Any]]]


def fitness_rows(
    session: Session, tenant_id: UUID, calibration_ids: Collection[UUID]
) -> Sequence[FitnessRow]:
    """Return a row for each calibration that has succeeded."""
    columns = (Calibration.id, Calibration.findings, Calibration.data, Calibration.accuracy)
    found = session.execute(
        select(
            *columns,
            BinTable.k,
            BinTable.measure,
            BinTable.analysis["selective"].label("selective"),
        )
        .join(BinTable, BinTable.calibration_id == Calibration.id)
        .where(
            Calibration.tenant_id == tenant_id,
            BinTable.tenant_id == tenant_id,
            Calibration.id.in_(calibration_ids),
            Calibration.status == "succeeded",
            BinTable.served,
        )
        .order_by(BinTable.k)
    )
    first: dict[UUID, Any] = {}
    for row in found:
        first.setdefault(row.id, row)
    points = OperatingPointRepository(session, tenant_id).active(calibration_ids)
    shifted = _shifted(session, tenant_id, calibration_ids)
    return [
        FitnessRow(
            id=row.id,
            findings=row.findings,
            data=row.data,
            accuracy=row.accuracy,
            k=row.k,
            measure=row.measure,
            selective=row.selective or [],
            point=points.get(row.id),
            shifted=shifted.get(row.id, []),
        )
        for row in first.values()
    ]


def _shifted(
    session: Session, tenant_id: UUID, calibration_ids: Collection[UUID]
) -> dict[UUID, list[tuple[str, dict[str, Any]]]]:
    rows = session.execute(
        select(
            Evaluation.calibration_id,
            Evaluation.name,
            Evaluation.result["n_samples"].as_integer(),
            Evaluation.result["events"],
        )
        .where(
            Evaluation.tenant_id == tenant_id,
            Evaluation.calibration_id.in_(calibration_ids),
            Evaluation.status == "succeeded",
            Evaluation.labelled,
            Evaluation.result["shifted"].as_boolean(),
        )
        .order_by(Evaluation.created_at, Evaluation.id)
    )
    found: dict[UUID, list[tuple[str, dict[str, Any]]]] = {}
    for calibration_id, name, n_samples, events in rows:
        result = {"n_samples": n_samples, "events": events}
        found.setdefault(calibration_id, []).append((name, result))
    return found
