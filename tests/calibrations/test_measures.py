"""Energy and supplied uncertainty measures are served, or refused."""

import json

import httpx
import numpy as np
import pytest
from running_service import calibrate, calibrated, npz
from scipy.special import logsumexp

rng = np.random.default_rng(12)
ROWS = 400
LOGITS = rng.normal(size=(ROWS, 4)) * 3
LABELS = np.array([rng.choice(4, p=np.exp(z - logsumexp(z))) for z in LOGITS])
OUTPUTS = {"logits": LOGITS, "labels": LABELS}


def made(client, config: dict, **arrays) -> dict:
    return calibrate(client, calibration=npz(**arrays), config=json.dumps(config)).json()


def test_energy_is_served(client) -> None:
    calibrated(client, {"name": "energy", "measures": ["energy"]}, calibration=npz(**OUTPUTS))
    body = {"calibration": "energy", "logits": LOGITS[:5].tolist()}
    predictions = client.post("/predict", json=body).json()["predictions"]
    found = [prediction["top1"]["uncertainty"] for prediction in predictions]
    assert found == pytest.approx(-logsumexp(LOGITS[:5], axis=1), rel=1e-5)


def test_energy_needs_logits(client) -> None:
    probabilities = np.exp(LOGITS - logsumexp(LOGITS, axis=1, keepdims=True))
    answer = made(client, {"measures": ["energy"]}, probabilities=probabilities, labels=LABELS)

    assert answer["status"] == 422
    assert answer["errors"][0]["location"] == "config.measures"
    assert "logits" in answer["detail"]


def test_a_supplied_measure_is_served_where_it_is_named(client) -> None:
    ours = (rng.random(ROWS) + (LOGITS.argmax(1) != LABELS)).astype(np.float32)
    parts = {"calibration": npz(**OUTPUTS, uncertainty_ours=ours)}
    config = {"top_k": [1], "measures": ["entropy", "supplied:ours"], "bins": 4}
    by_default = calibrated(client, config, **parts)
    assert by_default["serve"] == {"1": "entropy"}, "one that is supplied never serves by default"

    named = calibrated(client, config | {"serve": {"1": "supplied:ours"}}, **parts)
    assert named["serve"] == {"1": "supplied:ours"}
    body = {"calibration": named["id"], "logits": LOGITS[:2].tolist()}
    answer = client.post("/predict", json=body | {"supplied": {"ours": [0.01, 1.9]}})
    assert answer.status_code == httpx.codes.OK, answer.text
    certain, uncertain = answer.json()["predictions"]
    assert certain["top1"]["probability"] > uncertain["top1"]["probability"]
    assert uncertain["top1"]["uncertainty"] == pytest.approx(1.9)


@pytest.mark.parametrize("measure", ["supplied:missing", "supplied:", "supplied:ours"])
def test_bad_supplied_measures(client, measure: str) -> None:
    ours = np.ones(ROWS, np.float32)
    config = {"measures": [measure]}
    answer = made(client, config, **OUTPUTS, uncertainty_ours=ours)
    assert answer["status"] == 422
    assert any(e["location"].startswith("config.measures") for e in answer["errors"])
