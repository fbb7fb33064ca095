"""The nodes after the features once more, for more rows."""

from onnx import GraphProto, NodeProto

from service.graph.builder import GraphBuilder
from service.graph.constants import SmallConstants
from service.graph.last_layer import LastLayer

LARGEST_SIZE = 2**62  # of an axis: to the end, in a Slice


def copy_tail(
    build: GraphBuilder, graph: GraphProto, layer: LastLayer, *, entry: str, tensor: str, times: int
) -> str:
    """Append the last layer and what follows, reading ``entry``, and return its class scores.

    Parameters
    ----------
    entry
        What takes the place of the layer's input, with ``times`` as many rows on the first axis.
    tensor
        The scores of the model.
    """
    constants = SmallConstants(graph)
    new_names = {layer.entry: entry}
    for node in layer.tail:
        inputs = [new_names.get(name, name) for name in node.input]
        copy = NodeProto()
        copy.CopyFrom(node)
        copy.name = ""
        if node.op_type == "Reshape":
            inputs[1:] = [_more_rows(build, name, constants, times) for name in inputs[1:]]
        copy.input[:] = inputs
        copy.output[:] = [build.new_name() if name else "" for name in node.output]
        graph.node.append(copy)
        made = list(copy.output)
        if node.op_type == "Shape" and inputs[0] == node.input[0]:
            made = [_times_as_many(build, node, made[0], times)]
        new_names.update(zip(node.output, made, strict=True))
    return new_names[tensor]


def _more_rows(build: GraphBuilder, shape: str, constants: SmallConstants, times: int) -> str:
    """Return a constant shape for more rows, where it says how many there are."""
    sizes = constants.read(shape)
    if sizes is None or sizes.size == 0 or sizes[0] <= 0:
        return shape
    return build.integers([int(sizes[0]) * times, *(int(size) for size in sizes[1:])])


def _times_as_many(build: GraphBuilder, node: NodeProto, shape: str, times: int) -> str:
    """Return the shape of a tensor that is not of the tail, had it so many more rows."""
    if any(attribute.name == "start" and attribute.i for attribute in node.attribute):
        return shape  # without the axis of the rows
    bounds = (build.integers([1]), build.integers([LARGEST_SIZE]), build.integers([0]))
    first = build.add("Slice", shape, build.integers([0]), build.integers([1]), bounds[2])
    rows = build.add("Mul", first, build.integers([times]))
    return build.add("Concat", rows, build.add("Slice", shape, *bounds), axis=0)
