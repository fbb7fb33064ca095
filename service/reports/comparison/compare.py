"""Several calibrations side by side."""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import islice
from typing import Any

from msgspec.structs import asdict

from howsure.report.report import Report
from howsure.report.words.verdict import Undecided
from howsure.statistics.comparison import (
    Comparison,
    compare_on_folds,
    compare_on_samples,
)
from howsure.statistics.fit.cross_validation import FoldScore
from howsure.statistics.plain import to_plain
from service.errors import InvalidInput
from service.reports.comparison.comparisons import Comparisons
from service.reports.comparison.labelled_sets import (
    Pair,
    common_name,
    common_sets,
    labelled_sets,
    own_set,
    pairs_of_sets,
)
from service.reports.comparison.sentences import (
    Basis,
    Decision,
    closing_sentences,
    decision,
    event_sentence,
    is_imported,
    reference,
)
from service.reports.comparison.stored_sets import StoredSets
from service.reports.report import collect_report
from service.workspace import Workspace

MOST_COMPARED = 20
MOST_ELSEWHERE = 3  # common sets that are told beside the one that decides
ON_FOLDS = "the same calibration set, by cross-validation"
DIFFERENT = "different sets"


def compare_calibrations(
    workspace: Workspace, tenant_id: uuid.UUID, references: Sequence[str]
) -> Comparisons:
    """Return the reports of several calibrations, and each compared with the first.

    Calibrations are compared sample by sample on the newest labelled set that they have in common,
    or else by cross-validation if their calibration sets are the same. Otherwise only their own
    scores are returned, because a difference may be one of the sets.

    Raises
    ------
    NotFound, Conflict
        If one does not exist or has not succeeded.
    InvalidInput
        If too many are asked for.
    """
    if len(references) > MOST_COMPARED:
        raise InvalidInput.at("calibration", f"expected at most {MOST_COMPARED} to compare")
    # A reference that is repeated costs no more than once.
    report_of = cache(partial(collect_report, workspace, tenant_id))
    stored = StoredSets(workspace, tenant_id)
    first, *others = references
    distinct = list(dict.fromkeys(others))
    sets = common_sets(
        labelled_sets(report_of(first)),
        [labelled_sets(report_of(name)) for name in distinct],
        stored.are_same,
    )
    compared = {
        name: _compare(report_of(first), report_of(name), common, stored)
        for name, common in zip(distinct, sets, strict=True)
    }
    return Comparisons(
        calibrations=[report_of(name) for name in references],
        comparisons=[compared[name] for name in others],
    )


def _compare(
    first: Report, second: Report, common: Pair | None, stored: StoredSets
) -> dict[str, Any]:
    """Compare two reports, on the set that they have in common."""
    decided = _decided_on(first, second, common, stored)
    basis, judged = decided.basis, decided.judged
    ks = [k for k in first.events if k in second.events]
    if basis in ("further", "evaluation"):
        served = [stored.served(one) for one in judged]
        comparisons = [compare_on_samples(int(k), *(one[k] for one in served)) for k in ks]
    elif basis == "cross-validation":
        comparisons = [_on_folds(k, first, second) for k in ks]
    else:
        comparisons = [Comparison(k=int(k), paired=False, differences={}) for k in ks]
    decided = replace(decided, same_model=_is_same_model(first, second, comparisons))
    return {
        "first": decided.names[0],
        "second": decided.names[1],
        "basis": basis,
        "on": decided.on,
        "same_model": decided.same_model,
        "judged": [one.to_plain() for one in judged],
        "events": {
            str(found.k): to_plain(found) | {"undecided": _undecided(found, decided)}
            for found in comparisons
        },
        "sentences": [
            *(event_sentence(found, _undecided(found, decided), decided) for found in comparisons),
            *islice(_elsewhere(first, second, common, stored), MOST_ELSEWHERE),
            *closing_sentences(decided),
        ],
        "to_decide": decision(first, second) if basis == "none" else None,
    }


def _elsewhere(
    first: Report, second: Report, common: Pair | None, stored: StoredSets
) -> Iterator[str]:
    """Yield what each other set says that two calibrations have in common, the newest first.

    Of the first event that both have.
    """
    k = next((k for k in first.events if k in second.events), None)
    if k is None:
        return
    for pair in pairs_of_sets(labelled_sets(first), labelled_sets(second), stored.are_same):
        if pair == common:
            continue
        decided = _decided_on(first, second, pair, stored)
        found = compare_on_samples(int(k), *(stored.served(one)[k] for one in pair))
        undecided = _undecided(found, decided)
        if undecided not in ("doubtful-set", "warnings"):
            yield f"Also: {event_sentence(found, undecided, decided)}"


def _decided_on(first: Report, second: Report, common: Pair | None, stored: StoredSets) -> Decision:
    """Return what two calibrations are compared on, before their models are."""
    names = reference(first), reference(second)
    basis, judged, on = _basis(first, second, common, names, stored)
    both = zip(names, (first, second), strict=True)
    warned = [
        name for name, one in both if one.summary is not None and one.summary.status == "warned"
    ]
    return Decision(basis, on, names, judged, list(dict.fromkeys(warned)))


def _basis(
    first: Report, second: Report, common: Pair | None, names: Sequence[str], stored: StoredSets
) -> tuple[Basis, Pair, str]:
    """Return what two calibrations are compared on, the set of each, and what to call it."""
    if common is not None:
        is_own = all(one.kind == "evaluation" for one in common)
        return ("evaluation" if is_own else "further"), common, common_name(common, names)
    fitted = own_set(first, "calibration"), own_set(second, "calibration")
    has_scores = not any(is_imported(report) for report in (first, second))
    if has_scores and (fitted[0].sha256 == fitted[1].sha256 or stored.are_same(*fitted)):
        return "cross-validation", fitted, ON_FOLDS
    return "none", (own_set(first), own_set(second)), DIFFERENT


def _undecided(found: Comparison, decided: Decision) -> Undecided | None:
    """Return why no calibration is called better than the other; None if one may be."""
    if decided.doubt is not None:
        return "doubtful-set"
    # What looks wrong with a calibration is no fault of a further set.
    if decided.warned and decided.basis != "further":
        return "warnings"
    if decided.basis == "none":
        return "different-sets"
    if not found.rates_the_same:
        return "accuracy"
    return "too-rare" if found.is_too_rare else None


def _is_same_model(first: Report, second: Report, found: Sequence[Comparison]) -> bool:
    """Tell whether both run the same model on the same inputs, and so predict the same classes."""
    models = [_model(report) for report in (first, second)]
    accuracies = [one.differences["accuracy"] for one in found if "accuracy" in one.differences]
    return (
        models[0] is not None
        and models[0] == models[1]
        and all(accuracy.mean == 0.0 for accuracy in accuracies)
    )


# Options that change which classes a model predicts.
OPTIONS = ("preprocessing", "output", "ensemble", "dropout")


def _model(report: Report) -> list[Any] | None:
    """Return what classes depend on; None without a model, or if its weights have no digest."""
    model, config = report.provenance.model, report.provenance.config
    if model is None or report.provenance.data.get("files", {}).get("model_data"):
        return None
    resolved = model["resolved"]
    return [
        model["sha256"],
        [one["sha256"] for one in model.get("members") or ()],
        [config.get(name) for name in OPTIONS],
        resolved.get("averaged"),
        (resolved.get("table_columns") or {}).get("inputs"),
    ]


def _on_folds(k: str, first: Report, second: Report) -> Comparison:
    scores, accuracies = [], []
    for report in (first, second):
        event = report.events[k]
        served = event.measures[event.served].scores
        scores.append({name: FoldScore(**asdict(one)) for name, one in served.items()})
        effective = report.model_scores["calibration"].effective.get(int(k))
        n_samples = report.provenance.data["samples"]
        worth = n_samples if effective is None else round(effective.n_effective)
        accuracies.append((event.accuracy, worth))
    return compare_on_folds(int(k), *scores, accuracies=accuracies)
