"""Putting a graph input in the place of what would be drawn at random."""

from onnx import GraphProto, TensorProto, TypeProto, helper

from service.graph.builder import GraphBuilder
from service.graph.names import PREFIX
from service.graph.noise_site import NoiseKind, NoiseSite

CAST_LIKE_SINCE = 15


def noise_site(
    number: int, kind: NoiseKind, *, rate: float = 0.0, of_rows: bool = True
) -> NoiseSite:
    """Return the site of this number, with the names that belong to it."""
    name = f"{PREFIX}noise_{number}"
    return NoiseSite(name, kind, rate, f"{PREFIX}noise_shape_{number}", of_rows=of_rows)


def is_noise(name: str) -> bool:
    """Return whether a graph input is that of a site."""
    return name.startswith(f"{PREFIX}noise_")


def add_noise_input(graph: GraphProto, site: NoiseSite) -> None:
    """Declare the site's input, in place."""
    graph.input.append(helper.make_tensor_value_info(site.name, TensorProto.FLOAT, None))


def site_builder(opset: int, site: NoiseSite) -> tuple[GraphBuilder, GraphProto]:
    """Return a graph to gather the site's nodes in, and its builder."""
    nodes = GraphProto()
    stem = f"{site.name.removeprefix(PREFIX)}_"
    return GraphBuilder(nodes, opset=opset, precision="float32", stem=stem), nodes


def cast_like(build: GraphBuilder, values: str, like: str, known: TypeProto | None) -> str:
    """Return float32 values in the type of another tensor, as far as it can be known."""
    if known is not None:
        element_type = known.tensor_type.elem_type
        if element_type == TensorProto.FLOAT:
            return values
        return build.add("Cast", values, to=element_type)
    if build.opset >= CAST_LIKE_SINCE:
        return build.add("CastLike", values, like)
    return values


def declare(graph: GraphProto, name: str, known: TypeProto | None) -> None:
    """Note the type and fixed sizes of a tensor, in place, which nodes before it hide.

    ONNX Runtime joins MatMul and Add only where it knows the rank, and the joined node rounds
    differently: without a note the base would differ from the caller's model in the last bit.
    """
    noted = {value.name for value in (*graph.value_info, *graph.output)}
    if known is None or name in noted:
        return
    value = graph.value_info.add(name=name)
    value.type.CopyFrom(known)
    for dimension in value.type.tensor_type.shape.dim:
        dimension.ClearField("dim_param")
