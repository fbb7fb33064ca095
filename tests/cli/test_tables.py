"""Cells are never cut: tables in pipes are wide, on terminals columns wrap or are left out."""

import re

import numpy as np
import pytest

LONG = "uncertainty_" + "of_the_second_stage_" * 2 + "x"
MEASURE = LONG.replace("uncertainty_", "supplied:", 1)


@pytest.fixture(scope="module")
def long_names(service, tmp_path_factory) -> str:
    """A calibration whose name and served measure are long."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(200, 4)) * 3
    labels = np.where(rng.random(200) < 0.8, logits.argmax(axis=1), 0)
    name = "a-calibration-with-a-long-name-of-" + 60 * "x"
    from howsure.client import Client  # noqa: PLC0415

    with Client(str(service.base_url)) as client:
        samples = {"logits": logits, "labels": labels, LONG: rng.random(200)}
        serve = {"measures": [MEASURE], "serve": {"1": MEASURE}}
        client.calibrate(calibration=samples, name=name, top_k=[1], bins=3, **serve)
    return name


def test_numbers_are_whole_in_a_pipe(service, command, long_names) -> None:
    event = service.get("/report", params={"calibration": long_names}).json()["events"]["1"]
    shown = command("report", long_names).stdout
    assert "…" not in shown
    (line,) = [line for line in shown.splitlines() if line.strip().startswith(MEASURE)]
    scores = event["measures"][MEASURE]["scores"]
    means = [scores[name]["mean"] for name in ("ece_15", "brier", "nll", "auroc", "aurc")]
    assert line.split()[-5:] == [f"{mean:.4f}" for mean in means]
    assert long_names in command("list").stdout


def test_what_the_baselines_are_fitted_on_is_said_once_for_all_events(command) -> None:
    shown = command("report", "digits").stdout
    assert shown.count("Top-5") > 0
    assert shown.count("isotonic are fitted on the probability of raw_softmax.") == 1


def on_terminal(command, columns: int, *words: str) -> str:
    """Return what a command prints on a terminal of this width, without styles."""
    shown = command(*words, TTY_COMPATIBLE="1", COLUMNS=str(columns)).stdout
    return re.sub(r"\x1b\[[0-9;]*m", "", shown)


@pytest.mark.parametrize("columns", [80, 60])
def test_numbers_are_whole_on_a_terminal(command, long_names, columns: int) -> None:
    shown = on_terminal(command, columns, "report", long_names)
    rows = [line for line in shown.splitlines() if len(re.findall(r"\b0\.\d{4}\b", line)) > 2]
    assert len(rows) > 5
    assert max(map(len, rows)) <= columns
    assert "…" not in shown


def test_a_narrow_terminal_says_what_it_leaves_out(service, command, long_names) -> None:
    whole = service.get(f"/calibrations/{long_names}").json()
    shown = on_terminal(command, 60, "list", "--name", long_names)
    assert whole["id"] not in shown
    assert "not shown in a terminal this narrow: id" in shown
    assert shown.count("x") == 60


def test_list_marks_findings_and_says_why_others_failed(command, tmp_path) -> None:
    labels = np.arange(40) % 4
    logits = np.eye(4)[labels] * 3 + np.random.default_rng(0).random((40, 4))
    np.savez(tmp_path / "few.npz", logits=logits, labels=labels)
    made = command("calibrate", tmp_path / "few.npz", "--name", "few", "--bins", "8")
    assert made.stderr.rstrip().endswith("see docs/findings.md#few-samples-for-bins")
    assert "howsure refit few@1 --bins auto" in made.stderr
    assert "note: " in made.stderr
    assert "howsure refit few@1 --bins auto" in command("report", "few").stderr
    (row,) = [line for line in command("list").stdout.splitlines() if "few@1" in line.split()]
    assert "1 warning" in row

    np.savez(tmp_path / "wrong.npz", logits=logits, labels=(labels + 1) % 4)
    options = ("--name", "wrong", "--strict-about", "labels-shifted", "--bins", "1")
    command("calibrate", tmp_path / "wrong.npz", *options, status=1)
    listed = command("list", "--status", "failed").stdout
    assert "wrong@1 failed: Finding refused: labels-shifted" in listed
