"""Findings on the command line: printed, made an error, and told beforehand."""

import pytest
from running_service import DIGITS

from howsure.statistics.findings import FINDINGS
from service.cli import load_command
from service.cli.findings import REMEDIES, remedy

FEW = (DIGITS / "model.onnx", DIGITS / "calibration.npz", "--bins", "50")
CODE = "few-samples-for-bins"


def test_a_dry_run_prints_findings_and_cost(command):
    tried = command("calibrate", "--dry-run", *FEW, "--name", "dry")
    assert f"warning ({CODE}): 50 bins share 600 calibration samples" in tried.stdout
    assert "600 samples, once through the model: 600 rows, about" in tried.stdout
    assert "Nothing was kept." in tried.stdout
    assert "dry@" not in command("list").stdout


def test_a_set_without_a_fault(command):
    tried = command("calibrate", "--dry-run", DIGITS / "calibration_logits.csv")
    assert "Nothing looks wrong." in tried.stdout
    assert "no model is run" in tried.stdout


@pytest.mark.parametrize("strict", [("--strict",), ("--strict-about", CODE)])
def test_a_strict_command_fails_and_names_the_finding(command, strict):
    assert CODE in command("calibrate", *strict, *FEW, status=1).stderr


def test_findings_of_a_calibration_go_to_the_standard_error(command, quick):
    made = command("calibrate", "--strict-about", "labels-shifted", *quick, *FEW)
    assert f"warning ({CODE}): 50 bins share" in made.stderr
    assert CODE not in made.stdout


def test_remedies_are_of_known_findings_and_name_options_that_exist():
    options = {word for found in load_command("calibrate").params for word in found.opts}
    assert {*REMEDIES} <= {*FINDINGS}
    for code, text in REMEDIES.items():
        words = {word.strip(",") for word in text.split() if word.startswith("--")}
        assert words <= options, code


def test_one_bin_cannot_be_fewer():
    few = {"code": CODE, "figures": {"bins": 1, "samples": 20, "least_samples": 50}}
    assert remedy(few, "digits@1") == "add labelled samples"
    few["figures"]["bins"] = 30
    assert remedy(few, "digits@1").startswith("howsure refit digits@1 --bins auto")
