"""ONNX models for the runner, and sessions on the devices of this machine."""

from pathlib import Path

import numpy as np
from graph_models import constant, make_model, node, resolve, value
from onnx import TensorProto, helper
from scipy.special import log_softmax, logsumexp, softmax

from service.child.onnx.session import OnnxSession
from service.child.onnx.watchdog import Watchdog
from service.graph.describe import describe_onnx_model
from service.graph.load import load_onnx_model
from service.graph.proto import PREFIX
from service.graph.serving import build_serving_graph
from service.runner.messages.onnx_models import OnnxMember, OnnxModelFiles

N_FEATURES = 6
PASSES_FOLDER = Path(__file__).parents[2] / "data" / "passes"
ENDLESS = np.iinfo(np.int64).max


def weights(n_classes=10, *, seed=0):
    generator = np.random.default_rng(seed)
    return generator.normal(0, 2, (N_FEATURES, n_classes)).astype(np.float32)


def rows(n_rows, *, seed=1):
    return np.random.default_rng(seed).normal(0, 1, (n_rows, N_FEATURES)).astype(np.float32)


def save(folder, model, *, name="model.onnx"):
    """Write a model, or bytes that are none, and return it as the files a pool takes."""
    path = Path(folder) / name
    path.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
    return OnnxModelFiles(path)


def digits_model(name, *members):
    """Return the files of a trained model of digits, and of the others of its ensemble."""
    return OnnxModelFiles(
        PASSES_FOLDER / f"{name}.onnx",
        members=tuple(OnnxMember(PASSES_FOLDER / f"{member}.onnx") for member in members),
    )


def linear(matrix=None, *, batch="N", element_type=TensorProto.FLOAT, dtype=np.float32):
    matrix = weights() if matrix is None else matrix
    return make_model(
        [node("MatMul", ["x", "w"], ["y"])],
        inputs=[value("x", (batch, len(matrix)), element_type)],
        outputs=[value("y", (batch, matrix.shape[1]), element_type)],
        initializers=[constant("w", matrix, dtype)],
    )


def of_rows(*nodes, shape=("N", N_FEATURES), **constants):
    """Return a model from rows ``x`` to scores ``y``; constants of whole numbers are int64."""
    arrays = {name: np.asarray(given) for name, given in constants.items()}
    n_classes = arrays["w"].shape[1] if "w" in arrays else None
    return make_model(
        nodes,
        inputs=[value("x", shape)],
        outputs=[value("y", (shape[0], n_classes))],
        initializers=[
            constant(name, array, np.int64 if array.dtype.kind == "i" else np.float32)
            for name, array in arrays.items()
        ],
    )


def mean_of_vectors(matrix=None):
    """Takes the mean of any number of vectors a row."""
    matrix = weights() if matrix is None else matrix
    return of_rows(
        node("ReduceMean", ["x"], ["m"], axes=[1], keepdims=0),
        node("MatMul", ["m", "w"], ["y"]),
        shape=("N", "T", len(matrix)),
        w=matrix,
    )


def from_integers(matrix, element_type=TensorProto.UINT8):
    return make_model(
        [
            node("Cast", ["x"], ["f"], to=TensorProto.FLOAT),
            node("MatMul", ["f", "w"], ["y"]),
        ],
        inputs=[value("x", ("N", len(matrix)), element_type)],
        outputs=[value("y", ("N", matrix.shape[1]))],
        initializers=[constant("w", matrix)],
    )


def softmax_of_two(matrix):
    """Two inputs, ``left`` and ``right``, whose sum is classified; gives probabilities."""
    return make_model(
        [
            node("Add", ["left", "right"], ["x"]),
            node("MatMul", ["x", "w"], ["z"]),
            node("Softmax", ["z"], ["y"], axis=-1),
        ],
        inputs=[value("left", ("N", N_FEATURES)), value("right", ("N", N_FEATURES))],
        outputs=[value("y", ("N", matrix.shape[1]))],
        initializers=[constant("w", matrix)],
    )


def undefined_below_zero(matrix):
    """Gives NaN for a row whose first feature is negative."""
    return of_rows(
        node("Gather", ["x", "first"], ["a"], axis=1),
        node("Log", ["a"], ["b"]),
        node("Mul", ["b", "zero"], ["c"]),
        node("MatMul", ["x", "w"], ["z"]),
        node("Add", ["z", "c"], ["y"]),
        w=matrix,
        first=[0],
        zero=0.0,
    )


def endless_above(limit, matrix=None, *, turns=ENDLESS):
    """Runs for ever, or ``turns`` of a loop, as soon as one value of a batch is above ``limit``."""
    body = helper.make_graph(
        [node("Identity", ["go"], ["goes"]), node("Add", ["s", "step"], ["t"])],
        "body",
        [
            value("i", (), TensorProto.INT64),
            value("go", (), TensorProto.BOOL),
            value("s", ()),
        ],
        [value("goes", (), TensorProto.BOOL), value("t", ())],
        [constant("step", 0.0)],
    )
    return of_rows(
        node("ReduceMax", ["x"], ["m"], keepdims=0),
        node("Greater", ["m", "limit"], ["on"]),
        node("Loop", ["most", "on", "m"], ["last"], body=body),
        node("Mul", ["last", "zero"], ["nothing"]),
        node("MatMul", ["x", "w"], ["z"]),
        node("Add", ["z", "nothing"], ["y"]),
        w=weights() if matrix is None else matrix,
        limit=float(limit),
        most=turns,
        zero=0.0,
    )


def function_bomb(depth=30):
    """Each function calls the one before it twice: loading inlines 2**depth nodes."""
    opset = helper.make_opsetid("", 17)
    own = helper.make_opsetid("bomb", 1)
    functions = [
        helper.make_function("bomb", "f0", ["a"], ["b"], [node("Identity", ["a"], ["b"])], [opset])
    ]
    for level in range(1, depth):
        calls = [
            node(f"f{level - 1}", ["a"], ["m"], domain="bomb"),
            node(f"f{level - 1}", ["m"], ["b"], domain="bomb"),
        ]
        functions.append(
            helper.make_function("bomb", f"f{level}", ["a"], ["b"], calls, [opset, own])
        )
    return make_model(
        [node(f"f{depth - 1}", ["x"], ["y"], domain="bomb")],
        inputs=[value("x", ("N", N_FEATURES))],
        outputs=[value("y", ("N", N_FEATURES))],
        functions=functions,
        opset_imports=[own],
    )


def slow_to_load(n_products=1500, size=1200):
    """Multiplies constants, which ONNX Runtime does while it loads a model: many seconds."""
    turn = np.roll(np.eye(size, dtype=np.float32), 1, axis=0)
    products = [node("MatMul", [f"c{i}", "c0"], [f"c{i + 1}"]) for i in range(n_products)]
    return of_rows(
        *products,
        node("Slice", [f"c{n_products}", "begin", "end"], ["part"]),
        node("MatMul", ["x", "part"], ["y"]),
        c0=turn,
        begin=[0, 0],
        end=[N_FEATURES, 10],
    )


def memory_hungry(n_bytes=2**50):
    """Adds a sum of zeros, by default more of them than any machine holds, to the logits."""
    return of_rows(
        node("ConstantOfShape", ["size"], ["zeros"]),
        node("ReduceSum", ["zeros"], ["nothing"], keepdims=0),
        node("MatMul", ["x", "w"], ["z"]),
        node("Add", ["z", "nothing"], ["y"]),
        w=weights(),
        size=[n_bytes // 4],
    )


def check_head(outputs, logits, top_k):
    """Compare a head's answers with scipy's, in float64."""
    logits = np.asarray(logits, dtype=np.float64)
    order = np.argsort(-logits, axis=1, kind="stable")
    n_top = outputs.top_classes.shape[1]
    np.testing.assert_array_equal(outputs.top_classes, order[:, :n_top])
    probabilities = np.take_along_axis(softmax(logits, axis=1), order, axis=1)
    np.testing.assert_allclose(outputs.top_scores, probabilities[:, :n_top], rtol=1e-4)
    check_uncertainty(outputs.uncertainty, logits, top_k)


def check_uncertainty(columns, logits, top_k):
    logits = np.asarray(logits, dtype=np.float64)
    ranked = -np.sort(-logits, axis=1)
    for k in top_k:
        rest = logsumexp(ranked[:, k:], axis=1) - logsumexp(ranked[:, :k], axis=1)
        np.testing.assert_allclose(
            columns[f"neg_log_topk_mass_{k}"], np.log1p(np.exp(rest)), rtol=1e-4
        )
    logs = log_softmax(logits, axis=1)
    entropy = -(np.exp(logs) * logs).sum(axis=1)
    np.testing.assert_allclose(columns["entropy"], entropy, rtol=1e-4)


def session_on(device, model, watchdog=None):
    data = model.SerializeToString()
    return OnnxSession(data, weights={}, device=device, threads=1, watchdog=watchdog or Watchdog())


def head_on(device, model, feeds, *, kind=None, top_k=(1, 5), trial=None):
    """Return all that the serving graph answers on the device, named without their prefix."""
    choice = resolve(model, feeds if trial is None else trial, kind=kind)
    loaded = load_onnx_model(model.SerializeToString())
    describe_onnx_model(loaded)
    top_k = [k for k in top_k if k < choice.n_classes]
    graph = build_serving_graph(loaded, choice, top_k=top_k, with_scores=True)
    session = session_on(device, graph)
    answers = session.run(session.output_names, feeds, place="inputs")
    return {name.removeprefix(PREFIX): array for name, array in answers.items()}


def assert_same_classes(classes, expected, scores, *, gap):
    """Compare ranked classes where the expected scores are apart by more than a share ``gap``."""
    below = scores[:, :-1] > scores[:, 1:] * (1 + gap)
    apart = below & np.concatenate([np.ones_like(below[:, :1]), below[:, :-1]], axis=1)
    assert apart[:, 0].any()
    np.testing.assert_array_equal(classes[:, :-1][apart], expected[:, :-1][apart])
