"""Smooth and learned answers are equal in every bit, in every form and with and without arrays.

A run of an ONNX model may differ in its last bits with the rows beside a row, so its requests of
other sizes get answers that are only near.
"""

import io

import httpx
import numpy as np
import pytest
from graph_models import passthrough
from model_services import quick
from plain_answers import arrays_of
from request_formats import (
    as_json,
    as_npz,
    as_tensors_in_json,
    as_tensors_with_bytes_back,
    outputs_of,
)
from running_service import calibrated, evaluate, npz, refit
from scipy.special import softmax

N_ROWS = 400
# Up to 24 rows are answered without arrays.
SIZES = (1, 2, 7, 24, 25, 300)


def scores_set(n_classes: int, kind: str, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return class scores and labels: some rows are certain to float32, some are ties."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, n_classes)) * rng.choice([0.5, 2.0, 6.0, 60.0], (n, 1))
    labels = (logits / 1.7 + rng.gumbel(size=logits.shape)).argmax(axis=1)
    logits[:3] = 0.0
    logits = logits.astype(np.float32)
    return (softmax(logits, axis=1) if kind == "probabilities" else logits), labels


WITHOUT = "10 logits without a model"
CASES = {
    "10 logits": (10, "logits", True),
    "2 logits": (2, "logits", True),
    "1000 logits": (1000, "logits", True),
    "10 probabilities": (10, "probabilities", True),
    "2 probabilities": (2, "probabilities", True),
    WITHOUT: (10, "logits", False),
    "10 probabilities without a model": (10, "probabilities", False),
}


@pytest.fixture(scope="module", params=quick(CASES, "2 probabilities", WITHOUT))
def case(request, client) -> tuple[str, str, np.ndarray]:
    """Calibrate; return the calibration's id, what requests hold, and rows."""
    n_classes, kind, has_model = request.param
    scores, labels = scores_set(n_classes, kind, 600, seed=1)
    name = "inputs" if has_model else kind
    top_k = [1] if n_classes == 2 else [1, 5]
    made = calibrated(
        client,
        {"name": "bits", "measures": ["learned"], "top_k": top_k},
        model=passthrough(shape=("N", n_classes)).SerializeToString() if has_model else None,
        calibration=npz(labels=labels, **{name: scores}),
    )
    assert made["config"]["lookup"] == "smooth"
    rows, _ = scores_set(n_classes, kind, N_ROWS, seed=2)
    return f"bits@{made['version']}", name, rows


def predicted(client: httpx.Client, reference: str, kind: str, rows: np.ndarray) -> list[dict]:
    answer = as_json(reference, kind, rows).by(client)
    assert answer.status_code == httpx.codes.OK, answer.text
    return answer.json()["predictions"]


def test_requests_of_any_size_get_the_same_answers(client, case) -> None:
    expected = predicted(client, *case)
    reference, kind, rows = case
    assert len({row["top1"]["probability"] for row in expected}) > N_ROWS / 4
    for size in SIZES:
        starts = range(0, min(N_ROWS, 30 * size), size)
        parts = [rows[start : start + size] for start in starts]
        answers = [row for part in parts for row in predicted(client, reference, kind, part)]
        if kind == "inputs":
            check_near(answers, expected[: len(answers)])
        else:
            assert answers == expected[: len(answers)], size


def check_near(predictions: list[dict], expected: list[dict]) -> None:
    ours, theirs = arrays_of(predictions), arrays_of(expected)
    assert ours.keys() == theirs.keys()
    for name, values in theirs.items():
        if values.dtype.kind == "f":
            tolerance = 1e-4 if name.endswith("uncertainty") else 1e-6
            np.testing.assert_allclose(ours[name], values, rtol=1e-6, atol=tolerance, err_msg=name)
        else:
            np.testing.assert_array_equal(ours[name], values, err_msg=name)


@pytest.mark.parametrize("form", [as_npz, as_tensors_in_json, as_tensors_with_bytes_back])
def test_every_form_has_the_same_bits(client, case, form) -> None:
    reference, kind, rows = case
    model = reference if form is as_npz else reference.replace("@", "/versions/")
    for size in (1, 24, N_ROWS):
        for start in range(0, min(N_ROWS, 20 * size), size):
            part = rows[start : start + size]
            answer = form(model, kind, part).by(client)
            is_npz = form is as_npz
            arrays = dict(np.load(io.BytesIO(answer.content))) if is_npz else outputs_of(answer)
            expected = arrays_of(predicted(client, reference, kind, part))
            assert arrays.keys() == expected.keys()
            for name, values in expected.items():
                same_type = values.astype(np.float32) if values.dtype.kind == "f" else values
                np.testing.assert_array_equal(arrays[name], same_type, err_msg=name)


def test_a_refit_has_the_same_curve_and_formula(client, case) -> None:
    """Neither depends on the bins."""
    reference, kind, rows = case
    again = refit(client, reference, bins=4).json()
    assert again["status"] == "succeeded", again["error"]
    assert again["serve"] == dict.fromkeys(again["serve"], "learned")
    before = predicted(client, reference, kind, rows)
    after = predicted(client, again["id"], kind, rows)
    for one, other in zip(before, after, strict=True):
        for event in (name for name in one if name.startswith("top")):
            assert other[event].pop("bin") <= 3
            del one[event]["bin"]
            assert one[event] == other[event]


def test_an_evaluation_judges_the_answers(client, case) -> None:
    reference, kind, rows = case
    scale = "probabilities" if np.all(rows >= 0) else "logits"
    scores, labels = scores_set(rows.shape[1], scale, 500, seed=3)
    answer = evaluate(client, reference, "later", npz(labels=labels, **{kind: scores}))
    result = answer.json()["result"]
    assert result is not None, answer.text
    probability = [row["top1"]["probability"] for row in predicted(client, reference, kind, scores)]
    brier = np.mean((np.array(probability) - (scores.argmax(axis=1) == labels)) ** 2)
    served = result["events"]["1"]["measures"]["learned"]["scores"]
    assert served["brier"] == pytest.approx(brier, abs=1e-5)
