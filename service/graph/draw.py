"""What a random operator draws, made from standard noise that is fed."""

from collections.abc import Mapping

from onnx import AttributeProto, NodeProto, TensorProto, TypeProto

from service.errors import InvalidOnnxModel
from service.graph.builder import GraphBuilder
from service.graph.noise_input import cast_like
from service.graph.noise_site import NoiseKind, NoiseSite
from service.model_rules import ModelRule

KINDS: Mapping[str, NoiseKind] = {
    "RandomNormal": "normal",
    "RandomNormalLike": "normal",
    "RandomUniform": "uniform",
    "RandomUniformLike": "uniform",
    "Bernoulli": "uniform",
}
WITHOUT_INPUT = frozenset(("RandomNormal", "RandomUniform"))


def add_draw(
    build: GraphBuilder, node: NodeProto, site: NoiseSite, types: Mapping[str, TypeProto]
) -> None:
    """Append nodes that give what the node would, from the site's noise, under the same name.

    Raises
    ------
    InvalidOnnxModel
        If the node lacks its shape, or the tensor it is to have that of.
    """
    shape = _shape(build, node, site)
    # A Reshape takes (1,) to a scalar's shape (), which no broadcast does.
    noise = build.add("Reshape", build.add("Expand", site.name, shape), shape)
    drawn = _drawn(build, node, noise)
    build.add("Identity", _typed(build, node, drawn, types), output=node.output[0])


def _shape(build: GraphBuilder, node: NodeProto, site: NoiseSite) -> str:
    if node.input:
        return build.add("Shape", node.input[0], output=site.shape_output)
    sizes = _attribute(node, "shape")
    if sizes is None or node.op_type not in WITHOUT_INPUT:
        raise InvalidOnnxModel.because(ModelRule.NOISE, f"a {node.op_type} node says no shape")
    return build.add("Identity", build.integers(sizes.ints), output=site.shape_output)


def _drawn(build: GraphBuilder, node: NodeProto, noise: str) -> str:
    if node.op_type == "Bernoulli":
        chance = build.add("Cast", node.input[0], to=TensorProto.FLOAT)
        return build.add("Cast", build.add("Less", noise, chance), to=TensorProto.FLOAT)
    if KINDS[node.op_type] == "normal":
        start, scale = _number(node, "mean", 0.0), _number(node, "scale", 1.0)
    else:
        start = _number(node, "low", 0.0)
        scale = _number(node, "high", 1.0) - start
    scaled = build.add("Mul", noise, build.number(scale)) if scale != 1.0 else noise
    return build.add("Add", scaled, build.number(start)) if start != 0.0 else scaled


def _typed(build: GraphBuilder, node: NodeProto, drawn: str, types: Mapping[str, TypeProto]) -> str:
    """Return the draw in the type that is asked for, or else in that of the node's input."""
    wanted = _attribute(node, "dtype")
    if wanted is not None:
        return build.add("Cast", drawn, to=wanted.i)
    if not node.input:
        return drawn
    return cast_like(build, drawn, node.input[0], types.get(node.input[0]))


def _number(node: NodeProto, name: str, default: float) -> float:
    found = _attribute(node, name)
    return default if found is None else found.f


def _attribute(node: NodeProto, name: str) -> AttributeProto | None:
    return next((attribute for attribute in node.attribute if attribute.name == name), None)
