"""``/pages/calibrations/{id}/measures``: the cost and the scores of each measure."""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from howsure.statistics.measures import parse_measure
from service.reports.charts.registry import render_figures
from service.reports.located import Located, value_of
from service.reports.report import collect_report, is_pooled
from service.reports.verdict import TIES, Verdict, verdict
from service.web.page import calibration_page
from service.web.page_route import PageRoute, charts_of, tenant_of, workspace_of

_SOFTMAX = "probabilities"
NEEDS: Mapping[str, str] = {
    "entropy": _SOFTMAX,
    "neg_log_pmax": _SOFTMAX,
    "neg_log_topk_mass": _SOFTMAX,
    "margin": _SOFTMAX,
    "energy": "logits",
    "dropout_variance": "a model with Dropout nodes, and runs of it with them",
    "last_layer_dropout_variance": "an ONNX model, and runs of its last layer with dropout",
    "ensemble_variance": "several models, or runs of one that draws at random",
    "gradient_norm": "the model's gradient, by runs beside each row",
}
SUPPLIED_NEEDS = "a column {} beside the samples; it serves only where it is asked for"
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


def verdict_of(difference: Mapping[str, Any] | None, score: str = "nll") -> str | None:
    """Return the verdict on a paired difference in words; None without a difference."""
    return None if difference is None else VERDICTS[verdict(difference, score)]


def _ties(difference: Mapping[str, Any] | None) -> bool:
    return difference is not None and verdict(difference) in TIES


class Score(NamedTuple):
    """A column: the name of a score in the report, its heading, and the form of its values."""

    name: str
    heading: str
    form: str


# `score_glossary.html` explains them.
SCORES = (
    Score("nll", "NLL", "number"),
    Score("brier", "Brier", "number"),
    Score("ece_15", "ECE, 15 bins", "number"),
    Score("ece", "ECE, own bins", "number"),
    Score("auroc", "AUROC", "number"),
    Score("aurc", "AURC", "short"),
    Score("eor", "EOR", "short"),
    Score("conditional_entropy", "Entropy left, bits", "number"),
)


@dataclass(frozen=True)
class Cell:
    """A score, its standard deviation if it is a mean over folds, and a note."""

    form: str
    value: Located
    std: Located | None = None
    note: str | None = None


@dataclass(frozen=True)
class Row:
    """What is scored.

    Attributes
    ----------
    name, needs : str
    serves : bool
    cost : Located or None
        The row of the comparison that has the runs and milliseconds of a measure.
    difference : Located or None
        Of its `nll` from that of the served measure.
    verdict : str or None
        What the difference says.
    cells : list of Cell
        One for each of `SCORES`.
    """

    name: str
    needs: str = ""
    serves: bool = False
    cost: Located | None = None
    difference: Located | None = None
    verdict: str | None = None
    cells: list[Cell] = field(default_factory=list)


@dataclass(frozen=True)
class Group:
    """Rows of a kind, below a heading of their own."""

    title: str
    rows: Sequence[Row]


def cross_validated(event: Located, folds: int) -> list[Group]:
    """Return the rows of the scores over folds."""

    def cells(found: Located) -> list[Cell]:
        return [_over_folds(found, score.name, score.form, folds) for score in SCORES]

    measures = [
        Row(
            str(row["measure"]),
            needs=needs_of(str(row["measure"])),
            serves=bool(row["served"]),
            cost=None if value_of(row["passes"]) is None else row,
            difference=row["difference"] or None,
            verdict=verdict_of(value_of(row["difference"])),
            cells=cells(event["measures"][row["measure"]]),
        )
        for row in event["comparison"]
    ]
    baselines = event["baselines"]
    others = [
        _baseline(baselines[name], name, "cross_validation", cells(baselines[name]))
        for name in baselines
    ]
    oracle = event["oracle"]
    return _groups(measures, others, [Row("loss", cells=cells(oracle))] if oracle else [])


def on_the_evaluation_set(event: Located) -> list[Group]:
    """Return the rows of the scores on the evaluation set; none without one."""

    def cells(found: Located) -> list[Cell]:
        return [Cell(score.form, found["evaluation"][score.name]) for score in SCORES]

    measures = [
        Row(
            str(row["measure"]),
            serves=bool(row["served"]),
            cells=cells(event["measures"][row["measure"]]),
        )
        for row in event["comparison"]
        if event["measures"][row["measure"]]["evaluation"]
    ]
    baselines = event["baselines"]
    others = [
        _baseline(baselines[name], name, "evaluation", cells(baselines[name]))
        for name in baselines
        if baselines[name]["evaluation"]
    ]
    oracle = event["oracle"]
    is_known = bool(oracle["evaluation"])
    return _groups(measures, others, [Row("loss", cells=cells(oracle))] if is_known else [])


def _baseline(found: Located, name: str, phase: str, cells: list[Cell]) -> Row:
    difference = found["difference"][phase]["nll"]
    verdict = verdict_of(value_of(difference))
    return Row(name, difference=difference or None, verdict=verdict, cells=cells)


def _over_folds(found: Located, score: str, form: str, folds: int) -> Cell:
    """Return a score as the report's comparison has it: the mean, or that of all folds together."""
    at = found["scores"][score]
    over = value_of(at)
    if over is None:
        return Cell(form, at["mean"])
    if is_pooled(score, over, folds):
        return Cell(form, at["pooled"], note="all folds")
    std = None if over["std"] is None else at["std"]
    return Cell(form, at["mean"], std, "some folds" if 0 < over["folds"] < folds else None)


def _groups(measures: list[Row], baselines: list[Row], known: list[Row]) -> list[Group]:
    groups = (
        Group("Measures, whose bins can serve", measures),
        Group("Baselines: other ways to a probability, to beat; none serves", baselines),
        Group("Oracle: bins of the loss, which knows the label; the best there could be", known),
    )
    return [group for group in groups if group.rows]


Json = Mapping[str, Any]


async def measures(request: Request) -> Response:
    """Show them, of each event."""
    reference = request.path_params["calibration_id"]
    found = await run_in_threadpool(
        collect_report, workspace_of(request), tenant_of(request), reference
    )
    address = f"/pages/calibrations/{found['calibration']['id']}/charts"
    charts = charts_of(request)
    chart = await charts.in_thread(render_figures, charts, found, ("measures",), address=address)
    shown = Located(found)
    return calibration_page(
        request,
        "measures.html",
        "measures",
        found["calibration"],
        shown=shown,
        events=[
            _event(k, event, shown["events"][k], found["provenance"])
            for k, event in found["events"].items()
        ],
        scores=SCORES,
        passes=_by_passes(shown["model_scores"]),
        provider=(found["provenance"]["model"] or {}).get("provider"),
        refit=_refit(found, f"{request.url.scheme}://{request.url.netloc}"),
        is_imported="imported" in found["provenance"]["data"],
        chart=chart,
    )


def _event(k: str, event: Json, shown: Located, provenance: Json) -> dict[str, Any]:
    folds = provenance["config"].get("folds", 0)
    return {
        "k": k,
        "served": event["served"],
        "why": _why(k, event, provenance),
        "verdict": event["verdict"],
        "tied": _tied(event),
        "cheaper": _cheaper(event, shown["comparison"]),
        "tables": [
            ("Cross-validated", True, cross_validated(shown, folds)),
            ("On the evaluation set", False, on_the_evaluation_set(shown)),
        ],
    }


def _why(k: str, event: Json, provenance: Json) -> str:
    """Return why what serves does."""
    if "imported" in provenance["data"]:
        return "the imported tables say so"
    if provenance["config"]["serve"].get(k) == event["served"]:
        return "it was asked for, in serve"
    others = [name for name in event["measures"] if parse_measure(name).kind != "supplied"]
    if len(others) == 1:
        return "it is the only one that can serve without being asked for"
    return "it has the least cross-validated NLL of those that can serve without being asked for"


def _tied(event: Json) -> list[str]:
    rows = event["comparison"]
    return [row["measure"] for row in rows if _ties(row["difference"])]


def _cheaper(event: Json, shown: Located) -> dict[str, Any] | None:
    """Return the cheapest measure of those that tie and cost less."""
    rows = event["comparison"]
    served = next((at for at, row in enumerate(rows) if row["served"]), None)
    if served is None or rows[served]["ms_per_row"] is None:
        return None
    costs = {
        at: row["ms_per_row"]
        for at, row in enumerate(rows)
        if row["ms_per_row"] is not None and _ties(row["difference"])
    }
    least = min(costs, key=costs.__getitem__, default=None)
    if least is None or costs[least] >= rows[served]["ms_per_row"]:
        return None
    return {"measure": rows[least]["measure"], "row": shown[least], "served": shown[served]}


def _refit(found: Json, origin: str) -> dict[str, Any] | None:
    """Return the command that has another measure serve; None where there is no other."""
    for k, event in found["events"].items():
        others = [row["measure"] for row in event["comparison"] if not row["served"]]
        if others:
            # What is left out of `serve` would be chosen anew.
            serve = found["provenance"]["config"]["serve"] | {k: others[0]}
            body = shlex.quote(json.dumps({"serve": serve}, ensure_ascii=False))
            address = f"{origin}/calibrations/{found['calibration']['id']}/refit"
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


ROUTES = (PageRoute("/pages/calibrations/{calibration_id}/measures", measures),)
