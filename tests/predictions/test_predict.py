"""Predictions over HTTP against the tables they come from."""

import io

import model_services
import numpy as np
import pytest
from running_service import digits

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
        assert prediction["top1"]["uncertainty"] >= 0


def test_every_answer_stands_in_the_table(client, predictions) -> None:
    tables = {
        (table["event"], table["measure"]): table["bins"]
        for table in client.get("/calibrations/digits/bins").json()["tables"]
        if table["served"]
    }
    for prediction in predictions:
        for k in (1, 5):
            answer = prediction[f"top{k}"]
            row = tables[k, answer["measure"]][answer["bin"]]
            assert answer["probability"] == row["probability"]
            assert answer["interval"] == row["interval"]
            assert row["lower"] is None or row["lower"] < answer["uncertainty"]
            assert row["upper"] is None or answer["uncertainty"] <= row["upper"]
