"""Weights and groups in reports: rates of the population that the weights describe."""

from typing import Any

import numpy as np
import pytest
from page_visitor import text_of
from running_service import calibrated, evaluate, npz

# Of the traffic; a set has equally many samples of each class.
SHARES = np.array([0.75, 0.2, 0.05])
# How well the model tells the samples of a class from others.
CLARITY = np.array([1.2, 3.0, 5.0])


def draw(seed: int, shares: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.choice(3, n, p=shares)
    logits = rng.normal(size=(n, 3))
    logits[np.arange(n), labels] += CLARITY[labels]
    return logits, labels


def balanced(seed: int, n: int = 3000) -> dict[str, np.ndarray]:
    logits, labels = draw(seed, np.full(3, 1 / 3), n)
    return {"logits": logits, "labels": labels, "weight": 3 * SHARES[labels]}


@pytest.fixture(scope="module")
def weighted(client) -> dict[str, Any]:
    config = {"name": "balanced", "selective": [{"max_risk": 0.2}], "measures": ["entropy"]}
    made = calibrated(client, config, calibration=npz(**balanced(1)))
    evaluate(client, made["id"], "more", npz(**balanced(2)))
    return made


def test_the_accuracy_is_one_number_and_that_of_the_traffic(client, weighted) -> None:
    of, names = {"calibration": weighted["id"]}, ("json", "html", "markdown")
    forms = {name: client.get("/report", params=of | {"format": name}) for name in names}
    report = forms["json"].json()
    logits, labels = draw(3, SHARES, 100_000)
    traffic = np.mean(logits.argmax(axis=1) == labels)
    figure = report["events"]["1"]["figures"]["accuracy"]
    assert figure["value"] == pytest.approx(report["events"]["1"]["accuracy"])
    assert figure["weighted"]
    assert figure["interval"][0] < traffic < figure["interval"][1]
    found = balanced(1)
    plain = np.mean(found["logits"].argmax(axis=1) == found["labels"])
    assert plain > figure["interval"][1], "what the samples count as one would say"
    lower, upper = (f"{100 * end:.1f} %" for end in figure["interval"])
    assert f"{lower} to {upper}, weighted" in text_of(forms["html"].text)
    assert f"{figure['value']:.4f}" in forms["markdown"].text
    assert f"{plain:.4f}" not in forms["markdown"].text


def test_a_preview_and_a_further_set_give_rates_of_the_traffic(client, weighted) -> None:
    at = f"/calibrations/{weighted['id']}/operating-points/preview"
    seen = client.get(at, params={"coverage": 0.6, "volume": 1000}).json()
    found = seen["consequences"]
    assert found["coverage"] == pytest.approx(0.6, abs=0.01)
    assert found["n_accepted"] / found["n_samples"] > 0.7
    assert seen["expected"]["accepted"] == pytest.approx(1000 * found["coverage"])
    assert seen["expected"]["errors"] == pytest.approx(1000 * found["coverage"] * found["risk"])
    assert found["risk"] == found["effective"]["share"] > found["n_errors"] / found["n_accepted"]
    report = client.get(f"/report?calibration={weighted['id']}").json()
    (more,) = report["evaluations"]
    (accepted,) = more["events"]["1"]["accepted"]
    risk = report["events"]["1"]["figures"]["risk"]["value"]
    assert accepted["risk"] == accepted["effective"]["share"] == pytest.approx(risk, abs=0.03)
    assert more["events"]["1"]["verdict"] == "no shift seen"
