"""Dropout nodes as graph inputs: their masks are drawn elsewhere, and fed.

ONNX Runtime deletes Dropout nodes in silence, and where it keeps them its generator runs through
a lattice. A product with a fed mask is neither deleted nor drawn badly, and with ones for a mask
it is the model itself.
"""

from onnx import GraphProto, ModelProto, NodeProto, TypeProto

from service.errors import InvalidConfig, InvalidOnnxModel
from service.graph.constants import RANDOM, SmallConstants, varying_tensors
from service.graph.dropout_rate import dropout_rate
from service.graph.edit import replace_node
from service.graph.inline import all_nodes, inline_functions
from service.graph.noise_input import add_noise_input, cast_like, declare, noise_site, site_builder
from service.graph.noise_site import NoiseSite
from service.graph.quote import quote
from service.graph.tensor_types import tensor_types
from service.graph.versions import DEFAULT_DOMAINS, default_opset
from service.graph.walk import subgraphs, upstream
from service.model_rules import ModelRule

DROPOUT = "Dropout"
# ONNX Runtime's mask of a Dropout that drops nothing: all true since, all false before.
MASK_IS_TRUE_SINCE = 12


def expose_dropout(model: ModelProto, tensor: str, *, rate: float | None) -> list[NoiseSite]:
    """Make every Dropout node that the tensor depends on a product with a mask, in place.

    The masks are inputs of the graph, in the order of its nodes. Fed with ones, the graph is the
    model as ONNX Runtime runs it, which leaves Dropout out.

    Parameters
    ----------
    rate
        Share to drop, in place of the nodes' own ratios.

    Raises
    ------
    InvalidConfig
        If there is no such node, or none that drops anything.
    InvalidOnnxModel
        If one stands in a branch or loop, or its ratio is no constant, or none in [0, 1).
    """
    inline_functions(model, holding=(DROPOUT,))
    graph = model.graph
    places = sorted(upstream(graph, [tensor]))
    _refuse_nested(graph, places)
    places = [place for place in places if is_dropout(graph.node[place])]
    rates = _rates(graph, places, rate)
    if not any(rates):
        operators = {graph.node[place].op_type for place in upstream(graph, [tensor])}
        raise _nothing_dropped(found=bool(places), draws=bool(operators & RANDOM))
    opset = default_opset(model)
    types, varying = tensor_types(graph, opset), varying_tensors(graph)
    sites = [
        noise_site(number, "keep", rate=own, of_rows=graph.node[place].input[0] in varying)
        for number, (place, own) in enumerate(zip(places, rates, strict=True))
    ]
    for site, place in reversed(list(zip(sites, places, strict=True))):
        _expose(graph, place, site, opset, types)
    for site in sites:
        add_noise_input(graph, site)
    return sites


def is_dropout(node: NodeProto) -> bool:
    """Return whether the node is a Dropout with something to drop from."""
    return node.op_type == DROPOUT and node.domain in DEFAULT_DOMAINS and len(node.input) > 0


def _expose(
    graph: GraphProto, place: int, site: NoiseSite, opset: int, types: dict[str, TypeProto]
) -> None:
    node = graph.node[place]
    given, made = node.input[0], list(node.output)
    known = types.get(given)
    build, nodes = site_builder(opset, site)
    mask = cast_like(build, site.name, given, known)
    build.add("Mul", given, mask, output=made[0])
    shape = build.add("Shape", given, output=site.shape_output)
    if len(made) > 1 and made[1]:  # the mask as an output: what is kept
        least = 0 if opset >= MASK_IS_TRUE_SINCE else 1
        kept = build.add("Greater", site.name, build.number(least))
        build.add("Expand", kept, shape, output=made[1])
    replace_node(graph, place, nodes.node)
    declare(graph, made[0], known)


def _rates(graph: GraphProto, places: list[int], rate: float | None) -> list[float]:
    if rate is not None:
        return [rate] * len(places)
    constants = SmallConstants(graph)
    rates = []
    for place in places:
        node = graph.node[place]
        own = dropout_rate(node, constants)
        if own is None:
            raise InvalidOnnxModel.because(
                ModelRule.NOISE,
                f"the ratio of the Dropout node that makes {quote(node.output[0])} is computed or "
                "fed, not a constant of the file; set dropout.rate",
            )
        rates.append(own)
    return rates


def _refuse_nested(graph: GraphProto, places: list[int]) -> None:
    for place in places:
        node = graph.node[place]
        if any(is_dropout(inner) for sub in subgraphs(node) for inner in all_nodes(sub.node)):
            raise InvalidOnnxModel.because(
                ModelRule.NOISE,
                f"a Dropout node inside of {node.op_type} cannot be fed with a mask; export the "
                "model without the branch or loop around it, or use last_layer_dropout_variance",
            )


def _nothing_dropped(*, found: bool, draws: bool) -> InvalidConfig:
    if found:
        return InvalidConfig.at(
            "config.measures",
            "dropout_variance: every Dropout node of the model has the ratio 0; set dropout.rate",
        )
    other = ", or ensemble_variance for its random operators" if draws else ""
    return InvalidConfig.at(
        "config.measures",
        "dropout_variance: no Dropout node stands before the model's class scores (exporters "
        "leave them out of a model in evaluation mode); export it in training mode, or use "
        f"last_layer_dropout_variance{other}",
    )
