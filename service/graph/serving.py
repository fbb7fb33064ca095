"""The graph that serves: the caller's model with the uncertainty head."""

from collections.abc import Mapping, Sequence

from onnx import ModelProto, TensorProto, ValueInfoProto, helper

from service.graph.builder import GraphBuilder
from service.graph.class_scores import class_scores
from service.graph.edit import keep_outputs
from service.graph.head import add_head
from service.graph.names import PREFIX
from service.graph.noise_site import NoiseSite
from service.graph.output import OutputChoice
from service.graph.probe import raw_scores
from service.graph.scalars import pass_through
from service.graph.versions import default_opset

TOP_CLASSES = f"{PREFIX}top_classes"
TOP_SCORES = f"{PREFIX}top_scores"
SCORES = f"{PREFIX}scores"
LEAST_TOP = 5


def build_serving_graph(
    model: ModelProto,
    choice: OutputChoice,
    *,
    top_k: Sequence[int],
    scalars: Mapping[str, str] | None = None,
    with_scores: bool = False,
    sites: Sequence[NoiseSite] = (),
) -> ModelProto:
    """Put the uncertainty head on the model, in place, and return it.

    The outputs become, and are nothing but, in this order: ``howsure_top_classes`` int64 (n, m)
    and ``howsure_top_scores`` float32 (n, m), the softmax probabilities of the top classes,
    m = min(K, max(5, *top_k)); per measure ``howsure_<column>`` float32 (n,): entropy,
    neg_log_pmax, margin, energy (of logits alone) and neg_log_topk_mass_<k> for each k, and
    those of ``scalars``; with ``with_scores`` also ``howsure_scores`` (n, K) in the head's
    precision, logits or probabilities as ``choice.kind`` says; and for each of ``sites`` its
    ``shape_output``.

    Parameters
    ----------
    model
        From `load_onnx_model`, before or after `probe_graph`.
    top_k
        Distinct, each ``1 <= k < choice.n_classes``.
    scalars
        Outputs of the model with one number a sample, by column.
    sites
        What `expose_dropout` or `expose_random` made of this model.

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
    n_top = min(choice.n_classes, max((LEAST_TOP, *top_k)))
    head = add_head(build, scores, choice.kind, n_top=n_top, top_k=top_k)

    outputs = [
        _output(TOP_CLASSES, TensorProto.INT64, 2),
        _output(TOP_SCORES, TensorProto.FLOAT, 2),
    ]
    build.add("Identity", head.top_classes, output=TOP_CLASSES)
    build.add("Cast", head.top_scores, to=TensorProto.FLOAT, output=TOP_SCORES)
    for column, measure in head.measures.items():
        narrow = build.add("Cast", measure, to=TensorProto.FLOAT)
        build.add("Reshape", narrow, build.integers([-1]), output=PREFIX + column)
        outputs.append(_output(PREFIX + column, TensorProto.FLOAT, 1))
    passed = {PREFIX + column: name for column, name in (scalars or {}).items()}
    pass_through(build, passed)
    outputs += [_output(name, TensorProto.FLOAT, 1) for name in passed]
    if with_scores:
        build.add("Identity", scores, output=SCORES)
        outputs.append(_output(SCORES, build.element_type, 2))
    outputs += [_output(site.shape_output, TensorProto.INT64, 1) for site in sites]
    keep_outputs(graph, outputs)
    return model


def _output(name: str, element_type: int, rank: int) -> ValueInfoProto:
    # No sizes: a model of fixed batch keeps its own, and a wrong one would only warn.
    return helper.make_tensor_value_info(name, element_type, [None] * rank)
