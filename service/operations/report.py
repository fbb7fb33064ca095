"""The report of a calibration: what was stored when it finished; nothing is computed anew."""

import uuid
from collections.abc import Sequence
from typing import Any

import models
from service.operations.workspace import Workspace
from service.storage.bin_tables import tables_of
from service.storage.calibrations import CalibrationRepository
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
        tables = tables_of(session, tenant_id, row.id)
        scores = scores_of(session, tenant_id, row.id)
    accuracy = row.accuracy or {}
    events = {
        k: {
            "accuracy": accuracy[k],
            "served": (row.serve or {}).get(k),
            "measures": {
                table.measure: _scores(scores, int(k), "measure", table.measure) | _table(table)
                for table in tables
                if table.k == int(k)
            },
            "baselines": {
                name: _scores(scores, int(k), "baseline", name)
                for name in _baselines(scores, int(k))
            },
        }
        for k in sorted(accuracy, key=int)
    }
    return {
        "calibration": {
            "id": str(row.id),
            "name": row.name,
            "version": row.version,
            "created_at": _time(row.created_at),
            "finished_at": _time(row.finished_at),
        },
        "events": events,
        "warnings": row.warnings,
        "provenance": {
            "data": row.data,
            "model": row.onnx_model,
            "config": row.config,
            "versions": row.versions,
        },
    }


def _time(value: Any) -> str | None:  # noqa: ANN401 - a datetime or null
    return None if value is None else value.isoformat()


def _baselines(scores: Sequence[models.Score], k: int) -> list[str]:
    return list(
        dict.fromkeys(s.subject for s in scores if s.k == k and s.subject_kind == "baseline")
    )


def _scores(scores: Sequence[models.Score], k: int, kind: str, subject: str) -> dict[str, Any]:
    """Return the cross-validated scores and, if a set was sent, those of the evaluation."""
    found = [s for s in scores if s.k == k and s.subject_kind == kind and s.subject == subject]
    evaluation = {s.name: s.value for s in found if s.phase == "evaluation"}
    return {
        "scores": {
            s.name: {"mean": s.mean, "std": s.std, "folds": s.folds, "pooled": s.pooled}
            for s in found
            if s.phase == "cross_validation"
        },
        "evaluation": evaluation or None,
    }


def _table(table: models.BinTable) -> dict[str, Any]:
    return {
        "lookup": table.lookup,
        "monotone": table.monotone,
        "requested_bins": table.requested_bins,
        "candidates": table.candidates,
        "bins": [render_bin(found, table.n_samples) for found in table.bins],
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
