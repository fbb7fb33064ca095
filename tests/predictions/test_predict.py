"""Predictions over HTTP against the tables they come from."""

import io

import model_services
import numpy as np
import pytest
from bins_documents import exported, learned_uncertainty, looked_up, served_table
from running_service import DIGITS_PARTS, calibrated, digits

EVALUATION = np.load(io.BytesIO(digits("evaluation.npz")))["inputs"]


@pytest.fixture(scope="module")
def predictions(client, digits_calibration) -> list[dict]:
    return model_services.predictions(client, "digits", EVALUATION)


def test_classes_are_those_of_onnx_runtime(predictions) -> None:
    softmax = model_services.probabilities(digits("model.onnx"), EVALUATION.astype(np.float32))
    ranked = np.argsort(-softmax, axis=1, kind="stable")[:, :5]

    for prediction, classes, scores in zip(predictions, ranked, softmax, strict=True):
        assert prediction["class"] == classes[0]
        assert [found["class"] for found in prediction["classes"]] == classes.tolist()
        for found in prediction["classes"]:
            assert found["score"] == pytest.approx(scores[found["class"]], rel=1e-4, abs=1e-30)


def test_the_learned_measure_is_its_formula(client, predictions) -> None:
    softmax = model_services.probabilities(digits("model.onnx"), EVALUATION.astype(np.float32))
    document = exported(client, "digits")
    for k in (1, 5):
        table = served_table(document, k)
        assert table["measure"] == "learned"
        found = [prediction[f"top{k}"]["uncertainty"] for prediction in predictions]
        expected = learned_uncertainty(table["learned"], softmax)
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("lookup", ["smooth", "step"])
def test_every_answer_stands_in_the_table(client, digits_calibration, lookup) -> None:
    reference = "digits"
    if lookup == "step":
        reference = "steps"
        config = {"name": reference, "lookup": "step", "bins": 10, "folds": 2}
        calibrated(client, config, **DIGITS_PARTS)
    document = exported(client, reference)
    for k in (1, 5):
        table = served_table(document, k)
        assert table["lookup"] == lookup
        found = model_services.predictions(client, reference, EVALUATION)
        found = [prediction[f"top{k}"] for prediction in found]
        expected = looked_up(table, np.array([answer["uncertainty"] for answer in found]))
        assert [answer["bin"] for answer in found] == expected["bin"].tolist()
        assert {answer["measure"] for answer in found} == {table["measure"]}
        numbers = [[answer["probability"], *answer["interval"]] for answer in found]
        columns = np.stack([expected[name] for name in ("probability", "lower", "upper")], 1)
        if lookup == "step":
            np.testing.assert_array_equal(numbers, columns)
        else:
            np.testing.assert_allclose(numbers, columns, rtol=0, atol=1e-12)
