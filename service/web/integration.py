"""The names, types and shapes that programs need for predictions by a calibration."""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

import models
from service.errors import Conflict
from service.exports.export import exportable_model
from service.jobs.samples import KeptSamples
from service.predictions.load_calibration import load_served, row_columns, row_inputs
from service.predictions.served_calibration import ServedCalibration
from service.runner.messages.open_inference import datatype_of
from service.storage.calibrations import CalibrationRepository
from service.web.page_route import meant_version
from service.web.sample_rows import TakenSample
from service.workspace import Workspace

NO_SAMPLES = "No samples of this calibration are stored, so a file cannot be compared with it."


@dataclass(frozen=True)
class RowInput:
    """An input of a request: its name, its type, and the shape of one row.

    ``datatype`` is the type's name in the Open Inference Protocol.
    """

    name: str
    dtype: str
    datatype: str
    sizes: tuple[int, ...]

    @property
    def count(self) -> int:
        """The number of values in a row."""
        return prod(self.sizes)


@dataclass(frozen=True, kw_only=True)
class Integration:
    """A calibration, as programs use it.

    Attributes
    ----------
    reference : str
        The name if it stands for this version, else ``name@version``.
    kind : str
        The content of a row: ``inputs`` of the model, ``logits``,
        ``probabilities`` or ``scores``.
    inputs : sequence of RowInput
    columns : sequence of str
        The names of the numbers of a row, in order; empty if they have none.
    supplied : sequence of str
        Names of the uncertainties that a request must contain.
    events : sequence of int
        Each k; the page shows the first.
    takes_pictures : bool
        Whether the service also takes pictures.
    batch : int
        The fixed number of rows per run of the calibrated file, else 1.
    companions : sequence of str
        Names of files with weights that the calibrated file needs.
    not_exported : str or None
        The reason why there is no calibrated file; None if there is one.
    """

    id: str
    name: str
    version: int
    reference: str
    kind: str
    inputs: Sequence[RowInput]
    columns: Sequence[str]
    supplied: Sequence[str]
    classes: Sequence[str]
    events: Sequence[int]
    takes_pictures: bool
    batch: int
    companions: Sequence[str]
    not_exported: str | None
    onnx_model: dict[str, Any] | None

    @property
    def is_pinned(self) -> bool:
        """Whether the reference names the version."""
        return self.reference != self.name


def describe_integration(workspace: Workspace, tenant_id: uuid.UUID, reference: str) -> Integration:
    """Return the description of a calibration for programs.

    Raises
    ------
    NotFound, Conflict
        If there is no such calibration, or it has not succeeded.
    """
    served = load_served(workspace, tenant_id, reference)
    with workspace.database.reading(tenant_id) as session:
        row = CalibrationRepository(session, tenant_id).find_ready(str(served.ref.id))
    is_meant = meant_version(workspace, tenant_id, row.name) == row.version
    onnx_model = row.onnx_model
    inputs, taken = tuple(_inputs(workspace, row)), TakenSample.by(row)
    return Integration(
        id=str(row.id),
        name=row.name,
        version=row.version,
        reference=row.name if is_meant else f"{row.name}@{row.version}",
        kind=taken.kind,
        inputs=inputs,
        columns=row_columns(row, sum(one.count for one in inputs)),
        supplied=taken.supplied,
        classes=served.class_names,
        events=tuple(event.k for event in served.events),
        takes_pictures=taken.has_pictures,
        batch=(onnx_model or {}).get("fixed_batch") or 1,
        companions=tuple(file.label for file in row.artifacts if file.role == "model_data"),
        not_exported=_not_exported(workspace, served, row),
        onnx_model=onnx_model,
    )


def _inputs(workspace: Workspace, row: models.Calibration) -> Iterator[RowInput]:
    inputs = row_inputs(row)
    shapes: dict[str, Sequence[int]] = {}
    if any(size is None for one in inputs for size in one.shape):
        shapes = _shapes_of_samples(workspace, row)
    for name, dtype, shape in inputs:
        sizes = tuple(size or 1 for size in shapes.get(name, shape))
        yield RowInput(name, dtype, datatype_of(np.dtype(dtype)), sizes)


def _shapes_of_samples(workspace: Workspace, row: models.Calibration) -> dict[str, Sequence[int]]:
    """Return the shapes of the calibration set's rows; empty if no samples are stored."""
    samples = KeptSamples.of(workspace.artifacts, row)
    if samples is None:
        return {}
    return {name: array.shape[1:] for name, array in samples.inputs(1).items()}


def _not_exported(
    workspace: Workspace, served: ServedCalibration, row: models.Calibration
) -> str | None:
    try:
        exportable_model(served)
    except Conflict as error:
        return str(error)
    return None if KeptSamples.of(workspace.artifacts, row) is not None else NO_SAMPLES
