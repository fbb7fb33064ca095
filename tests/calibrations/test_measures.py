"""Energy and supplied uncertainty measures."""

import io
import json

import httpx
import numpy as np
import pytest
from predict_bodies import npz
from running_service import calibrate, digits
from scipy.special import logsumexp
from uploads import calibrated

DATA = np.load(io.BytesIO(digits("calibration.npz")))
rng = np.random.default_rng(12)
ROWS = 400
LOGITS = rng.normal(size=(ROWS, 4)) * 3
LABELS = np.array([rng.choice(4, p=np.exp(z - logsumexp(z))) for z in LOGITS])


def made(client, config: dict, **arrays) -> dict:
    return calibrate(client, calibration=npz(**arrays), config=json.dumps(config)).json()


def test_energy_is_served(client) -> None:
    config = {"name": "energy", "measures": ["energy"], "bins": 5}
    found = calibrated(
        client, config, model=digits("model.onnx"), calibration=digits("calibration.npz")
    )
    assert found["serve"] == {"1": "energy", "5": "energy"}
    body = {"calibration": "energy", "inputs": DATA["inputs"][:5].tolist()}
    predictions = client.post("/predict", json=body).json()["predictions"]
    lines = digits("calibration_logits.csv").decode().splitlines()
    header = lines[0].split(",")
    order = [header.index(f"logit_{i}") for i in range(10)]
    for line, prediction in zip(lines[1:6], predictions, strict=True):
        logits = np.array([float(line.split(",")[i]) for i in order])
        assert prediction["top1"]["uncertainty"] == pytest.approx(-logsumexp(logits), rel=1e-5)


def test_energy_needs_logits(client) -> None:
    probabilities = np.exp(LOGITS - logsumexp(LOGITS, axis=1, keepdims=True))
    answer = made(client, {"measures": ["energy"]}, probabilities=probabilities, labels=LABELS)

    assert answer["status"] == 422
    assert answer["errors"][0]["location"] == "config.measures"
    assert "logits" in answer["detail"]


def test_a_supplied_measure_is_served_where_it_is_named(client) -> None:
    ours = (rng.random(ROWS) + (LOGITS.argmax(1) != LABELS)).astype(np.float32)
    arrays = {"logits": LOGITS, "labels": LABELS, "uncertainty_ours": ours}
    config = {
        "name": "supplied",
        "top_k": [1],
        "measures": ["entropy", "supplied:ours"],
        "bins": 4,
    }
    by_default = made(client, config, **arrays)
    assert by_default["status"] == "succeeded", by_default["error"]
    assert by_default["serve"] == {"1": "entropy"}, "one that is supplied never serves by default"

    named = made(client, config | {"serve": {"1": "supplied:ours"}}, **arrays)
    assert named["serve"] == {"1": "supplied:ours"}
    body = {"calibration": named["id"], "logits": LOGITS[:2].tolist()}
    answer = client.post("/predict", json=body | {"supplied": {"ours": [0.01, 1.9]}})
    assert answer.status_code == httpx.codes.OK, answer.text
    certain, uncertain = answer.json()["predictions"]
    assert certain["top1"]["probability"] > uncertain["top1"]["probability"]
    assert uncertain["top1"]["uncertainty"] == pytest.approx(1.9)

    for supplied, part in (
        (None, "supplied.ours"),
        ({"ours": [0.1]}, "supplied.ours"),
        ({"ours": [0.1, "x"]}, "supplied.ours"),
        ({"ours": [0.1, 0.2], "other": [1, 2]}, "supplied"),
    ):
        extra = {} if supplied is None else {"supplied": supplied}
        refused = client.post("/predict", json=body | extra)
        assert refused.status_code == 422
        assert refused.json()["errors"][0]["location"].startswith(part)


@pytest.mark.parametrize("measure", ["supplied:missing", "supplied:", "supplied:ours"])
def test_bad_supplied_measures(client, measure: str) -> None:
    ours = np.ones(ROWS, np.float32)
    config = {"measures": [measure]}
    answer = made(client, config, logits=LOGITS, labels=LABELS, uncertainty_ours=ours)
    assert answer["status"] == 422
    assert any(e["location"].startswith("config.measures") for e in answer["errors"])
