"""Operating points, and what the fitness of calibrations depends on."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import and_, func, select, update
from sqlalchemy.orm import Session, aliased

from models import BinTable, Calibration, Evaluation, OperatingPoint
from service.errors import Conflict
from service.storage.evaluations import is_traffic
from service.storage.fit_results import digest_of, undamaged

MOST_DECISIONS = 1_000
FIRST = "1"  # Top-1, the event of operating points


class OperatingPointRepository:
    """The decisions of one tenant, within one session."""

    def __init__(self, session: Session, tenant_id: UUID) -> None:
        self._session = session
        self._tenant_id = tenant_id

    def last(self, calibration_id: UUID) -> OperatingPoint | None:
        """Return the last decision of a calibration, if there is one.

        Raises
        ------
        ArtifactDamaged
            If it is not the one that was stored.
        """
        query = (
            select(Calibration.decision_digest, OperatingPoint)
            .outerjoin(OperatingPoint, OperatingPoint.calibration_id == Calibration.id)
            .where(Calibration.tenant_id == self._tenant_id, Calibration.id == calibration_id)
            .order_by(OperatingPoint.number.desc())
        )
        with undamaged(str(calibration_id)):
            digest, row = self._session.execute(query.limit(1)).one_or_none() or (None, None)
            if digest is not None and (row is None or _digest(row) != digest):
                raise ValueError("the last decision has another digest")
        return row

    def active(self, calibration_ids: Collection[UUID]) -> Mapping[UUID, OperatingPoint]:
        """Return the active operating point of each calibration that has one."""
        last = (
            select(OperatingPoint.calibration_id, func.max(OperatingPoint.number).label("number"))
            .where(
                OperatingPoint.tenant_id == self._tenant_id,
                OperatingPoint.calibration_id.in_(calibration_ids),
            )
            .group_by(OperatingPoint.calibration_id)
            .subquery()
        )
        rows = self._session.scalars(
            select(OperatingPoint).where(
                OperatingPoint.tenant_id == self._tenant_id,
                OperatingPoint.calibration_id == last.c.calibration_id,
                OperatingPoint.number == last.c.number,
                OperatingPoint.threshold.is_not(None),
            )
        )
        return {row.calibration_id: row for row in rows}

    def of_earlier_version(self, row: Calibration) -> tuple[int, OperatingPoint] | None:
        """Return the newest earlier version of the name with an active operating point, and it."""
        return self.of_earlier_versions({row.name: row.version}).get(row.name)

    def of_earlier_versions(
        self, names: Mapping[str, int]
    ) -> Mapping[str, tuple[int, OperatingPoint]]:
        """Return the same by name; ``names`` has the version before which to look for each."""
        later = aliased(OperatingPoint)
        rows = self._session.execute(
            select(Calibration.name, Calibration.version, OperatingPoint)
            .join(OperatingPoint, OperatingPoint.calibration_id == Calibration.id)
            .outerjoin(
                later,
                and_(
                    later.tenant_id == OperatingPoint.tenant_id,
                    later.calibration_id == OperatingPoint.calibration_id,
                    later.number == OperatingPoint.number + 1,
                ),
            )
            .where(
                OperatingPoint.tenant_id == self._tenant_id,
                OperatingPoint.threshold.is_not(None),
                later.number.is_(None),
                Calibration.tenant_id == self._tenant_id,
                Calibration.name.in_(names),
                Calibration.status == "succeeded",
            )
            .order_by(Calibration.version)
        )
        # The last of a name is its newest.
        return {name: (version, point) for name, version, point in rows if version < names[name]}

    def history(
        self, calibration_id: UUID, *, before: int | None, limit: int
    ) -> Sequence[OperatingPoint]:
        """Return up to ``limit`` decisions with numbers under ``before``, newest first."""
        query = select(OperatingPoint).where(
            OperatingPoint.tenant_id == self._tenant_id,
            OperatingPoint.calibration_id == calibration_id,
        )
        if before is not None:
            query = query.where(OperatingPoint.number < before)
        return self._session.scalars(
            query.order_by(OperatingPoint.number.desc()).limit(limit)
        ).all()

    def add(self, row: OperatingPoint) -> OperatingPoint:
        """Add the next decision of a calibration, whose row the caller has locked.

        Raises
        ------
        Conflict
            If there are too many to activate another point; the active one can be withdrawn.
        """
        last = self.last(row.calibration_id)
        if row.threshold is not None and last is not None and last.number >= MOST_DECISIONS:
            raise Conflict(
                f"There are {MOST_DECISIONS:,} decisions about this calibration, the most that are "
                "kept: refit it, and decide about the new version."
            )
        row.tenant_id = self._tenant_id
        row.number = 1 if last is None else last.number + 1
        self._session.add(row)
        self._session.flush()
        self._session.refresh(row)
        self._session.execute(
            update(Calibration)
            .where(Calibration.id == row.calibration_id)
            .values(decision_digest=_digest(row))
        )
        return row


def _digest(row: OperatingPoint) -> str:
    return digest_of([row.calibration_id, row.number, row.name, row.threshold])


@dataclass(frozen=True)
class FitnessRow:
    """A calibration that has succeeded, with the served table of its first event.

    ``further`` are the names and results of its labelled further sets of traffic.
    """

    id: UUID
    findings: list[dict[str, Any]]
    data: dict[str, Any]
    accuracy: dict[str, float]
    verdicts: dict[str, Any] | None
    measures: list[str] | None
    serve: dict[str, str] | None
    k: int
    measure: str
    selective: list[dict[str, Any]] | None
    point: OperatingPoint | None
    further: list[tuple[str, dict[str, Any]]]


def fitness_rows(
    session: Session, tenant_id: UUID, calibration_ids: Collection[UUID]
) -> Sequence[FitnessRow]:
    """Return a row for each calibration that has succeeded."""
    found = session.execute(
        select(
            Calibration.id,
            Calibration.findings,
            Calibration.data,
            Calibration.accuracy,
            Calibration.verdicts,
            *(Calibration.config[key].label(key) for key in ("measures", "serve")),
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
    further = _further(session, tenant_id, calibration_ids)
    return [
        FitnessRow(**row._asdict(), point=points.get(row.id), further=further.get(row.id, []))
        for row in first.values()
    ]


def _further(
    session: Session, tenant_id: UUID, calibration_ids: Collection[UUID]
) -> dict[UUID, list[tuple[str, dict[str, Any]]]]:
    rows = session.execute(
        select(
            Evaluation.calibration_id,
            Evaluation.name,
            Evaluation.result["n_samples"].as_integer(),
            Evaluation.result["events"],
            Evaluation.result["findings"],
        )
        .where(
            Evaluation.tenant_id == tenant_id,
            Evaluation.calibration_id.in_(calibration_ids),
            Evaluation.status == "succeeded",
            Evaluation.labelled,
            is_traffic(),
        )
        .order_by(Evaluation.created_at, Evaluation.id)
    )
    found: dict[UUID, list[tuple[str, dict[str, Any]]]] = {}
    for calibration_id, name, n_samples, events, findings in rows:
        result = {"n_samples": n_samples, "events": events, "findings": findings or []}
        found.setdefault(calibration_id, []).append((name, result))
    return found
