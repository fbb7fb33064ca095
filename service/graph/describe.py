"""Read the interface, versions and class labels of an ONNX model, without running it."""

from ast import literal_eval
from collections.abc import Iterator, Sequence
from math import prod

from onnx import (
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)
from onnx import TensorProto as Tensor

from service.errors import InvalidOnnxModel, ModelRule
from service.graph.description import OnnxModelDescription, TensorSpec, quote
from service.graph.dynamic_scales import dynamic_operator
from service.graph.gate.external_weights import external_files
from service.graph.gate.versions import check_versions, default_opset
from service.graph.output.logits import trace
from service.graph.proto import Producers, attribute, initial_tensors, operator, producers_of

# ai.onnx.ml has two names for one thing.
LABEL_ATTRIBUTES = {
    "ai.onnx.ml.ZipMap": ("classlabels_int64s", "classlabels_strings"),
    "ai.onnx.ml.LinearClassifier": ("classlabels_ints", "classlabels_strings"),
    "ai.onnx.ml.SVMClassifier": ("classlabels_ints", "classlabels_strings"),
    "ai.onnx.ml.TreeEnsembleClassifier": ("classlabels_int64s", "classlabels_strings"),
}
LABEL_TYPES = (TensorProto.INT32, TensorProto.INT64, TensorProto.STRING)

ClassLabels = tuple[int | str, ...]


def class_labels(graph: GraphProto) -> ClassLabels | None:
    """Return the labels in the order of the score columns, or None where the graph has none.

    Only nodes that make an output directly are considered: inner classifiers, as in a
    one-against-the-rest model, have labels of their own.
    """
    producers = producers_of(graph)
    found = [
        labels
        for output in graph.output
        for node in _last_nodes(output.name, producers)
        if (labels := _labels_of(node) or _looked_up(node, producers, graph))
    ]
    return found[0] if found and all(labels == found[0] for labels in found) else None


MOST_CHARACTERS = 1_000_000  # of names in the metadata
NO_NAMES = (AttributeError, LookupError, MemoryError, RecursionError, SyntaxError, TypeError)


def names_in_metadata(model: ModelProto) -> ClassLabels | None:
    """Return the names of classes that exporters of detectors write: a dict by index, as text.

    ``names`` is written by Python, ``id2label`` in JSON.
    """
    texts = (of.value for of in model.metadata_props if of.key in ("names", "id2label"))
    try:
        named = {int(at): name for at, name in literal_eval(next(texts)[:MOST_CHARACTERS]).items()}
        names = tuple(named[index] for index in range(len(named)))
    except (*NO_NAMES, StopIteration, ValueError):
        return None
    are_texts = all(isinstance(name, str) and name for name in names)
    return names if are_texts and len({*names}) == len(names) > 0 else None


def _last_nodes(output: str, producers: Producers) -> Iterator[NodeProto]:
    for tensor in trace(output, producers):
        if (node := producers.get(tensor)) is not None:
            yield node


def _labels_of(node: NodeProto) -> ClassLabels | None:
    integers, strings = LABEL_ATTRIBUTES.get(operator(node), ("", ""))
    numbers, texts = attribute(node, integers), attribute(node, strings)
    if numbers is not None and numbers.ints:
        return tuple(numbers.ints)
    if texts is not None and texts.strings:
        return tuple(text.decode("utf-8", "replace") for text in texts.strings)
    return None


def _looked_up(node: NodeProto, producers: Producers, graph: GraphProto) -> ClassLabels | None:
    """Return the table that maps the winning column to its label, as skl2onnx writes it."""
    if operator(node) != "ai.onnx.ml.ArrayFeatureExtractor" or len(node.input) != 2:  # noqa: PLR2004 - table, index
        return None
    index = producers.get(trace(node.input[1], producers)[-1])
    if index is None or operator(index) != "ArgMax":
        return None
    for table in graph.initializer:
        embedded = table.data_location == TensorProto.DEFAULT
        if table.name == node.input[0] and embedded and table.data_type in LABEL_TYPES:
            return _values(table)
    return None


def _values(table: TensorProto) -> ClassLabels | None:
    if table.data_type == TensorProto.STRING:
        return tuple(text.decode("utf-8", "replace") for text in table.string_data)
    try:
        return tuple(int(value) for value in numpy_helper.to_array(table).ravel())
    except ValueError:  # its shape and its values disagree: ONNX Runtime will refuse the model
        return None


MAX_NAME_LENGTH = 1000
NOT_TENSORS = ("sequence", "map", "optional", "unknown")


def describe_onnx_model(model: ModelProto) -> OnnxModelDescription:
    """Describe the model, and refuse models that cannot classify rows.

    Raises
    ------
    InvalidOnnxModel
        If its versions are not supported; it has no input or no output; an input is not a tensor or
        has no axis for the samples; inputs have different fixed numbers of rows; or weights lie in
        a file without a plain name.
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
    fixed, dynamic = _fixed_batch(inputs), dynamic_operator(model)
    if dynamic is not None and fixed not in (None, 1):
        raise InvalidOnnxModel.because(
            ModelRule.ROWS_MIXED,
            f"its {dynamic} takes one scale for all {fixed} rows of its batch, so that its answer "
            "to a row changes with the rows beside it; export it with a batch of 1 or a free "
            "batch, or quantise it statically",
        )
    return OnnxModelDescription(
        inputs=inputs,
        outputs=outputs,
        opset=default_opset(model),
        ir_version=model.ir_version,
        class_labels=class_labels(graph) or names_in_metadata(model),
        external_files=external_files(model),
        fixed_batch=1 if dynamic is not None else fixed,
        one_by_one=""
        if dynamic is None or fixed == 1
        else (
            f"its {dynamic} takes one scale for a whole batch, so it runs one row at a time, and "
            "no row changes the answer to another. A model that is quantised statically is faster"
        ),
        parameters=sum(prod(tensor.dims) for tensor in initial_tensors(graph)),
    )


def output_specs(graph: GraphProto) -> tuple[TensorSpec, ...]:
    """Return the graph's outputs."""
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
                f"{quote(spec.name)}: the name of an input or output has {len(spec.name)} "
                f"characters; the maximum is {MAX_NAME_LENGTH}; shorten it",
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
            "the inputs have different numbers of rows: " + "; ".join(map(str, inputs[:10])),
        )
    return sizes.pop() if sizes else None
