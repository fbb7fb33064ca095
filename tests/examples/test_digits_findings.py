"""Each finding is reported for digits with its fault, and none for digits without."""

import json
from collections.abc import Iterator

import httpx
import numpy as np
import onnxruntime
import pytest
from faulty_uploads import clean_uploads, faulty_uploads, with_factor
from running_service import DIGITS, calibrate, service_on

from howsure.statistics.findings import FINDINGS

BINS = 5
QUICK = {"top_k": [1], "measures": ["margin"], "folds": 2}
CLEAN = ("floats", "bytes", "sorted by class", "logits", "probabilities", "too sure")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with service_on(tmp_path_factory.mktemp("service")) as client:
        yield client


@pytest.fixture(scope="module")
def digits() -> dict[str, object]:
    with np.load(DIGITS / "calibration.npz") as data:
        inputs, labels = data["inputs"].astype(np.float32), data["labels"]
    content = (DIGITS / "model.onnx").read_bytes()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    (logits,) = session.run(None, {given.name: inputs})
    model = with_factor(content, 16.0)
    return {"model": model, "inputs": inputs / 16, "labels": labels, "logits": logits}


def found(client: httpx.Client, parts: dict[str, bytes], **config: object) -> list[dict]:
    answer = calibrate(client, **parts, config=json.dumps(QUICK | {"bins": BINS} | config))
    assert answer.status_code == httpx.codes.CREATED, answer.text
    assert answer.json()["status"] == "succeeded", answer.json()["error"]
    return answer.json()["findings"]


def test_each_finding_has_a_faulty_upload(digits) -> None:
    assert faulty_uploads(**digits).keys() == FINDINGS.keys()
    assert clean_uploads(**digits).keys() == set(CLEAN)


@pytest.mark.parametrize("code", FINDINGS)
def test_each_fault_is_reported(client, digits, code: str) -> None:
    by_code = {
        finding["code"]: finding for finding in found(client, faulty_uploads(**digits)[code])
    }
    finding = by_code[code]
    assert finding["docs"] == f"docs/findings.md#{code}"
    assert finding["figures"]
    assert finding["message"].endswith(".")


@pytest.mark.parametrize("name", CLEAN)
def test_clean_sets_have_no_findings(client, digits, name: str) -> None:
    parts = clean_uploads(**digits)[name]
    assert found(client, parts) == []
    files = [(part, ("a.bin", content)) for part, content in parts.items()]
    config = json.dumps(QUICK | {"bins": BINS})
    tried = client.post(
        "/calibrate", params={"dry_run": True}, files=[*files, ("config", (None, config))]
    )
    assert tried.json()["findings"] == []
