"""Services with models of their own: passes, ensembles, pictures."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import onnx
import pytest
from bins_documents import answers, digits_set
from graph_models import node, run_session, value
from numpy.typing import NDArray
from running_service import DIGITS, calibrate, calibrated, npz
from scipy.special import softmax

PASSES = Path(__file__).parents[2] / "data" / "passes"
MEMBERS = ("member_0.onnx", "member_1.onnx", "member_2.onnx")
BASE = {"top_k": [1], "bins": 5, "folds": 2}


def model_file(name: str) -> bytes:
    """Return one of the models."""
    return (PASSES / name).read_bytes()


def labelled_sets(name: str = "digits_passes.npz") -> dict[str, NDArray[Any]]:
    """Return the inputs and labels of both halves."""
    with np.load(PASSES / name) as arrays:
        return dict(arrays)


def as_file(sets: dict[str, NDArray[Any]], half: str = "calibration", n: int = 600) -> bytes:
    """Return the first samples of a half as the bytes of a data file."""
    return npz(inputs=sets[f"{half}_inputs"][:n], labels=sets[f"{half}_labels"][:n])


def calibrate_models(
    client: httpx.Client, models: list[bytes], config: dict[str, Any], **sets: bytes
) -> httpx.Response:
    """POST /calibrate with any number of models and a configuration that takes little time."""
    return calibrate(client, model=models, config=json.dumps(BASE | config), **sets)


def predictions(client: httpx.Client, calibration: str, rows: NDArray[Any]) -> list[dict[str, Any]]:
    """Return what /predict answers."""
    return answers(client, calibration, inputs=rows.tolist())


def uncertainties(found: list[dict[str, Any]]) -> NDArray[np.float64]:
    """Return the uncertainty of the Top-1 event, row by row."""
    return np.array([prediction["top1"]["uncertainty"] for prediction in found])


def probabilities(model: bytes | onnx.ModelProto, rows: NDArray[Any]) -> NDArray[np.float64]:
    """Return the softmax of a model's logits, in float64."""
    logits = run_session(model, {"inputs": rows})["logits"]
    return softmax(logits.astype(np.float64), axis=1)


@dataclass(frozen=True)
class Case:
    """What is sent, and how often the model then runs for a row."""

    measure: str
    models: tuple[str, ...]
    config: dict[str, Any]
    runs: int


DROPOUT, PASSES_OF_NOISE = {"dropout": {"passes": 6}}, {"ensemble": {"passes": 6}}
LAST_LAYER = "last_layer_dropout_variance"
CASES = {
    "dropout": Case("dropout_variance", ("hidden_dropout_cnn.onnx",), DROPOUT, 7),
    "dropout, opset 23": Case("dropout_variance", ("hidden_dropout_cnn_dynamo.onnx",), DROPOUT, 7),
    "last layer": Case(LAST_LAYER, ("small_cnn.onnx",), DROPOUT, 1),
    "1x1 Conv": Case(LAST_LAYER, ("squeezenet_like.onnx",), DROPOUT, 1),
    "ensemble": Case("ensemble_variance", MEMBERS, {}, 3),
    "variational": Case("ensemble_variance", ("variational_mlp.onnx",), PASSES_OF_NOISE, 6),
    "variational, opset 23": Case(
        "ensemble_variance", ("variational_mlp_dynamo.onnx",), PASSES_OF_NOISE, 6
    ),
    "gradient": Case("gradient_norm", ("small_cnn.onnx",), {"gradient": {"directions": 6}}, 13),
    "Jacobian": Case("jacobian_norm", ("small_cnn.onnx",), {"gradient": {"directions": 6}}, 13),
}


def started(client: httpx.Client, case: Case, **config: Any) -> dict[str, Any]:
    """Calibrate so that the case's measure serves, and return the resource."""
    sets = labelled_sets()
    # A step does not move with the last bits of a measure, which depend on the batch.
    asked = {"measures": ["entropy", case.measure], "serve": {"1": case.measure}, "lookup": "step"}
    return calibrated(
        client,
        BASE | asked | case.config | config,
        model=[model_file(name) for name in case.models],
        calibration=as_file(sets),
        evaluation=as_file(sets, "evaluation", 200),
    )


SIDE = 8
# A name of an output that is markup to pages that do not escape it.
HOSTILE = "<b>it's</b> $(id) אבג"


def picture_model() -> bytes:
    """Return the example's model behind an input ``image``, uint8 of shape [N, 1, 8, 8].

    One more output is the largest logit with its sign changed.
    """
    model = onnx.load(DIGITS / "model.onnx")
    (flat,) = model.graph.input
    kind = flat.type.tensor_type.elem_type
    image = value("image", ["N", 1, SIDE, SIDE], kind)
    model.graph.node.insert(0, node("Flatten", ["image"], [flat.name]))
    model.graph.node.extend(
        [
            node("ReduceMax", ["logits"], ["largest"], axes=[1], keepdims=0),
            node("Neg", ["largest"], [HOSTILE]),
        ]
    )
    model.graph.output.append(value(HOSTILE, ("N",)))
    del model.graph.input[:]
    model.graph.input.append(image)
    return model.SerializeToString()


def picture_set(part: str = "calibration") -> tuple[np.ndarray, np.ndarray]:
    """Return the example's pictures, [600, 1, 8, 8], and their labels."""
    arrays = digits_set(part)
    return arrays["inputs"].reshape(-1, 1, SIDE, SIDE), arrays["labels"]


def packed_set(part: str = "calibration") -> bytes:
    pictures, labels = picture_set(part)
    return npz(image=pictures, labels=labels)


def calibrate_pictures(
    client: httpx.Client, *, evaluation: bytes | None = None, **config: Any
) -> dict[str, Any]:
    """Calibrate them; return the calibration."""
    sets = {"calibration": packed_set(), "evaluation": evaluation}
    return calibrated(client, config, model=picture_model(), **sets)


def scores_and_labels(n_classes: int, kind: str, n: int, seed: int) -> tuple[np.ndarray, ...]:
    """Return scores, some certain to float32 and some ties, and labels for which classes differ."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, n_classes)) * rng.choice([0.5, 2.0, 6.0, 60.0], (n, 1))
    noise = rng.gumbel(size=logits.shape) * (0.5 + np.arange(n_classes) / n_classes)
    labels = (logits + noise).argmax(axis=1)
    logits[:3] = 0.0
    scores = softmax(logits, axis=1) if kind == "probabilities" else logits
    return scores.astype(np.float32), labels


def quick(cases: Mapping[str, Any], *names: str) -> list[Any]:
    """Return parameters of a test: the cases by name, all but the named ones marked as slow."""
    missing = set(names) - set(cases)
    assert not missing, missing
    return [
        pytest.param(case, id=name, marks=[] if name in names else [pytest.mark.slow])
        for name, case in cases.items()
    ]
