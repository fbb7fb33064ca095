"""Models that mix rows, draw at random, or answer in steps: right, or refused."""

import numpy as np
import onnx
import onnxruntime
import pytest
from graph_models import constant, make_model, node, steps, value
from model_services import predictions as answers
from onnx import TensorProto
from refusals import assert_refused
from running_service import calibrate, calibrated, dry_run, npz

RNG = np.random.default_rng(5)
N_FEATURES, N_CLASSES = 6, 4
WEIGHTS = RNG.normal(size=(N_FEATURES, N_CLASSES)).astype(np.float32)
ROWS = RNG.normal(size=(400, N_FEATURES)).astype(np.float32)
LABELS = (ROWS @ WEIGHTS).argmax(axis=1)
SET = npz(inputs=ROWS, labels=LABELS)


def model_file(*nodes, **options):
    return make_model(*nodes, **options).SerializeToString()


def constants(**more):
    arrays = ({"w": WEIGHTS} | more).items()
    return [constant(name, array, np.asarray(array).dtype) for name, array in arrays]


def of_rows(text, *, batch="N", outputs=N_CLASSES, **more):
    """Return a file from ``x`` to ``y`` with the weights ``w`` and the bias ``b``."""
    return model_file(
        steps(text),
        inputs=[value("x", (batch, N_FEATURES))],
        outputs=[value("y", (batch, outputs))],
        initializers=constants(**more),
    )


OF_A_SCALE = "q, s, p = DynamicQuantizeLinear(x); d = DequantizeLinear(q, s, p); y = MatMul(d, w)"
DYNAMIC = of_rows(OF_A_SCALE)
TRACED = of_rows("r = Reshape(x, one); y = MatMul(r, w)", one=[1, N_FEATURES])
OF_ONE_ROW = {"dynamic-scale": (DYNAMIC, "DynamicQuantizeLinear"), "traced": (TRACED, "Reshape")}


SCORE = {"measures": ["neg_log_pmax"]}


def score_of(answer):
    """Return the model's own probability of its answer, in a calibration with `SCORE`."""
    return np.exp(-answer["top1"]["uncertainty"])


@pytest.mark.parametrize("name", OF_ONE_ROW)
def test_a_model_for_one_row_runs_one_by_one(client, name) -> None:
    model, reason = OF_ONE_ROW[name]
    resource = calibrated(client, {"name": name}, model=model, calibration=SET)
    assert resource["model"]["fixed_batch"] == 1
    assert any("one row at a time" in one and reason in one for one in resource["warnings"])
    alone = [answers(client, name, row[None])[0] for row in ROWS[:12]]
    beside = np.concatenate([ROWS[:12], 100 * ROWS[12:13]])
    assert answers(client, name, beside)[:12] == alone


def test_members_of_an_ensemble_run_alike(client) -> None:
    plain = of_rows("y = MatMul(x, w)")
    model = [plain, DYNAMIC]
    resource = calibrated(client, {"name": "one-dynamic"}, model=model, calibration=SET)
    assert resource["model"]["fixed_batch"] == 1
    assert len(answers(client, "one-dynamic", ROWS[:3])) == 3


def of_tokens(element_type):
    """Return a file that looks up two tokens a row, of which there are six."""
    return model_file(
        steps("t = Cast<to=7>(x); e = Gather(w, t); y = ReduceSum<keepdims=0>(e, axis)"),
        inputs=[value("x", ("N", 2), element_type)],
        outputs=[value("y", ("N", N_CLASSES))],
        initializers=constants(axis=[1]),
    )


TOKENS = RNG.integers(0, N_FEATURES, (400, 2))
WORDS = {TensorProto.INT64: TOKENS, TensorProto.FLOAT: TOKENS.astype(np.float32)}


@pytest.mark.parametrize("element_type", WORDS)
def test_a_row_that_fails_is_named(client, element_type) -> None:
    """Tokens that are floats are tried beside a larger one, too, which is no fault of the model."""
    model, tokens, name = of_tokens(element_type), WORDS[element_type].copy(), f"of-{element_type}"
    set_of = {"model": model, "calibration": npz(inputs=tokens, labels=LABELS)}
    calibrated(client, {"name": name}, **set_of)
    tokens[333, 1] = N_FEATURES
    set_of["calibration"] = npz(inputs=tokens, labels=LABELS)
    (violation,) = calibrate(client, **set_of).json()["error"]["errors"]
    assert violation["location"] == "calibration[333]"
    assert "Gather" in violation["message"]
    body = {"calibration": name, "inputs": tokens[330:340].tolist()}
    assert_refused(client.post("/predict", json=body), "inputs[3]", "Gather")


def test_a_scale_of_a_fixed_batch_is_refused(client) -> None:
    model = of_rows(OF_A_SCALE, batch=8)
    assert_refused(calibrate(client, model=model, calibration=SET), "model", "rows beside it")


DROPPING = "z = MatMul(x, w); y = Dropout(z, ratio, training)"
ACTIVE = of_rows(DROPPING, ratio=np.float32(0.5), training=True)


def test_dropout_in_training_mode_is_for_its_measures_alone(client) -> None:
    assert_refused(calibrate(client, model=ACTIVE, calibration=SET), "model", "training mode")
    config = {"measures": ["dropout_variance"], "name": "active-dropout"}
    assert calibrated(client, config, model=ACTIVE, calibration=SET)["status"] == "succeeded"


def test_two_columns_of_one_score_are_its_logit(client) -> None:
    signs = np.float32([[-1, 1]])
    text = "z = MatMul(x, u); y = Mul(z, signs)"
    model = of_rows(text, outputs=2, u=WEIGHTS[:, :1], signs=signs)
    logit = ROWS @ WEIGHTS[:, 0]
    labels = (RNG.random(400) < 1 / (1 + np.exp(-logit))).astype(int)
    part = npz(inputs=ROWS, labels=labels)
    resource = calibrated(client, {"name": "signs", **SCORE}, model=model, calibration=part)
    assert "logit of class 1" in resource["model"]["output"]["inferred"]
    score = score_of(answers(client, "signs", ROWS[:1])[0])
    assert score == pytest.approx(1 / (1 + np.exp(-abs(logit[0]))), rel=1e-5)
    said = {"name": "both", **SCORE, "output": {"kind": "logits"}}
    calibrated(client, said, model=model, calibration=part)
    score = score_of(answers(client, "both", ROWS[:1])[0])
    assert score == pytest.approx(1 / (1 + np.exp(-2 * abs(logit[0]))), rel=1e-5)


def test_probabilities_in_steps_are_read_through_their_rounding(client) -> None:
    """As quantize_static leaves them; sums differ from 1 by steps."""
    text = "z = MatMul(x, w); p = Softmax(z); q = QuantizeLinear(p, step, zero)"
    text += "; y = DequantizeLinear(q, step, zero)"
    model = of_rows(text, step=np.float32(1 / 256), zero=np.uint8(0))
    output = calibrated(client, model=model, calibration=SET)["model"]["output"]
    assert (output["kind"], "softmax" in output["inferred"]) == ("logits", True)
    session = onnxruntime.InferenceSession(model)
    probabilities = session.run(None, {"x": ROWS})[0]
    assert np.abs(probabilities.sum(axis=1) - 1).max() > 1e-3
    parts = npz(probabilities=probabilities, labels=LABELS)
    assert calibrated(client, {"name": "in-steps"}, calibration=parts)["accuracy"]["1"] > 0.9
    sigmoids = npz(probabilities=probabilities * 0.5, labels=LABELS)
    assert_refused(calibrate(client, calibration=sigmoids), "calibration.probabilities[0]")


def test_one_output_for_each_class_is_told(client) -> None:
    columns = ["a", "b", "c"]
    model = model_file(
        [node("Split", ["x"], columns, axis=1)],
        inputs=[value("x", ("N", 3))],
        outputs=[value(name, ("N", 1)) for name in columns],
        opset=13,
    )
    part = npz(inputs=ROWS[:, :3], labels=LABELS % 3)
    answer = calibrate(client, model=model, calibration=part)
    assert_refused(answer, "model", "one output for each class")


@pytest.mark.parametrize(
    ("shape", "rows"), [((N_FEATURES,), ROWS), ((2, 3), ROWS.reshape(-1, 2, 3))]
)
def test_a_model_without_an_axis_for_rows_is_told_how_to_get_one(client, shape, rows):
    model = model_file(
        steps("f = Reshape(x, flat); y = MatMul(f, w)"),
        inputs=[value("x", shape)],
        outputs=[value("y", (1, N_CLASSES))],
        initializers=constants(flat=[1, N_FEATURES]),
    )
    response = calibrate(client, model=model, calibration=npz(inputs=rows, labels=LABELS))
    detail = response.json()["detail"]
    assert f"the shape of one sample, {list(shape)}, without an axis for the rows" in detail
    assert "dynamic_axes" in detail


NAMED = [
    ("names", "{0: 'cat', 1: 'dog', 2: \"bird's\", 3: 'élan'}", ["cat", "dog", "bird's", "élan"]),
    ("id2label", '{"1": "b", "0": "a", "2": "c", "3": "d"}', ["a", "b", "c", "d"]),
    ("names", "{0: 'a', 1: 'a', 2: 'c', 3: 'd'}", ["0", "1", "2", "3"]),
    ("names", "__import__('os').abort()", ["0", "1", "2", "3"]),
    ("names", "{0: 'a', 1: 'b', 3: 'd', 4: 'e'}", ["0", "1", "2", "3"]),
]


@pytest.mark.parametrize(("key", "text", "classes"), NAMED)
def test_names_of_classes_are_read_from_the_metadata_of_the_model(client, key, text, classes):
    model = onnx.load_from_string(of_rows("y = MatMul(x, w)"))
    model.metadata_props.add(key=key, value=text)
    response = dry_run(client, SET, model=model.SerializeToString())
    assert response.json()["config"]["classes"] == classes
