"""Writes a calibrated model as one file, and runs that file on a few rows."""

from collections.abc import Mapping

import numpy as np
from onnx import ModelProto

from howsure.bins_document.pass_plan import LAST_LAYER
from howsure.onnx_head.spec import ExportSpec
from howsure.statistics.measures.measure import output_column
from service.child.onnx.batches import batch_rows, join_parts
from service.child.onnx.loading import Bytes
from service.child.onnx.noise import last_layer_masks
from service.child.onnx.onnx_file import OnnxFile, serialised
from service.child.onnx.trial import fitted_trial
from service.child.onnx.watchdog import Watchdog
from service.errors import InferenceFailed
from service.graph.export import build_export_graph
from service.graph.gate.external_weights import attach_external_data
from service.graph.load import load_onnx_model
from service.runner.messages.frames import Array
from service.runner.messages.input_rows import chunks
from service.runner.messages.requests import CONTENT, OUTPUT, LoadRequest


def export_file(
    files: Bytes,
    request: LoadRequest,
    spec: ExportSpec,
    rows: Mapping[str, Array],
    watchdog: Watchdog,
) -> dict[str, Array]:
    """Return the file's bytes, and its own outputs for the rows.

    Raises
    ------
    InferenceFailed
        If it is not a single model with a stored choice.
    InvalidOnnxModel
        If it cannot be written or loaded.
    InvalidInput
        If it does not take the rows.
    """
    if not request.choices or len(files.onnx_models) != 1:
        raise InferenceFailed("Only a single calibrated model can be exported.")
    choice = request.choices[0]
    last_layer = request.plan(LAST_LAYER)
    content = serialised(
        build_export_graph(
            load_onnx_model(files.onnx_models[0], max_nodes=request.max_nodes),
            choice,
            spec,
            {output_column(name): name for name in request.scalar_outputs},
            last_layer_masks=None if last_layer is None else last_layer_masks(last_layer),
        )
    )
    answers = _run(content, files, request, rows, watchdog, n_classes=choice.n_classes)
    named = {OUTPUT + name: array for name, array in answers.items()}
    return {CONTENT: np.frombuffer(content, dtype=np.uint8), **named}


def _run(
    content: bytes,
    files: Bytes,
    request: LoadRequest,
    rows: Mapping[str, Array],
    watchdog: Watchdog,
    *,
    n_classes: int,
) -> dict[str, Array]:
    """Run the bytes of the file on the rows; return the outputs that the model itself lacks."""
    own = OnnxFile(files.onnx_models[0], files.companions, request, watchdog)
    model = ModelProto.FromString(content)
    needed = attach_external_data(model, files.companions)
    session = own.session(model) if needed else own.session_of(content)
    theirs = {spec.name for spec in own.description.outputs}
    wanted = [name for name in session.output_names if name not in theirs]
    fixed = own.description.fixed_batch
    parts: list[dict[str, Array]] = []
    # As a model's input, pixels take four times as much memory: chunks limit it.
    for place, some in chunks(rows, fixed_batch=fixed, start=0):
        inputs = fitted_trial(some, own.inputs, request.location)
        size = batch_rows(inputs, n_classes, fixed)
        parts.append(own.run(session, wanted, inputs, size=size, start=place.start))
    return join_parts(parts)
