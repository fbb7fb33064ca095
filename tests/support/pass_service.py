"""Calibrations, over HTTP, of the models whose repeated runs differ."""

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray

PASSES = Path(__file__).parents[1] / "data" / "passes"
MEMBERS = ("member_0.onnx", "member_1.onnx", "member_2.onnx")
BASE = {"top_k": [1], "bins": 5, "folds": 2}


def model_file(name: str) -> bytes:
    """Return one of the models."""
    return (PASSES / name).read_bytes()


def npz(**arrays: Any) -> bytes:
    """Return arrays as the bytes of a file."""
    text = io.BytesIO()
    np.savez(text, **arrays)
    return text.getvalue()


def labelled_sets(name: str = "digits_passes.npz") -> dict[str, NDArray[Any]]:
    """Return the inputs and labels of both halves."""
    with np.load(PASSES / name) as arrays:
        return dict(arrays)


def as_file(sets: dict[str, NDArray[Any]], half: str = "calibration", n: int = 600) -> bytes:
    """Return the first samples of a half as the bytes of a data file."""
    return npz(inputs=sets[f"{half}_inputs"][:n], labels=sets[f"{half}_labels"][:n])


def calibrate_models(
    client: httpx.Client,
    models: list[bytes],
    config: dict[str, Any],
    *,
    calibration: bytes,
    evaluation: bytes | None = None,
) -> httpx.Response:
    """POST /calibrate with any number of models, and wait."""
    parts: list[tuple[str, Any]] = [("model", ("model.onnx", model)) for model in models]
    parts.append(("calibration", ("calibration.npz", calibration)))
    if evaluation is not None:
        parts.append(("evaluation", ("evaluation.npz", evaluation)))
    parts.append(("config", (None, json.dumps(BASE | config))))
    return client.post("/calibrate", files=parts, headers={"Prefer": "wait=120"})


def predictions(client: httpx.Client, calibration: str, rows: NDArray[Any]) -> list[dict[str, Any]]:
    """Return what /predict answers."""
    answer = client.post("/predict", json={"calibration": calibration, "inputs": rows.tolist()})
    assert answer.status_code == httpx.codes.OK, answer.text
    found: list[dict[str, Any]] = answer.json()["predictions"]
    return found


def uncertainties(found: list[dict[str, Any]]) -> NDArray[np.float64]:
    """Return the uncertainty of the Top-1 event, row by row."""
    return np.array([prediction["top1"]["uncertainty"] for prediction in found])


def probabilities(model: bytes | onnx.ModelProto, rows: NDArray[Any]) -> NDArray[np.float64]:
    """Return the softmax of a model's logits, in float64."""
    data = model if isinstance(model, bytes) else model.SerializeToString()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    (logits,) = session.run(["logits"], {"inputs": rows})
    weights = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def spread(passes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the 2-norm of the covariance over passes, of (passes, rows, classes), by numpy."""
    rows = np.swapaxes(passes, 0, 1)
    return np.array([np.linalg.norm(np.cov(row, rowvar=False), 2) for row in rows])


@dataclass(frozen=True)
class Case:
    """What is sent, and how often the model then runs for a row."""

    measure: str
    models: tuple[str, ...]
    config: dict[str, Any]
    runs: int


CASES = {
    "dropout": Case(
        "dropout_variance", ("hidden_dropout_cnn.onnx",), {"dropout": {"passes": 6}}, 7
    ),
    "dropout, opset 23": Case(
        "dropout_variance", ("hidden_dropout_cnn_dynamo.onnx",), {"dropout": {"passes": 6}}, 7
    ),
    "last layer": Case(
        "last_layer_dropout_variance", ("small_cnn.onnx",), {"dropout": {"passes": 6}}, 1
    ),
    "1x1 Conv": Case(
        "last_layer_dropout_variance", ("squeezenet_like.onnx",), {"dropout": {"passes": 6}}, 1
    ),
    "ensemble": Case("ensemble_variance", MEMBERS, {}, 3),
    "variational": Case(
        "ensemble_variance", ("variational_mlp.onnx",), {"ensemble": {"passes": 6}}, 6
    ),
    "variational, opset 23": Case(
        "ensemble_variance", ("variational_mlp_dynamo.onnx",), {"ensemble": {"passes": 6}}, 6
    ),
    "gradient": Case("gradient_norm", ("small_cnn.onnx",), {"gradient": {"directions": 6}}, 13),
}


def started(client: httpx.Client, case: Case, **config: Any) -> dict[str, Any]:
    """Calibrate so that the case's measure serves, and return the resource."""
    sets = labelled_sets()
    asked = {"measures": ["entropy", case.measure], "serve": {"1": case.measure}}
    answer = calibrate_models(
        client,
        [model_file(name) for name in case.models],
        asked | case.config | config,
        calibration=as_file(sets),
        evaluation=as_file(sets, "evaluation", 200),
    )
    found: dict[str, Any] = answer.json()
    assert answer.status_code == httpx.codes.CREATED, answer.text
    assert found["status"] == "succeeded", found["error"]
    return found
