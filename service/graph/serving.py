"""The graph that serves: the caller's model with the uncertainty head."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, ValueInfoProto, helper

from howsure.onnx_head.builder import PREFIX, GraphBuilder
from howsure.onnx_head.measures import HeadTensors, add_head
from howsure.statistics.learned.inputs import is_input, n_read_classes
from howsure.statistics.softmax import n_recorded_classes
from service.graph.class_scores import class_scores
from service.graph.description import NoiseSite, OutputChoice
from service.graph.gate.versions import default_opset
from service.graph.inline import inline_functions
from service.graph.measure_outputs import pass_through
from service.graph.noise.last_layer_dropout import LastLayerTensors, add_last_layer_dropout
from service.graph.output.plan import raw_scores
from service.graph.proto import keep_outputs

TOP_CLASSES = f"{PREFIX}top_classes"
TOP_SCORES = f"{PREFIX}top_scores"
SCORES = f"{PREFIX}scores"
PACKED_OUTPUT = f"{PREFIX}words"
LAST_LAYER_VARIANCE = f"{PREFIX}last_layer_dropout_variance"
LAST_LAYER_LOGS = f"{PREFIX}last_layer_log_probabilities"


def build_serving_graph(
    model: ModelProto,
    choice: OutputChoice,
    *,
    top_k: Sequence[int],
    columns: Collection[str] | None = None,
    scalars: Mapping[str, str] | None = None,
    with_scores: bool = False,
    sites: Sequence[NoiseSite] = (),
    last_layer_masks: NDArray[np.float32] | None = None,
) -> ModelProto:
    """Put the uncertainty head on the model, in place, and return it.

    The only outputs are then, in this order: ``howsure_top_classes`` int64 (n, m)
    and ``howsure_top_scores`` float32 (n, m), the softmax probabilities of the top classes,
    m as `n_recorded_classes` says; per measure ``howsure_<column>`` float32 (n,): entropy,
    neg_log_pmax, margin, energy (of logits alone) and neg_log_topk_mass_<k> for each k, and
    those of ``scalars``; with ``with_scores`` also ``howsure_scores`` (n, K) in the head's
    precision, logits or probabilities as ``choice.kind`` says; for each of ``sites`` its
    ``shape_output``; and with ``last_layer_masks`` ``howsure_last_layer_dropout_variance``
    float32 (n,) and, with ``with_scores``, ``howsure_last_layer_log_probabilities`` (n, M, K).

    Parameters
    ----------
    model
        From `load_onnx_model`, before or after `probe_graph`.
    top_k
        Distinct, each ``1 <= k < choice.n_classes``.
    columns
        The measures and the inputs of the learned measure to compute; None for all measures.
    scalars
        Outputs of the model with one number per sample, by column.
    sites
        From `expose_dropout` or `expose_random` of this model.
    last_layer_masks
        Factors of the last layer's features in each of M passes, shape (M, *features), M at least
        2.

    Raises
    ------
    InvalidConfig
        If there are masks, but no last layer.
    ValueError
        If a k is out of range.
    """
    if last_layer_masks is not None:
        inline_functions(model)
    graph = model.graph
    inputs = tuple(name for name in columns or () if is_input(name))
    build, scores, head = append_head(model, choice, top_k, inputs)

    outputs = _head_outputs(build, head, columns)
    for place, name in enumerate(inputs):
        column = build.columns(head.inputs or "", place, place + 1)
        outputs.append(_measure_output(build, column, PREFIX + name))
    passed = {PREFIX + column: name for column, name in (scalars or {}).items()}
    pass_through(build, passed)
    outputs += [_output(name, TensorProto.FLOAT, 1) for name in passed]
    if with_scores:
        build.add("Identity", scores, output=SCORES)
        outputs.append(_output(SCORES, build.element_type, 2))
    outputs += [_output(site.shape_output, TensorProto.INT64, 1) for site in sites]
    if last_layer_masks is not None:
        passes = add_last_layer_dropout(build, graph, choice, last_layer_masks)
        outputs += _last_layer_outputs(build, passes, with_scores=with_scores)
    keep_outputs(graph, outputs)
    return model


def build_packed_graph(
    model: ModelProto, choice: OutputChoice, *, top_k: Sequence[int], columns: Sequence[str]
) -> ModelProto:
    """Put the head on the model, in place, as its only output: ``howsure_words``.

    It is float32 (n, 2 m + columns): the first m classes, their scores, and ``columns`` in order,
    measures before inputs of the learned measure. float32 is exact for class indices up to 2**24.

    Raises
    ------
    ValueError
        If a k is out of range.
    """
    inputs = [name for name in columns if is_input(name)]
    build, _, head = append_head(model, choice, top_k, inputs)
    measures = [head.measures[name] for name in columns if not is_input(name)]
    if head.inputs is not None:
        measures.append(head.inputs)
    n_top = n_read_classes(choice.n_classes, columns)
    top = (head.top_classes, head.top_scores)
    if head.n_top > n_top:
        top = (build.columns(top[0], 0, n_top), build.columns(top[1], 0, n_top))
    parts = [build.add("Cast", part, to=TensorProto.FLOAT) for part in (*top, *measures)]
    build.add("Concat", *parts, axis=1, output=PACKED_OUTPUT)
    keep_outputs(model.graph, [_output(PACKED_OUTPUT, TensorProto.FLOAT, 2)])
    return model


def append_head(
    model: ModelProto, choice: OutputChoice, top_k: Sequence[int], inputs: Sequence[str] = ()
) -> tuple[GraphBuilder, str, HeadTensors]:
    """Append the head to the model, in place; return its builder, the class scores, its tensors.

    Raises
    ------
    ValueError
        If a k is out of range.
    """
    if any(not 1 <= k < choice.n_classes for k in top_k):
        raise ValueError(f"top_k must lie in [1, {choice.n_classes}), not {list(top_k)}")
    graph = model.graph
    tensor = raw_scores(graph, choice.tensor) if choice.raw else choice.tensor
    build = GraphBuilder(graph, opset=default_opset(model), precision=choice.precision)
    scores = class_scores(build, tensor, choice)
    n_top = n_recorded_classes(choice.n_classes, top_k)
    head = add_head(
        build,
        scores,
        choice.kind,
        choice.n_classes,
        threshold=choice.decision_threshold,
        n_top=n_top,
        top_k=top_k,
        inputs=inputs,
    )
    return build, scores, head


def _head_outputs(
    build: GraphBuilder, head: HeadTensors, columns: Collection[str] | None
) -> list[ValueInfoProto]:
    build.add("Identity", head.top_classes, output=TOP_CLASSES)
    build.add("Cast", head.top_scores, to=TensorProto.FLOAT, output=TOP_SCORES)
    outputs = [
        _output(TOP_CLASSES, TensorProto.INT64, 2),
        _output(TOP_SCORES, TensorProto.FLOAT, 2),
    ]
    for column, measure in head.measures.items():
        if columns is None or column in columns:
            outputs.append(_measure_output(build, measure, PREFIX + column))
    return outputs


def _last_layer_outputs(
    build: GraphBuilder, passes: LastLayerTensors, *, with_scores: bool
) -> list[ValueInfoProto]:
    outputs = [_measure_output(build, passes.variance, LAST_LAYER_VARIANCE)]
    if with_scores:
        build.add("Identity", passes.log_probabilities, output=LAST_LAYER_LOGS)
        outputs.append(_output(LAST_LAYER_LOGS, build.element_type, 3))
    return outputs


def _measure_output(build: GraphBuilder, measure: str, name: str) -> ValueInfoProto:
    narrow = build.add("Cast", measure, to=TensorProto.FLOAT)
    build.add("Reshape", narrow, build.integers([-1]), output=name)
    return _output(name, TensorProto.FLOAT, 1)


def _output(name: str, element_type: int, rank: int) -> ValueInfoProto:
    # No sizes: a model with a fixed batch keeps its own, and a wrong size would cause a warning.
    return helper.make_tensor_value_info(name, element_type, [None] * rank)
