"""Each finding is reported for pictures with its fault, and none for pictures without.

Of the digits, and of Fashion-MNIST where a copy of it lies beside the checkout.
"""

import re

import httpx
import numpy as np
import onnxruntime
import pytest
from fashion_mnist import DATA, REQUIRES_DATA, images_and_labels
from faulty_uploads import clean_uploads, faulty_uploads, with_factor
from running_service import DIGITS, QUICK, calibrated, dry_run

from howsure.statistics.findings import FINDINGS

CLEAN = ("floats", "bytes", "sorted by class", "logits", "probabilities", "pairs")
# Another scale explains another accuracy; the others a dry run, which fits nothing, does not find.
OF_ALL_SAMPLES = {
    *("inputs-out-of-range", "score-near-chance", "accuracy-differs", "samples-in-both-sets"),
    *("surest-answers-denied", "classes-not-predicted", "floats", "pairs"),
}
PAIRS = {"score-reversed", "score-near-chance", "pairs"}
SETS = ["digits", pytest.param("fashion", marks=REQUIRES_DATA)]
EACH_SET = pytest.mark.parametrize("pictures", SETS, indirect=True, scope="module")


def logits_of(model: bytes, inputs: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    (logits,) = session.run(None, {session.get_inputs()[0].name: inputs.astype(np.float32)})
    return logits


@pytest.fixture(scope="module")
def pictures(request: pytest.FixtureRequest) -> dict[str, object]:
    """Pictures of values from 0 to 1, their labels, a model of them, and its logits."""
    if request.param == "digits":
        with np.load(DIGITS / "calibration.npz") as data:
            inputs, labels = data["inputs"].astype(np.float32) / 16, data["labels"]
        model = with_factor((DIGITS / "model.onnx").read_bytes(), 16.0)
    else:
        inputs, labels = (found[:1500] for found in images_and_labels("calibration"))
        model = (DATA / "model.onnx").read_bytes()
    return {"model": model, "inputs": inputs, "labels": labels, "logits": logits_of(model, inputs)}


def findings_of(client: httpx.Client, parts: dict[str, bytes], name: str) -> list[dict]:
    """Return the findings of a quick calibration; pairs have one measure, and take no others."""
    quick = {"folds": 2, "bins": 5} if name in PAIRS else QUICK
    return calibrated(client, quick, full=True, **parts)["findings"]


def findings_of_dry_run(client: httpx.Client, parts: dict[str, bytes], name: str) -> list[dict]:
    content = parts["calibration"]
    others = {part: other for part, other in parts.items() if part != "calibration"}
    options = {"measures": None, "top_k": None, "folds": None} if name in PAIRS else {}
    return dry_run(client, content, **others, **options).raise_for_status().json()["findings"]


@EACH_SET
@pytest.mark.parametrize("code", FINDINGS)
def test_each_fault_is_reported(client, pictures, code: str) -> None:
    parts = faulty_uploads(**pictures)[code]
    find = findings_of if code in OF_ALL_SAMPLES else findings_of_dry_run
    found = {finding["code"]: finding for finding in find(client, parts, code)}
    assert not {"inputs-out-of-range", "accuracy-differs"} <= found.keys()
    finding = found[code]
    assert finding["docs"] == f"docs/findings.md#{code}"
    assert finding["figures"]
    assert finding["message"].endswith(".")
    assert not re.search(r"\d%", finding["message"])


@EACH_SET
@pytest.mark.parametrize("name", CLEAN)
def test_clean_sets_have_no_findings(client, pictures, name: str) -> None:
    find = findings_of if name in OF_ALL_SAMPLES else findings_of_dry_run
    assert find(client, clean_uploads(**pictures)[name], name) == []
