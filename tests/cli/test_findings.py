"""What looks wrong, on the command line: printed, made an error, and told beforehand."""

import pytest
from howsure_command import howsure
from running_service import DIGITS, kept_files

FEW = (DIGITS / "model.onnx", DIGITS / "calibration.npz", "--bins", "50")
CODE = "few-samples-for-bins"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cli")


def test_a_dry_run_prints_findings_and_cost_and_keeps_nothing(folder):
    tried = howsure("calibrate", "--dry-run", *FEW, folder=folder)
    assert tried.returncode == 0, tried.stderr
    assert f"warning ({CODE}): 50 bins share 600 calibration samples" in tried.stdout
    assert "600 samples, once through the model: 600 rows, about" in tried.stdout
    assert "Nothing was kept." in tried.stdout
    assert "calibration@" not in howsure("list", folder=folder).stdout
    assert kept_files(folder) == []


def test_a_set_without_a_fault(folder):
    outputs = DIGITS / "calibration_logits.csv"
    tried = howsure("calibrate", "--dry-run", outputs, folder=folder)
    assert tried.returncode == 0, tried.stderr
    assert "Nothing looks wrong." in tried.stdout
    assert "no model is run" in tried.stdout


@pytest.mark.parametrize("strict", [("--strict",), ("--strict-about", CODE)])
def test_a_strict_command_fails_and_names_the_finding(folder, strict):
    refused = howsure("calibrate", *strict, *FEW, folder=folder)
    assert refused.returncode == 1
    assert CODE in refused.stderr


def test_findings_of_a_calibration_go_to_the_standard_error(folder):
    made = howsure(
        "calibrate",
        "--strict-about",
        "labels-shifted",
        "--config",
        '{"folds": 2}',
        *FEW,
        folder=folder,
    )
    assert made.returncode == 0, made.stderr
    assert f"warning ({CODE}): 50 bins share" in made.stderr
    assert CODE not in made.stdout
