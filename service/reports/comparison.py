"""Several calibrations side by side."""

import uuid
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import models
from howsure.statistics.comparison import (
    Comparison,
    Served,
    accuracy_difference,
    are_same_samples,
    compare_on_folds,
    compare_on_samples,
)
from howsure.statistics.fit.cross_validation import FoldScore
from howsure.statistics.plain import percent, to_plain
from service.errors import ArtifactDamaged, InvalidInput
from service.jobs.record_set import load_evaluation_records
from service.reports.report import collect_report
from service.reports.verdict import Undecided
from service.storage.calibrations import CalibrationRepository
from service.storage.fit_results import core_table, served_tables
from service.workspace import Workspace

MOST_COMPARED = 20
# What two calibrations are compared on.
ONE_SET = "the same evaluation set"
SAME_LABELS = "evaluation sets with the same labels in the same order"
ON_FOLDS = "cross-validation of each on its own data"


def compare_calibrations(
    workspace: Workspace, tenant_id: uuid.UUID, references: Sequence[str]
) -> dict[str, Any]:
    """Return the reports of several calibrations, and each compared with the first.

    Calibrations judged on the same evaluation set, or on sets with the same labels in the same
    order, are compared sample by sample; others by their cross-validated scores.

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
    # Records are read only if a comparison needs them.
    served_of = cache(partial(_served, workspace, tenant_id))
    first, *others = references
    compared = cache(lambda name: _compare(report_of(first), report_of(name), served_of))
    return {
        "calibrations": [report_of(name) for name in references],
        "comparisons": [compared(name) for name in others],
    }


def _compare(
    first: dict[str, Any],
    second: dict[str, Any],
    served_of: Callable[[uuid.UUID], dict[str, Served]],
) -> dict[str, Any]:
    """Compare two reports; ``served_of`` reads what a calibration serves, by event."""
    shared = [k for k in first["events"] if k in second["events"]]
    digests = [found["provenance"]["data"].get("evaluation_sha256") for found in (first, second)]
    numbers = [found["provenance"]["data"].get("evaluation_samples") for found in (first, second)]
    on = ON_FOLDS
    if shared and numbers[0] is not None and numbers[0] == numbers[1]:
        one, other = (served_of(uuid.UUID(found["calibration"]["id"])) for found in (first, second))
        if digests[0] == digests[1]:
            on = ONE_SET
        elif are_same_samples(one[shared[0]].records, other[shared[0]].records):
            on = SAME_LABELS
    if on != ON_FOLDS:
        comparisons = [compare_on_samples(int(k), one[k], other[k]) for k in shared]
    else:
        comparisons = [
            compare_on_folds(
                int(k),
                *(_fold_scores(found, k) for found in (first, second)),
                accuracy=accuracy_difference(_accuracy(first, k), _accuracy(second, k)),
            )
            for k in shared
        ]
    names = [_name(found) for found in (first, second)]
    warned = [_name(one) for one in (first, second) if one["summary"]["status"] == "warned"]
    return {
        "first": names[0],
        "second": names[1],
        "on": on,
        "events": {
            str(found.k): to_plain(found) | {"undecided": _undecided(found, warned)}
            for found in comparisons
        },
        "sentences": [_sentence(found, *names, warned=warned) for found in comparisons],
    }


def _undecided(found: Comparison, warned: Sequence[str]) -> Undecided | None:
    """Return why no calibration is called better than the other; None if one may be."""
    if warned:
        return "warnings"
    return None if found.rates_the_same else "accuracy"


def _accuracy(report: dict[str, Any], k: str) -> tuple[float, int]:
    """Return the accuracy on the calibration set and its number of samples."""
    return report["events"][k]["accuracy"], report["provenance"]["data"]["samples"]


def _served(
    workspace: Workspace, tenant_id: uuid.UUID, calibration_id: uuid.UUID
) -> dict[str, Served]:
    with workspace.database.reading(tenant_id) as session:
        row = CalibrationRepository(session, tenant_id).get(calibration_id)
        tables: Sequence[models.BinTable] = served_tables(session, tenant_id, calibration_id)
    try:
        records = load_evaluation_records(workspace, row, tables)
    except ArtifactDamaged:
        with workspace.database.reading(tenant_id) as session:
            # Not found, if it was deleted meanwhile.
            CalibrationRepository(session, tenant_id).get(calibration_id)
        raise
    return {str(table.k): Served(core_table(table), table.column, records) for table in tables}


def _fold_scores(report: dict[str, Any], k: str) -> dict[str, FoldScore]:
    event = report["events"][k]
    found = event["measures"][event["served"]]["scores"]
    return {name: FoldScore(**values) for name, values in found.items()}


def _name(report: dict[str, Any]) -> str:
    return f"{report['calibration']['name']}@{report['calibration']['version']}"


def _sentence(found: Comparison, first: str, second: str, *, warned: Sequence[str]) -> str:
    opening, difference = f"Top-{found.k}:", found.differences.get("nll")
    if warned:
        them = " and ".join(dict.fromkeys(warned))
        return f"{opening} no comparison, because of the warnings of {them}. Fix their findings."
    if not found.rates_the_same:
        accuracy = found.differences["accuracy"]
        more, less = (second, first) if accuracy.mean > 0 else (first, second)
        return (
            f"{opening} {more} is right more often than {less}, by {percent(abs(accuracy.mean))} "
            f"of all answers{_spread(accuracy.standard_error)}. Losses rate how well each "
            "states whether its own answers are right; they are not compared."
        )
    if difference is None:
        return f"{opening} {first} and {second} share no score to compare by."
    if difference.mean == 0.0:
        return f"{opening} {first} and {second} have the same negative log-likelihood."
    better, worse = (second, first) if difference.mean < 0 else (first, second)
    spread = _spread(difference.standard_error)
    if not difference.clear:
        return (
            f"{opening} {first} and {second} do not differ clearly; negative log-likelihood "
            f"of {better} is {abs(difference.mean):.5f} lower{spread}."
        )
    return (
        f"{opening} {better} states better than {worse} whether its answers are right, by "
        f"{abs(difference.mean):.5f} in negative log-likelihood{spread}."
    )


def _spread(error: float | None) -> str:
    return "" if error is None else f" (standard error {error:.5f})"
