"""Each finding is made of real pictures with its fault, and none of the sets without.

The smaller equivalent is tests/examples/test_digits_findings.py.
"""

import httpx
import numpy as np
import onnxruntime
import pytest
from fashion_mnist import DATA, REQUIRES_DATA, images_and_labels, logits_of
from faulty_uploads import clean_uploads, faulty_uploads, of
from running_service import calibrate, quick_config

from howsure.statistics.findings import FINDINGS

pytestmark = REQUIRES_DATA
N_SAMPLES = 1500


@pytest.fixture(scope="module")
def network() -> dict[str, object]:
    inputs, labels = (found[:N_SAMPLES] for found in images_and_labels("calibration"))
    content, logits = (DATA / "model.onnx").read_bytes(), logits_of("model", inputs)
    return {"model": content, "inputs": inputs, "labels": labels, "logits": logits}


def found(client: httpx.Client, parts: dict[str, bytes]) -> list[dict]:
    answer = calibrate(client, **parts, config=quick_config())
    assert answer.status_code == httpx.codes.CREATED, answer.text
    assert answer.json()["status"] == "succeeded", answer.json()["error"]
    return answer.json()["findings"]


@pytest.mark.parametrize("code", FINDINGS)
def test_each_fault_is_found(client, network, code: str) -> None:
    assert code in {finding["code"] for finding in found(client, faulty_uploads(**network)[code])}


def test_raw_bytes_into_the_float_model_are_told_with_their_figures(client, network) -> None:
    pixels = np.round(network["inputs"] * 255).astype(np.uint8)
    parts = {"model": network["model"], "calibration": of(pixels, network["labels"])}
    (finding,) = found(client, parts)
    assert finding["code"] == "inputs-not-scaled"
    session = onnxruntime.InferenceSession(network["model"], providers=["CPUExecutionProvider"])
    (raw,) = session.run(None, {"input": pixels[:256].astype(np.float32)})
    labels = network["labels"][:256]
    assert finding["figures"]["accuracy"] == np.mean(raw.argmax(axis=1) == labels)
    right = network["logits"][:256].argmax(axis=1) == labels
    assert finding["figures"]["rescaled_accuracy"] == pytest.approx(np.mean(right), abs=1e-9)


def test_nothing_is_found_of_clean_sets(client, network) -> None:
    for name, parts in clean_uploads(**network).items():
        assert found(client, parts) == [], name


@pytest.mark.parametrize(
    ("model", "calibration"),
    [
        ("model_uint8.onnx", "calibration.npz"),
        ("model_overconfident.onnx", "calibration_float32.npz"),
    ],
)
def test_nothing_is_found_of_other_models(client, model: str, calibration: str) -> None:
    content = {"model": DATA / model, "calibration": DATA / calibration}
    assert found(client, {part: path.read_bytes() for part, path in content.items()}) == []
