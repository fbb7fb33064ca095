"""Small models that draw at random or may be made to, and the same networks in numpy."""

import numpy as np
from graph_models import constant, make_model, node, run_session, value
from onnx import TensorProto, helper
from scipy.special import log_softmax

from service.graph.description import OutputChoice
from service.graph.load import load_onnx_model
from service.graph.proto import PREFIX
from service.graph.serving import build_serving_graph

N_INPUTS, N_HIDDEN, N_CLASSES = 6, 8, 5
RATIO_IS_INPUT_SINCE = 12

_rng = np.random.default_rng(20)
WEIGHTS = [
    _rng.normal(size=shape).astype(np.float32)
    for shape in ((N_INPUTS, N_HIDDEN), (N_HIDDEN, N_HIDDEN), (N_HIDDEN, N_CLASSES))
]
BIASES = [_rng.normal(size=weight.shape[1]).astype(np.float32) for weight in WEIGHTS]
ROWS = _rng.normal(size=(7, N_INPUTS)).astype(np.float32)


def dropout(given, made, ratio, *, opset=17, outputs=1, training=False):
    """Return nodes that drop as this opset writes it; no ratio is the default's one half."""
    names = [made, f"{made}_mask"][:outputs]
    if opset < RATIO_IS_INPUT_SINCE:
        attributes = {} if ratio is None else {"ratio": ratio}
        return [node("Dropout", [given], names, **attributes)]
    inputs, nodes = [given], []
    if ratio is not None or training:
        inputs.append("" if ratio is None else f"{made}_ratio")
    if ratio is not None:
        ratio = helper.make_tensor("r", TensorProto.FLOAT, [], [ratio])
        nodes.append(node("Constant", [], [f"{made}_ratio"], value=ratio))
    if training:
        on = helper.make_tensor("t", TensorProto.BOOL, [], [True])
        nodes.append(node("Constant", [], [f"{made}_training"], value=on))
        inputs.append(f"{made}_training")
    return [*nodes, node("Dropout", inputs, names)]


def dense(number, given, made):
    """Return a MatMul and an Add, which ONNX Runtime joins where it knows the rank."""
    return [
        node("MatMul", [given, f"w{number}"], [f"{made}_product"]),
        node("Add", [f"{made}_product", f"b{number}"], [made]),
    ]


def network(middle=(), last=(), *, dtype=np.float32, element_type=TensorProto.FLOAT, **others):
    """Return two hidden layers of rectified units, with nodes from h0 to d0 and from h1 to d1.

    Without nodes in between the layers read h0 and h1.
    """
    nodes = [
        *dense(0, "x", "z0"),
        node("Relu", ["z0"], ["h0"]),
        *middle,
        *dense(1, "d0" if middle else "h0", "z1"),
        node("Relu", ["z1"], ["h1"]),
        *last,
        *dense(2, "d1" if last else "h1", "y"),
    ]
    weights = [constant(f"w{i}", weight, dtype) for i, weight in enumerate(WEIGHTS)]
    biases = [constant(f"b{i}", bias, dtype) for i, bias in enumerate(BIASES)]
    ends = {
        "inputs": [value("x", ("N", N_INPUTS), element_type)],
        "outputs": [value("y", ("N", N_CLASSES), element_type)],
    }
    initializers = [*weights, *biases, *others.pop("initializers", ())]
    return make_model(nodes, initializers=initializers, **(ends | others))


def network_logits(rows, first=1.0, second=1.0):
    """Return the network's logits in float64, hidden units multiplied by these masks."""
    hidden = np.maximum(rows.astype(np.float64) @ WEIGHTS[0] + BIASES[0], 0) * first
    hidden = np.maximum(hidden @ WEIGHTS[1] + BIASES[1], 0) * second
    return hidden @ WEIGHTS[2] + BIASES[2]


def last_hidden(rows):
    """Return what the network's last layer sees, in float64."""
    hidden = np.maximum(rows.astype(np.float64) @ WEIGHTS[0] + BIASES[0], 0)
    return np.maximum(hidden @ WEIGHTS[1] + BIASES[1], 0)


def logits_choice(n_classes=N_CLASSES, tensor="y", **others):
    return OutputChoice("y", "logits", tensor, "a test", n_classes=n_classes, **others)


def load(model):
    return load_onnx_model(model.SerializeToString())


def quiet(sites):
    return {site.name: np.full(1, site.quiet, dtype=np.float32) for site in sites}


def run_sites(model, sites, feeds, *, choice=None):
    """Return what a model whose noise is exposed gives, without our prefix, and its graph."""
    choice = choice or logits_choice()
    graph = build_serving_graph(model, choice, top_k=(1,), with_scores=True, sites=sites)
    outputs = run_session(graph, feeds)
    return {name.removeprefix(PREFIX): array for name, array in outputs.items()}


def spread_of(logits):
    """Return the 2-norm of the passes' covariance, by singular values; logits (n, M, K)."""
    probabilities = np.exp(log_softmax(np.asarray(logits, dtype=np.float64), axis=2))
    deviations = probabilities - probabilities.mean(axis=1, keepdims=True)
    largest = np.linalg.svd(deviations, compute_uv=False)[:, 0]
    return largest**2 / (logits.shape[1] - 1)
