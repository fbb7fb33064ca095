"""Several models on the command line."""

import json
from pathlib import Path

import pytest
from model_services import MEMBERS, PASSES, as_file, labelled_sets


@pytest.fixture
def calibration(tmp_path) -> Path:
    path = tmp_path / "calibration.npz"
    path.write_bytes(as_file(labelled_sets()))
    return path


def test_a_model_before_the_set_is_the_first_member(command, calibration) -> None:
    models = [part for name in MEMBERS[1:] for part in ("--model", PASSES / name)]
    config = '{"measures": ["entropy", "ensemble_variance"], "top_k": [1], "bins": 5}'
    options = (*models, "--name", "three", "--config", config)
    made = command("calibrate", PASSES / MEMBERS[0], calibration, *options)
    assert "three@1" in made.stdout
    assert "ensemble_variance" in made.stdout

    report = json.loads(command("report", "three", "--format", "json").stdout)
    members = report["provenance"]["model"]["members"]
    assert [member["label"] for member in members] == list(MEMBERS)
    assert {row["passes"] for row in report["events"]["1"]["comparison"]} == {3}


def test_one_model_by_option(command, calibration, quick) -> None:
    command("calibrate", calibration, "--model", PASSES / MEMBERS[0], *quick)


def test_what_does_not_fit_is_one_sentence(command, calibration) -> None:
    other = PASSES / "member_other_classes.onnx"
    failed = command("calibrate", PASSES / MEMBERS[0], calibration, "--model", other, status=1)
    assert "model[1]" in failed.stderr
