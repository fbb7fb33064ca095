"""Measures with passes: several at once, over the limit on rows, or not supported by the model."""

from typing import Any

import httpx
import numpy as np
import pytest
from graph_models import steps
from job_workspaces import inputs_set, logits_set
from model_services import (
    BASE,
    MEMBERS,
    as_file,
    calibrate_models,
    labelled_sets,
    model_file,
    predictions,
)
from refusals import assert_refused
from runner_models import of_rows, weights
from running_service import (
    calibrate,
    calibrated,
    evaluate,
    kept_files,
    quick_config,
    refit,
    service_on,
)

SETS = labelled_sets()
IMAGES = as_file(SETS)
HIDDEN = model_file("hidden_dropout_cnn.onnx")
MEASURES = "config.measures"


def test_several_measures_at_once(client) -> None:
    # Passes of each measure alone, and runs of the model where it serves.
    costs = {"entropy": (1, 1), "gradient_norm": (8, 9), "jacobian_norm": (8, 9)}
    costs |= {"dropout_variance": (5, 6), "last_layer_dropout_variance": (0, 1)}
    options = {"measures": list(costs), "dropout": {"passes": 5}, "gradient": {"directions": 4}}
    model = model_file("last_layer_dropout_cnn.onnx")
    made = calibrated(client, BASE | options, model=model, calibration=IMAGES)
    passes = {name: cost["passes"] for name, cost in made["costs"].items()}
    assert passes == {name.replace("entropy", "plain"): alone for name, (alone, _) in costs.items()}
    report = client.get("/report", params={"calibration": made["id"]}).json()
    compared = {row["measure"]: row["passes"] for row in report["events"]["1"]["comparison"]}
    assert compared == {name: runs for name, (_, runs) in costs.items()}
    for measure in costs:
        served = refit(client, made["id"], serve={"1": measure}).json()
        rows = predictions(client, served["id"], SETS["evaluation_inputs"][:40])
        assert {row["top1"]["measure"] for row in rows} == {measure}


def config(passes: int) -> str:
    return quick_config(measures=["dropout_variance"], dropout={"passes": passes})


def too_large(response: httpx.Response, location: str, *figures: str) -> None:
    assert_refused(response, location, *figures, status=413)


@pytest.mark.process
def test_passes_over_the_limit_on_rows(tmp_path) -> None:
    """What is refused is told what would fit; that does."""
    few, fits = as_file(SETS, n=60), as_file(SETS, n=40)
    evaluation = as_file(SETS, "evaluation", n=60)
    with service_on(tmp_path, max_row_passes=200) as client:

        def sent(content: bytes, passes: int, **more: bytes) -> httpx.Response:
            text = config(passes)
            return calibrate(client, model=HIDDEN, calibration=content, config=text, **more)

        # One run predicts: with 3 passes each of 60 samples is run 4 times.
        figures = ("60 samples", "200 rows", "at most 2 passes")
        too_large(sent(few, 3), "config.dropout.passes", *figures)
        too_large(sent(few, 2, evaluation=evaluation), "calibration", "at most 66 samples")
        assert kept_files(tmp_path) == []
        made = calibrated(client, config(4), model=HIDDEN, calibration=fits)
        too_large(evaluate(client, made["id"], "large", evaluation), "evaluation", "40 samples")
        response = evaluate(client, made["id"], "small", fits)
        assert response.status_code == httpx.codes.CREATED, response.text
        # One run of a row is not limited.
        calibrated(client, BASE | {"measures": ["entropy"]}, model=HIDDEN, calibration=IMAGES)


STEPS = of_rows(*steps("s = Round(x); y = MatMul(s, w)"), w=weights()).SerializeToString()
NORMED = "z = MatMul(x, w); s = Sigmoid(z); y = LpNormalization<axis=1, p=1>(s)"
SHARES = of_rows(*steps(NORMED), w=weights()).SerializeToString()
UPLOADS = {
    "several": ([model_file(name) for name in MEMBERS], IMAGES),
    "random": ([model_file("variational_mlp.onnx")], IMAGES),
    "steps": ([STEPS], inputs_set()),
    "shares": ([SHARES], inputs_set()),
    "outputs": ([], logits_set()),
}


def of(*measures: str) -> dict[str, Any]:
    return {"measures": list(measures)}


REFUSED = [
    ("several", of("entropy", "dropout_variance"), MEASURES, "one model"),
    ("several", of("entropy", "gradient_norm"), MEASURES, "one model"),
    ("several", of("entropy", "output:other"), MEASURES, "one model"),
    ("several", of("entropy", "energy"), MEASURES, "logits"),
    ("random", of("ensemble_variance", "gradient_norm"), MEASURES, "gradient_norm"),
    ("steps", of("entropy", "gradient_norm"), MEASURES, "zero"),
    ("steps", of("entropy", "jacobian_norm"), MEASURES, "zero"),
    ("shares", of("entropy", "jacobian_norm"), MEASURES, "jacobian_norm needs logits"),
    ("outputs", of("dropout_variance"), MEASURES, "an ONNX model"),
]


@pytest.mark.parametrize(("upload", "config", "location", "named"), REFUSED)
def test_what_the_model_or_the_configuration_does_not_allow(
    service, upload: str, config: dict[str, Any], location: str, named: str
) -> None:
    models, calibration = UPLOADS[upload]
    files, list_of = kept_files(service.folder), {"params": {"limit": 1}}
    newest = service.client.get("/calibrations", **list_of).json()["calibrations"]
    response = calibrate_models(service.client, models, config, calibration=calibration)
    assert_refused(response, location, named)
    assert kept_files(service.folder) == files
    assert service.client.get("/calibrations", **list_of).json()["calibrations"] == newest


def test_too_many_models(client) -> None:
    models = [model_file(MEMBERS[0])] * 101
    response = calibrate_models(client, models, {}, calibration=IMAGES)
    too_large(response, "model", "at most 100 ONNX files, got 101")


def test_members_may_be_sent_twice_with_a_warning(client) -> None:
    models = [model_file(MEMBERS[member]) for member in (0, 1, 0)]
    made = calibrate_models(client, models, of("ensemble_variance"), calibration=IMAGES).json()
    assert made["status"] == "succeeded", made
    assert any("counts twice" in warning for warning in made["warnings"])
    assert predictions(client, made["id"], np.asarray(SETS["evaluation_inputs"][:2]))
