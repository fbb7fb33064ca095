"""Inline the functions of a model."""

from collections.abc import Collection, Iterable, Iterator

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, ValueInfoProto, inliner

from howsure.onnx_head.builder import PREFIX
from howsure.onnx_head.liveness import subgraphs, used_names
from service.errors import InvalidOnnxModel, ModelRule
from service.graph.proto import DEFAULT_DOMAINS, drop, rename_values, value_names


def inline_functions(model: ModelProto, *, holding: Collection[str] | None = None) -> None:
    """Inline, in place, the functions that hold one of these standard operators, or all.

    Weights of the main graph are not copied: its constants are not passed to the inliner.

    Raises
    ------
    InvalidOnnxModel
        If a function cannot be inlined.
    """
    wanted = (
        {_key(function) for function in model.functions}
        if holding is None
        else functions_holding(model, holding)
    )
    if not wanted:
        return
    scratch = _without_weights(model)
    try:
        inlined = inliner.inline_selected_functions(scratch, sorted(wanted))
    except (RuntimeError, ValueError) as error:
        raise InvalidOnnxModel.because(
            ModelRule.FUNCTION_NOT_INLINED,
            "its functions cannot be inlined; export it without local functions, or with the "
            "model's own opset in all of them",
        ) from error
    _free_reserved_names(inlined.graph, known=set(value_names(scratch.graph)))
    drop(model.graph.node, lambda node: not _is_constant(node))
    model.graph.node.extend(inlined.graph.node)
    kept = {_key(function) for function in inlined.functions}
    drop(model.functions, lambda function: _key(function) not in kept)


def all_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """Yield the nodes and those of the graphs nested in them."""
    for node in nodes:
        yield node
        for subgraph in subgraphs(node):
            yield from all_nodes(subgraph.node)


def functions_holding(model: ModelProto, operators: Collection[str]) -> set[tuple[str, str]]:
    """Return the functions that contain an operator, directly or in a function they call."""
    found: set[tuple[str, str]] = set()
    grown = True
    while grown:
        held = {
            _key(function)
            for function in model.functions
            for node in all_nodes(function.node)
            if _is_one(node, operators) or (node.domain, node.op_type) in found
        }
        grown = held != found
        found = held
    return found


def _is_one(node: NodeProto, operators: Collection[str]) -> bool:
    return node.domain in DEFAULT_DOMAINS and node.op_type in operators


def _without_weights(model: ModelProto) -> ModelProto:
    """Return a model of all nodes except constants; other values are its inputs, without types."""
    scratch = ModelProto(ir_version=model.ir_version)
    scratch.opset_import.extend(model.opset_import)
    scratch.functions.extend(model.functions)
    scratch.graph.node.extend(node for node in model.graph.node if not _is_constant(node))
    made = {name for node in scratch.graph.node for name in node.output}
    read = {name for node in scratch.graph.node for name in used_names(node)}
    # The inliner creates names, so it has to know the existing ones.
    taken = sorted((set(value_names(model.graph)) | read) - made - {""})
    scratch.graph.input.extend(ValueInfoProto(name=name) for name in taken)
    scratch.graph.output.extend(model.graph.output)
    return scratch


def _is_constant(node: NodeProto) -> bool:
    return _is_one(node, ("Constant",))


def _free_reserved_names(graph: GraphProto, *, known: set[str]) -> None:
    """Rename the values of functions that use our reserved prefix."""
    taken = sorted(name for name in value_names(graph) if name.startswith(PREFIX))
    rename_values(graph, {name: f"{PREFIX}inlined_{name}" for name in taken if name not in known})


def _key(function: FunctionProto) -> tuple[str, str]:
    return function.domain, function.name
