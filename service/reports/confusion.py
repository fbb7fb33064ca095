"""The whole report of a calibration, with what only its records tell."""

import uuid

from howsure.report.confusion import AcceptanceRule, CountedErrors, count_errors, with_confusion
from howsure.report.parts import FIRST
from howsure.report.report import Report
from service.errors import ArtifactDamaged
from service.reports.error_samples import record_parts
from service.reports.operating_points import labelled_samples
from service.reports.report import collect_report
from service.runner.messages.dataset import PAIRS
from service.storage.fit_results import read_fitted
from service.workspace import Workspace

TOP_1 = 1


def collect_full_report(workspace: Workspace, tenant_id: uuid.UUID, reference: str) -> Report:
    """Return `collect_report` with ``confusion`` of Top-1, which reads the records.

    It is null if the calibration keeps no readable records, has no Top-1 event, or has no classes.
    The summary says which class is wrong, or missed, far more often than promised.

    Raises
    ------
    NotFound, Conflict
        As `collect_report`.
    """
    report = collect_report(workspace, tenant_id, reference)
    data = report.provenance.data
    if FIRST not in report.events or "imported" in data or data.get("kind") == PAIRS:
        return report
    calibration_id, rule = uuid.UUID(report.calibration.id), AcceptanceRule.of(report)

    def counted() -> CountedErrors:
        with workspace.database.reading(tenant_id) as session:
            fitted = read_fitted(session, tenant_id, str(calibration_id))
        row = fitted.row
        column = next(table.column for table in fitted.served if table.k == TOP_1)
        return count_errors(
            record_parts(workspace.artifacts, row),
            labelled_samples(workspace, row, column),
            column,
            rule.threshold,
            n_classes=len(row.config["classes"]),
            level=row.config["interval"]["level"],
        )

    try:
        errors = workspace.confusions.get_or_load((calibration_id, rule.threshold), counted)
    except ArtifactDamaged:
        return report  # the rest needs no records
    return with_confusion(report, rule, errors)
