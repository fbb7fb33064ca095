"""Check of an upload: its files, its sets, its model and its configuration."""

import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from typing import Any
from uuid import UUID

import numpy as np

import models
from howsure.calibrate_command import FILES, OPTIONS
from howsure.outputs import are_distributions
from howsure.remedies import LABELS_OF_NAMED_COLUMNS
from howsure.statistics.arrays import Counts, Labels
from howsure.statistics.softmax import BINARY
from service.calibrations.config import MAX_CLASSES_BYTES, CalibrationConfig, parse_config
from service.calibrations.pass_limits import check_rows
from service.calibrations.upload.class_indices import (
    check_class_names,
    notes_of,
    settle_class_indices,
)
from service.calibrations.upload.features import (
    open_sets,
    read_features,
    reading_options,
    table_columns,
)
from service.calibrations.upload.onnx_model import InspectedOnnxModel, inspect_onnx_model
from service.calibrations.upload.output_sets import check_kind, pairs_config
from service.calibrations.upload.set_checks import (
    check_class_map,
    check_ensemble,
    check_label_range,
    check_no_percentages,
    check_same_classes,
    check_same_score_range,
    check_same_scores,
    checked_options,
    class_names,
)
from service.calibrations.upload.upload_form import CalibrationUpload
from service.errors import InvalidConfig, InvalidInput, InvalidOnnxModel, ModelRule, ServiceError
from service.printable import check_printable
from service.runner.messages.dataset import PAIRS, Batch, DatasetInfo
from service.runner.messages.reading import (
    EVALUATION_NAMED_BY_MODEL,
    NAMED_BY_MODEL,
    SCORE_RANGE,
    TAKES_OTHER_COLUMNS,
    TEXTS,
)
from service.runner.model_description import ModelDescription
from service.runner.set_reader import UploadedSet
from service.workspace import Workspace

FALLBACK_NAME = "calibration"


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
        sets = open_sets(workspace, upload, config, stack)
    except InvalidInput:
        _refuse_text_model(workspace, tenant_id, upload, config)
        raise
    info = sets["calibration"].info
    check_kind(config, info, has_model=bool(upload.onnx_models))
    if info.kind == PAIRS:
        config = pairs_config(config)
    config, sets, found, notes_of_columns = read_features(
        workspace, tenant_id, upload, config, sets, stack
    )
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
    checked = CheckedUpload(
        upload=upload,
        sets=sets,
        config=_resolved(config, top_k, info, found),
        data=_data(upload, config, {role: one.info for role, one in sets.items()}, labels, found),
        found=found,
        trial=sets["calibration"].trial,
        warnings=[*notes_of(info), *found.warnings, *notes, *notes_of_columns],
    )
    model = checked.model
    _check_names(checked, config)
    checked_options(config, top_k, kind=info.kind, supplied=info.supplied, model=model)
    if model is not None:
        check_rows(model, checked.n_samples, limit=workspace.limits.max_row_passes)
    return checked


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


def _check_names(checked: CheckedUpload, config: CalibrationConfig) -> None:
    """Refuse unprintable names of classes, columns, inputs and outputs, and too many of classes."""
    chosen, model = checked.config, checked.onnx_model
    if model is not None:
        tensors = [tensor["name"] for tensor in (*model["inputs"], *model["outputs"])]
        check_printable(tensors, "model", InvalidOnnxModel, ModelRule.NAMES_UNPRINTABLE)
    columns = chosen["columns"] or {}
    names = [*columns, *chain.from_iterable(columns.values())]
    check_printable(names, "config.columns" if config.columns else "calibration")
    place = "config.class_map" if config.class_map else "calibration"
    check_printable(chosen["class_map"] or (), place)
    check_printable(chosen["classes"], "config.classes" if config.classes else "model")
    n_bytes = len(json.dumps(chosen["classes"]))
    if n_bytes > MAX_CLASSES_BYTES:
        message = f"the names of all classes take {n_bytes} bytes in JSON, and at most "
        raise InvalidConfig.at(
            "config.classes", f"{message}{MAX_CLASSES_BYTES} are stored; give shorter ones here"
        )


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
        TEXTS: info.texts or None,
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
