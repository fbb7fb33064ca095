"""Replace the draws of random operators by graph inputs."""

from collections.abc import Mapping

from onnx import ModelProto, NodeProto, TensorProto, TypeProto

from howsure.onnx_head.builder import GraphBuilder
from howsure.onnx_head.liveness import upstream
from service.errors import InvalidConfig, InvalidOnnxModel, ModelRule
from service.graph.analysis import RANDOM, varying_tensors
from service.graph.description import NoiseKind, NoiseSite, quote
from service.graph.inline import all_nodes, functions_holding
from service.graph.noise.dropout import has_active_dropout
from service.graph.noise.inputs import cast_like, feed_noise, noise_site, noisy_places
from service.graph.proto import DEFAULT_DOMAINS, attribute

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
) -> TypeProto | None:
    """Append nodes that compute the node's output from the site's noise, with the same name.

    Return the type of the output, if known.

    Raises
    ------
    InvalidOnnxModel
        If the node has neither a shape nor a tensor that gives it.
    """
    shape = _shape(build, node, site)
    # Reshape turns (1,) into the shape () of a scalar, which broadcasting cannot.
    noise = build.add("Reshape", build.add("Expand", site.name, shape), shape)
    drawn = _drawn(build, node, noise)
    build.add("Identity", _typed(build, node, drawn, types), output=node.output[0])
    return types.get(node.output[0])


def _shape(build: GraphBuilder, node: NodeProto, site: NoiseSite) -> str:
    if node.input:
        return build.add("Shape", node.input[0], output=site.shape_output)
    sizes = attribute(node, "shape")
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
    """Return the draw in the declared type, or otherwise in that of the node's input."""
    wanted = attribute(node, "dtype")
    if wanted is not None:
        return build.add("Cast", drawn, to=wanted.i)
    if not node.input:
        return drawn
    return cast_like(build, drawn, node.input[0], types.get(node.input[0]))


def _number(node: NodeProto, name: str, default: float) -> float:
    found = attribute(node, name)
    return default if found is None else found.f


def expose_random(model: ModelProto, tensor: str) -> list[NoiseSite]:
    """Replace every random operator that the tensor depends on by an input, in place.

    The inputs are in the order of the graph's nodes. Dropout nodes are unchanged.

    Raises
    ------
    InvalidConfig
        If there is no such operator.
    InvalidOnnxModel
        If one is a Multinomial, is in a branch or loop, or has no shape.
    """
    places = noisy_places(
        model, tensor, holding=RANDOM, is_noisy=_is_random, nested=_nested_message
    )
    if not places:
        raise InvalidConfig.at(
            "config.measures",
            "ensemble_variance needs several 'model' parts, or one model whose graph draws at "
            "random: no random operator stands before its class scores",
        )
    nodes, varying = model.graph.node, varying_tensors(model.graph)
    sites = [_site(number, nodes[place], varying) for number, place in enumerate(places)]
    feed_noise(model, places, sites, add_draw)
    return sites


def refuse_random(model: ModelProto, tensor: str, *, is_masked: bool = False) -> None:
    """Refuse a model whose tensor is random, where a deterministic model is required.

    ``is_masked`` says that masks will replace its Dropout nodes.

    Raises
    ------
    InvalidOnnxModel
        If it depends on a random operator, or a Dropout that is active.
    """
    if not is_masked and has_active_dropout(model, tensor):
        raise InvalidOnnxModel.because(
            ModelRule.RANDOM,
            "it ends in a Dropout in training mode, so in ONNX Runtime the file drops at random "
            "and its output for the same rows changes; export it in evaluation mode (PyTorch: "
            "model.eval()), or ask for dropout_variance, which is for such files",
        )
    if has_random(model, tensor):
        raise InvalidOnnxModel.because(
            ModelRule.RANDOM,
            "it draws at random, so its output for the same rows changes; ask for "
            "ensemble_variance, which takes the mean of several runs of such a model, or export it "
            "in evaluation mode",
        )


def has_random(model: ModelProto, tensor: str) -> bool:
    """Return whether the tensor depends on a random operator, including nested ones."""
    drawing = functions_holding(model, RANDOM)
    nodes = (model.graph.node[place] for place in upstream(model.graph, [tensor]))
    return any(
        _is_random(node) or (node.domain, node.op_type) in drawing for node in all_nodes(nodes)
    )


def _is_random(node: NodeProto) -> bool:
    return node.op_type in RANDOM and node.domain in DEFAULT_DOMAINS


def _nested_message(inner: NodeProto, outer: NodeProto) -> str:
    return (
        f"{inner.op_type} inside of {outer.op_type} cannot be fed with noise; export the model "
        "without the branch or loop around it"
    )


def _site(number: int, node: NodeProto, varying: set[str]) -> NoiseSite:
    if node.op_type not in KINDS:
        raise InvalidOnnxModel.because(
            ModelRule.NOISE,
            f"{node.op_type}, which makes {quote(node.output[0])}, cannot be fed with noise: draw "
            "with RandomUniform or Bernoulli instead",
        )
    depends_on_rows = len(node.input) > 0 and node.input[0] in varying
    return noise_site(number, KINDS[node.op_type], depends_on_rows=depends_on_rows)
