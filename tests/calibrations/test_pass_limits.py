"""Passes that are more than the service allows: what would fit is said."""

import httpx
import numpy as np
import pytest
from pass_service import as_file, calibrate_models, labelled_sets, model_file, npz
from running_service import kept_files, service_on

SETS = labelled_sets()
IMAGES = as_file(SETS)


@pytest.fixture(scope="module")
def small_budget(tmp_path_factory):
    folder = tmp_path_factory.mktemp("budget")
    with service_on(folder, max_row_passes=10_000) as client:
        yield client, folder


@pytest.mark.parametrize(
    ("models", "config", "location", "fits"),
    [
        (
            ["hidden_dropout_cnn.onnx"],
            {"measures": ["dropout_variance"], "dropout": {"passes": 30}},
            "config.dropout.passes",
            15,  # and one run that predicts: 16 for each of 600 samples
        ),
        (
            ["small_cnn.onnx"],
            {"measures": ["gradient_norm"], "gradient": {"directions": 20}},
            "config.gradient.directions",
            7,
        ),
        (
            ["hidden_dropout_cnn.onnx"],
            {
                "measures": ["gradient_norm", "dropout_variance"],
                "gradient": {"directions": 3},
                "dropout": {"passes": 30},
            },
            "config.dropout.passes",
            9,
        ),
        (
            ["variational_mlp.onnx"],
            {"measures": ["ensemble_variance"], "ensemble": {"passes": 30}},
            "config.ensemble.passes",
            16,
        ),
    ],
)
def test_passes_beyond_the_budget(
    small_budget, models: list[str], config: dict, location: str, fits: int
) -> None:
    client, folder = small_budget
    before = kept_files(folder)
    files = [model_file(name) for name in models]
    answer = calibrate_models(client, files, config, calibration=IMAGES)

    assert answer.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE, answer.text
    (error,) = answer.json()["errors"]
    assert error["location"] == location
    assert "600 samples" in error["message"]
    assert "the limit is 10,000 rows" in error["message"]
    assert "about" in error["message"]
    noun = "directions" if "gradient" in location else "passes"
    assert f"Use at most {fits} {noun}" in error["message"]
    assert kept_files(folder) == before

    block, key = location.removeprefix("config.").split(".")
    for value_, expected in ((fits + 1, 413), (fits, 201)):
        asked = config | {block: {key: value_}}
        answer = calibrate_models(client, files, asked, calibration=IMAGES)
        assert answer.status_code == expected, answer.text


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


def test_too_many_models_for_the_budget(small_budget) -> None:
    client, _ = small_budget
    models = [model_file("member_0.onnx"), model_file("member_1.onnx")] * 9
    answer = calibrate_models(client, models, {"measures": ["entropy"]}, calibration=IMAGES)
    assert answer.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE
    (error,) = answer.json()["errors"]
    assert error["location"] == "model"
    assert "Use at most 16 models" in error["message"]


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
        for half, status in (("evaluation", 413), ("calibration", 201)):
            n = 600 if half == "evaluation" else 200
            parts = [
                ("evaluation", ("e.npz", as_file(SETS, half, n))),
                ("name", (None, half)),
            ]
            answer = client.post(
                f"/calibrations/{found['id']}/evaluations",
                files=parts,
                headers={"Prefer": "wait=60"},
            )
            assert answer.status_code == status, answer.text
            if status == httpx.codes.REQUEST_ENTITY_TOO_LARGE:
                (error,) = answer.json()["errors"]
                assert error["location"] == "evaluation"
                assert "Use at most 200 samples" in error["message"]

        plain = {"measures": ["entropy"]}
        many = npz(
            inputs=np.tile(SETS["calibration_inputs"], (2, 1, 1, 1)),
            labels=np.tile(SETS["calibration_labels"], 2),
        )
        found = calibrate_models(client, models, plain, calibration=many).json()
        assert found["status"] == "succeeded", "one run of a row is not limited"
