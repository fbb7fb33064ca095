"""Measures from scalar outputs of the model are fitted, served, refitted and refused."""

import io
import json

import httpx
import numpy as np
import onnx
import onnxruntime
import pytest
from job_workspaces import logits_set
from onnx import TensorProto, helper, numpy_helper
from running_service import calibrate, digits, evaluate, refit

SET = np.load(io.BytesIO(digits("calibration.npz")))
INPUTS = SET["inputs"].astype(np.float32)
INK = INPUTS.sum(axis=1)
FAINT = float(np.sort(INK)[3:5].mean())  # four rows have less ink
WEIRD = "head/log ink: é|1"
BASE = {"top_k": [1], "bins": 5}


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
    made.graph.initializer.extend(
        [
            numpy_helper.from_array(np.array([1]), "axis"),
            numpy_helper.from_array(np.array(FAINT, np.float32), "faint"),
        ]
    )
    shapes = {"confidence": ("N", 1), WEIRD: ("N",), "broken": ("N",), "wide": ("N", 10)}
    outputs = [helper.make_tensor_value_info(n, 1, s) for n, s in shapes.items()]
    outputs.append(helper.make_tensor_value_info("whole", TensorProto.INT64, ("N",)))
    made.graph.output.extend(outputs)
    return made.SerializeToString()


def made(client: httpx.Client, model: bytes, config: dict) -> dict:
    parts = {"model": model, "calibration": digits("calibration.npz")}
    return calibrate(client, config=json.dumps(BASE | config), **parts).json()


def predicted(client: httpx.Client, calibration: str, rows: np.ndarray) -> httpx.Response:
    return client.post("/predict", json={"calibration": calibration, "inputs": rows.tolist()})


def own(model: bytes, name: str, rows: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return session.run([name], {"inputs": rows})[0].ravel()


@pytest.mark.parametrize("name", [WEIRD, "whole"])
def test_it_is_served_where_it_is_named(client, model, name: str) -> None:
    measure = f"output:{name}"
    config = {"measures": ["entropy", measure], "serve": {"1": measure}}
    found = made(client, model, config)
    assert found["status"] == "succeeded", found
    assert found["model"]["output"]["name"] == "logits"
    assert found["serve"] == {"1": measure}

    answer = predicted(client, found["id"], INPUTS[:40])
    assert answer.status_code == httpx.codes.OK, answer.text
    events = [prediction["top1"] for prediction in answer.json()["predictions"]]
    assert {event["measure"] for event in events} == {measure}
    np.testing.assert_allclose(
        [event["uncertainty"] for event in events], own(model, name, INPUTS[:40]), rtol=1e-5
    )
    report = client.get("/report", params={"calibration": found["id"]}).json()
    table = report["events"]["1"]["measures"][measure]
    edges = np.array([row["upper"] for row in table["bins"][:-1]])
    bins = np.searchsorted(edges, own(model, name, INPUTS[:40]))
    assert [event["bin"] for event in events] == bins.tolist()


def test_it_serves_by_default_where_it_is_best(client, model) -> None:
    found = made(client, model, {"measures": [f"output:{WEIRD}", "output:confidence"]})
    assert found["serve"] == {"1": "output:confidence"}, "the ink says nothing of errors"


def test_refits_and_further_sets_have_it_too(client, model) -> None:
    first = made(client, model, {"name": "refitted", "measures": ["entropy", "output:confidence"]})
    second = refit(client, first["id"], bins=7, serve={"1": "output:confidence"}).json()
    assert (second["status"], second["serve"]) == ("succeeded", {"1": "output:confidence"})
    rows = INPUTS[:3]
    answer = predicted(client, second["id"], rows).json()["predictions"]
    expected = own(model, "confidence", rows)
    np.testing.assert_allclose([p["top1"]["uncertainty"] for p in answer], expected, rtol=1e-5)

    further = evaluate(client, second["id"], "again", digits("evaluation.npz")).json()
    assert further["status"] == "succeeded", further
    assert further["result"]["events"]["1"]["measures"].keys() == {"entropy", "output:confidence"}

    refused = refit(client, first["id"], measures=[f"output:{WEIRD}"])
    assert refused.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    (error,) = refused.json()["errors"]
    assert error["location"] == "config.measures"
    assert "the records hold no output" in error["message"]
    assert "'confidence'" in error["message"]


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        ("output:absent", "no output 'absent'; it has 'logits', 'confidence', "),
        ("output:wide", "'wide' float32 (?, 10) is no measure"),
        ("output:", "followed by the name of an output"),
        ("output:a\nb", "printable characters"),
    ],
)
def test_what_is_no_scalar_output_is_refused(client, model, measure: str, message: str) -> None:
    refused = made(client, model, {"measures": ["entropy", measure], "output": {"name": "logits"}})
    assert refused["status"] == httpx.codes.UNPROCESSABLE_ENTITY
    (error,) = refused["errors"]
    assert error["location"].startswith("config.measures")
    assert message in error["message"]


def test_uploaded_outputs_have_none(client) -> None:
    config = json.dumps({"measures": ["output:x"]})
    refused = calibrate(client, calibration=logits_set(), config=config).json()
    assert refused["status"] == httpx.codes.UNPROCESSABLE_ENTITY
    assert refused["errors"][0]["location"] == "config.measures"
    assert "needs an ONNX model" in refused["detail"]


def test_a_row_without_a_finite_value_is_refused_by_its_number(client, model) -> None:
    named = {"measures": ["entropy", "output:broken"], "output": {"name": "logits"}}
    failed = made(client, model, named)
    assert failed["status"] == "failed"
    faint = int(np.argmax(INK < FAINT))
    assert failed["error"]["errors"][0]["location"] == f"calibration[{faint}]"

    config = {"measures": [f"output:{WEIRD}"], "output": {"name": "logits"}}
    found = made(client, model, config)
    assert found["status"] == "succeeded", found
    blank = np.zeros_like(INPUTS[:3])
    blank[:2] = INPUTS[:2]
    refused = predicted(client, found["id"], blank)
    assert refused.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert refused.json()["errors"][0]["location"] == "inputs[2]"
