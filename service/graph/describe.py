"""Reading an ONNX model's interface and versions, without running it."""

from collections.abc import Sequence

from onnx import GraphProto, ModelProto, TypeProto, ValueInfoProto, helper
from onnx import TensorProto as Tensor

from service.errors import InvalidOnnxModel
from service.graph.class_labels import class_labels
from service.graph.description import OnnxModelDescription, TensorSpec
from service.graph.external import external_files
from service.graph.quote import quote
from service.graph.versions import check_versions, default_opset
from service.model_rules import ModelRule

MAX_NAME_LENGTH = 1000
NOT_TENSORS = ("sequence", "map", "optional", "unknown")


def describe_onnx_model(model: ModelProto) -> OnnxModelDescription:
    """Describe the model, and refuse what cannot be a classifier of rows.

    Raises
    ------
    InvalidOnnxModel
        If its versions cannot be served; it has no input or no output; an input is no tensor or
        has no axis for the samples; inputs insist on different numbers of rows; or a weight lies
        in a file that is not named plainly.
    """
    check_versions(model)
    graph = model.graph
    initial = {tensor.name for tensor in graph.initializer}
    initial.update(sparse.values.name for sparse in graph.sparse_initializer)
    inputs = tuple(tensor_spec(value) for value in graph.input if value.name not in initial)
    outputs = output_specs(graph)
    if not inputs:
        raise InvalidOnnxModel.because(
            ModelRule.NO_INPUT, "the graph has no input: there is nothing to feed"
        )
    if not outputs:
        raise InvalidOnnxModel.because(ModelRule.NO_OUTPUT, "the graph has no output")
    _check_names((*inputs, *outputs))
    _check_inputs(inputs)
    return OnnxModelDescription(
        inputs=inputs,
        outputs=outputs,
        opset=default_opset(model),
        ir_version=model.ir_version,
        class_labels=class_labels(graph),
        external_files=external_files(model),
        fixed_batch=_fixed_batch(inputs),
    )


def output_specs(graph: GraphProto) -> tuple[TensorSpec, ...]:
    """Return what the graph gives out."""
    return tuple(tensor_spec(value) for value in graph.output)


def tensor_spec(value: ValueInfoProto) -> TensorSpec:
    """Return name, type and shape of an input or output as declared."""
    kind = value.type.WhichOneof("value")
    if kind not in ("tensor_type", "sparse_tensor_type"):
        return TensorSpec(value.name, (kind or "unknown").removesuffix("_type"), None)
    declared = getattr(value.type, kind)
    return TensorSpec(value.name, _dtype_name(declared.elem_type), _shape(declared))


def _dtype_name(element_type: int) -> str:
    if element_type == Tensor.STRING:
        return "str"
    try:
        return helper.tensor_dtype_to_np_dtype(element_type).name
    except KeyError:
        return "unknown"


def _shape(declared: TypeProto.Tensor | TypeProto.SparseTensor) -> tuple[int | None, ...] | None:
    if not declared.HasField("shape"):
        return None
    # Some exporters write a free dimension as 0 or -1.
    return tuple(
        dimension.dim_value if dimension.dim_value > 0 else None for dimension in declared.shape.dim
    )


def _check_names(values: Sequence[TensorSpec]) -> None:
    for spec in values:
        if len(spec.name) > MAX_NAME_LENGTH:
            raise InvalidOnnxModel.because(
                ModelRule.NAMES_TOO_LONG,
                f"{quote(spec.name)}: a name of an input or output has {len(spec.name)} "
                f"characters, and may have {MAX_NAME_LENGTH}; shorten it",
            )


def _check_inputs(inputs: Sequence[TensorSpec]) -> None:
    for given in inputs:
        if given.dtype in NOT_TENSORS:
            raise InvalidOnnxModel.because(
                ModelRule.INPUT_TYPE,
                f"input {quote(given.name)} is of type {given.dtype}, not a tensor",
            )
        if given.shape == ():
            raise InvalidOnnxModel.because(
                ModelRule.INPUT_SHAPE,
                f"input {quote(given.name)} is a scalar: every input needs a first axis for the "
                "samples; make it a constant of the graph",
            )


def _fixed_batch(inputs: Sequence[TensorSpec]) -> int | None:
    sizes = {given.shape[0] for given in inputs if given.shape and given.shape[0] is not None}
    if len(sizes) > 1:
        raise InvalidOnnxModel.because(
            ModelRule.INPUT_SHAPE,
            "the inputs insist on different numbers of rows: " + "; ".join(map(str, inputs[:10])),
        )
    return sizes.pop() if sizes else None
