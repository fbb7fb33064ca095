"""Check of an upload: its files, its sets, its model and its configuration."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np

import models
from howsure.calibrate_command import FILES, OPTIONS
from howsure.remedies import LABELS_OF_NAMED_COLUMNS
from howsure.statistics.arrays import Counts, Labels
from howsure.statistics.softmax import BINARY
from service.calibrations.class_indices import check_class_names, notes_of, settle_class_indices
from service.calibrations.config import MAX_COLUMN_NAME, CalibrationConfig, parse_config
from service.calibrations.onnx_model import InspectedOnnxModel, inspect_onnx_model
from service.calibrations.output_sets import check_kind, classes_of_outputs, pairs_config
from service.calibrations.pass_limits import check_rows
from service.calibrations.set_checks import (
    check_class_map,
    check_ensemble,
    check_label_range,
    check_no_percentages,
    check_same_classes,
    check_same_layout,
    check_same_score_range,
    check_same_scores,
    checked_options,
    class_names,
)
from service.calibrations.upload_form import CalibrationUpload
from service.child.reading.columns import listed
from service.child.reading.output_checks import are_distributions
from service.errors import InvalidConfig, InvalidInput, InvalidOnnxModel, ModelRule, ServiceError
from service.http.uploads import SpooledFile
from service.runner.messages.dataset import PAIRS, Batch, DatasetInfo, DatasetKind, ScoreRange
from service.runner.messages.onnx_models import ANY_INPUT, names_each_input
from service.runner.messages.reading import (
    EVALUATION_NAMED_BY_MODEL,
    LABEL,
    NAMED_BY_MODEL,
    SCORE_RANGE,
    TAKES_OTHER_COLUMNS,
    Reading,
)
from service.runner.messages.set_messages import SetToRead
from service.runner.model_description import ModelDescription
from service.runner.set_reader import UploadedSet
from service.workspace import Workspace

MIN_SAMPLES = 20
FALLBACK_NAME = "calibration"


def reading_options(
    config: CalibrationConfig,
    labels: SpooledFile | None,
    *,
    kind: DatasetKind | None,
    takes_other_columns: bool = True,
    score_range: ScoreRange | None = None,
) -> Reading:
    """Return how to read a set; ``kind`` is its content, where it is known."""
    asked = config.preprocessing
    return Reading(
        preprocessing=None if asked is None else asked.resolved(),
        class_map=config.class_map,
        classes=config.classes,
        columns=config.columns,
        takes_other_columns=takes_other_columns,
        labels=None if labels is None else labels.path,
        kind=kind,
        score_range=score_range,
    )


def table_columns(config: CalibrationConfig, info: DatasetInfo) -> dict[str, list[str]] | None:
    """Return the table columns of each input, by which later tables are read; None without any."""
    found = {name: list(columns) for name, columns in info.columns.items()}
    names = [*found, *(column for columns in found.values() for column in columns)]
    if any(not 0 < len(name) <= MAX_COLUMN_NAME for name in names):
        found = {}
    return {**found, **(config.columns or {})} or None


@dataclass(frozen=True)
class CheckedUpload:
    """An upload that breaks no rule, as far as its first rows and its labels show.

    ``sets`` are open for reading, by the name of their part. ``config`` and ``data`` are as the
    resource shows them; ``trial`` holds the first rows.
    """

    upload: CalibrationUpload
    sets: Mapping[models.ArtifactRole, UploadedSet]
    config: Mapping[str, Any]
    data: Mapping[str, Any]
    found: InspectedOnnxModel
    trial: Batch
    warnings: list[str]

    @property
    def onnx_model(self) -> dict[str, Any] | None:
        """The model as the resource shows it; None where its outputs were uploaded."""
        return self.found.description

    @property
    def model(self) -> ModelDescription | None:
        """The same as a typed view."""
        return None if self.onnx_model is None else ModelDescription(self.onnx_model)

    @property
    def class_counts(self) -> Counts:
        """Labels of each class in the calibration set."""
        return np.asarray(self.data["class_counts"], dtype=np.int64)

    @property
    def n_samples(self) -> int:
        """Samples of both sets."""
        return int(self.data["samples"]) + int(self.data["evaluation_samples"] or 0)


def check_upload(
    workspace: Workspace, tenant_id: UUID, upload: CalibrationUpload, stack: ExitStack
) -> CheckedUpload:
    """Check the parts of an upload; its sets stay open until ``stack`` closes.

    Of the values of a set only those of the first rows are read here.

    Raises
    ------
    InvalidInput
        If a part breaks a rule.
    InferenceFailed
        If the model does not load, or does not answer in time.
    """
    config = parse_config(upload.config, CalibrationConfig)
    check_ensemble(len(upload.onnx_models), config)
    try:
        sets = _open_sets(workspace, upload, config, stack)
    except InvalidInput:
        _refuse_text_model(workspace, tenant_id, upload, config)
        raise
    info, trial = sets["calibration"].info, sets["calibration"].trial
    check_kind(config, info, has_model=bool(upload.onnx_models))
    if info.kind == PAIRS:
        config = pairs_config(config)
    found = inspect_onnx_model(
        workspace,
        tenant_id,
        upload,
        config,
        trial,
        columns=table_columns(config, info),
        n_samples=info.n_samples,
    )
    if found is None:
        found = classes_of_outputs(info)
    names, asked, left_out = found.input_names, config.columns or {}, []
    if info.design and ANY_INPUT in info.columns and ANY_INPUT not in asked:
        _refuse_two_readings(info.design[0], found)
    if asked.keys() <= {LABEL, ANY_INPUT} and names_each_input(info.columns, names):
        label = {name: of for name, of in asked.items() if name == LABEL}
        by_name = {name: [name] for name in names} | label
        config = config.model_copy(update={"columns": by_name})
        sets = _open_sets(workspace, upload, config, stack)
        trial = sets["calibration"].trial
        found = found.with_columns(by_name)
        left_out = [name for name in info.columns[ANY_INPUT] if name not in names]
    check_class_names(config, found.own_names)
    for location, dataset in sets.items():
        settle_class_indices(dataset, location, config, found.own_names)
    info = sets["calibration"].info
    _check_scores(sets)
    check_class_map(info, config, found.n_classes)
    labels = {location: dataset.labels() for location, dataset in sets.items()}
    for location, own in labels.items():
        check_label_range(own, location, found.n_classes)
    top_k, notes = _events(config, found.n_classes)
    if left_out:
        notes.append(f"Columns that are no input of the model are not read: {listed(left_out)}.")
    checked = CheckedUpload(
        upload=upload,
        sets=sets,
        config=_resolved(config, top_k, info, found),
        data=_data(upload, config, {role: one.info for role, one in sets.items()}, labels, found),
        found=found,
        trial=trial,
        warnings=[*notes_of(info), *found.warnings, *notes],
    )
    model = checked.model
    checked_options(config, top_k, kind=info.kind, supplied=info.supplied, model=model)
    if model is not None:
        check_rows(model, checked.n_samples, limit=workspace.limits.max_row_passes)
    return checked


def _refuse_two_readings(name: str, model: InspectedOnnxModel) -> None:
    """Ask what a column is where the model would take it as a feature as well."""
    shapes = [tensor["shape"] for tensor in (model.description or {}).get("inputs", ())]
    if len(shapes) == 1 and (shapes[0] is None or None in shapes[0][1:]):
        raise InvalidConfig.at(
            "config.columns",
            f"the column `{name}` may be a feature, for the model takes any number of columns, or "
            f"the {name} of each sample; name all features (--columns), with it or without it",
        )


def _check_scores(sets: Mapping[models.ArtifactRole, UploadedSet]) -> None:
    """Check the classes and the scale of outputs, in both sets."""
    ours, further = sets["calibration"], sets.get("evaluation")
    if ours.info.kind == "logits":
        for location, dataset in sets.items():
            check_no_percentages(dataset.trial, place=location)
    if further is None:
        return
    check_same_classes(ours.info, further.info)
    check_same_score_range(further.info, ours.info.score_range, place="evaluation")
    if ours.info.kind == "logits":
        is_known = are_distributions(ours.trial.arrays["logits"])
        check_same_scores(further.trial, place="evaluation", may_be_probabilities=is_known)


def _refuse_text_model(
    workspace: Workspace, tenant_id: UUID, upload: CalibrationUpload, config: CalibrationConfig
) -> None:
    """Refuse a model that takes text: no change to the set would help.

    The types of the inputs are checked before the rows, so none are needed.
    """
    no_rows = Batch(0, {}, np.zeros(0, np.int64), {})
    try:
        inspect_onnx_model(workspace, tenant_id, upload, config, no_rows)
    except InvalidOnnxModel as error:
        if any(found.rule == ModelRule.INPUT_TYPE for found in error.violations):
            raise
    except ServiceError:
        return  # the fault of the set is reported instead


def _open_sets(
    workspace: Workspace, upload: CalibrationUpload, config: CalibrationConfig, stack: ExitStack
) -> dict[models.ArtifactRole, UploadedSet]:
    kind: DatasetKind | None = "inputs" if upload.onnx_models else config.output.kind
    asked = [
        SetToRead(
            file.path,
            location,
            reading_options(config, labels, kind=kind),
            least_samples=MIN_SAMPLES if location == "calibration" else 1,
        )
        for location, (file, labels) in upload.sets.items()
    ]
    opened = stack.enter_context(workspace.runners.read_sets(asked, workspace.limits.datasets))
    sets = dict(zip(upload.sets, opened, strict=True))
    if "evaluation" in sets:
        check_same_layout(sets["calibration"].info, sets["evaluation"].info)
    return sets


def _resolved(
    config: CalibrationConfig, top_k: tuple[int, ...], info: DatasetInfo, found: InspectedOnnxModel
) -> dict[str, Any]:
    """Return the configuration with the values that it left open."""
    asked, columns = config.preprocessing, table_columns(config, info)
    names = config.classes or class_names(info, found.n_classes) or found.class_names
    return config.model_dump(mode="json") | {
        "name": config.name or FALLBACK_NAME,
        "top_k": list(top_k),
        "classes": list(names),
        "columns": columns,
        "class_map": None if info.class_map is None else dict(info.class_map),
        "preprocessing": None if asked is None else asked.resolved().as_dict(),
    }


def _file_names(upload: CalibrationUpload) -> dict[str, str | list[str]]:
    """Return the sender's name of each file, by part."""
    names: dict[str, str | list[str]] = {"model": [model.label for model in upload.onnx_models]}
    if upload.companions:
        names["model_data"] = [file.label for file in upload.companions]
    for part, (file, labels) in upload.sets.items():
        names[part] = file.label
        if labels is not None:
            names["labels" if part == "calibration" else f"{part}_labels"] = labels.label
    return names


def _data(
    upload: CalibrationUpload,
    config: CalibrationConfig,
    infos: Mapping[models.ArtifactRole, DatasetInfo],
    labels: Mapping[models.ArtifactRole, Labels],
    found: InspectedOnnxModel,
) -> dict[str, Any]:
    info, own, further = infos["calibration"], labels["calibration"], labels.get("evaluation")
    digests = {role: file.sha256 for role, (file, _) in upload.sets.items()}
    is_named = {
        role: found.own_names is not None and one.class_map is not None
        for role, one in infos.items()
    }
    of_scores = {
        SCORE_RANGE: info.score_range,
        LABELS_OF_NAMED_COLUMNS: info.labels_of_named_columns,
    }
    return {
        "kind": info.kind,
        "format": info.format,
        "samples": int(own.size),
        "supplied": list(info.supplied),
        "design": list(info.design),
        TAKES_OTHER_COLUMNS: bool(reading_options(config, None, kind=None).input_columns)
        or not info.columns,
        "class_counts": np.bincount(own, minlength=found.n_classes).tolist(),
        "evaluation_samples": None if further is None else int(further.size),
        "sha256": digests["calibration"],
        "evaluation_sha256": digests.get("evaluation"),
        NAMED_BY_MODEL: is_named["calibration"],
        EVALUATION_NAMED_BY_MODEL: is_named.get("evaluation", False),
        FILES: _file_names(upload),
        OPTIONS: sorted(config.model_fields_set),
        **{key: value for key, value in of_scores.items() if value is not None},
    }


def _events(config: CalibrationConfig, n_classes: int) -> tuple[tuple[int, ...], list[str]]:
    """Return the events to calibrate and notes for the caller; check options of classes."""
    top_k, notes = config.events(n_classes)
    if config.decision_threshold is not None and n_classes != BINARY:
        raise InvalidConfig.at(
            "config.decision_threshold",
            f"decides between two classes, and there are {n_classes}; leave it out",
        )
    if config.classes is not None and len(config.classes) != n_classes:
        raise InvalidConfig.at(
            "config.classes", f"expected {n_classes} names, one a class, got {len(config.classes)}"
        )
    return top_k, notes
