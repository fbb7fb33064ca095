"""The measures of an event side by side: what each costs, and how well it does."""

from collections.abc import Mapping
from typing import Any

from service.operations.model_runs import OnnxModel, runs_of

COMPARED = ("nll", "brier", "ece", "eor", "auroc", "aurc", "conditional_entropy")
OF_THE_TABLE = "eor"  # of the served table itself: no fold has it


def compare_measures(
    event: Mapping[str, Any], onnx_model: OnnxModel | None, folds: int
) -> list[dict[str, Any]]:
    """Return a row for each measure of an event, that of the least cross-validated NLL first.

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
    """Return a score over the folds, or of all out-of-fold answers where they do not define it."""
    over = found["scores"].get(score) or {"mean": None, "std": None, "folds": 0, "pooled": None}
    pooled = is_pooled(score, over, folds)
    return {
        "value": over["pooled"] if pooled else over["mean"],
        "std": None if pooled else over["std"],
        "pooled": pooled,
        "evaluation": (found["evaluation"] or {}).get(score),
    }


def is_pooled(score: str, over: Mapping[str, Any], folds: int) -> bool:
    """Tell whether a score is to be that of all folds together, not their mean."""
    whole: bool = score == OF_THE_TABLE or over["folds"] < folds
    return whole and over["pooled"] is not None
