"""Replace random nodes by graph inputs."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, helper

from howsure.onnx_head.builder import PREFIX, GraphBuilder
from howsure.onnx_head.liveness import subgraphs, upstream
from service.errors import InvalidOnnxModel, ModelRule
from service.graph.analysis import tensor_types
from service.graph.description import NoiseKind, NoiseSite
from service.graph.gate.versions import default_opset
from service.graph.inline import all_nodes, inline_functions
from service.graph.proto import NOISE_PREFIX, replace_node

CAST_LIKE_SINCE = 15

# Appends the nodes that replace one, and returns the type of its first output if known.
AddNodes: TypeAlias = Callable[
    [GraphBuilder, NodeProto, NoiseSite, Mapping[str, TypeProto]], TypeProto | None
]


def noisy_places(
    model: ModelProto,
    tensor: str,
    *,
    holding: Collection[str],
    is_noisy: Callable[[NodeProto], bool],
    nested: Callable[[NodeProto, NodeProto], str],
) -> list[int]:
    """Return the indices of the noisy nodes that the tensor depends on, ascending.

    Functions that contain one of the operators are inlined, in place.

    Raises
    ------
    InvalidOnnxModel
        If such a node is in a branch or loop: ``nested(inner, outer)`` is the message.
    """
    inline_functions(model, holding=holding)
    nodes = model.graph.node
    places = sorted(upstream(model.graph, [tensor]))
    for place in places:
        for subgraph in subgraphs(nodes[place]):
            for inner in all_nodes(subgraph.node):
                if is_noisy(inner):
                    raise InvalidOnnxModel.because(ModelRule.NOISE, nested(inner, nodes[place]))
    return [place for place in places if is_noisy(nodes[place])]


def feed_noise(
    model: ModelProto, places: Sequence[int], sites: Sequence[NoiseSite], add_nodes: AddNodes
) -> None:
    """Replace the noisy nodes, in place, by nodes that read the inputs of the sites."""
    graph, opset = model.graph, default_opset(model)
    types = tensor_types(graph, opset)
    for site, place in reversed(list(zip(sites, places, strict=True))):
        node = NodeProto()
        node.CopyFrom(graph.node[place])
        build, nodes = _site_builder(opset, site)
        known = add_nodes(build, node, site, types)
        replace_node(graph, place, nodes.node)
        _declare(graph, node.output[0], known)
    for site in sites:
        graph.input.append(helper.make_tensor_value_info(site.name, TensorProto.FLOAT, None))


def noise_site(
    number: int, kind: NoiseKind, *, rate: float = 0.0, depends_on_rows: bool = True
) -> NoiseSite:
    """Return the site with this number, and its names."""
    name = f"{NOISE_PREFIX}{number}"
    return NoiseSite(
        name, kind, rate, f"{PREFIX}noise_shape_{number}", depends_on_rows=depends_on_rows
    )


def _site_builder(opset: int, site: NoiseSite) -> tuple[GraphBuilder, GraphProto]:
    """Return a builder for the site's nodes, and the graph that collects them."""
    nodes = GraphProto()
    stem = f"{site.name.removeprefix(PREFIX)}_"
    return GraphBuilder(nodes, opset=opset, precision="float32", stem=stem), nodes


def cast_like(build: GraphBuilder, values: str, like: str, known: TypeProto | None) -> str:
    """Return float32 values in the type of another tensor, if that is known."""
    if known is not None:
        element_type = known.tensor_type.elem_type
        if element_type == TensorProto.FLOAT:
            return values
        return build.add("Cast", values, to=element_type)
    if build.opset >= CAST_LIKE_SINCE:
        return build.add("CastLike", values, like)
    return values


def _declare(graph: GraphProto, name: str, known: TypeProto | None) -> None:
    """Declare the type and fixed sizes of a tensor, in place, which inference may not find.

    ONNX Runtime fuses MatMul and Add only if it knows the rank, and the fused node rounds
    differently. Without the declaration the result could differ from the caller's model in the last
    bit.
    """
    noted = {value.name for value in (*graph.value_info, *graph.output)}
    if known is None or name in noted:
        return
    value = graph.value_info.add(name=name)
    value.type.CopyFrom(known)
    for dimension in value.type.tensor_type.shape.dim:
        dimension.ClearField("dim_param")
