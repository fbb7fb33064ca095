"""Random operators as graph inputs: what they would draw is drawn elsewhere, and fed.

So a pass draws the same for all its rows, whatever the batch, can be repeated, and runs at opsets
whose random operators ONNX Runtime has no kernel for.
"""

from collections.abc import Sequence

from onnx import GraphProto, ModelProto, NodeProto, TypeProto

from service.errors import InvalidConfig, InvalidOnnxModel
from service.graph.constants import RANDOM, varying_tensors
from service.graph.draw import KINDS, add_draw
from service.graph.edit import replace_node
from service.graph.inline import all_nodes, inline_functions
from service.graph.noise_input import add_noise_input, declare, noise_site, site_builder
from service.graph.noise_site import NoiseSite
from service.graph.quote import quote
from service.graph.tensor_types import tensor_types
from service.graph.versions import DEFAULT_DOMAINS, default_opset
from service.graph.walk import subgraphs, upstream
from service.model_rules import ModelRule


def expose_random(model: ModelProto, tensor: str) -> list[NoiseSite]:
    """Feed every random operator that the tensor depends on, in place.

    The inputs are in the order of the graph's nodes. Dropout nodes stay as they are.

    Raises
    ------
    InvalidConfig
        If there is no such operator.
    InvalidOnnxModel
        If one is a Multinomial, or stands in a branch or loop, or lacks its shape.
    """
    inline_functions(model, holding=RANDOM)
    graph = model.graph
    places = sorted(upstream(graph, [tensor]))
    _refuse_nested(graph, places)
    places = [place for place in places if _is_random(graph.node[place])]
    if not places:
        raise InvalidConfig.at(
            "config.measures",
            "ensemble_variance needs several 'model' parts, or one model whose graph draws at "
            "random: no random operator stands before its class scores",
        )
    opset = default_opset(model)
    types, varying = tensor_types(graph, opset), varying_tensors(graph)
    sites = [_site(number, graph.node[place], varying) for number, place in enumerate(places)]
    for site, place in reversed(list(zip(sites, places, strict=True))):
        _expose(graph, place, site, opset, types)
    for site in sites:
        add_noise_input(graph, site)
    return sites


def refuse_random(model: ModelProto, tensor: str) -> None:
    """Refuse a model that is to answer alike, but draws at random on the way to the tensor.

    Raises
    ------
    InvalidOnnxModel
        If it depends on a random operator.
    """
    if has_random(model, tensor):
        raise InvalidOnnxModel.because(
            ModelRule.RANDOM,
            "it draws at random, so the same rows have other answers each time; ask for "
            "ensemble_variance, which takes the mean of several runs of one such model, or export "
            "it in evaluation mode",
        )


def has_random(model: ModelProto, tensor: str) -> bool:
    """Return whether the tensor depends on a random operator, of any kind and wherever it is."""
    drawing: set[tuple[str, str]] = set()
    grown = True
    while grown:  # functions may call functions
        before = len(drawing)
        for function in model.functions:
            if _draws(function.node, drawing):
                drawing.add((function.domain, function.name))
        grown = len(drawing) > before
    nodes = [model.graph.node[place] for place in upstream(model.graph, [tensor])]
    return _draws(nodes, drawing)


def _draws(nodes: Sequence[NodeProto], functions: set[tuple[str, str]]) -> bool:
    return any(
        _is_random(node) or (node.domain, node.op_type) in functions for node in all_nodes(nodes)
    )


def _is_random(node: NodeProto) -> bool:
    return node.op_type in RANDOM and node.domain in DEFAULT_DOMAINS


def _refuse_nested(graph: GraphProto, places: Sequence[int]) -> None:
    for place in places:
        node = graph.node[place]
        for subgraph in subgraphs(node):
            for inner in all_nodes(subgraph.node):
                if _is_random(inner):
                    raise InvalidOnnxModel.because(
                        ModelRule.NOISE,
                        f"{inner.op_type} inside of {node.op_type} cannot be fed with noise; "
                        "export the model without the branch or loop around it",
                    )


def _site(number: int, node: NodeProto, varying: set[str]) -> NoiseSite:
    if node.op_type not in KINDS:
        raise InvalidOnnxModel.because(
            ModelRule.NOISE,
            f"{node.op_type}, which makes {quote(node.output[0])}, cannot be fed with noise: draw "
            "with RandomUniform or Bernoulli instead",
        )
    of_rows = len(node.input) > 0 and node.input[0] in varying
    return noise_site(number, KINDS[node.op_type], of_rows=of_rows)


def _expose(
    graph: GraphProto, place: int, site: NoiseSite, opset: int, types: dict[str, TypeProto]
) -> None:
    node = NodeProto()
    node.CopyFrom(graph.node[place])
    made = node.output[0]
    build, nodes = site_builder(opset, site)
    add_draw(build, node, site, types)
    replace_node(graph, place, nodes.node)
    declare(graph, made, types.get(made))
