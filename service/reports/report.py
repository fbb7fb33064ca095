"""The report of a calibration, from stored results only."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime

import models
from howsure.report.assembly import assembled_event, with_summary
from howsure.report.event import Event, FittedEvent, Verdict
from howsure.report.figures import Cost
from howsure.report.findings import documented_rows
from howsure.report.further_set import CountedSet, DescribedSet, FurtherSet
from howsure.report.further_sets import further_set
from howsure.report.measure import Analysis, Baseline, Curves, Measure, Scored
from howsure.report.plain_parts import typed_or_none, typed_part
from howsure.report.report import (
    About,
    ActivePoint,
    Consequences,
    EarlierPoint,
    ExportedFile,
    Parity,
    Provenance,
    Report,
)
from howsure.report.words.learned import learned_facts
from howsure.statistics.bins.fit import BinCandidate
from howsure.statistics.error_samples import MislabelledCandidate
from howsure.statistics.measures.scale import scale_of
from howsure.statistics.model_scores import ModelScores
from service.runner.model_description import runs_of
from service.storage.artifact_rows import ExportRepository, KeptExport
from service.storage.evaluations import EvaluationRepository
from service.storage.fit_results import core_table, read_fitted
from service.storage.operating_points import FIRST, OperatingPointRepository
from service.workspace import Workspace


def collect_report(workspace: Workspace, tenant_id: uuid.UUID, reference: str) -> Report:
    """Return tables, scores, baselines, warnings and provenance.

    Raises
    ------
    NotFound
        If there is no such calibration.
    Conflict
        If it has not succeeded.
    """
    with workspace.database.reading(tenant_id) as session:
        fitted = read_fitted(session, tenant_id, reference, with_curves=True)
        row, tables = fitted.row, fitted.tables
        evaluations = EvaluationRepository(session, tenant_id)
        further = evaluations.of_calibration(row.id)
        elsewhere = evaluations.only_of_other_versions(row)
        export = ExportRepository(session, tenant_id).find(row.id)
        points = OperatingPointRepository(session, tenant_id)
        point = points.active([row.id]).get(row.id)
        earlier = None if point is not None else points.of_earlier_version(row)
    first = (row.serve or {}).get(FIRST, "")
    scores = typed_part(row.model_scores or {}, dict[str, ModelScores])
    report = Report(
        calibration=About(
            id=str(row.id),
            name=row.name,
            version=row.version,
            created_at=_time(row.created_at),
            finished_at=_time(row.finished_at),
        ),
        events={k: _event(k, row, tables, scores) for k in sorted(row.accuracy or {}, key=int)},
        model_scores=scores,
        operating_point=None if point is None else operating_point(point, first),
        earlier_operating_point=None if earlier is None else earlier_operating_point(*earlier),
        export=None if export is None else _export(export),
        evaluations=[_further_set(one, point) for one in further if one.result is not None],
        not_evaluated=elsewhere,
        warnings=row.warnings,
        findings=documented_rows(row.findings),
        provenance=Provenance(
            data=row.data,
            model=row.onnx_model,
            config=row.config,
            versions=row.versions,
            refit_of=None if row.refit_of is None else str(row.refit_of),
            digest=row.digest,
        ),
    )
    return with_summary(report)


def _event(
    k: str,
    row: models.Calibration,
    tables: Sequence[models.BinTable],
    scores: Mapping[str, ModelScores],
) -> Event:
    measures = {table.measure: _measure(table) for table in tables if table.k == int(k)}
    fitted = FittedEvent(
        accuracy=(row.accuracy or {})[k],
        served=(row.serve or {})[k],
        verdict=typed_or_none((row.verdicts or {}).get(k), Verdict),
        measures=measures,
        baselines=typed_part((row.baselines or {}).get(k, {}), dict[str, Baseline]),
        oracle=typed_or_none((row.oracles or {}).get(k), Scored),
        mislabelled=typed_part((row.mislabelled or {}).get(k, []), list[MislabelledCandidate]),
    )
    return assembled_event(k, fitted, scores, row.config, _costs(row, measures))


def _costs(row: models.Calibration, measures: Mapping[str, Measure]) -> dict[str, Cost]:
    if row.onnx_model is None:
        return {}
    runs = {name: runs_of(row.onnx_model, [name]) for name in measures}
    return {name: Cost(one.passes, one.ms_per_row) for name, one in runs.items()}


def operating_point(point: models.OperatingPoint, measure: str) -> ActivePoint:
    """Return the active operating point of a report, with the measure that serves Top-1."""
    return ActivePoint(
        name=point.name or "",
        chosen_by=point.chosen_by or {},
        consequences=typed_or_none(point.consequences, Consequences),
        author=point.author,
        reason=point.reason,
        threshold=scale_of(measure).of(point.threshold) or 0.0,
        created_at=_time(point.created_at),
    )


def earlier_operating_point(version: int, point: models.OperatingPoint) -> EarlierPoint:
    """Return the active operating point of an earlier version, which has none itself."""
    return EarlierPoint(
        version=version,
        name=point.name or "",
        chosen_by=point.chosen_by or {},
        author=point.author,
    )


def _export(kept: KeptExport) -> ExportedFile:
    names = ("samples", "classes", "bins", "probability")
    return ExportedFile(
        sha256=kept.sha256,
        size=kept.size,
        created_at=_time(kept.parity.created_at),
        parity=Parity(**{name: getattr(kept.parity, name) for name in names}),
    )


def _further_set(row: models.Evaluation, point: models.OperatingPoint | None) -> FurtherSet:
    described = DescribedSet(
        name=row.name,
        role=row.role,
        type=row.type,
        intensity=row.intensity,
        labelled=row.labelled,
        sha256=row.data["sha256"],
        none_of_these=row.data.get("none_of_these", 0),
        finished_at=_time(row.finished_at),
    )
    return further_set(typed_part(row.result, CountedSet), described, point)


def _time(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat()


def _measure(table: models.BinTable) -> Measure:
    analysis = typed_part(table.analysis, Analysis)
    return Measure.of(
        core_table(table),
        analysis,
        quantile_bins=table.quantile_bins,
        candidates=typed_part(table.candidates, list[BinCandidate]),
        curves=typed_part(table.curves, Curves),
        learned=None if table.learned is None else learned_facts(table.learned, analysis.learned),
    )
