"""The report of a calibration: what was stored of it; nothing is computed anew."""

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

import models
from service.operations.findings_of_records import with_docs
from service.operations.report_comparison import compare_measures
from service.operations.report_figures import report_figures
from service.operations.workspace import Workspace
from service.storage.bin_tables import tables_of
from service.storage.calibrations import CalibrationRepository
from service.storage.evaluations import EvaluationRepository
from service.storage.exports import ExportRepository, KeptExport
from service.storage.scores import scores_of


def collect_report(workspace: Workspace, tenant_id: uuid.UUID, reference: str) -> dict[str, Any]:
    """Return tables, scores, baselines, warnings and provenance as plain data.

    Raises
    ------
    NotFound
        If there is no such calibration.
    Conflict
        If it has not succeeded.
    """
    with workspace.database.reading() as session:
        row = CalibrationRepository(session, tenant_id).find_ready(reference)
        tables = tables_of(session, tenant_id, row.id, with_curves=True)
        scores = scores_of(session, tenant_id, row.id)
        further = EvaluationRepository(session, tenant_id).of_calibration(row.id)
        export = ExportRepository(session, tenant_id).find(row.id)
    accuracy = row.accuracy or {}
    return {
        "calibration": {
            "id": str(row.id),
            "name": row.name,
            "version": row.version,
            "created_at": _time(row.created_at),
            "finished_at": _time(row.finished_at),
        },
        "events": {k: _event(k, row, tables, scores) for k in sorted(accuracy, key=int)},
        "model_scores": row.model_scores or {},
        "export": None if export is None else _export(export),
        "evaluations": [
            _further_set(found, found.result) for found in further if found.result is not None
        ],
        "warnings": row.warnings,
        "findings": [with_docs(finding) for finding in row.findings],
        "provenance": {
            "data": row.data,
            "model": row.onnx_model,
            "config": row.config,
            "versions": row.versions,
            "refit_of": None if row.refit_of is None else str(row.refit_of),
        },
    }


def _event(
    k: str,
    row: models.Calibration,
    tables: Sequence[models.BinTable],
    scores: Sequence[models.Score],
) -> dict[str, Any]:
    found = [score for score in scores if score.k == int(k)]
    baselines = cast("dict[str, Any]", row.baselines or {}).get(k, {})
    oracle = next((s.subject for s in found if s.subject_kind == "oracle"), None)
    event = {
        "accuracy": (row.accuracy or {})[k],
        "served": (row.serve or {}).get(k),
        "verdict": (row.verdicts or {}).get(k),
        "measures": {
            table.measure: _scores(found, "measure", table.measure) | _table(table)
            for table in tables
            if table.k == int(k)
        },
        "baselines": {
            name: _scores(found, "baseline", name)
            | baselines.get(name, {})
            | {"difference": _differences(found, name)}
            for name in _subjects(found, "baseline")
        },
        "oracle": None if oracle is None else _scores(found, "oracle", oracle),
        "mislabelled": (row.mislabelled or {}).get(k, []),
    }
    folds = cast("dict[str, Any]", row.config).get("folds", 0)
    compared = compare_measures(event, row.onnx_model, folds)
    return event | {"comparison": compared, "figures": report_figures(event)}


def _further_set(found: models.Evaluation, result: dict[str, Any]) -> dict[str, Any]:
    """Return what the served tables say of a finished further set; all else is its resource's."""
    events = {}
    for k, event in result["events"].items():
        served = event["measures"][event["served"]]
        events[k] = {name: event[name] for name in ("accuracy", "served", "shifted")}
        events[k] |= {name: served[name] for name in ("scores", "discarded")}
    return {
        "name": found.name,
        "labelled": found.labelled,
        "finished_at": _time(found.finished_at),
        "samples": result["n_samples"],
        "shifted": result["shifted"],
        "sentence": result["sentence"],
        "events": events,
        **{name: result.get(name) for name in ("confidence", "entropy", "above_confidence")},
        "by_confidence": (result["model_scores"] or {}).get("by_confidence"),
    }


def _export(found: KeptExport) -> dict[str, Any]:
    return {
        "sha256": found.sha256,
        "size": found.size,
        "created_at": _time(found.parity.created_at),
        "parity": {
            name: getattr(found.parity, name)
            for name in ("samples", "classes", "bins", "probability")
        },
    }


def _time(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat()


def _subjects(scores: Sequence[models.Score], kind: models.SubjectKind) -> list[str]:
    return list(dict.fromkeys(s.subject for s in scores if s.subject_kind == kind))


def _scores(
    scores: Sequence[models.Score], kind: models.SubjectKind, subject: str
) -> dict[str, Any]:
    """Return the cross-validated scores and, if a set was sent, those of the evaluation."""
    found = [s for s in scores if s.subject_kind == kind and s.subject == subject]
    evaluation = {s.name: s.value for s in found if s.phase == "evaluation"}
    return {
        "scores": {
            s.name: {"mean": s.mean, "std": s.std, "folds": s.folds, "pooled": s.pooled}
            for s in found
            if s.phase == "cross_validation"
        },
        "evaluation": evaluation or None,
    }


def _differences(scores: Sequence[models.Score], baseline: str) -> dict[str, Any]:
    """Return the baseline's scores minus the served table's, pair by pair, by phase and score."""
    differences: dict[str, Any] = {"cross_validation": {}, "evaluation": {}}
    for s in scores:
        if s.subject_kind == "baseline" and s.subject == baseline and s.difference is not None:
            differences[s.phase][s.name] = {
                "mean": s.difference,
                "standard_error": s.difference_error,
                "pairs": s.difference_pairs,
            }
    return differences


def _table(table: models.BinTable) -> dict[str, Any]:
    return {
        "lookup": table.lookup,
        "monotone": table.monotone,
        "requested_bins": table.requested_bins,
        "quantile_bins": table.quantile_bins,
        "candidates": table.candidates,
        "bins": [render_bin(found, table.n_samples) for found in table.bins],
        **table.analysis,
        "curves": table.curves,
    }


def render_bin(found: models.Bin, n_samples: int) -> dict[str, Any]:
    """Return one bin as plain data; an edge without limit is null."""
    return {
        "lower": found.lower,
        "upper": found.upper,
        "count": found.count,
        "hits": found.hits,
        "weight": found.count / n_samples,
        "probability": found.probability,
        "interval": [found.interval_lower, found.interval_upper],
        "mean_uncertainty": found.mean_uncertainty,
        "odds_ratio": found.odds_ratio,
    }
