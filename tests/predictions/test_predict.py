"""Predictions over HTTP against the tables they come from."""

import io

import numpy as np
import pytest
from bins_documents import exported, learned_uncertainty, looked_up, served_table
from model_services import (
    MEMBERS,
    as_file,
    labelled_sets,
    model_file,
    predictions,
    probabilities,
    uncertainties,
)
from running_service import DIGITS_PARTS, calibrated, digits

PIXELS = np.load(io.BytesIO(digits("evaluation.npz")))["inputs"][:300]
SETS = labelled_sets()
ROWS = SETS["evaluation_inputs"][:100]
LEARNED = {"measures": ["learned", "ensemble_variance"], "serve": {"1": "learned"}}


def check_table(document: dict, k: int, answered: list[dict]) -> None:
    """Compare answers with the table of an event, looked up by their uncertainties."""
    table, answers = served_table(document, k), [row[f"top{k}"] for row in answered]
    expected = looked_up(table, np.array([answer["uncertainty"] for answer in answers]))
    assert [answer["bin"] for answer in answers] == expected["bin"].tolist()
    assert {answer["measure"] for answer in answers} == {table["measure"]}
    numbers = [[answer["probability"], *answer["interval"]] for answer in answers]
    columns = np.stack([expected[name] for name in ("probability", "lower", "upper")], axis=1)
    tolerance = 0 if table["lookup"] == "step" else 1e-12
    np.testing.assert_allclose(numbers, columns, rtol=0, atol=tolerance)


def test_answers_are_those_of_onnx_runtime_the_formula_and_the_table(client, digits_calibration):
    answered, document = predictions(client, "digits", PIXELS), exported(client, "digits")
    softmax = probabilities(digits("model.onnx"), PIXELS.astype(np.float32))
    ranked = np.argsort(-softmax, axis=1, kind="stable")[:, :5]
    classes = np.array([[top["class"] for top in row["classes"]] for row in answered])
    np.testing.assert_array_equal(classes, ranked)
    assert [row["class"] for row in answered] == ranked[:, 0].tolist()
    scores = np.array([[top["score"] for top in row["classes"]] for row in answered])
    expected = np.take_along_axis(softmax, ranked, axis=1)
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-30)
    for k in (1, 5):
        table = served_table(document, k)
        assert (table["measure"], table["lookup"]) == ("learned", "smooth")
        values = [row[f"top{k}"]["uncertainty"] for row in answered]
        formula = learned_uncertainty(table["learned"], softmax)
        np.testing.assert_allclose(values, formula, rtol=1e-3, atol=1e-3)
        check_table(document, k, answered)


def test_answers_of_steps_stand_in_the_table(client) -> None:
    config = {"name": "in-steps", "lookup": "step", "top_k": [1, 5], "bins": 10}
    calibrated(client, config, **DIGITS_PARTS)
    answered, document = predictions(client, "in-steps", PIXELS), exported(client, "in-steps")
    for k in (1, 5):
        check_table(document, k, answered)


@pytest.mark.parametrize(
    ("models", "config"),
    [(MEMBERS, {}), (("variational_mlp.onnx",), {"ensemble": {"passes": 6}})],
    ids=["ensemble", "variational"],
)
def test_the_learned_measure_of_a_mean(client, models, config) -> None:
    """Over members or passes."""
    files = [model_file(name) for name in models]
    name = {"name": f"mean-of-{len(models)}"}
    made = calibrated(client, name | LEARNED | config, model=files, calibration=as_file(SETS))
    answered, document = predictions(client, made["id"], ROWS), exported(client, made["id"])
    table = served_table(document, 1)
    assert (table["measure"], table["lookup"]) == ("learned", "smooth")
    check_table(document, 1, answered)
    few = uncertainties(predictions(client, made["id"], ROWS[:3]))
    assert few == pytest.approx(uncertainties(answered)[:3], abs=1e-4)
    if len(models) > 1:
        mean = np.mean([probabilities(file, ROWS) for file in files], axis=0)
        formula = learned_uncertainty(table["learned"], mean)
        np.testing.assert_allclose(uncertainties(answered), formula, rtol=1e-3, atol=1e-3)
