"""ONNX models for the runner, and sessions on the devices of this machine."""

from pathlib import Path

import numpy as np
from graph_models import as_bytes, constant, make_model, node, reference, steps, value
from onnx import TensorProto, helper

from service.child.onnx.session import OnnxSession
from service.child.onnx.watchdog import Watchdog
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
    nodes = steps("m = ReduceMean<axes = [1], keepdims = 0>(x); y = MatMul(m, w)")
    return of_rows(*nodes, shape=("N", "T", len(matrix)), w=matrix)


def from_integers(matrix, element_type=TensorProto.UINT8):
    return make_model(
        steps(f"f = Cast<to = {TensorProto.FLOAT}>(x); y = MatMul(f, w)"),
        inputs=[value("x", ("N", len(matrix)), element_type)],
        outputs=[value("y", ("N", matrix.shape[1]))],
        initializers=[constant("w", matrix)],
    )


def softmax_of_two(matrix):
    """Two inputs, ``left`` and ``right``, whose sum is classified; gives probabilities."""
    return make_model(
        steps("x = Add(left, right); z = MatMul(x, w); y = Softmax<axis = -1>(z)"),
        inputs=[value("left", ("N", N_FEATURES)), value("right", ("N", N_FEATURES))],
        outputs=[value("y", ("N", matrix.shape[1]))],
        initializers=[constant("w", matrix)],
    )


def classifier(
    *nodes, matrix=None, constants=None, inputs=None, outputs=None, initializers=(), **others
):
    """Return a model of rows ``x`` whose nodes make ``y`` of its logits ``z``.

    ``constants`` are values by name; ``w`` are the weights.
    """
    matrix = weights() if matrix is None else matrix
    arrays = {"w": matrix, **(constants or {})}
    return make_model(
        [node("MatMul", ["x", "w"], ["z"]), *nodes],
        inputs=inputs or [value("x", ("N", N_FEATURES))],
        outputs=outputs or [value("y", ("N", matrix.shape[1]))],
        initializers=[*(_tensor(name, array) for name, array in arrays.items()), *initializers],
        **others,
    )


def _tensor(name, values):
    array = np.asarray(values)
    return constant(name, array, np.float32 if array.dtype.kind == "f" else array.dtype)


def undefined_below_zero(matrix):
    """Gives NaN for a row whose first feature is negative."""
    text = "a = Gather<axis = 1>(x, first); b = Log(a); c = Mul(b, zero); y = Add(z, c)"
    return classifier(*steps(text), matrix=matrix, constants={"first": [0], "zero": 0.0})


def loop_body(*nodes):
    """Return the body of a Loop that carries ``s`` to ``t`` and never ends by itself."""
    return helper.make_graph(
        [node("Identity", ["go"], ["goes"]), *nodes],
        "body",
        [value("i", (), TensorProto.INT64), value("go", (), TensorProto.BOOL), value("s", None)],
        [value("goes", (), TensorProto.BOOL), value("t", None)],
    )


def endless_above(limit, matrix=None, *, turns=ENDLESS):
    """Runs for ever, or ``turns`` of a loop, as soon as one value of a batch is above ``limit``."""
    body = loop_body(node("Add", ["s", "zero"], ["t"]))
    return classifier(
        *steps("m = ReduceMax<keepdims = 0>(x); on = Greater(m, limit)"),
        node("Loop", ["most", "on", "m"], ["last"], body=body),
        *steps("nothing = Mul(last, zero); y = Add(z, nothing)"),
        matrix=matrix,
        constants={"limit": limit, "most": turns, "zero": 0.0},
    )


def function_bomb(depth=30):
    """Each function calls the one before it twice: loading inlines 2**depth nodes."""
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("bomb", 1)]
    bodies = [[node("Identity", ["a"], ["b"])]]
    for level in range(depth - 1):
        ends = (("a", "m"), ("m", "b"))
        bodies.append([node(f"f{level}", [a], [b], domain="bomb") for a, b in ends])
    return make_model(
        [node(f"f{depth - 1}", ["x"], ["y"], domain="bomb")],
        inputs=[value("x", ("N", N_FEATURES))],
        outputs=[value("y", ("N", N_FEATURES))],
        functions=[
            helper.make_function("bomb", f"f{level}", ["a"], ["b"], body, imports)
            for level, body in enumerate(bodies)
        ],
        opset_imports=imports[1:],
    )


def slow_to_load(n_products=1500, size=1200):
    """Multiplies constants, which ONNX Runtime does while it loads a model: many seconds."""
    turn = np.roll(np.eye(size, dtype=np.float32), 1, axis=0)
    products = [node("MatMul", [f"c{i}", "c0"], [f"c{i + 1}"]) for i in range(n_products)]
    return of_rows(
        *products,
        *steps(f"part = Slice(c{n_products}, begin, end); y = MatMul(x, part)"),
        c0=turn,
        begin=[0, 0],
        end=[N_FEATURES, 10],
    )


def memory_hungry(n_bytes=2**50):
    """Adds a sum of zeros, more of them than any machine holds, to the logits."""
    zeros = "zeros = ConstantOfShape(size); nothing = ReduceSum<keepdims = 0>(zeros)"
    return classifier(*steps(f"{zeros}; y = Add(z, nothing)"), constants={"size": [n_bytes // 4]})


def check_head(outputs, logits, top_k):
    """Compare a head's answers with the reference, in float64."""
    order, probabilities, _ = reference(logits, top_k)
    n_top = outputs.top_classes.shape[1]
    np.testing.assert_array_equal(outputs.top_classes, order[:, :n_top])
    np.testing.assert_allclose(outputs.top_scores, probabilities[:, :n_top], rtol=1e-4)
    check_uncertainty(outputs.uncertainty, logits, top_k)


def check_uncertainty(columns, logits, top_k):
    _, _, expected = reference(logits, top_k)
    for name in ("entropy", *(f"neg_log_topk_mass_{k}" for k in top_k)):
        np.testing.assert_allclose(columns[name], expected[name], rtol=1e-4)


def session_on(device, model, watchdog=None):
    options = {"device": device, "threads": 1, "watchdog": watchdog or Watchdog()}
    return OnnxSession(as_bytes(model), weights={}, **options)


def run_on(device, model, feeds, _=None):
    """Do on a device what `graph_models.run_session` does here."""
    session = session_on(device, model)
    return session.run(session.output_names, feeds, place="inputs")


def assert_same_classes(classes, expected, scores, *, gap):
    """Compare ranked classes where the expected scores are apart by more than a share ``gap``."""
    below = scores[:, :-1] > scores[:, 1:] * (1 + gap)
    apart = below & np.concatenate([np.ones_like(below[:, :1]), below[:, :-1]], axis=1)
    assert apart[:, 0].any()
    np.testing.assert_array_equal(classes[:, :-1][apart], expected[:, :-1][apart])
