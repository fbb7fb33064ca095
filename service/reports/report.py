"""The report of a calibration, from stored results only."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import models
from howsure.statistics.fit.verdict import ERROR
from howsure.statistics.measures.scale import scale_of
from service.calibrations.findings import with_docs
from service.reports.further_sets import LEVEL, error_rate, further_set, share_of
from service.reports.learned import assurance, learned_part
from service.reports.summary import summarise
from service.runner.model_description import OnnxModel, runs_of
from service.storage.artifact_rows import ExportRepository, KeptExport
from service.storage.evaluations import EvaluationRepository
from service.storage.fit_results import read_fitted
from service.storage.operating_points import FIRST, OperatingPointRepository
from service.workspace import Workspace

DETECTION, RAW = "auroc", "raw_softmax"


def report_figures(
    k: str, event: Mapping[str, Any], model_scores: Mapping[str, Any]
) -> dict[str, Any]:
    """Return accuracy, calibration error, detection of errors and risk of an event.

    All but the risk are of the evaluation set if there is one. Otherwise the accuracy is that of
    the calibration set, and the calibration error and the detection of errors are cross-validated,
    with the standard deviation between folds. The risk is always of the calibration set, on
    which it was tested. Accuracy and risk have exact intervals.
    """
    served = event["measures"].get(event["served"])
    raw = event["baselines"].get(RAW)
    judged = served is not None and served["evaluation"] is not None
    return {
        "set": "evaluation" if judged else "calibration",
        "level": LEVEL,
        "accuracy": _accuracy(k, served, model_scores, judged=judged),
        "calibration_error": {
            "score": ERROR,
            "raw": _score(raw, ERROR),
            "served": _score(served, ERROR),
        },
        "error_detection": {"score": DETECTION, "served": _score(served, DETECTION)},
        "risk": None if served is None else first_risk(served.get("selective", [])),
    }


def _accuracy(
    k: str, served: Mapping[str, Any] | None, model_scores: Mapping[str, Any], *, judged: bool
) -> dict[str, Any] | None:
    found = model_scores.get("evaluation" if judged else "calibration")
    if found is not None:
        n_samples = found["n_samples"]
        effective = found.get("effective", {}).get(k)  # results of earlier releases have none
        return share_of(round(found["accuracy"][k] * n_samples), n_samples, effective)
    bins = [] if served is None else served["bins"]  # of imported tables
    return share_of(*(sum(one[name] for one in bins) for name in ("hits", "count")))


def _score(judged: Mapping[str, Any] | None, name: str) -> dict[str, Any] | None:
    """Return a score on the evaluation set, or else its mean over the folds."""
    if judged is None:
        return None
    if judged["evaluation"] is not None:
        value = judged["evaluation"].get(name)
        return None if value is None else {"mean": value, "std": None, "folds": None}
    found = judged["scores"].get(name)
    if found is None or found["mean"] is None:
        return None
    return {key: found[key] for key in ("mean", "std", "folds")}


def first_risk(selective: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return the first requested error rate that has a threshold, and its acceptance.

    ``evaluation`` is the same threshold on the evaluation set; None without one.
    """
    for found in selective:
        if found["threshold"] is None or not found["n_accepted"]:
            continue
        target = {name: found["target"][name] for name in ("max_risk", "delta")}
        accepted = {
            name: found[name] for name in ("threshold", "coverage", "n_accepted", "n_errors")
        }
        judged = {"evaluation": error_rate(found.get("evaluation"))}
        # Imported tables have no effective samples, and results of earlier releases.
        effective = found.get("effective")
        shares = share_of(found["n_errors"], found["n_accepted"], effective) or {}
        return target | accepted | shares | judged
    return None


COMPARED = ("nll", "brier", "ece", "eor", "auroc", "aurc", "conditional_entropy")
OF_THE_TABLE = "eor"  # of the served table itself: no fold has it


def compare_measures(
    event: Mapping[str, Any], onnx_model: OnnxModel | None, folds: int
) -> list[dict[str, Any]]:
    """Return a row for each measure of an event, by ascending cross-validated NLL.

    Parameters
    ----------
    event
        Of the report: ``measures``, with their scores, and the one ``served``.
    onnx_model
        What is kept of the model; None where its outputs were uploaded.
    folds
        Of the cross-validation: where fewer of them define a score, it is that of all together.
    """
    rows = [
        {
            "measure": name,
            "served": name == event["served"],
            **_cost(onnx_model, name),
            "difference": found.get("difference", {}).get("nll"),
            **{score: _cell(found, score, folds) for score in COMPARED},
        }
        for name, found in event["measures"].items()
    ]
    return sorted(rows, key=_rank)


def _rank(row: dict[str, Any]) -> tuple[bool, float]:
    value = row["nll"]["value"]
    return (value is None, value or 0.0)


def _cost(onnx_model: OnnxModel | None, measure: str) -> dict[str, Any]:
    if onnx_model is None:
        return {"passes": None, "ms_per_row": None}
    runs = runs_of(onnx_model, [measure])
    return {"passes": runs.passes, "ms_per_row": runs.ms_per_row}


def _cell(found: Mapping[str, Any], score: str, folds: int) -> dict[str, Any]:
    """Return the mean over the folds, or the score of all together if single folds lack it."""
    over = found["scores"].get(score) or {"mean": None, "std": None, "folds": 0, "pooled": None}
    pooled = is_pooled(score, over, folds)
    return {
        "value": over["pooled"] if pooled else over["mean"],
        "std": None if pooled else over["std"],
        "pooled": pooled,
        # A score of the table says nothing about the evaluation set.
        "evaluation": None if score == OF_THE_TABLE else (found["evaluation"] or {}).get(score),
    }


def is_pooled(score: str, over: Mapping[str, Any], folds: int) -> bool:
    """Tell whether to use the score of all folds together instead of their mean."""
    whole: bool = score == OF_THE_TABLE or over["folds"] < folds
    return whole and over["pooled"] is not None


def collect_report(workspace: Workspace, tenant_id: uuid.UUID, reference: str) -> dict[str, Any]:
    """Return tables, scores, baselines, warnings and provenance as plain data.

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
    accuracy, first = row.accuracy or {}, (row.serve or {}).get(FIRST, "")
    report = {
        "calibration": {
            "id": str(row.id),
            "name": row.name,
            "version": row.version,
            "created_at": _time(row.created_at),
            "finished_at": _time(row.finished_at),
        },
        "events": {k: _event(k, row, tables) for k in sorted(accuracy, key=int)},
        "model_scores": row.model_scores or {},
        "operating_point": None if point is None else operating_point(point, first),
        "earlier_operating_point": None if earlier is None else earlier_operating_point(*earlier),
        "export": None if export is None else _export(export),
        "evaluations": [further_set(found, point) for found in further if found.result is not None],
        "not_evaluated": elsewhere,
        "warnings": row.warnings,
        "findings": [with_docs(finding) for finding in row.findings],
        "provenance": {
            "data": row.data,
            "model": row.onnx_model,
            "config": row.config,
            "versions": row.versions,
            "refit_of": None if row.refit_of is None else str(row.refit_of),
            "digest": row.digest,
        },
    }
    return report | {"summary": summarise(report)}


NOT_SCORED: dict[str, Any] = {"scores": {}, "evaluation": None}  # imported tables


def _event(k: str, row: models.Calibration, tables: Sequence[models.BinTable]) -> dict[str, Any]:
    event = {
        "accuracy": (row.accuracy or {})[k],
        "served": (row.serve or {}).get(k),
        "assurance": assurance((row.serve or {}).get(k, ""), k, row.config),
        "verdict": (row.verdicts or {}).get(k),
        "measures": {
            table.measure: NOT_SCORED | _table(table) for table in tables if table.k == int(k)
        },
        "baselines": (row.baselines or {}).get(k, {}),
        "oracle": (row.oracles or {}).get(k),
        "mislabelled": (row.mislabelled or {}).get(k, []),
    }
    folds = row.config.get("folds", 0)
    compared = compare_measures(event, row.onnx_model, folds)
    figures = report_figures(k, event, row.model_scores or {})
    return event | {"comparison": compared, "figures": figures}


def operating_point(point: models.OperatingPoint, measure: str) -> dict[str, Any]:
    """Return the active operating point of a report, with the measure that serves Top-1."""
    names = ("name", "chosen_by", "consequences", "author", "reason")
    values = {name: getattr(point, name) for name in names}
    threshold = scale_of(measure).of(point.threshold)
    return values | {"threshold": threshold, "created_at": _time(point.created_at)}


def earlier_operating_point(version: int, found: models.OperatingPoint) -> dict[str, Any]:
    """Return the active operating point of an earlier version, which has none itself."""
    names = ("name", "chosen_by", "author")
    return {"version": version} | {name: getattr(found, name) for name in names}


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


def _table(table: models.BinTable) -> dict[str, Any]:
    return {
        "lookup": table.lookup,
        "monotone": table.monotone,
        "requested_bins": table.requested_bins,
        "quantile_bins": table.quantile_bins,
        "candidates": table.candidates,
        "bins": [render_bin(found, table.n_samples) for found in table.bins],
        **table.analysis,
        **learned_part(table),
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
