"""Several measures with passes at once, and the one that serves."""

from pass_service import (
    as_file,
    calibrate_models,
    labelled_sets,
    model_file,
    predictions,
    uncertainties,
)
from uploads import refit

SETS = labelled_sets()
ROWS = SETS["evaluation_inputs"][:40]


def test_tokens_can_be_dropped(client) -> None:
    sets = labelled_sets("sequences.npz")
    config = {"measures": ["entropy", "dropout_variance"], "serve": {"1": "dropout_variance"}}
    answer = calibrate_models(
        client,
        [model_file("sequence_dropout.onnx")],
        config | {"dropout": {"passes": 5}},
        calibration=as_file(sets),
    )
    found = answer.json()
    assert found["status"] == "succeeded", found
    rows = sets["evaluation_inputs"][:20]
    assert uncertainties(predictions(client, found["id"], rows)).min() > 0


def test_two_measures_at_once(client) -> None:
    measures = ["entropy", "gradient_norm", "dropout_variance", "last_layer_dropout_variance"]
    config = {"measures": measures, "dropout": {"passes": 5}, "gradient": {"directions": 4}}
    answer = calibrate_models(
        client,
        [model_file("last_layer_dropout_cnn.onnx")],
        config,
        calibration=as_file(SETS),
    )
    found = answer.json()
    assert found["status"] == "succeeded", found
    assert {name: cost["passes"] for name, cost in found["costs"].items()} == {
        "plain": 1,
        "gradient_norm": 8,
        "dropout_variance": 5,
        "last_layer_dropout_variance": 0,
    }
    report = client.get("/report", params={"calibration": found["id"]}).json()
    passes = {row["measure"]: row["passes"] for row in report["events"]["1"]["comparison"]}
    assert passes == {
        "entropy": 1,
        "gradient_norm": 9,
        "dropout_variance": 6,
        "last_layer_dropout_variance": 1,
    }
    for measure in measures:
        served = refit(client, found["id"], serve={"1": measure}).json()
        answers = predictions(client, served["id"], ROWS)
        assert {p["top1"]["measure"] for p in answers} == {measure}
