"""Whether calibrations are fit for automatic use, without their whole reports."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from uuid import UUID

import models
from howsure.report.event import Verdict
from howsure.report.figures import first_risk
from howsure.report.further_set import CountedEvents
from howsure.report.further_sets import further_events
from howsure.report.plain_parts import typed_or_none, typed_part
from howsure.report.report import Status
from howsure.report.standing import Standing
from howsure.report.words.disproof import NamedEvents
from howsure.report.words.learned import assurance
from howsure.report.words.summary import decide
from howsure.statistics.findings.evidence import Finding
from howsure.statistics.selective import SelectiveResult
from service.reports.report import operating_point
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
    k, selective = str(row.k), typed_part(row.selective or [], list[SelectiveResult])
    findings = typed_part(row.findings, list[Finding])
    warnings = tuple(found.message for found in findings if found.level == "warning")
    standing = Standing(
        k=k,
        n_warnings=len(warnings),
        evaluations=[
            NamedEvents(name, further_events(typed_part(one, CountedEvents), name, row.point))
            for name, one in row.further
        ],
        accuracy=row.accuracy[k],
        assurance=assurance(row.measure, k, vars(row)),
        verdict=typed_or_none((row.verdicts or {}).get(k), Verdict),
        selective=selective,
        risk=first_risk(selective),
        point=None if row.point is None else operating_point(row.point, row.measure),
        data=row.data,
    )
    status, headline = decide(standing)
    promised = standing.promised if status == "fit" else None
    rates = (None, None) if promised is None else (promised.coverage, promised.max_risk)
    return Fitness(status, headline, warnings, row.point, *rates)
