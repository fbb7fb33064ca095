"""Findings on the command line: printed, made an error, and followed as it is printed."""

import ast
import io
import json
import shlex
import zipfile

import numpy as np
import pytest
from colour_pictures import IMAGENET, colour_model, colour_set, zip_of
from remedy_lines import followed
from running_service import DIGITS

from howsure.remedies import remedy_for_further_set, remedy_of
from howsure.remedy_texts import REMEDIES
from howsure.statistics.findings import FINDINGS, IN_BOTH_SETS, LABEL_FINDINGS, SCORE_FINDINGS
from service.cli import load_command
from service.cli.evaluate import accepted_in_words

FEW_BINS = "few-samples-for-bins"
FIGURES = {"offset": -1, "classes": 10, "sent": [3, 5], "meant": [5, 3]}
CONFIG = {"classes": list("0123456789")}
CLASS_MAP = {"cat": 3, "dog": 5, "{it's}": 7}
CLASS_MAPS = {
    "labels-shifted": {"cat": 2, "dog": 4, "{it's}": 6},
    "labels-permuted": {"cat": 5, "dog": 3, "{it's}": 7},
}


@pytest.mark.parametrize("strict", [("--strict",), ("--strict-about", FEW_BINS)])
def test_a_strict_command_fails_and_names_the_finding(command, quick, strict):
    few = (DIGITS / "calibration_logits.csv", *quick, "--bins", "50")
    assert FEW_BINS in command("calibrate", *strict, *few, status=1).stderr


def test_findings_of_a_calibration_go_to_the_standard_error(command, quick):
    few = (DIGITS / "calibration_logits.csv", *quick, "--bins", "50", "--name", "too-few")
    made = command("calibrate", *few, "--strict-about", "labels-shifted")
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


def is_followed(code: str, remedy: str, service) -> None:
    """Check that options of commands exist, a request is answered, lines of Python parse."""
    words = shlex.split(remedy) if remedy.startswith(("howsure", "GET")) else [""]
    if words[0] == "howsure":
        assert load_command(words[1]).make_context(words[1], words[2:])
        if "--class-map" in words:
            assert json.loads(words[-1]) == CLASS_MAPS[code]
    elif words[0] == "GET":
        assert service.client.get(words[1]).is_success
    else:
        ast.parse(remedy)


@pytest.mark.parametrize("code", FINDINGS)
def test_every_finding_has_a_remedy_that_can_be_followed(
    code, service, digits_calibration, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for name in ("model.onnx", "calibration.csv", "evaluation.csv"):
        (tmp_path / name).touch()
    finding = {"code": code, "figures": FIGURES}
    maps = (None, CLASS_MAP) if code in CLASS_MAPS else (None,)
    for kind in ("inputs", "logits", "probabilities", "pairs"):
        for class_map in maps:
            config = CONFIG | {"class_map": class_map}
            about = {"data": {"kind": kind, "format": "csv"}, "config": config}
            text, remedy = remedy_of(finding, about, "digits@1")
            assert text
            assert ("model.onnx" in remedy) <= (kind == "inputs")
            assert "NAME" not in remedy.replace("--output NAME", "")
            is_followed(code, remedy, service)
    assert {*REMEDIES} == {*FINDINGS}


@pytest.mark.parametrize("class_map", [None, {"cat": 3}])
def test_findings_of_further_sets_have_remedies_of_their_own(class_map):
    for code in (*LABEL_FINDINGS, *SCORE_FINDINGS, IN_BOTH_SETS):
        finding = {"code": code, "figures": FIGURES}
        text, remedy = remedy_for_further_set(finding, {"class_map": class_map})
        assert " the set" in text
        assert "calibrate" not in text
        ast.parse(remedy)


def remedy_about(code: str, kind: str, figures: dict, **data: object) -> tuple[str, str]:
    config = {"class_map": None, "preprocessing": None}
    about = {"data": {"kind": kind, **data}, "config": config}
    return remedy_of({"code": code, "figures": figures}, about)


@pytest.mark.parametrize(("accuracy", "is_low"), [(0.69, True), (0.7, False)])
def test_labels_may_not_be_all_that_is_wrong(accuracy, is_low):
    for classes in (2, 3):
        figures = {"offset": 1, "classes": classes, "shifted_accuracy": accuracy}
        text, _ = remedy_about("labels-shifted", "probabilities", figures)
        assert ("69.0 %" in text) == is_low
        assert ("of class 0" in text) == (classes == 2)


def test_remedies_fit_the_figures():
    files = {"format": "csv", "files": {"evaluation": "my eval.csv"}}
    differs = {"accuracy": 0.9, "other": 0.5}
    assert "'my eval.csv'" in remedy_about("accuracy-differs", "logits", differs, **files)[1]
    for kind in ("probabilities", "pairs"):
        # Equal rows of a set that was sent several times are not made one.
        assert not remedy_about("duplicate-samples", kind, FIGURES | {"times": 3})[1]
    one = {"bins": 1, "samples": 20, "least_samples": 50}
    assert not remedy_about(FEW_BINS, "inputs", one)[1]


@pytest.mark.parametrize(("axis", "shape"), [(1, (1, 2, 2)), (3, (2, 2, 1))])
@pytest.mark.parametrize("factor", [1.0, 1 / 255])
def test_grey_arrays_are_normalised_as_it_is_printed(axis, shape, factor):
    figures = {"mean": [0.5], "std": [0.25], "axis": axis, "factor": factor}
    _, code = remedy_about("inputs-not-scaled", "inputs", figures)
    inputs = followed(code, inputs=np.full((3, *shape), 0.75 / factor))["inputs"]
    assert inputs.shape == (3, *shape)
    np.testing.assert_allclose(inputs, 1.0, rtol=1e-6)


@pytest.mark.parametrize(("n_errors", "excess"), [(5, ""), (6, "chance"), (11, "clearly")])
def test_a_broken_promise_is_told(n_errors, excess):
    target = {"max_risk": 0.05, "delta": 0.05}
    counts = {"n_samples": 300, "n_accepted": 100, "n_errors": n_errors}
    text = accepted_in_words({"target": target, **counts})
    assert f"({n_errors}.0 %" in text
    assert [word for word in ("chance", "clearly") if word in text] == [excess] * bool(excess)


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


def test_predictions_to_compare_by_hand_are_written_as_it_is_printed(
    command, tmp_path, monkeypatch, quick
):
    monkeypatch.chdir(tmp_path)
    labels = np.arange(300) % 10
    logits = np.eye(10)[labels] * 5 + np.random.default_rng(0).normal(size=(len(labels), 10))
    logits[:, 6] = -50
    np.savez("my outputs.npz", logits=logits, labels=labels)
    made = command("calibrate", "my outputs.npz", "--name", "never", *quick).stderr
    assert "(classes-not-predicted)" in made
    (words,) = printed_commands(made, "predict")
    assert words[:3] == ["predict", "never@1", "my outputs.npz"]
    command(*words)
    assert len((tmp_path / words[-1]).read_text().splitlines()) == len(labels) + 1


@pytest.mark.parametrize(
    ("names", "preprocessing"),
    [
        (["ash", "fir", "bay", "oak", "yew"], {"scale": 1 / 255}),
        pytest.param("01234", {"scale": 1.0}, marks=pytest.mark.slow),
    ],
)
def test_a_command_that_fixes_runs_as_it_is_printed(
    command, quick, tmp_path, monkeypatch, names, preprocessing
):
    """It has the user's files and options, and names no class that the model may not have."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my net.onnx").write_bytes(colour_model(*IMAGENET))
    pixels, labels = colour_set(1500)
    with zipfile.ZipFile(io.BytesIO(zip_of(pixels, labels, names=names))) as archive:
        archive.extractall("photos")
    values = {"mean": [*IMAGENET[0]], "std": [*IMAGENET[1]]} | preprocessing
    files = ("my net.onnx", "photos", "--name", "mended")
    made = command("calibrate", *files, *quick, "--preprocessing", json.dumps(values))
    (words,) = (
        words for words in printed_commands(made.stderr, "calibrate") if "--dry-run" not in words
    )
    assert words[:3] == ["calibrate", *files[:2]]
    assert words[words.index("--name") + 1] == "mended"
    assert json.loads(words[words.index("--config") + 1])["measures"] == ["margin"]
    again = command(*words)
    assert "warning" not in again.stderr
    assert "mended@" in again.stdout


@pytest.fixture
def moving(command, quick):
    """The name of a calibration that gets further sets."""
    command(
        "calibrate", DIGITS / "model.onnx", DIGITS / "calibration.npz", *quick, "--name", "moving"
    )
    return "moving"


def test_a_further_set_is_fixed_and_evaluated_as_it_is_printed(
    command, moving, tmp_path, monkeypatch
):
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
