"""Choose the output that holds the class scores, as far as the graph alone can tell."""

from collections.abc import Sequence
from dataclasses import dataclass

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from howsure.outputs import OutputKind, Precision
from service.errors import InvalidConfig, InvalidOnnxModel, ModelRule
from service.graph.describe import output_specs
from service.graph.description import TensorSpec, quote, quote_all
from service.graph.measure_outputs import PLACE, check_declared
from service.graph.output.kinds import GraphReading, read_graph
from service.graph.output.labels import LABELS, LabelOutput, add_class_numbers, find_labels
from service.graph.output.logits import LogitsSource, find_logits, trace
from service.graph.proto import Producers, keep_outputs, operator, producers_of

FLOATS = ("float16", "bfloat16", "float32", "float64")


@dataclass(frozen=True)
class OutputPlan:
    """An output to try on real rows.

    Attributes
    ----------
    name, tensor : str
        The graph output, and the tensor that holds its scores: another one behind a ZipMap.
    source : LogitsSource or None
        Logits that probably make it.
    kind : {"logits", "probabilities"} or None
        Content of the output as declared by the caller.
    precision : {"float32", "float64"}
        float64 for a double output.
    reason : str
        Why this output, as the beginning of a sentence.
    scalars : tuple of str
        Other outputs to pass through: one number per sample.
    reading : GraphReading or None
        The content of the output, as the end of the graph says.
    labels : LabelOutput or None
        The model's own labels, to compare with the scores; not trusted if the caller named the
        output or its kind.
    """

    name: str
    tensor: str
    source: LogitsSource | None
    kind: OutputKind | None
    precision: Precision
    reason: str
    scalars: tuple[str, ...] = ()
    reading: GraphReading | None = None
    labels: LabelOutput | None = None


def plan_output(
    model: ModelProto,
    *,
    name: str | None = None,
    kind: OutputKind | None = None,
    scalars: Sequence[str] = (),
) -> OutputPlan:
    """Choose the output with the class scores.

    Parameters
    ----------
    name
        The caller's choice. Without it there must be one float output that can be
        (samples, classes), or several that carry the same scores, such as logits and their
        softmax; an output with one column counts only where no other is there.
    kind
        Content of the output as declared by the caller. For "logits" the output itself is read; for
        "probabilities" the input of a softmax may still be read, because the distribution is equal.
    scalars
        Outputs that the caller uses as measures; they are not candidates.

    Raises
    ------
    InvalidConfig
        If there is no output of that name, or it cannot hold class scores; or a scalar output is
        invalid, or is the one with the class scores.
    InvalidOnnxModel
        If no output can hold class scores, or several can.
    """
    producers = producers_of(model.graph)
    outputs = [_behind_zipmap(spec, producers) for spec in output_specs(model.graph)]
    check_declared(outputs, scalars)
    if name is None:
        chosen, reason = _only_candidate(outputs, producers, scalars)
    else:
        chosen, reason = _named(outputs, name), f"{quote(name)} was named by the caller"
    if chosen.name in scalars:
        raise _holds_scores(chosen)
    zipped = _is_zipmap(chosen.name, producers)
    tensor = producers[chosen.name].input[0] if zipped else chosen.name
    return OutputPlan(
        name=chosen.name,
        tensor=tensor,
        source=None if kind == "logits" else find_logits(tensor, producers),
        kind=kind,
        precision="float64" if chosen.dtype == "float64" else "float32",
        reason=reason,
        scalars=tuple(scalars),
        reading=read_graph(tensor, producers),
        labels=find_labels(model.graph, outputs, is_trusted=name is None and kind is None),
    )


def _is_zipmap(tensor: str, producers: Producers) -> bool:
    node = producers.get(tensor)
    return node is not None and operator(node) == "ai.onnx.ml.ZipMap" and len(node.input) == 1


def _behind_zipmap(spec: TensorSpec, producers: Producers) -> TensorSpec:
    """Return the output as float scores if a ZipMap turns them into maps."""
    if _is_zipmap(spec.name, producers):
        return TensorSpec(spec.name, "float32", (None, None))
    return spec


def _can_hold_scores(spec: TensorSpec) -> bool:
    if spec.dtype not in FLOATS:
        return False
    if spec.shape is None:
        return True
    wide = [size for size in spec.shape[1:] if size not in (None, 1)]
    return len(spec.shape) > 0 and len(wide) <= 1


def _is_single_column(spec: TensorSpec) -> bool:
    return spec.shape is not None and all(size == 1 for size in spec.shape[1:])


def _named(outputs: Sequence[TensorSpec], name: str) -> TensorSpec:
    for spec in outputs:
        if spec.name != name:
            continue
        if _can_hold_scores(spec) or spec.dtype == "unknown":
            return spec
        raise InvalidConfig.at(
            "config.output.name",
            f"output {spec} cannot hold class scores: a float tensor of shape (samples, classes) "
            "is needed",
        )
    raise InvalidConfig.at(
        "config.output.name",
        f"the model has no output {quote(name)}; it has "
        + quote_all([spec.name for spec in outputs]),
    )


def _only_candidate(
    outputs: Sequence[TensorSpec], producers: Producers, scalars: Sequence[str]
) -> tuple[TensorSpec, str]:
    able = [spec for spec in outputs if _can_hold_scores(spec)]
    if able and all(spec.name in scalars for spec in able):
        raise _holds_scores(able[0])
    able = [spec for spec in able if spec.name not in scalars]
    candidates = [spec for spec in able if not _is_single_column(spec)] or able
    if not candidates:
        raise InvalidOnnxModel.because(
            ModelRule.NO_SCORES,
            "no output can hold class scores, a float tensor of shape (samples, classes); the "
            f"outputs are: {_listed(outputs)}",
        )
    if len(candidates) == 1:
        one = candidates[0]
        return one, f"{quote(one.name)} is the only output that can hold class scores"
    if len({_scores_behind(spec.name, producers) for spec in candidates}) == 1:
        names = quote_all([spec.name for spec in candidates])
        return candidates[0], f"the outputs {names} carry the same scores"
    if all(_is_single_column(spec) for spec in candidates):
        raise InvalidOnnxModel.because(
            ModelRule.SEVERAL_SCORES,
            f"it has one output for each class: {_listed(candidates)}; export one output with a "
            'column for each class (skl2onnx: options={"zipmap": False}), or of two classes set '
            "output.name to that of class 1",
        )
    raise InvalidOnnxModel.because(
        ModelRule.SEVERAL_SCORES,
        "several outputs could hold class scores; set output.name to one of: "
        f"{_listed(candidates)}",
    )


def _listed(outputs: Sequence[TensorSpec]) -> str:
    return "; ".join(str(spec) for spec in outputs[:10])


def _holds_scores(spec: TensorSpec) -> InvalidConfig:
    return InvalidConfig.at(
        PLACE, f"output {spec} is the one read for class scores, and so no measure beside them"
    )


def _scores_behind(output: str, producers: Producers) -> str:
    source = find_logits(output, producers)
    return trace(source.tensor if source else output, producers)[-1]


OUTPUT = "howsure_output"
LOGITS = "howsure_logits"
RAW = "howsure_raw"
UNUSED = "howsure_unused"
SCALAR = "howsure_scalar_"


def probe_graph(model: ModelProto, plan: OutputPlan) -> ModelProto:
    """Make the planned tensors the outputs of the model, in place, and return it.

    The outputs are ``howsure_output``; ``howsure_logits``, if logits may have made it;
    ``howsure_labels``, if the plan has labels; and ``howsure_scalar_{i}`` for each scalar output by
    its position in the plan. All are float64, to which every type of a model can be converted.
    """
    graph = model.graph
    shown = {OUTPUT: plan.tensor}
    if plan.source is not None:
        shown[LOGITS] = (
            raw_scores(graph, plan.source.tensor) if plan.source.raw else plan.source.tensor
        )
    shown |= {f"{SCALAR}{i}": name for i, name in enumerate(plan.scalars)}
    for name, tensor in shown.items():
        graph.node.append(helper.make_node("Cast", [tensor], [name], to=TensorProto.DOUBLE))
    names = list(shown)
    if plan.labels is not None:
        add_class_numbers(model, plan.labels)
        names.append(LABELS)
    keep_outputs(
        graph, [helper.make_tensor_value_info(name, TensorProto.DOUBLE, None) for name in names]
    )
    return model


def raw_scores(graph: GraphProto, tensor: str) -> str:
    """Add, in place, a twin of the classifier that makes the tensor, and return its raw scores.

    The twin of an ``ai.onnx.ml`` classifier omits the softmax or logistic function. The original
    stays, because confirming a choice needs both, and other outputs may depend on it.
    """
    producers = producers_of(graph)
    if RAW not in producers:
        twin = NodeProto()
        twin.CopyFrom(producers[tensor])
        twin.name = ""
        twin.output[:] = [UNUSED, RAW]
        for attribute in twin.attribute:
            if attribute.name == "post_transform":
                attribute.s = b"NONE"
        graph.node.append(twin)
    return RAW
