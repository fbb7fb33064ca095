"""Energy, supplied measures and measures from outputs of the model: served, refitted or refused."""

import io
import json
from typing import Any

import httpx
import numpy as np
import onnx
import onnxruntime
import pytest
from bins_documents import answers
from onnx import TensorProto, helper, numpy_helper
from refusals import assert_refused
from running_service import calibrate, calibrated, digits, evaluate, npz, quick_config, refit
from scipy.special import logsumexp

UNPROCESSABLE = httpx.codes.UNPROCESSABLE_ENTITY
rng = np.random.default_rng(12)
LOGITS = rng.normal(size=(400, 4)) * 3
LABELS = np.array([rng.choice(4, p=np.exp(z - logsumexp(z))) for z in LOGITS])
OURS = (rng.random(400) + (LOGITS.argmax(1) != LABELS)).astype(np.float32)
OUTPUTS = npz(logits=LOGITS, labels=LABELS, uncertainty_ours=OURS)


def top_1(client: httpx.Client, calibration: str, **rows: Any) -> list[dict[str, Any]]:
    return [row["top1"] for row in answers(client, calibration, **rows)]


def test_a_supplied_measure_is_served_where_it_is_named(client) -> None:
    config = {"measures": ["entropy", "supplied:ours"]}
    by_default = calibrated(client, config, calibration=OUTPUTS)
    assert by_default["serve"] == {"1": "entropy"}, "one that is supplied never serves by default"

    named = calibrated(client, config | {"serve": {"1": "supplied:ours"}}, calibration=OUTPUTS)
    assert named["serve"] == {"1": "supplied:ours"}
    rows = {"logits": LOGITS[:2].tolist(), "supplied": {"ours": [0.01, 1.9]}}
    certain, uncertain = top_1(client, named["id"], **rows)
    assert certain["probability"] > uncertain["probability"]
    assert uncertain["uncertainty"] == pytest.approx(1.9)


PROBABILITIES = np.exp(LOGITS - logsumexp(LOGITS, axis=1, keepdims=True))


REFUSED_MEASURES = [
    ("energy", npz(probabilities=PROBABILITIES, labels=LABELS)),
    ("supplied:missing", OUTPUTS),
    ("supplied:ours", npz(logits=LOGITS, labels=LABELS, uncertainty_ours=np.ones(400, "f4"))),
    ("output:x", OUTPUTS),
    ("score", OUTPUTS),
]


@pytest.mark.parametrize(("measure", "content"), REFUSED_MEASURES)
def test_what_outputs_do_not_have_is_refused(client, measure: str, content: bytes) -> None:
    response = calibrate(client, calibration=content, config=json.dumps({"measures": [measure]}))
    assert response.status_code == UNPROCESSABLE
    assert response.json()["errors"][0]["location"].startswith("config.measures")


INPUTS = np.load(io.BytesIO(digits("calibration.npz")))["inputs"].astype(np.float32)
INK = INPUTS.sum(axis=1)
FAINT = float(np.sort(INK)[3:5].mean())  # four rows have less ink
WEIRD = "head/log ink: é|1"


@pytest.fixture(scope="module")
def model() -> bytes:
    """Return the digits model with outputs beside its logits, made of logits and of inputs."""
    made = onnx.load_from_string(digits("model.onnx"))
    nodes = [
        ("LogSoftmax", ["logits"], "logs", {"axis": 1}),
        ("ReduceMax", ["logs"], "likeliest", {"axes": [1]}),
        ("Neg", ["likeliest"], "confidence", {}),
        ("ReduceSum", ["inputs", "axis"], "ink", {"keepdims": 0}),
        ("Log", ["ink"], WEIRD, {}),
        ("Sub", ["ink", "faint"], "left", {}),
        ("Log", ["left"], "broken", {}),
        ("Cast", ["ink"], "whole", {"to": TensorProto.INT64}),
        ("Identity", ["logs"], "wide", {}),
    ]
    made.graph.node.extend(helper.make_node(op, a, [b], **more) for op, a, b, more in nodes)
    constants = {"axis": np.array([1]), "faint": np.array(FAINT, np.float32)}
    made.graph.initializer.extend(numpy_helper.from_array(v, n) for n, v in constants.items())
    shapes = {"confidence": ("N", 1), WEIRD: ("N",), "broken": ("N",), "wide": ("N", 10)}
    outputs = [helper.make_tensor_value_info(n, 1, s) for n, s in shapes.items()]
    outputs.append(helper.make_tensor_value_info("whole", TensorProto.INT64, ("N",)))
    made.graph.output.extend(outputs)
    return made.SerializeToString()


def of_model(client: httpx.Client, model: bytes, *measures: str, **config: Any) -> dict[str, Any]:
    parts = {"model": model, "calibration": digits("calibration.npz")}
    text = quick_config(measures=[*measures], output={"name": "logits"}, **config)
    return calibrate(client, config=text, **parts).json()


def own(model: bytes, name: str, rows: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return session.run([name], {"inputs": rows})[0].ravel()


@pytest.mark.parametrize("name", [WEIRD, "whole"])
def test_an_output_is_served_where_it_is_named(client, model, name: str) -> None:
    measure, rows = f"output:{name}", INPUTS[:40]
    made = of_model(client, model, "entropy", measure, serve={"1": measure})
    assert made["status"] == "succeeded", made
    events = top_1(client, made["id"], inputs=rows.tolist())
    assert {event["measure"] for event in events} == {measure}
    uncertainty, expected = [event["uncertainty"] for event in events], own(model, name, rows)
    np.testing.assert_allclose(uncertainty, expected, rtol=1e-5)
    report = client.get("/report", params={"calibration": made["id"]}).json()
    table = report["events"]["1"]["measures"][measure]
    edges = np.array([row["upper"] for row in table["bins"][:-1]])
    assert [event["bin"] for event in events] == np.searchsorted(edges, expected).tolist()


def test_refits_and_further_sets_have_it_too(client, model) -> None:
    first = of_model(client, model, f"output:{WEIRD}", "output:confidence")
    assert first["serve"] == {"1": "output:confidence"}, "the ink says nothing of errors"
    served = {"serve": {"1": f"output:{WEIRD}"}}
    second = refit(client, first["id"], bins=7, **served).json()
    assert (second["status"], second["serve"]) == ("succeeded", served["serve"])
    rows = INPUTS[:3]
    events = top_1(client, second["id"], inputs=rows.tolist())
    uncertainty = [event["uncertainty"] for event in events]
    np.testing.assert_allclose(uncertainty, own(model, WEIRD, rows), rtol=1e-5)

    further = evaluate(client, second["id"], "again", digits("evaluation.npz")).json()
    measures = further["result"]["events"]["1"]["measures"]
    assert measures.keys() == {f"output:{WEIRD}", "output:confidence"}

    refused = refit(client, first["id"], measures=["output:whole"])
    assert_refused(refused, "config.measures", "'confidence'")


REFUSED_OUTPUTS = [
    ("output:absent", "it has 'logits', 'confidence', "),
    ("output:wide", "'wide' float32 (?, 10)"),
]


@pytest.mark.parametrize(("measure", "named"), REFUSED_OUTPUTS)
def test_what_is_no_scalar_output_is_refused(client, model, measure: str, named: str) -> None:
    refused = of_model(client, model, "entropy", measure)
    assert refused["status"] == UNPROCESSABLE
    (error,) = refused["errors"]
    assert error["location"].startswith("config.measures")
    assert named in error["message"]


def test_a_row_without_a_finite_value_is_refused_by_its_number(client, model) -> None:
    failed = of_model(client, model, "entropy", "output:broken")
    assert failed["status"] == "failed"
    faint = int(np.argmax(INK < FAINT))
    assert failed["error"]["errors"][0]["location"] == f"calibration[{faint}]"

    made = of_model(client, model, f"output:{WEIRD}")
    assert made["status"] == "succeeded", made
    blank = np.zeros_like(INPUTS[:3])
    blank[:2] = INPUTS[:2]
    body = {"calibration": made["id"], "inputs": blank.tolist()}
    assert_refused(client.post("/predict", json=body), "inputs[2]")
