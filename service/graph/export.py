"""The calibrated model as one file: the caller's model, the head, and the bin tables."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, ModelProto, helper

from howsure.onnx_head.answers import (
    ExportOutput,
    add_calibrated,
    declared,
    give_out,
    read_inputs,
)
from howsure.onnx_head.builder import PREFIX, GraphBuilder
from howsure.onnx_head.spec import ExportSpec
from service.graph.description import OutputChoice
from service.graph.gate.versions import lower_ir_version
from service.graph.inline import inline_functions
from service.graph.measure_outputs import pass_through
from service.graph.noise.last_layer import MEASURE as LAST_LAYER
from service.graph.noise.last_layer_dropout import add_last_layer_dropout
from service.graph.proto import output_names_as_sent, rename_values, value_names
from service.graph.serving import append_head

METADATA = "howsure."


def build_export_graph(
    model: ModelProto,
    choice: OutputChoice,
    spec: ExportSpec,
    scalars: Mapping[str, str],
    *,
    last_layer_masks: NDArray[np.float32] | None = None,
) -> ModelProto:
    """Add calibrated probabilities to the outputs of the model, in place, and return it.

    Its own inputs, outputs and references to external weights are unchanged. The added outputs are
    ``class`` int64 (n,), ``topk_class`` int64 (n, m), ``topk_score`` and, where Top-1 is among the
    events, ``topk_probability`` float32 (n, m); for each
    event ``top{k}_probability``, ``_lower``, ``_upper`` and ``_uncertainty`` float32 (n,) and
    ``top{k}_bin`` int64 (n,); where Top-1 is among them ``out_of_distribution`` bool (n,), if it
    has a threshold, and for each risk ``abstain_{risk}`` bool (n,), the first also as ``abstain``.
    For a row that is not finite they are NaN, -1 and true. If the model already uses one of these
    names, all get a prefix, stored in the metadata as ``howsure.prefix``.

    Parameters
    ----------
    model
        From `load_onnx_model`, otherwise unchanged.
    scalars
        Outputs of the model with one number a sample, by column.
    last_layer_masks
        As for `build_serving_graph`.

    Raises
    ------
    InvalidConfig
        If there are masks, but no last layer.
    ValueError
        If an event has a k out of range.
    """
    if last_layer_masks is not None:
        inline_functions(model)
    graph = model.graph
    n_own = len(graph.node)
    sent = output_names_as_sent(graph)
    taken = {*value_names(graph), *sent.values()}
    build, scores, head = append_head(model, choice, spec.head_top_k, read_inputs(spec))
    # ONNX cannot infer the rank of the output of a tree ensemble, on which ours depend.
    known = ExportOutput(scores, build.element_type, choice.n_classes)
    graph.value_info.append(declared(scores, known, _rows(graph)))
    measures = _passed_through(build, scalars)
    if last_layer_masks is not None:
        passes = add_last_layer_dropout(build, graph, choice, last_layer_masks)
        measures[LAST_LAYER] = passes.variance
    answers = add_calibrated(graph, build, head, measures, spec)
    prefix = _free_prefix(answers, taken)
    named = {prefix + name: answer for name, answer in answers.items()}
    give_out(graph, named, rows=_rows(graph), since=n_own)
    _restore_output_names(graph, sent)
    _set_metadata(model, {**spec.metadata, f"{METADATA}prefix": prefix})
    lower_ir_version(model)
    return model


def _passed_through(build: GraphBuilder, scalars: Mapping[str, str]) -> dict[str, str]:
    """Append measures from scalar outputs, shape (n, 1), and return them by column."""
    names = {column: build.new_name() for column in scalars}
    pass_through(build, {names[column]: tensor for column, tensor in scalars.items()})
    shape = build.integers([-1, 1])
    return {column: build.add("Reshape", name, shape) for column, name in names.items()}


def _free_prefix(names: Mapping[str, ExportOutput], taken: set[str]) -> str:
    """Return a prefix with which none of the names occurs in the model."""
    prefix, count = "", 1
    while any(prefix + name in taken for name in names):
        prefix = PREFIX if count == 1 else f"{PREFIX}{count}_"
        count += 1
    return prefix


def _rows(graph: GraphProto) -> int | str:
    """Return the model's name of the number of samples, or the number itself if it is fixed."""
    initial = {tensor.name for tensor in graph.initializer}
    axes = [
        given.type.tensor_type.shape.dim[0]
        for given in graph.input
        if given.name not in initial and given.type.tensor_type.shape.dim
    ]
    size: int = max((axis.dim_value for axis in axes), default=0)
    names: list[str] = [axis.dim_param for axis in axes if axis.dim_param]
    return size if size > 0 else [*names, "N"][0]


def _restore_output_names(graph: GraphProto, names: Mapping[str, str]) -> None:
    taken = set(value_names(graph))
    free = {name: sent for name, sent in names.items() if sent not in taken}
    if free:
        rename_values(graph, free)


def _set_metadata(model: ModelProto, entries: Mapping[str, str]) -> None:
    """Set metadata; keep the model's own entries, but not those of an earlier calibration."""
    kept = [entry for entry in model.metadata_props if not entry.key.startswith(METADATA)]
    own = {entry.key: entry.value for entry in kept}
    helper.set_model_props(model, {**own, **entries})
