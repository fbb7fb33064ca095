"""Findings on the command line: printed, made an error, and followed as it is printed."""

import shlex

import numpy as np
import pytest
from remedy_lines import followed
from running_service import DIGITS, DIGITS_PARTS, calibrated

from howsure.report.further_set import AcceptedCounts
from howsure.report.further_sets import accepted_in_words

FEW_BINS = "few-samples-for-bins"
FEW = (DIGITS / "calibration_logits.csv", "--bins", "50")


@pytest.mark.parametrize("strict", [("--strict",), ("--strict-about", FEW_BINS)])
def test_a_strict_command_fails_and_names_the_finding(command, quick, strict):
    assert FEW_BINS in command("calibrate", *strict, *FEW, *quick, status=1).stderr


def test_findings_of_a_calibration_go_to_the_standard_error(command, quick):
    strict = ("--strict-about", "labels-shifted")
    made = command("calibrate", *FEW, *quick, "--name", "too-few", *strict)
    assert f"warning ({FEW_BINS}): " in made.stderr
    assert printed_commands(made.stderr, "refit") == [["refit", "too-few@1", "--bins", "auto"]]
    assert FEW_BINS not in made.stdout


def test_other_error_rates_are_tried_as_it_is_printed(command, tmp_path):
    path = tmp_path / "coin.csv"
    path.write_text("score,correct\n" + "".join(f"{k % 7},{int(k % 3 > 0)}\n" for k in range(100)))
    quick = ("--config", '{"bins": 3, "folds": 2}')
    made = command("calibrate", path, "--name", "coin", *quick).stderr
    (line,) = (line for line in made.splitlines() if "--max-risk" in line)
    words = shlex.split(line[line.index("howsure ") :])
    assert words[-1] == "0.1,0.15,0.2,0.3,0.4,0.5"
    refitted = command(*words[1:])
    assert "--max-risk" not in refitted.stderr


def printed_commands(text, name):
    lines = [shlex.split(line) for line in text.splitlines() if f"  howsure {name} " in line]
    return [words[1:] for words in lines]


def test_a_command_that_fixes_has_the_paths_and_options_that_were_typed(command, tmp_path, quick):
    """Also those beside the working folder, and without those that the command replaces."""
    with np.load(DIGITS / "calibration.npz") as stored:
        inputs, labels = stored["inputs"], stored["labels"]
    one, two = tmp_path / "my set.npz", tmp_path / "other.npz"
    np.savez(one, inputs=inputs, labels=labels)
    wrong = np.random.default_rng(0).integers(0, 10, len(labels))
    np.savez(two, inputs=inputs, labels=np.where(labels < 4, wrong, labels))
    typed = ("calibrate", DIGITS / "model.onnx", one)
    made = command(*typed, "--evaluation", two, *quick, "--name", "differs").stderr
    (words,) = printed_commands(made, "calibrate")
    kept = [str(word) for word in (*typed, *quick, "--name", "differs", "--evaluation", two)]
    assert words == kept
    np.savez(one, inputs=np.random.default_rng(0).permutation(inputs), labels=labels)
    tried = command(*typed, "--dry-run", "--output-kind", "logits").stdout
    assert "accuracy-near-chance" in tried
    (words,) = printed_commands(tried, "calibrate")
    assert words == [*map(str, typed), "--output-kind", "logits", "--dry-run"]


@pytest.fixture(scope="module")
def moving(client):
    """The name of a calibration that gets further sets."""
    return calibrated(client, {"name": "moving"}, **DIGITS_PARTS)["name"]


def test_a_further_set_is_fixed_and_evaluated_as_printed(command, moving, tmp_path, monkeypatch):
    """The printed lines change the set, not the calibration."""
    monkeypatch.chdir(tmp_path)
    with np.load(DIGITS / "evaluation.npz") as stored:
        inputs, labels = stored["inputs"], stored["labels"]
    np.savez("moved set.npz", inputs=inputs, labels=(labels + 1) % 10)
    made = command("evaluate", moving, "moved set.npz", "--name", "moved").stderr
    assert "calibrate" not in made
    lines = [line.strip() for line in made.splitlines()]
    change = next(line for line in lines if line.startswith("labels = "))
    fixed = followed(change, labels=(labels + 1) % 10)["labels"]
    np.savez("moved set.npz", inputs=inputs, labels=fixed)
    (words,) = printed_commands(made, "evaluate")
    again = command(*words)
    assert "warning" not in again.stderr
    assert "moved-2: " in again.stdout


def test_a_shifted_set_has_a_next_step(command, moving, tmp_path):
    with np.load(DIGITS / "evaluation.npz") as stored:
        inputs, labels = stored["inputs"], stored["labels"]
    noise = np.random.default_rng(3).normal(0, 6, inputs.shape)
    np.savez(tmp_path / "noisy.npz", inputs=np.clip(inputs + noise, 0, 16), labels=labels)
    for path, name in ((DIGITS / "evaluation.npz", "alike"), (tmp_path / "noisy.npz", "noisy")):
        told = command("evaluate", moving, path, "--name", name).stdout
        next_step = ["calibrate", "MODEL", "NEW_SET", "--name", moving]
        assert printed_commands(told, "calibrate") == [next_step] * (name == "noisy")


@pytest.mark.parametrize(("n_errors", "excess"), [(5, ""), (6, "chance"), (11, "clearly")])
def test_a_broken_promise_is_told(n_errors, excess):
    target = {"max_risk": 0.05, "delta": 0.05}
    counts = {"n_samples": 300, "n_accepted": 100, "n_errors": n_errors, "coverage": 1 / 3}
    text = accepted_in_words(AcceptedCounts(target=target, threshold=0.1, **counts))
    assert f" {n_errors}.0 % (" in text
    assert [word for word in ("chance", "clearly") if word in text] == [excess] * bool(excess)
