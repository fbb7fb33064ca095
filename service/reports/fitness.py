"""Whether calibrations are fit for automatic use, without their whole reports."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from uuid import UUID

import models
from service.reports.further_sets import further_events
from service.reports.learned import assurance
from service.reports.report import first_risk, operating_point
from service.reports.summary import Status, decide, promised_rate
from service.storage.calibration_queries import Reference
from service.storage.operating_points import FitnessRow, fitness_rows
from service.workspace import Workspace


@dataclass(frozen=True)
class Fitness:
    """The status and the headline of a report's summary, and what they depend on.

    ``warnings`` are those among the findings. If it is fit, ``coverage`` is the share of answers
    that may be used, and ``max_risk`` the share of these that may be wrong.
    """

    status: Status
    headline: str
    warnings: tuple[str, ...]
    operating_point: models.OperatingPoint | None
    coverage: float | None = None
    max_risk: float | None = None

    @property
    def is_refused(self) -> bool:
        """Whether the calibration should not be used, at least for some data."""
        return self.status in ("warned", "disproved", "shifted")

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it should not be used; empty if nothing is known against it."""
        return (self.headline, *self.warnings) if self.is_refused else ()


def fitness_of(
    workspace: Workspace, tenant_id: UUID, calibration_ids: Collection[UUID]
) -> Mapping[UUID, Fitness]:
    """Return the fitness of each calibration that has succeeded."""
    with workspace.database.reading(tenant_id) as session:
        rows = fitness_rows(session, tenant_id, calibration_ids)
    return {row.id: _fitness(row) for row in rows}


def reasons_against(workspace: Workspace, tenant_id: UUID, calibration_id: UUID) -> tuple[str, ...]:
    """Return why a calibration that has succeeded should not be used.

    Raises
    ------
    NotFound
        If it was deleted meanwhile.
    """
    fitness = fitness_of(workspace, tenant_id, [calibration_id]).get(calibration_id)
    if fitness is None:
        raise Reference(str(calibration_id)).not_found()
    return fitness.reasons


def _fitness(row: FitnessRow) -> Fitness:
    k, selective = str(row.k), row.selective or []
    event = {
        "accuracy": row.accuracy[k],
        "served": row.measure,
        "assurance": assurance(row.measure, k, vars(row)),
        "verdict": (row.verdicts or {}).get(k),
        "measures": {row.measure: {"selective": selective}},
        "figures": {"risk": first_risk(selective)},
    }
    active = None if row.point is None else operating_point(row.point, row.measure)
    report = {
        "findings": row.findings,
        "provenance": {"data": row.data},
        "operating_point": active,
        "events": {k: event},
        "evaluations": [
            {"name": name, "events": further_events(result, name, row.point)}
            for name, result in row.further
        ],
    }
    status, headline = decide(report)
    promised = (promised_rate(report, k) if status == "fit" else None) or {}
    warnings = tuple(found["message"] for found in row.findings if found["level"] == "warning")
    rates = promised.get("coverage"), promised.get("max_risk")
    return Fitness(status, headline, warnings, row.point, *rates)
