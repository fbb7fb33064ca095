"""Small ONNX graphs: plain, with external weights, with noise."""

import json
from dataclasses import asdict, dataclass

import msgspec
import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper, parser
from scipy.special import log_softmax, logsumexp

from service.graph.describe import describe_onnx_model
from service.graph.description import OnnxModelDescription, OutputChoice
from service.graph.load import load_onnx_model
from service.graph.output.choose import choose_output
from service.graph.output.plan import plan_output, probe_graph
from service.graph.proto import PREFIX
from service.graph.serving import build_serving_graph

OPSETS = (11, 12, 13, 17, 18, 21, 23, 26)
QUICK_OPSETS = (15, 17)
FLOAT = TensorProto.FLOAT
MEASURES = ("entropy", "neg_log_pmax", "margin", "neg_log_topk_mass_5")


def opsets(*versions):
    """Return opsets as parameters; all but the first, the last and 15 or 17 are slow."""
    quick = {versions[0], versions[-1], next((v for v in QUICK_OPSETS if v in versions), None)}
    return [v if v in quick else pytest.param(v, marks=pytest.mark.slow) for v in versions]


def value(name, shape=("N", None), element_type=FLOAT):
    return helper.make_tensor_value_info(name, element_type, shape)


def node(operator, inputs, outputs, **attributes):
    return helper.make_node(operator, inputs, outputs, **attributes)


def steps(text):
    """Return nodes as ONNX writes them, ``z = MatMul(x, w); y = Softmax<axis=1>(z)``."""
    return [parser.parse_node(step) for step in text.split(";")]


def constant(name, values, dtype=np.float32):
    return numpy_helper.from_array(np.asarray(values, dtype=dtype), name)


def make_model(
    nodes, *, inputs=None, outputs=None, initializers=(), opset=17, ir_version=8, **others
):
    """Return a model of the nodes; by default from ``x`` to ``y``, both float (N, ?)."""
    graph = helper.make_graph(
        nodes,
        "graph",
        [value("x")] if inputs is None else inputs,
        [value("y")] if outputs is None else outputs,
        list(initializers),
    )
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 1)]
    imports += others.pop("opset_imports", [])
    return helper.make_model(graph, opset_imports=imports, ir_version=ir_version, **others)


def passthrough(*, opset=17, element_type=FLOAT, shape=("N", None), **others):
    """Return a model whose output is its input: the scores are what a test feeds."""
    return make_model(
        [node("Identity", ["x"], ["y"])],
        inputs=[value("x", shape, element_type)],
        outputs=[value("y", shape, element_type)],
        opset=opset,
        **others,
    )


def function_call(body, given, made, *, functions=(), opset=17):
    """Return a node from ``given`` to ``made`` that calls a function, and options of its model.

    The function's body goes from ``a`` to ``o``.
    """
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("own", 1)]
    function = helper.make_function("own", "Called", ["a"], ["o"], body, imports)
    options = {"functions": [function, *functions], "opset_imports": imports[1:]}
    return [node("Called", [given], [made], domain="own")], options


def branched(body, given, made, *, initializers=()):
    """Return nodes from ``given`` to ``made``: the body, which makes ``a``, or an Identity."""
    then = helper.make_graph(body, "then", [], [value("a", None)], list(initializers))
    other = helper.make_graph([node("Identity", [given], ["b"])], "else", [], [value("b", None)])
    flag = steps("largest = ReduceMax<keepdims=0>(x); flag = Cast<to=9>(largest)")
    return [*flag, node("If", ["flag"], [made], then_branch=then, else_branch=other)]


def run_session(model, feeds, options=None):
    data = model if isinstance(model, bytes) else model.SerializeToString()
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


@dataclass(frozen=True)
class Served:
    """What came of a model: outputs are named without their prefix."""

    description: OnnxModelDescription
    choice: OutputChoice
    outputs: dict[str, np.ndarray]

    def __getitem__(self, column):
        return self.outputs[column]


def resolve(model, feeds, *, name=None, kind=None):
    """Return the choice of output, made on the rows that are fed."""
    data = model if isinstance(model, bytes) else model.SerializeToString()
    loaded = load_onnx_model(data)
    describe_onnx_model(loaded)
    plan = plan_output(loaded, name=name, kind=kind)
    trial = run_session(probe_graph(loaded, plan), feeds)
    return choose_output(plan, trial, n_samples=len(next(iter(feeds.values()))))


def serve(model, feeds, *, name=None, kind=None, top_k=(1, 5), trial=None, run=run_session):
    """Return all that the serving graph, made from the bytes anew, gives for the rows."""
    data = model if isinstance(model, bytes) else model.SerializeToString()
    choice = resolve(data, feeds if trial is None else trial, name=name, kind=kind)
    choice = OutputChoice(**json.loads(json.dumps(asdict(choice))))  # as it is stored
    loaded = load_onnx_model(data)
    stored = msgspec.json.encode(describe_onnx_model(loaded))
    description = msgspec.json.decode(stored, type=OnnxModelDescription)
    top_k = [k for k in top_k if k < choice.n_classes]
    graph = build_serving_graph(loaded, choice, top_k=top_k, with_scores=True)
    outputs = run(graph, feeds)
    assert all(key.startswith(PREFIX) for key in outputs)
    return Served(
        description, choice, {key.removeprefix(PREFIX): array for key, array in outputs.items()}
    )


def reference(logits, top_k=(1, 5)):
    """Return top classes and measures of float64 logits, by other formulas than the head's.

    Every sum is of terms of one sign. With U = -log p_(1): the entropy is
    p_(1) U + sum p_i (z_(1) - z_i + U), the margin is -expm1(-U) + p_(2), and U_k is
    logaddexp(0, logsumexp(rest) - logsumexp(top)).
    """
    logits = np.asarray(logits, dtype=np.float64)
    order = np.argsort(-logits, axis=1, kind="stable")
    ranked = np.take_along_axis(logits, order, axis=1)
    below = ranked[:, :1] - ranked
    with np.errstate(invalid="ignore"):
        surprise = _tail(ranked, 1)
        probabilities = np.exp(-below - surprise[:, None])
        terms = np.where(probabilities > 0, probabilities * (below + surprise[:, None]), 0)
    measures = {
        "entropy": terms[:, ::-1].sum(axis=1),
        "neg_log_pmax": surprise,
        "margin": -np.expm1(-surprise) + probabilities[:, 1],
    }
    measures |= {f"neg_log_topk_mass_{k}": _tail(ranked, k) for k in top_k if k < logits.shape[1]}
    return order, probabilities, measures


def _tail(ranked, k):
    return np.logaddexp(0, logsumexp(ranked[:, k:], axis=1) - logsumexp(ranked[:, :k], axis=1))


def ending(*nodes, shape=("N", None), element_type=FLOAT, **others):
    """Return a model of one Identity to the logits ``z``, and then the nodes, the last making y."""
    return make_model(
        [node("Identity", ["x"], ["z"]), *nodes],
        outputs=[value("y", shape, element_type)],
        **others,
    )


def assert_reads_logits(served, logits, tensor):
    assert (served.choice.kind, served.choice.tensor) == ("logits", tensor)
    expected = reference(logits)[2]
    for column in MEASURES:
        np.testing.assert_allclose(
            served[column], expected[column], rtol=1e-4, atol=1e-37, err_msg=column
        )


EXTERNAL_WEIGHTS = np.random.default_rng(0).normal(size=(40, 20)).astype(np.float32)
BIAS = np.arange(20, dtype=np.float32)
BLOB = EXTERNAL_WEIGHTS.tobytes() + BIAS.tobytes()


def external(name, shape, offset, length=None, *, location="w.data", element_type=1):
    """Return a tensor whose values lie in a file."""
    tensor = TensorProto(name=name, data_type=element_type, dims=shape)
    tensor.data_location = TensorProto.EXTERNAL
    entries = {"location": location, "offset": offset, "length": length}
    for key, entry in entries.items():
        if entry is not None:
            tensor.external_data.add(key=key, value=str(entry))
    return tensor


def linear(weights=None, bias=None):
    """Return a linear model whose weights lie in ``w.data``, of which ``BLOB`` is the content."""
    return make_model(
        steps("m = MatMul(x, w); y = Add(m, b)"),
        initializers=[
            external("w", [40, 20], 0, 3200) if weights is None else weights,
            external("b", [20], 3200, 80) if bias is None else bias,
        ],
    )


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


def network(middle=(), last=(), *, dtype=np.float32, element_type=TensorProto.FLOAT, **others):
    """Return two hidden layers of rectified units, with nodes from h0 to d0 and from h1 to d1.

    Without nodes in between the layers read h0 and h1. ONNX Runtime joins MatMul and Add where it
    knows the rank.
    """
    second, third = "d0" if middle else "h0", "d1" if last else "h1"
    nodes = [
        *steps("p0 = MatMul(x, w0); z0 = Add(p0, b0); h0 = Relu(z0)"),
        *middle,
        *steps(f"p1 = MatMul({second}, w1); z1 = Add(p1, b1); h1 = Relu(z1)"),
        *last,
        *steps(f"p2 = MatMul({third}, w2); y = Add(p2, b2)"),
    ]
    weights = [constant(f"w{i}", weight, dtype) for i, weight in enumerate(WEIGHTS)]
    biases = [constant(f"b{i}", bias, dtype) for i, bias in enumerate(BIASES)]
    ends = {
        "inputs": [value("x", ("N", N_INPUTS), element_type)],
        "outputs": [value("y", ("N", N_CLASSES), element_type)],
    }
    initializers = [*weights, *biases, *others.pop("initializers", ())]
    return make_model(nodes, initializers=initializers, **(ends | others))


def last_hidden(rows, first=1.0):
    """Return what the network's last layer sees, in float64, given a mask of the first one."""
    hidden = np.maximum(rows.astype(np.float64) @ WEIGHTS[0] + BIASES[0], 0) * first
    return np.maximum(hidden @ WEIGHTS[1] + BIASES[1], 0)


def network_logits(rows, first=1.0, second=1.0):
    """Return the network's logits in float64, hidden units multiplied by these masks."""
    return last_hidden(rows, first) * second @ WEIGHTS[2] + BIASES[2]


def logits_choice(n_classes=N_CLASSES, tensor="y", **others):
    return OutputChoice("y", "logits", tensor, "a test", n_classes=n_classes, **others)


def load(model):
    return load_onnx_model(model if isinstance(model, bytes) else model.SerializeToString())


def neutral(sites):
    """Return feeds that disable the noise of these sites."""
    return {site.name: np.full(1, site.neutral, dtype=np.float32) for site in sites}


def run_exposed(expose, model, noise=(), *, feeds=None, choice=None):
    """Return the outputs of a model whose noise is exposed, without our prefix, and its sites.

    ``expose`` exposes the noise of a loaded model and returns its sites; ``noise`` has an array for
    each of them, or nothing to disable it.
    """
    loaded = load(model)
    sites = expose(loaded)
    feeds = {"x": ROWS} if feeds is None else feeds
    feeds = feeds | neutral(sites) | {site.name: n for site, n in zip(sites, noise, strict=False)}
    choice = choice or logits_choice()
    graph = build_serving_graph(loaded, choice, top_k=(1,), with_scores=True, sites=sites)
    outputs = run_session(graph, feeds)
    return {name.removeprefix(PREFIX): array for name, array in outputs.items()}, sites


def spread_of(logits):
    """Return the 2-norm of the passes' covariance, by singular values; logits (n, M, K)."""
    probabilities = np.exp(log_softmax(np.asarray(logits, dtype=np.float64), axis=2))
    deviations = probabilities - probabilities.mean(axis=1, keepdims=True)
    largest = np.linalg.svd(deviations, compute_uv=False)[:, 0]
    return largest**2 / (logits.shape[1] - 1)


VARIANCE = "howsure_last_layer_dropout_variance"
LOGS = "howsure_last_layer_log_probabilities"

KERNEL = _rng.normal(size=(N_CLASSES, 3, 1, 1))


def last_layer_model(*nodes, initializers=(), shape=("N", N_INPUTS), **others):
    """Return a model that makes y of x, past a rectifier that makes h, with weights W."""
    weights = [constant("W", WEIGHTS[2][:N_INPUTS])]
    return make_model(
        [node("Relu", ["x"], ["h"]), *nodes],
        inputs=[value("x", shape)],
        outputs=[value("y", None)],
        initializers=[*weights, *initializers],
        **others,
    )


def image_model(*nodes, **others):
    kernel = others.pop("kernel", KERNEL)
    return last_layer_model(
        *nodes, initializers=[constant("K", kernel)], shape=("N", 3, "height", "width"), **others
    )


def draw_masks(n_passes, *shape, rate=0.25, seed=0):
    kept = np.random.default_rng(seed).random((n_passes, *shape)) >= rate
    return kept.astype(np.float32) / np.float32(1 - rate)


def served(model, masks, feeds, *, choice=None, with_scores=True, sites=()):
    loaded = load(model)
    graph = build_serving_graph(
        loaded,
        choice or logits_choice(),
        top_k=(1,),
        with_scores=with_scores,
        last_layer_masks=masks,
        sites=sites,
    )
    return run_session(graph, feeds)


def passes_of(features, masks, weights, bias):
    """Return the logits of every pass in float64, shape (n, M, K)."""
    dropped = np.float64(features)[:, np.newaxis] * masks
    return dropped @ np.float64(weights) + bias


def assert_agree(outputs, logits, *, rtol=1e-4):
    expected = spread_of(logits)
    seen = expected >= 1e-12
    assert seen.any()
    np.testing.assert_allclose(outputs[VARIANCE][seen], expected[seen], rtol=rtol)
    logs = log_softmax(logits, axis=2)
    np.testing.assert_allclose(outputs[LOGS], logs, rtol=rtol, atol=1e-5)
