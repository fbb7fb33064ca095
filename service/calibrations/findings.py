"""Findings of an upload before its job is queued, and of the records of its samples."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import models
from howsure.preprocessing import PIXELS, Preprocessing
from howsure.remedies import LABELS_OF_NAMED_COLUMNS, OF_EVALUATION
from howsure.statistics.arrays import NONE_OF_THESE
from howsure.statistics.compared_inputs import UnlikeRows
from howsure.statistics.findings import (
    FINDINGS,
    IN_BOTH_SETS,
    LABEL_FINDINGS,
    NEAR_CHANCE,
    OUT_OF_RANGE,
    PREPARATION_FINDINGS,
    SCORE_FINDINGS,
    count_labels,
    run_checks,
)
from howsure.statistics.findings.evidence import (
    Finding,
    LabelCounts,
    PreparationTrials,
    RecordedSet,
)
from howsure.statistics.findings.preprocessing import OTHER_LABELS, PREPARED, rows_out_of_range
from howsure.statistics.measures import parse_measure
from howsure.statistics.records.records import Records
from service.calibrations.input_trials import run_trials, trials_of
from service.calibrations.upload.check_upload import CheckedUpload
from service.errors import FindingRefused, Violation
from service.jobs.recording import scores_recorder
from service.runner.messages.dataset import PAIRS, Batch
from service.runner.messages.reading import (
    EVALUATION_NAMED_BY_MODEL,
    LABELS_ARE_NAMES,
    NAMED_BY_MODEL,
)
from service.workspace import Workspace

MOST_ROWS = 256
MOST_RUNS = 4096  # rows times passes
MOST_VALUES = 2**24  # of all rows: 64 MiB of float32
LEAST_ROWS = 32
LEAST_DIFFERENCE = 0.02  # of two accuracies, one of them on some of the samples


def findings_at_start(
    workspace: Workspace, checked: CheckedUpload, rows: Batch, unlike: UnlikeRows | None
) -> list[Finding]:
    """Return the findings of the labels, of the model and of its answers to other inputs.

    ``rows`` are samples spread over the set; ``unlike`` are those of the evaluation set.
    """
    trials = _prepared_rows(workspace, checked, rows)
    of_inputs: list[Finding] = []
    if trials is not None:
        evidence = _evidence(checked, trials.as_sent, trials=trials)
        of_inputs = run_checks(evidence, PREPARATION_FINDINGS)
    counts = LabelCounts(class_counts=checked.class_counts, bins=checked.config["bins"])
    of_labels = count_labels(counts, pairs=checked.data["kind"] == PAIRS)
    outside = rows_out_of_range(unlike)
    of_rows = [] if outside is None else [outside]
    return _merged_by_code(of_inputs, checked.found.findings, of_labels, of_rows)


def findings_of_sample(
    workspace: Workspace, checked: CheckedUpload, rows: Batch, unlike: UnlikeRows | None
) -> tuple[list[Finding], Records]:
    """Return the findings of all checks on some samples, and the records of the samples."""
    trials = _prepared_rows(workspace, checked, rows)
    records = trials.as_sent if trials else _records_of_rows(workspace, checked, rows)
    found = run_checks(replace(_evidence(checked, records, trials=trials), unlike=unlike))
    return _merged_by_code(checked.found.findings, found), records


def _merged_by_code(*sources: Iterable[Finding]) -> list[Finding]:
    """Return one finding per code, in the order of the registry; later sources take precedence.

    Labels are not doubted where inputs that are prepared in another way fit them, and better than
    other labels would fit the inputs as sent.
    """
    found = {finding.code: finding for source in sources for finding in source}
    for one in [found[code] for code in PREPARATION_FINDINGS if code in found]:
        if one.figures.get(OTHER_LABELS) == 0:
            right = max(_accuracy(one, f"{kind}_accuracy") for kind in PREPARED)
            for code, name in LABEL_FINDINGS.items():
                if code in found and _accuracy(found[code], name) < right - LEAST_DIFFERENCE:
                    del found[code]
    return [found[code] for code in FINDINGS if code in found]


def _accuracy(found: Finding, name: str) -> float:
    value = found.figures.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def _evidence(
    calibration: CheckedUpload | models.Calibration,
    records: Records,
    *,
    evaluation: Records | None = None,
    trials: PreparationTrials | None = None,
) -> RecordedSet:
    """Return the evidence of a calibration with the records of all or some of its samples."""
    config, data, onnx_model = calibration.config, calibration.data, calibration.onnx_model
    scores = data["kind"] if onnx_model is None else onnx_model["resolved"]["output"]["kind"]
    return RecordedSet(
        records=records,
        class_counts=np.asarray(data["class_counts"], dtype=np.int64),
        source=data["kind"],
        probabilities=scores == "probabilities",
        bins=config["bins"],
        evaluation=evaluation,
        trials=trials,
        class_names=config["classes"],
        supplied={
            name: name in config["serve"].values()
            for name in config["measures"]
            if parse_measure(name).kind in ("supplied", "output")
        },
        names_of_labels=bool(config["class_map"]) and LABELS_OF_NAMED_COLUMNS not in data,
        names_of_model=data.get(NAMED_BY_MODEL, False),
    )


def examined_rows(checked: CheckedUpload) -> int:
    """Return how many samples to examine: 256, or fewer large ones and for many passes."""
    if checked.model is None:
        return MOST_ROWS
    arrays = checked.sets["calibration"].info.arrays.values()
    values = sum(math.prod(array.shape[1:]) for array in arrays)
    most = min(MOST_ROWS, MOST_RUNS // checked.model.all_runs.passes, MOST_VALUES // max(values, 1))
    return max(LEAST_ROWS, most)


def _prepared_rows(
    workspace: Workspace, checked: CheckedUpload, rows: Batch
) -> PreparationTrials | None:
    """Run the model on samples as they are and prepared in other ways, if there are any to try.

    Return None for models with several inputs, and for models that fail on all other ways.
    """
    if checked.onnx_model is None or len(rows.arrays) != 1:
        return None
    ((array, values),) = rows.arrays.items()
    config = checked.config["preprocessing"]
    asked = None if config is None or array != PIXELS else Preprocessing.from_dict(config)
    return run_trials(
        lambda some: _records_of_rows(workspace, checked, some),
        rows,
        trials_of(values, asked),
        name=array if asked is None else checked.onnx_model["inputs"][0]["name"],
    )


def _records_of_rows(workspace: Workspace, checked: CheckedUpload, rows: Batch) -> Records:
    """Return the records of some samples."""
    config, files = checked.config, checked.found.files
    if checked.onnx_model is None or files is None:
        threshold = config["decision_threshold"]
        return scores_recorder(top_k=config["top_k"], seed=config["seed"], threshold=threshold)(
            rows
        )
    records = workspace.runners.record(
        files,
        checked.onnx_model["resolved"],
        rows.arrays,
        rows.labels,
        seed=config["seed"],
        location=SPREAD,
    )
    return records.with_supplied(rows.supplied).with_design(rows.design)


SPREAD = "calibration, of samples spread over it"  # their row numbers are unknown


def findings_of_records(
    row: models.Calibration, records: Records, evaluation: Records | None
) -> list[Finding]:
    """Return the findings made at the start, and those of the records, which take precedence."""
    evidence = _evidence(row, records, evaluation=evaluation)
    found = run_checks(replace(evidence, is_same_file=_is_same(row, "evaluation_sha256", row.data)))
    of_evaluation = [] if evaluation is None else _of_evaluation_labels(row, records, evaluation)
    merged = _merged_by_code((Finding(**known) for known in row.findings), of_evaluation, found)
    explained = (OUT_OF_RANGE, *PREPARATION_FINDINGS, *(one.code for one in of_evaluation))
    if any(one.code in explained and one.level == "warning" for one in merged):
        # The other scale or the other labels are why.
        merged = [one for one in merged if one.code != "accuracy-differs"]
    return merged


def _of_evaluation_labels(
    row: models.Calibration, records: Records, evaluation: Records
) -> list[Finding]:
    """Return the findings about the labels of the evaluation set."""
    named = bool(row.data.get(EVALUATION_NAMED_BY_MODEL))
    return [
        replace(
            one, message=f"Evaluation set: {one.message}", figures={**one.figures, OF_EVALUATION: 1}
        )
        for one in _of_other_labels(row, records, evaluation, are_known=named)
    ]


OF_CLASSES = "Samples whose class is one of the model's"


def findings_of_further_set(
    row: models.Calibration, records: Records, further: Records, data: Mapping[str, Any]
) -> list[Finding]:
    """Return the findings about a labelled further set with this description.

    ``records`` are of the calibration set.
    """
    both = _evidence(row, records, evaluation=further)
    both = replace(both, is_same_file=_is_same(row, "sha256", data))
    # The calibration shows what the names mean, unless its own labels are in doubt.
    is_proven = both.names_of_labels and not any(
        known["code"] in LABEL_FINDINGS for known in row.findings
    )
    named = bool(data.get(NAMED_BY_MODEL) or (is_proven and data.get(LABELS_ARE_NAMES)))
    in_both, is_class = run_checks(both, [IN_BOTH_SETS]), further.label != NONE_OF_THESE
    # Answers to inputs on another scale tell nothing about labels.
    if findings_of_inputs(data) or not is_class.any():
        return in_both
    if is_class.all():
        return [*_of_other_labels(row, records, further, are_known=named), *in_both]
    of_labels = _of_other_labels(row, records, further.take(is_class), are_known=named)
    return [*(replace(one, message=f"{OF_CLASSES}: {one.message}") for one in of_labels), *in_both]


def _is_same(row: models.Calibration, name: str, data: Mapping[str, Any]) -> bool:
    """Tell whether the digest of another set is that of the calibration set."""
    return data.get(name) is not None and data[name] == row.data["sha256"]


def _of_other_labels(
    row: models.Calibration, records: Records, other: Records, *, are_known: bool
) -> list[Finding]:
    """Return the findings about labels, or scores, of another set than the calibration set.

    ``records`` are of the calibration set; ``are_known`` tells that the labels are names whose
    meaning is known.
    """
    evidence = _evidence(row, other)
    evidence = replace(
        evidence,
        class_counts=np.bincount(other.label, minlength=evidence.n_classes),
        names_of_model=are_known,
        known_accuracy=float(records.hits(1).mean()),
    )
    if evidence.source == PAIRS:
        return run_checks(evidence, SCORE_FINDINGS)
    # Labels in another order are why an accuracy is near chance.
    return run_checks(evidence, tuple(LABEL_FINDINGS)) or run_checks(evidence, [NEAR_CHANCE])


# The key of the rows of a further set that are on another scale, in its stored description.
UNLIKE_ROWS = "unlike_rows"


def findings_of_inputs(data: Mapping[str, Any]) -> list[Finding]:
    """Return the findings about the inputs of a further set with this description."""
    found = data.get(UNLIKE_ROWS)
    outside = None if found is None else rows_out_of_range(UnlikeRows(**found))
    return [] if outside is None else [outside]


def check_strict(findings: Sequence[Finding], strict: bool | Sequence[str]) -> None:  # noqa: FBT001 - as the configuration has it
    """Refuse findings: all warnings if ``strict`` is true, else those whose codes it lists.

    Raises
    ------
    FindingRefused
        Naming each.
    """
    if isinstance(strict, bool):
        refused = [found for found in findings if strict and found.level == "warning"]
    else:
        refused = [found for found in findings if found.code in strict]
    if refused:
        raise FindingRefused(
            " ".join(f"{found.code}: {found.message}" for found in refused),
            [Violation(f"findings.{found.code}", found.message) for found in refused],
        )
