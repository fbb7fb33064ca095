"""Small ONNX graphs: plain, with external weights, with noise."""

import json
from dataclasses import asdict, dataclass

import msgspec
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper, parser
from scipy.special import logsumexp

from howsure.onnx_head.builder import PREFIX
from service.graph.describe import describe_onnx_model
from service.graph.description import OnnxModelDescription, OutputChoice
from service.graph.load import load_onnx_model
from service.graph.output.choose import choose_output
from service.graph.output.plan import plan_output, probe_graph
from service.graph.serving import build_serving_graph

OPSETS = (11, 12, 13, 17, 18, 21, 23, 26)
QUICK_OPSETS = (15, 17)
FLOAT = TensorProto.FLOAT
MEASURES = ("entropy", "neg_log_pmax", "margin", "neg_log_topk_mass_5")
LOGITS = (3 * np.random.default_rng(0).normal(size=(12, 6))).astype(np.float32)
CONFIDENT = (60 * np.random.default_rng(1).normal(size=(12, 6))).astype(np.float32)


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
    own = {"shape": others.pop("shape", ("N", None))}
    own["element_type"] = others.pop("element_type", FLOAT)
    inputs = [value("x", **own)] if inputs is None else inputs
    outputs = [value("y", **own)] if outputs is None else outputs
    graph = helper.make_graph(nodes, "graph", inputs, outputs, list(initializers))
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 1)]
    imports += others.pop("opset_imports", [])
    return helper.make_model(graph, opset_imports=imports, ir_version=ir_version, **others)


def passthrough(**options):
    """Return a model whose output is its input: the scores are what a test feeds."""
    return make_model([node("Identity", ["x"], ["y"])], **options)


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


def as_bytes(model):
    return model if isinstance(model, bytes) else model.SerializeToString()


def run_session(model, feeds, options=None):
    providers = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(as_bytes(model), options, providers=providers)
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


def resolve(model, feeds, *, run=run_session, **options):
    """Return the choice of output, made on the rows that are fed."""
    loaded = load(model)
    describe_onnx_model(loaded)
    plan = plan_output(loaded, **options)
    trial = run(probe_graph(loaded, plan), feeds)
    return choose_output(plan, trial, n_samples=len(next(iter(feeds.values()))))[0]


def serve(model, feeds, *, top_k=(1, 5), trial=None, run=None, scalars=(), **options):
    """Return all that the serving graph, made from the bytes anew, gives for the rows.

    The output named first by ``scalars`` becomes ``output_0``, and so on.
    """
    data = as_bytes(model)
    choice = resolve(data, feeds if trial is None else trial, scalars=scalars, **options)
    choice = OutputChoice(**json.loads(json.dumps(asdict(choice))))  # as it is stored
    loaded = load_onnx_model(data)
    stored = msgspec.json.encode(describe_onnx_model(loaded))
    description = msgspec.json.decode(stored, type=OnnxModelDescription)
    top_k = [k for k in top_k if k < choice.n_classes]
    columns = {f"output_{place}": name for place, name in enumerate(scalars)}
    graph = build_serving_graph(loaded, choice, top_k=top_k, with_scores=True, scalars=columns)
    onnx.checker.check_model(graph)
    outputs = (run or run_session)(graph, feeds)
    assert all(key.startswith(PREFIX) for key in outputs)
    own = {key.removeprefix(PREFIX): array for key, array in outputs.items()}
    return Served(description, choice, own)


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
    outputs = [value("y", shape, element_type)]
    return make_model([node("Identity", ["x"], ["z"]), *nodes], outputs=outputs, **others)


def assert_reads_logits(served, logits, tensor):
    assert (served.choice.kind, served.choice.tensor) == ("logits", tensor)
    expected = reference(logits)[2]
    for column in MEASURES:
        tolerance = {"rtol": 1e-4, "atol": 1e-37, "err_msg": column}
        np.testing.assert_allclose(served[column], expected[column], **tolerance)


def external(name, shape, offset, length=None, *, location="w.data", element_type=1):
    """Return a tensor whose values lie in a file."""
    tensor = TensorProto(name=name, data_type=element_type, dims=shape)
    tensor.data_location = TensorProto.EXTERNAL
    entries = {"location": location, "offset": offset, "length": length}
    for key, entry in entries.items():
        if entry is not None:
            tensor.external_data.add(key=key, value=str(entry))
    return tensor


def dropout(given, made, ratio, *, opset=17, outputs=1, training=False):
    """Return nodes that drop as this opset writes it; no ratio is the default's one half."""
    names = [made, f"{made}_mask"][:outputs]
    if opset < 12:  # the ratio is an attribute
        attributes = {} if ratio is None else {"ratio": ratio}
        return [node("Dropout", [given], names, **attributes)]
    inputs, nodes = [given, "", ""], []
    ends = ((1, "ratio", ratio, FLOAT), (2, "training", training or None, TensorProto.BOOL))
    for place, end, number, kind in ends:
        if number is not None:
            inputs[place] = f"{made}_{end}"
            tensor = helper.make_tensor("v", kind, [], [number])
            nodes.append(node("Constant", [], [inputs[place]], value=tensor))
    return [*nodes, node("Dropout", inputs, names)]


def logits_choice(n_classes=5, tensor="y", **others):
    return OutputChoice("y", "logits", tensor, "a test", n_classes=n_classes, **others)


def load(model):
    return load_onnx_model(as_bytes(model))
