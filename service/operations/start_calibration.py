"""Accept a calibration: everything a caller can get wrong is checked here, before it is queued."""

import uuid
from contextlib import ExitStack
from typing import Any

import numpy as np

import models
from service.core.arrays import Labels
from service.datasets import Batch, Dataset, open_dataset
from service.errors import InvalidConfig, InvalidDataset, InvalidInput
from service.operations.available_measures import checked_options, kept_outputs
from service.operations.config import CalibrationConfig, parse_config
from service.operations.label_range import check_label_range
from service.operations.onnx_model import TRIAL_ROWS, inspect_onnx_model
from service.operations.uploads import CalibrationUpload, UploadedFile
from service.operations.versions import library_versions
from service.operations.workspace import Workspace
from service.storage.calibrations import CalibrationRepository, NewArtifact

MIN_SAMPLES = 20
FALLBACK_NAME = "calibration"


def start_calibration(
    workspace: Workspace, tenant_id: uuid.UUID, upload: CalibrationUpload
) -> uuid.UUID:
    """Check the upload, keep its files and queue a calibration; return the calibration's id.

    Raises
    ------
    InvalidInput
        If a part breaks a rule; nothing is kept then.
    """
    config = parse_config(upload.config, CalibrationConfig)
    with ExitStack() as stack:
        limits = workspace.limits.datasets
        calibration = stack.enter_context(
            open_dataset(upload.calibration.path, location="calibration", limits=limits)
        )
        evaluation = None
        if upload.evaluation is not None:
            evaluation = stack.enter_context(
                open_dataset(upload.evaluation.path, location="evaluation", limits=limits)
            )
            _same_layout(calibration, evaluation)
            _first_rows(evaluation)
        labels = _labels(calibration, "calibration", MIN_SAMPLES)
        evaluation_labels = None
        if evaluation is not None:
            evaluation_labels = _labels(evaluation, "evaluation", 1)
        onnx_model, n_classes, class_names, doubts = _classes(
            workspace, upload, config, calibration
        )
    check_label_range(labels, "calibration", n_classes)
    if evaluation_labels is not None:
        check_label_range(evaluation_labels, "evaluation", n_classes)
    top_k, notes = config.events(n_classes)
    warnings = [*doubts, *notes]
    if not top_k:
        raise InvalidConfig.at("config.top_k", "no event is left to calibrate")
    if config.classes is not None and len(config.classes) != n_classes:
        raise InvalidConfig.at(
            "config.classes", f"expected {n_classes} names, one a class, got {len(config.classes)}"
        )
    checked_options(
        config,
        top_k,
        logits=calibration.info.kind == "logits"
        or (onnx_model is not None and onnx_model["output"]["kind"] == "logits"),
        supplied=calibration.info.supplied,
        outputs=kept_outputs(onnx_model),
    )
    resolved = config.model_dump(mode="json") | {
        "name": config.name or FALLBACK_NAME,
        "top_k": list(top_k),
        "classes": list(config.classes or class_names),
    }
    data = {
        "kind": calibration.info.kind,
        "format": calibration.info.format,
        "samples": int(labels.size),
        "supplied": list(calibration.info.supplied),
        "class_counts": np.bincount(labels, minlength=n_classes).tolist(),
        "evaluation_samples": None if evaluation_labels is None else int(evaluation_labels.size),
    }
    return _keep(workspace, tenant_id, upload, resolved, data, onnx_model, warnings)


def _same_layout(calibration: Dataset, evaluation: Dataset) -> None:
    ours, theirs = calibration.info, evaluation.info
    if ours.kind != theirs.kind:
        raise InvalidDataset.at(
            "evaluation", f"holds {theirs.kind} where calibration holds {ours.kind}"
        )
    if ours.arrays.keys() != theirs.arrays.keys():
        raise InvalidDataset.at(
            "evaluation",
            f"expected the arrays of calibration, {', '.join(ours.arrays)}, "
            f"got {', '.join(theirs.arrays)}",
        )
    if set(ours.supplied) - set(theirs.supplied):
        raise InvalidDataset.at(
            "evaluation",
            "expected the columns of calibration, "
            f"{', '.join(f'uncertainty_{name}' for name in ours.supplied)}",
        )
    for name, array in ours.arrays.items():
        if array.shape[1:] != theirs.arrays[name].shape[1:]:
            raise InvalidDataset.at(
                f"evaluation.{name}",
                f"expected rows of shape {list(array.shape[1:])} as in calibration, "
                f"got {list(theirs.arrays[name].shape[1:])}",
            )


def _first_rows(dataset: Dataset) -> Batch:
    """Read the first rows, so that values that break a rule from the start are refused here."""
    return next(iter(dataset.batches(TRIAL_ROWS)))


def _labels(dataset: Dataset, location: str, at_least: int) -> Labels:
    labels = dataset.labels()
    if labels.size < at_least:
        raise InvalidDataset.at(
            location, f"expected at least {at_least} samples, got {labels.size}"
        )
    return labels


def _classes(
    workspace: Workspace,
    upload: CalibrationUpload,
    config: CalibrationConfig,
    calibration: Dataset,
) -> tuple[dict[str, Any] | None, int, list[str], list[str]]:
    """Return the model's description, the number of classes, their names, and warnings."""
    kind = calibration.info.kind
    trial = _first_rows(calibration)
    if kind != "inputs":
        if upload.onnx_models:
            raise InvalidInput.at(
                "model", f"calibration already holds {kind}; send a model or its outputs, not both"
            )
        n_classes = calibration.info.n_classes
        if n_classes is None:
            raise InvalidDataset.at(f"calibration.{kind}", "its number of classes is unknown")
        return None, n_classes, [str(i) for i in range(n_classes)], []
    if not upload.onnx_models:
        raise InvalidInput.at(
            "model",
            "calibration holds inputs, so an ONNX model is needed; "
            "without one, upload its `logits` or `probabilities`",
        )
    if len(upload.onnx_models) > 1:
        raise InvalidInput.at("model", "expected one ONNX file; ensembles are not served yet")
    found = inspect_onnx_model(workspace, upload, config, trial)
    return found.description, found.n_classes, found.class_names, found.warnings


def _keep(
    workspace: Workspace,
    tenant_id: uuid.UUID,
    upload: CalibrationUpload,
    config: dict[str, Any],
    data: dict[str, Any],
    onnx_model: dict[str, Any] | None,
    warnings: list[str],
) -> uuid.UUID:
    """Store the files, then the row that refers to them; a failure leaves neither."""
    calibration_id = uuid.uuid4()
    files: list[tuple[models.ArtifactRole, int, UploadedFile]] = [
        ("model", 0, found) for found in upload.onnx_models
    ]
    files += [("model_data", i, found) for i, found in enumerate(upload.companions)]
    files.append(("calibration", 0, upload.calibration))
    if upload.evaluation is not None:
        files.append(("evaluation", 0, upload.evaluation))
    kept: list[NewArtifact] = []
    try:
        for role, position, file in files:
            key = f"calibrations/{calibration_id}/{role}-{position}"
            stored = workspace.artifacts.put_file(key, file.path)
            kept.append(NewArtifact(role, position, file.label, key, stored.sha256, stored.size))
        data["sha256"] = next(a.sha256 for a in kept if a.role == "calibration")
        data["evaluation_sha256"] = next((a.sha256 for a in kept if a.role == "evaluation"), None)
        with workspace.database.session() as session:
            CalibrationRepository(session, tenant_id).create(
                calibration_id,
                name=str(config["name"]),
                config=config,
                data=data,
                onnx_model=onnx_model,
                versions=library_versions(),
                artifacts=kept,
                warnings=warnings,
            )
    except BaseException:
        workspace.artifacts.delete([artifact.key for artifact in kept])
        raise
    workspace.doorbell.release()
    return calibration_id
