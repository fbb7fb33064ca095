"""Calibrations and evaluations over the limit on rows are refused with what would fit."""

import httpx
import numpy as np
import pytest
from model_services import BASE, as_file, labelled_sets, model_file
from running_service import (
    calibrate,
    calibrated,
    evaluate,
    kept_files,
    npz,
    quick_config,
    service_on,
)

SETS = labelled_sets()
IMAGES = as_file(SETS)
MODEL = model_file("hidden_dropout_cnn.onnx")
TOO_LARGE = httpx.codes.REQUEST_ENTITY_TOO_LARGE


@pytest.fixture
def client(tmp_path):
    with service_on(tmp_path, max_row_passes=10_000) as client:
        yield client


def config(passes: int) -> str:
    return quick_config(measures=["dropout_variance"], dropout={"passes": passes})


def refusal(answer: httpx.Response) -> dict[str, str]:
    assert answer.status_code == TOO_LARGE, answer.text
    (error,) = answer.json()["errors"]
    return error


def test_passes_beyond_the_budget(client, tmp_path) -> None:
    # One run predicts: with 15 passes each of 600 samples is run 16 times.
    error = refusal(calibrate(client, model=MODEL, calibration=IMAGES, config=config(16)))
    assert error["location"] == "config.dropout.passes"
    for part in ("600 samples", "the limit is 10,000 rows", "about", "at most 15 passes"):
        assert part in error["message"]
    assert kept_files(tmp_path) == []
    calibrated(client, config(15), model=MODEL, calibration=IMAGES)
    sets = {"calibration": IMAGES, "evaluation": as_file(SETS, "evaluation")}
    error = refusal(calibrate(client, model=MODEL, config=config(10), **sets))
    assert "1,200 samples times 11 model runs" in error["message"]
    assert "Use at most 7 passes" in error["message"]


def test_a_set_that_no_number_of_passes_fits(tmp_path) -> None:
    with service_on(tmp_path, max_row_passes=1000) as client:
        error = refusal(calibrate(client, model=MODEL, calibration=IMAGES, config=config(4)))
        assert error["location"] == "calibration"
        assert "Use at most 200 samples" in error["message"]
        fits = as_file(SETS, n=200)
        made = calibrated(client, config(4), model=MODEL, calibration=fits)
        error = refusal(evaluate(client, made["id"], "large", as_file(SETS, "evaluation")))
        assert error["location"] == "evaluation"
        assert "Use at most 200 samples" in error["message"]
        answer = evaluate(client, made["id"], "small", fits)
        assert answer.status_code == httpx.codes.CREATED, answer.text
        many = {
            name: np.tile(SETS[f"calibration_{name}"], (2, *[1] * (n_axes - 1)))
            for name, n_axes in (("inputs", 4), ("labels", 1))
        }
        # One run of a row is not limited.
        calibrated(client, BASE | {"measures": ["entropy"]}, model=MODEL, calibration=npz(**many))
