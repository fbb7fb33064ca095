"""Calibrations and evaluations over the limit on rows are refused with what would fit."""

import httpx
import numpy as np
import pytest
from pass_service import as_file, calibrate_models, labelled_sets, model_file, npz
from running_service import kept_files, service_on
from uploads import evaluate

SETS = labelled_sets()
IMAGES = as_file(SETS)


@pytest.fixture(scope="module")
def small_budget(tmp_path_factory):
    folder = tmp_path_factory.mktemp("budget")
    with service_on(folder, max_row_passes=10_000) as client:
        yield client, folder


def test_passes_beyond_the_budget(small_budget) -> None:
    client, folder = small_budget
    before = kept_files(folder)
    files = [model_file("hidden_dropout_cnn.onnx")]
    # One run predicts: with 15 passes each of 600 samples is run 16 times.
    for passes, status in ((30, 413), (16, 413), (15, 201)):
        config = {"measures": ["dropout_variance"], "dropout": {"passes": passes}}
        answer = calibrate_models(client, files, config, calibration=IMAGES)
        assert answer.status_code == status, answer.text
        if status == httpx.codes.REQUEST_ENTITY_TOO_LARGE:
            (error,) = answer.json()["errors"]
            assert error["location"] == "config.dropout.passes"
            for part in ("600 samples", "the limit is 10,000 rows", "about", "at most 15 passes"):
                assert part in error["message"]
            assert kept_files(folder) == before


def test_the_evaluation_set_counts_too(small_budget) -> None:
    client, _ = small_budget
    models = [model_file("hidden_dropout_cnn.onnx")]
    config = {"measures": ["dropout_variance"], "dropout": {"passes": 10}}
    evaluation = as_file(SETS, "evaluation")
    answer = calibrate_models(client, models, config, calibration=IMAGES, evaluation=evaluation)
    assert answer.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE
    (error,) = answer.json()["errors"]
    assert "1,200 samples times 11 model runs" in error["message"]
    assert "Use at most 7 passes" in error["message"]


def test_a_set_that_no_number_of_passes_fits(tmp_path) -> None:
    with service_on(tmp_path, max_row_passes=1000) as client:
        models = [model_file("hidden_dropout_cnn.onnx")]
        config = {"measures": ["dropout_variance"], "dropout": {"passes": 4}}
        answer = calibrate_models(client, models, config, calibration=IMAGES)
        assert answer.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE
        (error,) = answer.json()["errors"]
        assert error["location"] == "calibration"
        assert "Use at most 200 samples" in error["message"]

        fits = as_file(SETS, n=200)
        found = calibrate_models(client, models, config, calibration=fits).json()
        assert found["status"] == "succeeded", found
        answer = evaluate(client, found["id"], "large", as_file(SETS, "evaluation"))
        assert answer.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE, answer.text
        (error,) = answer.json()["errors"]
        assert error["location"] == "evaluation"
        assert "Use at most 200 samples" in error["message"]
        answer = evaluate(client, found["id"], "small", fits)
        assert answer.status_code == httpx.codes.CREATED, answer.text

        plain = {"measures": ["entropy"]}
        many = npz(
            inputs=np.tile(SETS["calibration_inputs"], (2, 1, 1, 1)),
            labels=np.tile(SETS["calibration_labels"], 2),
        )
        found = calibrate_models(client, models, plain, calibration=many).json()
        assert found["status"] == "succeeded", "one run of a row is not limited"
