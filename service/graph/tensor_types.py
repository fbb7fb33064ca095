"""The types of a graph's tensors, as ONNX's own rules tell them, without looking at weights."""

from collections.abc import Iterator

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, helper, shape_inference

from service.graph.versions import DEFAULT_DOMAINS, MAX_IR_VERSION

SMALL_VALUES = 64  # of a shape, say: what a Reshape gives depends on them


def tensor_types(graph: GraphProto, opset: int) -> dict[str, TypeProto]:
    """Return the types that can be told: those behind operators of other domains may be missing.

    Weights are left out of the copy that is looked at; their types and shapes stand for them.
    """
    model = ModelProto(ir_version=MAX_IR_VERSION)
    domains = {node.domain for node in graph.node if node.domain not in DEFAULT_DOMAINS}
    model.opset_import.append(helper.make_opsetid("", opset))
    model.opset_import.extend(helper.make_opsetid(domain, 1) for domain in sorted(domains))
    _copy_without_weights(graph, model.graph)
    try:
        seen = shape_inference.infer_shapes(model, data_prop=True).graph
    except (RuntimeError, ValueError):  # whatever is wrong, ONNX Runtime will say it better
        return {}
    values = (*seen.input, *seen.value_info, *seen.output)
    return {value.name: value.type for value in values if value.type.tensor_type.elem_type}


def _copy_without_weights(graph: GraphProto, copy: GraphProto) -> None:
    copy.input.extend(graph.input)
    copy.value_info.extend(graph.value_info)
    copy.output.extend(graph.output)
    given = {value.name for value in graph.input}
    for name, tensor in _weights(graph):
        if tensor.data_location != TensorProto.EXTERNAL and _count(tensor) <= SMALL_VALUES:
            small = copy.initializer.add()
            small.CopyFrom(tensor)
            small.name = name
        elif name not in given:
            kind, shape = tensor.data_type, list(tensor.dims)
            copy.input.append(helper.make_tensor_value_info(name, kind, shape))
    copy.node.extend(node for node in graph.node if _constant_value(node) is None)


def _weights(graph: GraphProto) -> Iterator[tuple[str, TensorProto]]:
    for tensor in graph.initializer:
        yield tensor.name, tensor
    for node in graph.node:
        value = _constant_value(node)
        if value is not None:
            yield node.output[0], value


def _constant_value(node: NodeProto) -> TensorProto | None:
    if node.op_type == "Constant" and node.domain in DEFAULT_DOMAINS and len(node.output) == 1:
        for attribute in node.attribute:
            if attribute.name == "value" and attribute.HasField("t"):
                value: TensorProto = attribute.t
                return value
    return None


def _count(tensor: TensorProto) -> int:
    count = 1
    for size in tensor.dims:
        count *= max(size, 0)
    return count
