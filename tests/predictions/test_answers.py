"""Answers: what the tables and formulas say, with the same bits in every form.

A run of an ONNX model may differ in its last bits with the rows beside a row, so its requests of
other sizes get answers that are only near.
"""

import io

import httpx
import msgspec
import numpy as np
import pytest
from bins_documents import digits_set, exported, learned_uncertainty, looked_up, served_table
from graph_models import passthrough
from model_services import (
    MEMBERS,
    as_file,
    labelled_sets,
    model_file,
    predictions,
    probabilities,
    quick,
    scores_and_labels,
    uncertainties,
)
from plain_answers import arrays_of, assert_says
from request_formats import (
    as_json,
    as_npz,
    as_tensors_in_json,
    as_tensors_with_bytes_back,
    outputs_of,
)
from running_service import calibrated, digits, evaluate, npz, refit

N_ROWS = 400
# Up to 24 rows are answered without arrays.
SIZES = (1, 2, 7, 24, 25, 300)
SETS = labelled_sets()
ROWS = SETS["evaluation_inputs"][:100]


LEARNED = {"measures": ["learned"], "top_k": [1, 5]}
OF_TWO = LEARNED | {"top_k": [1]}
# One risk has a threshold and one has none; labels that JSON escapes.
STEPS = {"lookup": "step", "selective": [{"max_risk": 0.4}, {"max_risk": 1e-6}], "top_k": [1, 2]}
STEPS["classes"] = ['"', "\\", "%b", "é☃"]
# Classes, kind of scores, whether a model gives them, and the configuration.
CASES = {
    "10 logits": (10, "logits", True, LEARNED),
    "2 logits": (2, "logits", True, OF_TWO),
    "1000 logits": (1000, "logits", True, LEARNED),
    "10 probabilities": (10, "probabilities", True, LEARNED),
    "2 probabilities": (2, "probabilities", True, OF_TWO),
    "10 logits without a model": (10, "logits", False, LEARNED),
    "10 probabilities without a model": (10, "probabilities", False, LEARNED),
    "steps": (4, "logits", False, STEPS),
    "without Top-1": (4, "logits", False, {"lookup": "interpolated", "top_k": [2]}),
}
SMOOTH = {name: case for name, case in CASES.items() if "lookup" not in case[3]}
QUICK = ("2 probabilities", "10 logits without a model", "steps", "without Top-1")


@pytest.fixture(scope="module", params=quick(CASES, *QUICK))
def case(request, client) -> tuple[str, str, np.ndarray]:
    """Calibrate; return the calibration's id, what requests hold, and rows."""
    n_classes, kind, has_model, config = request.param
    scores, labels = scores_and_labels(n_classes, kind, 600, seed=1)
    name = "inputs" if has_model else kind
    model = passthrough(shape=("N", n_classes)).SerializeToString() if has_model else None
    archive = npz(labels=labels, **{name: scores})
    made = calibrated(client, {"name": "same-numbers"} | config, model=model, calibration=archive)
    rows, _ = scores_and_labels(n_classes, kind, N_ROWS, seed=2)
    return f"same-numbers@{made['version']}", name, rows


def predicted(client: httpx.Client, reference: str, kind: str, rows: np.ndarray) -> list[dict]:
    answer = as_json(reference, kind, rows).by(client)
    assert answer.status_code == httpx.codes.OK, answer.text
    # Numbers have as few digits as give them back.
    assert msgspec.json.encode(answer.json()) == answer.content
    return answer.json()["predictions"]


def test_requests_of_any_size_get_the_same_answers(client, case) -> None:
    expected = predicted(client, *case)
    reference, kind, rows = case
    for size in SIZES:
        starts = range(0, min(N_ROWS, 8 * size), size)
        parts = [rows[start : start + size] for start in starts]
        answers = [row for part in parts for row in predicted(client, reference, kind, part)]
        if kind == "inputs":
            assert_says(arrays_of(answers), expected[: len(answers)])
        else:
            assert answers == expected[: len(answers)], size


@pytest.mark.parametrize("form", [as_npz, as_tensors_in_json, as_tensors_with_bytes_back])
def test_every_form_has_the_same_bits(client, case, form) -> None:
    reference, kind, rows = case
    is_npz = form is as_npz
    model = reference if is_npz else reference.replace("@", "/versions/")
    for size in (1, 24, N_ROWS):
        for start in range(0, min(N_ROWS, 4 * size), size):
            part = rows[start : start + size]
            answer = form(model, kind, part).by(client)
            arrays = dict(np.load(io.BytesIO(answer.content))) if is_npz else outputs_of(answer)
            expected = arrays_of(predicted(client, reference, kind, part))
            assert arrays.keys() == expected.keys()
            for name, values in expected.items():
                same_type = values.astype(np.float32) if values.dtype.kind == "f" else values
                np.testing.assert_array_equal(arrays[name], same_type, err_msg=name)


def test_answers_stand_in_the_table(client, case) -> None:
    """Also the names of the classes."""
    reference, kind, rows = case
    document, answers = exported(client, reference), predicted(client, reference, kind, rows)
    for k in document["top_k"]:
        check_table(document, k, answers)
    assert all(row["label"] == document["classes"][row["class"]] for row in answers)


def check_table(document: dict, k: int, answered: list[dict]) -> None:
    """Compare answers with the table of an event, looked up by their uncertainties."""
    table, answers = served_table(document, k), [row[f"top{k}"] for row in answered]
    expected = looked_up(table, np.array([answer["uncertainty"] for answer in answers]))
    assert [answer["bin"] for answer in answers] == expected["bin"].tolist()
    assert {answer["measure"] for answer in answers} == {table["measure"]}
    if table["lookup"] == "interpolated":
        return
    numbers = [[answer["probability"], *answer["interval"]] for answer in answers]
    columns = np.stack([expected[name] for name in ("probability", "lower", "upper")], axis=1)
    tolerance = 0 if table["lookup"] == "step" else 1e-12
    np.testing.assert_allclose(numbers, columns, rtol=0, atol=tolerance)


@pytest.mark.parametrize("case", quick(SMOOTH, QUICK[0]), indirect=True)
def test_a_refit_has_the_same_curve_and_an_evaluation_judges_the_answers(client, case) -> None:
    reference, kind, rows = case
    again = refit(client, reference, bins=4).json()
    assert again["status"] == "succeeded", again["error"]
    answers = predicted(client, reference, kind, rows)
    for one, other in zip(answers, predicted(client, again["id"], kind, rows), strict=True):
        for event in (name for name in one if name.startswith("top")):
            assert other[event].pop("bin") <= 3
            del one[event]["bin"]
            assert one[event] == other[event]
    scale = "probabilities" if np.all(rows >= 0) else "logits"
    scores, labels = scores_and_labels(rows.shape[1], scale, 500, seed=3)
    answer = evaluate(client, reference, "later", npz(labels=labels, **{kind: scores}))
    probability = [row["top1"]["probability"] for row in predicted(client, reference, kind, scores)]
    brier = np.mean((np.array(probability) - (scores.argmax(axis=1) == labels)) ** 2)
    served = answer.json()["result"]["events"]["1"]["measures"]["learned"]["scores"]
    assert served["brier"] == pytest.approx(brier, abs=1e-5)


def test_answers_are_those_of_onnx_runtime_the_formula_and_the_table(client, digits_calibration):
    pixels = digits_set()["inputs"][:300]
    answered, document = predictions(client, "digits", pixels), exported(client, "digits")
    softmaxed = probabilities(digits("model.onnx"), pixels.astype(np.float32))
    ranked = np.argsort(-softmaxed, axis=1, kind="stable")[:, :5]
    answers = arrays_of(answered)
    np.testing.assert_array_equal(answers["topk_class"], ranked)
    assert answers["class"].tolist() == ranked[:, 0].tolist()
    expected = np.take_along_axis(softmaxed, ranked, axis=1)
    np.testing.assert_allclose(answers["topk_score"], expected, rtol=1e-4, atol=1e-30)
    for k in (1, 5):
        table = served_table(document, k)
        assert (table["measure"], table["lookup"]) == ("learned", "smooth")
        formula = learned_uncertainty(table["label_model"], softmaxed, k)
        np.testing.assert_allclose(answers[f"top{k}_uncertainty"], formula, rtol=1e-3, atol=1e-3)
        check_table(document, k, answered)


def test_the_learned_measure_of_the_mean_of_an_ensemble(client) -> None:
    files = [model_file(name) for name in MEMBERS]
    config = {"measures": ["learned", "ensemble_variance"], "serve": {"1": "learned"}}
    made = calibrated(client, {"name": "mean"} | config, model=files, calibration=as_file(SETS))
    answered, document = predictions(client, made["id"], ROWS), exported(client, made["id"])
    check_table(document, 1, answered)
    few = uncertainties(predictions(client, made["id"], ROWS[:3]))
    assert few == pytest.approx(uncertainties(answered)[:3], abs=1e-4)
    mean = np.mean([probabilities(file, ROWS) for file in files], axis=0)
    formula = learned_uncertainty(served_table(document, 1)["label_model"], mean, 1)
    np.testing.assert_allclose(uncertainties(answered), formula, rtol=1e-3, atol=1e-3)
