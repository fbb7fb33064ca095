"""Models of the Open Inference Protocol: index and metadata."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from howsure.events import HeadOutputs
from service.calibrations.manage import get_calibration
from service.child.reading.checks import SUPPLIED_PREFIX
from service.jobs.acceptance import CallContext
from service.predictions.load_calibration import RowInput, load_served, row_inputs
from service.predictions.lookup import answers_of
from service.predictions.oip_schemas import (
    OipIndexEntry,
    OipModel,
    OipTensor,
)
from service.predictions.served_calibration import ServedCalibration
from service.predictions.tensor_answers import prediction_arrays
from service.runner.messages.open_inference import datatype_of
from service.storage.calibration_queries import CalibrationRef, Reference, parse_reference
from service.storage.calibrations import CalibrationRepository

PLATFORM = "onnxruntime_onnx"
# The platform of calibrations of uploaded outputs: their model runs elsewhere.
NO_MODEL = "howsure"


def reference_of(name: str, version: str | None) -> str:
    """Return the reference of a model, by default of the version that its name means.

    Raises
    ------
    NotFound
        If this is no name but an id, or a name and version in one.
    """
    if parse_reference(name).name != name:
        raise Reference(name).not_found()
    return name if version is None else f"{name}@{version}"


def ready_model(ctx: CallContext, reference: str) -> CalibrationRef:
    """Return the calibration that a reference means.

    Raises
    ------
    NotFound, Conflict
        If there is no such calibration, or it has not succeeded.
    """
    with ctx.workspace.database.reading(ctx.tenant_id) as session:
        return CalibrationRepository(session, ctx.tenant_id).resolve(reference)


def ready_models(ctx: CallContext, name: str | None = None) -> list[CalibrationRef]:
    """Return all calibrations that can answer, or those of one name, by name and version."""
    with ctx.workspace.database.reading(ctx.tenant_id) as session:
        repository = CalibrationRepository(session, ctx.tenant_id)
        return [ref for ref, _ in repository.states(name=name, status="succeeded")]


def repository_index(ctx: CallContext, *, ready_only: bool) -> list[OipIndexEntry]:
    """Return every version of every model and whether it can answer."""
    with ctx.workspace.database.reading(ctx.tenant_id) as session:
        repository = CalibrationRepository(session, ctx.tenant_id)
        found = repository.states(status="succeeded" if ready_only else None)
    return [
        OipIndexEntry(
            name=ref.name,
            version=str(ref.version),
            state="READY" if status == "succeeded" else "UNAVAILABLE",
            reason="" if status == "succeeded" else status,
        )
        for ref, status in found
    ]


def model_metadata(ctx: CallContext, reference: str) -> OipModel:
    """Return names, types and shapes of a model's tensors, and its versions.

    Raises
    ------
    NotFound, Conflict
        If there is no such calibration, or it has not succeeded.
    """
    served = load_served(ctx.workspace, ctx.tenant_id, reference)
    row = get_calibration(ctx.workspace, ctx.tenant_id, str(served.ref.id))
    refs = ready_models(ctx, served.ref.name)
    # The one column of pairs is their input itself.
    columns = served.supplied if served.has_classes else ()
    supplied = [RowInput(SUPPLIED_PREFIX + name, "float32", ()) for name in columns]
    return OipModel(
        name=served.ref.name,
        versions=[str(one.version) for one in refs],
        platform=NO_MODEL if row.onnx_model is None else PLATFORM,
        inputs=[
            _tensor(name, np.dtype(dtype), [-1 if size is None else size for size in sizes])
            for name, dtype, sizes in (*row_inputs(row), *supplied)
        ],
        outputs=_outputs(served),
    )


def _outputs(served: ServedCalibration) -> list[OipTensor]:
    """Return the tensors of an answer to no rows."""
    n_top = served.n_read
    nothing = HeadOutputs(
        top_classes=np.empty((0, n_top), np.int64),
        top_scores=np.empty((0, n_top), np.float32),
        uncertainty={name: np.empty(0, np.float32) for name in served.columns},
    )
    arrays = prediction_arrays(answers_of(served, nothing))
    return [_tensor(name, array.dtype, array.shape[1:]) for name, array in arrays.items()]


def _tensor(name: str, dtype: np.dtype[Any], sizes: Sequence[int]) -> OipTensor:
    return OipTensor(name=name, datatype=datatype_of(dtype), shape=[-1, *sizes])
