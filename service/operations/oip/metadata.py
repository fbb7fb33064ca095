"""What a model of the protocol takes and gives: a calibration's inputs, and the answers' arrays."""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, cast

import numpy as np

import models
from service.bodies.oip.datatypes import datatype_of
from service.bodies.oip.tensor_metadata import TensorMetadata
from service.core.measures import SUPPLIED, is_supplied
from service.core.ranked import recorded_classes
from service.datasets.supplied import SUPPLIED_PREFIX
from service.operations.load_served import load_served
from service.operations.manage_calibrations import get_calibration
from service.operations.oip.repository import ready_versions
from service.operations.predict import answers_of
from service.operations.prediction_arrays import prediction_arrays
from service.operations.served import ServedCalibration
from service.operations.workspace import Workspace
from service.runner import HeadOutputs

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
        kind = cast("str", row.data["kind"])
        yield TensorMetadata(kind, "FP32", [-1, len(served.class_names)])
    else:
        for found in cast("Sequence[dict[str, Any]]", row.onnx_model["inputs"]):
            # Of an input that declares no shape no more is known than that it has rows.
            sizes = (found["shape"] or [None])[1:]
            yield TensorMetadata(
                found["name"],
                datatype_of(np.dtype(found["dtype"])),
                [-1, *(-1 if size is None else size for size in sizes)],
            )
    for event in served.events:
        if is_supplied(event.measure):
            name = SUPPLIED_PREFIX + event.measure.removeprefix(SUPPLIED)
            yield TensorMetadata(name, "FP32", [-1])


def _outputs(served: ServedCalibration) -> list[TensorMetadata]:
    """Return what an answer has, by making one without rows."""
    n_top = recorded_classes(len(served.class_names), served.top_k)
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
