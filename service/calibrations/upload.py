"""How a set is read, by the configuration that it came with or the calibration's own."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from howsure.statistics.arrays import Counts, Labels
from service.calibrations.config import CalibrationConfig, parse_config
from service.calibrations.onnx_model import InspectedOnnxModel, inspect_onnx_model
from service.calibrations.pass_limits import check_calibration_budget
from service.calibrations.set_checks import (
    check_class_map,
    check_ensemble,
    check_label_range,
    check_same_classes,
    check_same_layout,
    checked_options,
    class_names,
    gives_logits,
    kept_outputs,
    kept_passes,
)
from service.calibrations.uploaded_files import CalibrationUpload, UploadedFile
from service.errors import InvalidConfig, InvalidDataset, InvalidInput
from service.runner.messages.dataset import Batch, DatasetInfo, DatasetKind
from service.runner.messages.reading import Reading
from service.runner.messages.set_messages import SetToRead
from service.runner.set_reader import UploadedSet
from service.workspace import Workspace


def asked_reading(
    config: CalibrationConfig, labels: UploadedFile | None, *, kind: DatasetKind | None
) -> Reading:
    """Return how a set is read; ``kind`` is what an array without a name holds."""
    asked = config.preprocessing
    return Reading(
        preprocessing=None if asked is None else asked.resolved(),
        class_map=config.class_map,
        classes=config.classes,
        columns=config.columns,
        labels=None if labels is None else labels.path,
        kind=kind,
    )


MIN_SAMPLES = 20
FALLBACK_NAME = "calibration"


@dataclass(frozen=True)
class UploadedSets:
    """The sets of an upload, open for reading."""

    calibration: UploadedSet
    evaluation: UploadedSet | None


@dataclass(frozen=True)
class CheckedUpload:
    """An upload that breaks no rule, as far as its first rows and its labels tell.

    ``config`` and ``data`` are as the resource shows them; ``trial`` are the first rows.
    """

    upload: CalibrationUpload
    sets: UploadedSets
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
    def class_counts(self) -> Counts:
        """Labels of each class in the calibration set."""
        return np.asarray(self.data["class_counts"], dtype=np.int64)

    @property
    def n_samples(self) -> int:
        """Samples of both sets."""
        return int(self.data["samples"]) + int(self.data["evaluation_samples"] or 0)


def check_upload(
    workspace: Workspace, upload: CalibrationUpload, stack: ExitStack
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
    check_ensemble(upload, config)
    sets = _open_sets(workspace, upload, config, stack)
    labels = sets.calibration.labels()
    judged = None if sets.evaluation is None else sets.evaluation.labels()
    trial = sets.calibration.trial
    found = _classes(workspace, upload, config, sets.calibration.info, trial)
    check_class_map(sets.calibration.info, config, found.n_classes)
    check_label_range(labels, "calibration", found.n_classes)
    if judged is not None:
        check_label_range(judged, "evaluation", found.n_classes)
    top_k, notes = _events(config, found.n_classes)
    onnx_model, info = found.description, sets.calibration.info
    checked_options(
        config,
        top_k,
        logits=info.kind == "logits" if onnx_model is None else gives_logits(onnx_model),
        supplied=info.supplied,
        outputs=kept_outputs(onnx_model),
        passes=kept_passes(onnx_model),
    )
    checked = CheckedUpload(
        upload=upload,
        sets=sets,
        config=_resolved(config, top_k, info, found),
        data=_data(upload, info, labels, judged, found.n_classes),
        found=found,
        trial=trial,
        warnings=[*info.notes, *found.warnings, *notes],
    )
    if onnx_model is not None:
        limit = workspace.limits.max_row_passes
        check_calibration_budget(onnx_model, checked.n_samples, limit=limit)
    return checked


def _open_sets(
    workspace: Workspace, upload: CalibrationUpload, config: CalibrationConfig, stack: ExitStack
) -> UploadedSets:
    kind = None if upload.onnx_models else config.output.kind
    asked = [
        SetToRead(
            file.path,
            location,
            asked_reading(config, labels, kind=kind),
            least_samples=least,
        )
        for file, labels, location, least in (
            (upload.calibration, upload.labels, "calibration", MIN_SAMPLES),
            (upload.evaluation, upload.evaluation_labels, "evaluation", 1),
        )
        if file is not None
    ]
    if upload.evaluation is None and upload.evaluation_labels is not None:
        raise InvalidInput.at("evaluation_labels", "there is no evaluation set to label")
    calibration, *others = stack.enter_context(
        workspace.runners.read_sets(asked, workspace.limits.datasets)
    )
    for evaluation in others:
        check_same_layout(calibration.info, evaluation.info)
        check_same_classes(calibration.info, evaluation.info)
    return UploadedSets(calibration, others[0] if others else None)


def _resolved(
    config: CalibrationConfig,
    top_k: tuple[int, ...],
    info: DatasetInfo,
    found: InspectedOnnxModel,
) -> dict[str, Any]:
    """Return the configuration with what it left open."""
    asked = config.preprocessing
    names = config.classes or class_names(info, found.n_classes) or found.class_names
    return config.model_dump(mode="json") | {
        "name": config.name or FALLBACK_NAME,
        "top_k": list(top_k),
        "classes": list(names),
        "class_map": None if info.class_map is None else dict(info.class_map),
        "preprocessing": None if asked is None else asked.resolved().as_dict(),
    }


def _data(
    upload: CalibrationUpload,
    info: DatasetInfo,
    labels: Labels,
    judged: Labels | None,
    n_classes: int,
) -> dict[str, Any]:
    evaluation = upload.evaluation
    return {
        "kind": info.kind,
        "format": info.format,
        "samples": int(labels.size),
        "supplied": list(info.supplied),
        "class_counts": np.bincount(labels, minlength=n_classes).tolist(),
        "evaluation_samples": None if judged is None else int(judged.size),
        "sha256": upload.calibration.sha256,
        "evaluation_sha256": None if evaluation is None else evaluation.sha256,
    }


def _events(config: CalibrationConfig, n_classes: int) -> tuple[tuple[int, ...], list[str]]:
    """Return the events to calibrate and what to tell of them; the names must suit the classes."""
    top_k, notes = config.events(n_classes)
    if not top_k:
        raise InvalidConfig.at("config.top_k", "no event is left to calibrate")
    if config.classes is not None and len(config.classes) != n_classes:
        raise InvalidConfig.at(
            "config.classes", f"expected {n_classes} names, one a class, got {len(config.classes)}"
        )
    return top_k, notes


def _classes(
    workspace: Workspace,
    upload: CalibrationUpload,
    config: CalibrationConfig,
    info: DatasetInfo,
    trial: Batch,
) -> InspectedOnnxModel:
    """Return what is known of the model, or of the classes that its outputs tell apart."""
    kind = info.kind
    if kind != "inputs":
        if upload.onnx_models:
            raise InvalidInput.at(
                "model", f"calibration already holds {kind}; send a model or its outputs, not both"
            )
        if config.preprocessing is not None:
            raise InvalidConfig.at(
                "config.preprocessing",
                f"calibration holds {kind}, and there is no model to prepare"
                " pictures for; leave it out",
            )
        n_classes = info.n_classes
        if n_classes is None:
            raise InvalidDataset.at(f"calibration.{kind}", "its number of classes is unknown")
        names = [str(i) for i in range(n_classes)]
        return InspectedOnnxModel(None, n_classes, names, warnings=[])
    if not upload.onnx_models:
        raise InvalidInput.at(
            "model",
            "calibration holds inputs, so an ONNX model is needed; "
            "without one, upload its `logits` or `probabilities`, and say in config.output.kind "
            "which of them an .npy array holds",
        )
    return inspect_onnx_model(workspace, upload, config, trial)
