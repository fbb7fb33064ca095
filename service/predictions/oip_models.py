"""What a model of the protocol takes and gives: a calibration's inputs, and the answers' arrays."""

import uuid
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

import models
from howsure.statistics.measures import supplied_names
from howsure.statistics.softmax import n_recorded_classes
from service.calibrations.manage import get_calibration
from service.child.reading.checks import SUPPLIED_PREFIX
from service.predictions.load_calibration import load_served
from service.predictions.lookup import answers_of
from service.predictions.served_calibration import ServedCalibration
from service.predictions.tensor_answers import prediction_arrays
from service.runner.messages.open_inference import TensorMetadata, datatype_of
from service.runner.model_output import HeadOutputs
from service.storage.calibration_queries import CalibrationRef, Reference, parse_reference
from service.storage.calibrations import CalibrationRepository
from service.workspace import Workspace


def reference_of(name: str, version: str | None) -> str:
    """Return the reference of a model, by default of the version that its name means.

    Raises
    ------
    NotFound
        If this is no name: an id, say, or a name and version in one.
    """
    if parse_reference(name).name != name:
        raise Reference(name).not_found()
    return name if version is None else f"{name}@{version}"


def ready_model(workspace: Workspace, tenant_id: uuid.UUID, reference: str) -> CalibrationRef:
    """Return which calibration answers.

    Raises
    ------
    NotFound, Conflict
        If there is no such calibration, or it has not succeeded.
    """
    with workspace.database.reading() as session:
        return CalibrationRepository(session, tenant_id).resolve(reference)


def ready_models(
    workspace: Workspace, tenant_id: uuid.UUID, name: str | None = None
) -> list[CalibrationRef]:
    """Return all that can answer, or those of one name, by name and version."""
    with workspace.database.reading() as session:
        repository = CalibrationRepository(session, tenant_id)
        return [ref for ref, _ in repository.states(name=name, status="succeeded")]


def ready_versions(workspace: Workspace, tenant_id: uuid.UUID, name: str) -> list[str]:
    """Return the versions of a model that can answer, the oldest first."""
    return [str(ref.version) for ref in ready_models(workspace, tenant_id, name)]


def repository_index(
    workspace: Workspace, tenant_id: uuid.UUID, *, ready_only: bool
) -> list[dict[str, Any]]:
    """Return every version of every model, and whether it can answer."""
    with workspace.database.reading() as session:
        repository = CalibrationRepository(session, tenant_id)
        found = repository.states(status="succeeded" if ready_only else None)
    return [
        {
            "name": ref.name,
            "version": str(ref.version),
            "state": "READY" if status == "succeeded" else "UNAVAILABLE",
            "reason": "" if status == "succeeded" else status,
        }
        for ref, status in found
    ]


ONNX_RUNTIME = "onnxruntime"
# Of calibrations whose model runs elsewhere, and which take its outputs.
NO_MODEL = "howsure"


def model_metadata(workspace: Workspace, tenant_id: uuid.UUID, reference: str) -> dict[str, Any]:
    """Return names, types and shapes of a model's tensors, and which versions of it there are.

    Raises
    ------
    NotFound, Conflict
        If there is no such calibration, or it has not succeeded.
    """
    served, row = _found(workspace, tenant_id, reference)
    return {
        "name": row.name,
        "versions": ready_versions(workspace, tenant_id, row.name),
        "platform": _platform(row),
        "inputs": [asdict(tensor) for tensor in _inputs(served, row)],
        "outputs": [asdict(tensor) for tensor in _outputs(served)],
    }


def model_config(workspace: Workspace, tenant_id: uuid.UUID, reference: str) -> dict[str, Any]:
    """Return the same as a Triton server's configuration, in whose shapes the batch is left out.

    Raises
    ------
    NotFound, Conflict
        As above.
    """
    served, row = _found(workspace, tenant_id, reference)
    return {
        "name": row.name,
        "platform": _platform(row),
        "backend": NO_MODEL if row.onnx_model is None else ONNX_RUNTIME,
        "version_policy": {"specific": {"versions": [row.version]}},
        "max_batch_size": workspace.limits.bodies.max_rows,
        "input": [_config(tensor) for tensor in _inputs(served, row)],
        "output": [_config(tensor) for tensor in _outputs(served)],
    }


def input_tensors(
    workspace: Workspace, tenant_id: uuid.UUID, reference: str
) -> list[TensorMetadata]:
    """Return a model's inputs, in its order.

    Raises
    ------
    NotFound, Conflict
        As above.
    """
    return list(_inputs(*_found(workspace, tenant_id, reference)))


def _platform(row: models.Calibration) -> str:
    return NO_MODEL if row.onnx_model is None else f"{ONNX_RUNTIME}_onnx"


def _found(
    workspace: Workspace, tenant_id: uuid.UUID, reference: str
) -> tuple[ServedCalibration, models.Calibration]:
    served = load_served(workspace, tenant_id, reference)
    return served, get_calibration(workspace, tenant_id, str(served.ref.id))


def _inputs(served: ServedCalibration, row: models.Calibration) -> Iterator[TensorMetadata]:
    if row.onnx_model is None:
        kind = row.data["kind"]
        yield TensorMetadata(kind, "FP32", [-1, len(served.class_names)])
    else:
        for found in row.onnx_model["inputs"]:
            # Of an input that declares no shape no more is known than that it has rows.
            sizes = (found["shape"] or [None])[1:]
            yield TensorMetadata(
                found["name"],
                datatype_of(np.dtype(found["dtype"])),
                [-1, *(-1 if size is None else size for size in sizes)],
            )
    for name in supplied_names(event.measure for event in served.events):
        yield TensorMetadata(SUPPLIED_PREFIX + name, "FP32", [-1])


def _outputs(served: ServedCalibration) -> list[TensorMetadata]:
    """Return what an answer has, by making one without rows."""
    n_top = n_recorded_classes(len(served.class_names), served.top_k)
    nothing = HeadOutputs(
        top_classes=np.empty((0, n_top), np.int64),
        top_scores=np.empty((0, n_top), np.float32),
        uncertainty={event.column: np.empty(0, np.float32) for event in served.events},
    )
    arrays = prediction_arrays(answers_of(served, nothing, nothing.uncertainty))
    return [
        TensorMetadata(name, datatype_of(array.dtype), [-1, *array.shape[1:]])
        for name, array in arrays.items()
    ]


def _config(tensor: TensorMetadata) -> dict[str, Any]:
    return {
        "name": tensor.name,
        "data_type": f"TYPE_{tensor.datatype}",
        "dims": tensor.shape[1:],
    }
