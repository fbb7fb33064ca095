"""The class labels that classifier nodes carry."""

from collections.abc import Iterator

from onnx import GraphProto, NodeProto, TensorProto, numpy_helper

from service.graph.softmax import Producers, operator, producers_of, trace

# ai.onnx.ml has two names for one thing.
LABEL_ATTRIBUTES = {
    "ai.onnx.ml.ZipMap": ("classlabels_int64s", "classlabels_strings"),
    "ai.onnx.ml.LinearClassifier": ("classlabels_ints", "classlabels_strings"),
    "ai.onnx.ml.SVMClassifier": ("classlabels_ints", "classlabels_strings"),
    "ai.onnx.ml.TreeEnsembleClassifier": ("classlabels_int64s", "classlabels_strings"),
}
LABEL_TYPES = (TensorProto.INT32, TensorProto.INT64, TensorProto.STRING)

ClassLabels = tuple[int, ...] | tuple[str, ...]


def class_labels(graph: GraphProto) -> ClassLabels | None:
    """Return the labels in the order of the score columns, or None where the graph has none.

    Only nodes that an output comes from directly are asked: classifiers further in, as in a
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


def _last_nodes(output: str, producers: Producers) -> Iterator[NodeProto]:
    for tensor in trace(output, producers):
        if (node := producers.get(tensor)) is not None:
            yield node


def _labels_of(node: NodeProto) -> ClassLabels | None:
    integers, strings = LABEL_ATTRIBUTES.get(operator(node), ("", ""))
    for attribute in node.attribute:
        if attribute.name == integers and attribute.ints:
            return tuple(attribute.ints)
        if attribute.name == strings and attribute.strings:
            return tuple(text.decode("utf-8", "replace") for text in attribute.strings)
    return None


def _looked_up(node: NodeProto, producers: Producers, graph: GraphProto) -> ClassLabels | None:
    """Return the table from which the winning column's label is taken, as skl2onnx writes it."""
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
