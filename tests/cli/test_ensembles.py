"""Several models on the command line, as a user runs it."""

import json
from pathlib import Path

import pytest
from howsure_command import howsure
from pass_service import MEMBERS, PASSES, as_file, labelled_sets


@pytest.fixture
def calibration(tmp_path) -> Path:
    path = tmp_path / "calibration.npz"
    path.write_bytes(as_file(labelled_sets()))
    return path


def test_an_ensemble(tmp_path, calibration) -> None:
    models = [part for name in MEMBERS for part in ("--model", PASSES / name)]
    config = '{"measures": ["entropy", "ensemble_variance"], "top_k": [1], "bins": 5}'
    made = howsure(
        "calibrate", calibration, *models, "--name", "three", "--config", config, folder=tmp_path
    )
    assert made.returncode == 0, made.stderr
    assert "three@1" in made.stdout
    assert "ensemble_variance" in made.stdout

    report = json.loads(howsure("report", "three", "--format", "json", folder=tmp_path).stdout)
    members = report["provenance"]["model"]["members"]
    assert [member["label"] for member in members] == list(MEMBERS)
    assert {row["passes"] for row in report["events"]["1"]["comparison"]} == {3}


def test_a_model_before_the_set_is_the_first_member(tmp_path, calibration) -> None:
    first, second = (PASSES / name for name in MEMBERS[:2])
    made = howsure("calibrate", first, calibration, "--model", second, folder=tmp_path)
    assert made.returncode == 0, made.stderr
    report = json.loads(
        howsure("report", "calibration", "--format", "json", folder=tmp_path).stdout
    )
    members = report["provenance"]["model"]["members"]
    assert [member["label"] for member in members] == list(MEMBERS[:2])


def test_one_model_by_option(tmp_path, calibration) -> None:
    made = howsure("calibrate", calibration, "--model", PASSES / MEMBERS[0], folder=tmp_path)
    assert made.returncode == 0, made.stderr


def test_what_does_not_fit_is_one_sentence(tmp_path, calibration) -> None:
    other = PASSES / "member_other_classes.onnx"
    failed = howsure(
        "calibrate", PASSES / MEMBERS[0], calibration, "--model", other, folder=tmp_path
    )
    assert failed.returncode == 1
    assert "model[1]" in failed.stderr
    assert "Traceback" not in failed.stderr
