"""``/pages/calibrations/{id}/measures``: the cost and the scores of each measure."""

import json
import shlex
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from starlette.requests import Request
from starlette.responses import Response

from howsure.figures.reliability_diagrams import diagram_key
from howsure.report.event import Event
from howsure.report.figures import is_pooled
from howsure.report.located import Located, value_of
from howsure.report.report import Provenance, Report
from howsure.report.words.verdict import TIES, Verdict, verdict
from howsure.statistics.comparison import PairedDifference
from howsure.statistics.diagnostics.reliability_diagrams import DIAGRAM_KINDS
from howsure.statistics.measures import SCORE, parse_measure
from howsure.statistics.measures.scale import scale_of
from service.reports.charts.registry import CHARTS_OF_MEASURES, render_figures
from service.reports.report import collect_report
from service.web.page import calibration_page
from service.web.page_route import origin_of, subject_of

_SOFTMAX = "probabilities"
NEEDS: Mapping[str, str] = {
    "learned": _SOFTMAX + "; it is fitted with the calibration",
    "entropy": _SOFTMAX,
    "neg_log_pmax": _SOFTMAX,
    "neg_log_topk_mass": _SOFTMAX,
    "margin": _SOFTMAX,
    "energy": "logits",
    "dropout_variance": "a model with Dropout nodes, and runs with active dropout",
    "last_layer_dropout_variance": "an ONNX model, and runs of its last layer with dropout",
    "ensemble_variance": "several models, or runs of a random one",
    "gradient_norm": "the model's gradient, by runs near each row",
    "jacobian_norm": "the gradients of logits, by runs near each row",
}
SUPPLIED_NEEDS = "a column {} with the samples; it serves only if the configuration names it"
OUTPUT_NEEDS = "the output {} of the model"


def needs_of(measure: str) -> str:
    """Return what a measure needs; an empty text for an unknown measure."""
    if measure in NEEDS:
        return NEEDS[measure]
    try:
        parsed = parse_measure(measure)
    except ValueError:
        return ""
    if parsed.kind == "supplied":
        return SUPPLIED_NEEDS.format(f"uncertainty_{parsed.name}")
    return OUTPUT_NEEDS.format(parsed.name)


VERDICTS: Mapping[Verdict, str] = {
    "same": "the same",
    "tie": "tie: may be chance",
    "better": "clearly better",
    "worse": "clearly worse",
}


def verdict_of(difference: Located, score: str = "nll") -> str:
    """Return the verdict on a paired difference in words."""
    return VERDICTS[verdict(value_of(difference), score)]


def _ties(difference: PairedDifference | None) -> bool:
    return difference is not None and verdict(difference) in TIES


class Score(NamedTuple):
    """A column: the name of a score in the report, its heading, and the filter for its values."""

    name: str
    heading: str
    form: str


# `score_glossary.html` explains them.
SCORES = (
    Score("nll", "NLL", "number"),
    Score("brier", "Brier", "number"),
    Score("ece_15", "ECE, 15 bins", "number"),
    Score("ece", "ECE, own bins", "number"),
    Score("aece", "AECE", "number"),
    Score("amce", "AMCE", "number"),
    Score("auroc", "AUROC", "number"),
    Score("aurc", "AURC", "short"),
    Score("eor", "EOR", "short"),
    Score("conditional_entropy", "Entropy left, bits", "number"),
)


PHASES = {"cross_validation": "Cross-validated", "evaluation": "On the evaluation set"}
# A value, its standard deviation if it is a mean over folds, and a note.
Cell: TypeAlias = tuple[Located, Located | None, str | None]


def score_cell(measure: Located, phase: str, score: str, folds: int) -> Cell:
    """Return a score as the comparison does: the mean, or the score of all folds together."""
    if phase == "evaluation":
        return measure["evaluation"][score], None, None
    at = measure["scores"][score]
    over = value_of(at)
    if over is None:
        return at["mean"], None, None
    if is_pooled(score, over, folds):
        return at["pooled"], None, "all folds"
    std = None if over.std is None else at["std"]
    return at["mean"], std, "some folds" if 0 < over.folds < folds else None


def measures(request: Request) -> Response:
    """Show the measures of each event."""
    report = collect_report(*subject_of(request))
    address = f"/pages/calibrations/{report.calibration.id}/charts"
    located = Located(report)
    by_set = located["model_scores"]
    return calibration_page(
        request,
        "measures.html",
        "measures",
        report.calibration,
        located=located,
        events=[
            _event(k, event, located["events"][k], report.provenance)
            for k, event in report.events.items()
        ],
        scores=SCORES,
        phases=PHASES,
        score_cell=score_cell,
        needs_of=needs_of,
        verdict_of=verdict_of,
        passes=_by_passes(by_set),
        sure=[(name, row) for name in by_set for row in by_set[name]["confident_errors"]],
        scale_of=scale_of,
        provider=(report.provenance.model or {}).get("provider"),
        refit=_refit(report, origin_of(request)),
        is_imported="imported" in report.provenance.data,
        chart=render_figures(report, CHARTS_OF_MEASURES, address=address),
    )


def _event(k: str, event: Event, located: Located, provenance: Provenance) -> dict[str, Any]:
    return {
        "k": k,
        "served": event.served,
        "why": _why(k, event, provenance),
        "verdict": event.verdict,
        "tied": [row.measure for row in event.comparison if _ties(row.difference)],
        "cheaper": _cheaper(event, located["comparison"]),
        "at": located,
        "diagrams": [diagram_key(k, kind) for kind in DIAGRAM_KINDS],
        "coarse": located["measures"][event.served]["coarse"]["cells"],
        "levels": list(located["measures"][event.served]["ood_thresholds"]),
        "folds": provenance.config.get("folds", 0),
        "is_evaluated": any(measure.evaluation for measure in event.measures.values()),
    }


def _why(k: str, event: Event, provenance: Provenance) -> str:
    """Return the reason why this measure serves."""
    if "imported" in provenance.data:
        return "the imported tables name it"
    if provenance.config["serve"].get(k) == event.served != SCORE:
        return "the configuration names it in serve"
    ranked = [row.measure for row in event.comparison]
    others = [name for name in ranked if parse_measure(name).kind != "supplied"] or ranked
    if len(others) == 1:
        return "it is the only one that can serve by default"
    if event.served == others[0]:
        return "it has the lowest cross-validated NLL of the measures that can serve by default"
    return "it is preferred, and no measure has a clearly lower cross-validated NLL"


def _cheaper(event: Event, located: Located) -> dict[str, Any] | None:
    """Return the cheapest measure of those that tie and cost less."""
    rows = event.comparison
    served = next((at for at, row in enumerate(rows) if row.served), None)
    own = None if served is None else rows[served].ms_per_row
    costs = {
        at: row.ms_per_row
        for at, row in enumerate(rows)
        if row.ms_per_row is not None and _ties(row.difference)
    }
    least = min(costs, key=costs.__getitem__, default=None)
    if own is None or least is None or costs[least] >= own:
        return None
    return {"measure": rows[least].measure, "row": located[least], "served": located[served]}


def _refit(report: Report, origin: str) -> dict[str, Any] | None:
    """Return the refit command for another measure; None if there is no other."""
    for k, event in report.events.items():
        others = [row.measure for row in event.comparison if not row.served]
        if others:
            # What is left out of `serve` would be chosen anew.
            serve = report.provenance.config["serve"] | {k: others[0]}
            body = shlex.quote(json.dumps({"serve": serve}, ensure_ascii=False))
            address = f"{origin}/calibrations/{report.calibration.id}/refit"
            return {"k": k, "measure": others[0], "body": body, "address": shlex.quote(address)}
    return None


def _by_passes(model_scores: Located) -> list[dict[str, Any]]:
    """Return the scores of fewer passes, by set and measure."""
    return [
        {
            "set": name,
            "measure": measure,
            "rows": model_scores[name]["passes"][measure],
            "alone": model_scores[name],
            "events": list(model_scores[name]["accuracy"]),
        }
        for name in model_scores
        for measure in model_scores[name]["passes"]
    ]
