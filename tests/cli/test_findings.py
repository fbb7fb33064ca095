"""Findings on the command line: printed, made an error, and told beforehand."""

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
from scipy.stats import binomtest

from howsure.remedies import remedy_for_further_set, remedy_of
from howsure.remedy_texts import REMEDIES
from howsure.statistics.findings import FINDINGS, IN_BOTH_SETS, LABEL_FINDINGS, SCORE_FINDINGS
from service.cli import load_command
from service.cli.evaluate import accepted_in_words

FEW = (DIGITS / "model.onnx", DIGITS / "calibration.npz", "--bins", "50")
CODE = "few-samples-for-bins"


def test_a_dry_run_prints_findings_and_cost(command):
    tried = command("calibrate", "--dry-run", *FEW, "--name", "dry")
    assert f"warning ({CODE}): 50 bins share 600 calibration samples" in tried.stdout
    assert "600 samples, once through the model: 600 rows, about" in tried.stdout
    assert "this dry run stored nothing." in tried.stdout
    assert "dry@" not in command("list").stdout


def test_a_dry_run_tells_the_accuracy_of_a_set_without_a_finding(command, tmp_path):
    """Many labels are wrong in no pattern: nothing is found, but the accuracy is low."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(256, 10))
    wrong = rng.random(256) < 0.6
    labels = np.where(wrong, rng.integers(0, 10, 256), logits.argmax(axis=1))
    np.savez(tmp_path / "low.npz", logits=logits, labels=labels)
    tried = command("calibrate", "--dry-run", tmp_path / "low.npz").stdout
    hits = int(np.sum(logits.argmax(axis=1) == labels))
    exact = binomtest(hits, 256).proportion_ci(0.95)
    said = f"{hits / 2.56:.1f} % ({100 * exact.low:.1f} % to {100 * exact.high:.1f} %)"
    assert f"\nTop-1 accuracy on 256 samples: {said}\nNo known mistake was found. Is " in tried
    assert f"Is {hits / 2.56:.1f} % the accuracy that your own tests gave?" in tried


def test_a_set_without_a_fault(command):
    tried = command("calibrate", "--dry-run", DIGITS / "calibration_logits.csv")
    assert "No known mistake was found in these samples; the calibration itself" in tried.stdout
    assert "no model is run" in tried.stdout


@pytest.mark.parametrize("strict", [("--strict",), ("--strict-about", CODE)])
def test_a_strict_command_fails_and_names_the_finding(command, strict):
    assert CODE in command("calibrate", *strict, *FEW, status=1).stderr


def test_findings_of_a_calibration_go_to_the_standard_error(command, quick):
    made = command(
        "calibrate", "--name", "too-few", "--strict-about", "labels-shifted", *quick, *FEW
    )
    assert f"warning ({CODE}): 50 bins share" in made.stderr
    assert "\n    howsure refit too-few@1 --bins auto\n" in made.stderr
    assert CODE not in made.stdout


def test_a_line_says_whether_answers_are_fit_for_automatic_use(command, tmp_path):
    path = tmp_path / "coin.csv"
    path.write_text("score,correct\n" + "".join(f"{k % 7},{int(k % 3 > 0)}\n" for k in range(100)))
    made = command("calibrate", path, "--name", "coin", "--bins", "3")
    sentence = "Not yet fit for automatic use: an error rate of at most 5"
    for done in (made, command("report", "coin")):
        assert any(line.startswith(sentence) for line in done.stderr.splitlines())
        assert sentence not in done.stdout
        (words,) = printed_lines(done.stderr, "other error rates: ")
    assert words[-1] == "0.1,0.15,0.2,0.3,0.4,0.5"
    refitted = command(*words[1:]).stderr
    assert "Fit for automatic use on all answers: at most 50 %" in refitted


FIGURES = {"offset": -1, "classes": 10, "sent": [3, 5], "meant": [5, 3]}
CONFIG = {"classes": list("0123456789")}
CLASS_MAPS = {
    "labels-shifted": {"cat": 2, "dog": 4, "{it's}": 6},
    "labels-permuted": {"cat": 5, "dog": 3, "{it's}": 7},
}


@pytest.mark.parametrize("kind", ["inputs", "logits", "probabilities", "pairs"])
@pytest.mark.parametrize("names", [None, {"cat": 3, "dog": 5, "{it's}": 7}])
@pytest.mark.parametrize("code", FINDINGS)
def test_every_finding_has_a_remedy_that_can_be_followed(
    code, kind, names, service, tmp_path, monkeypatch
):
    """Options of commands exist, a request is answered, lines of Python parse."""
    about = {"data": {"kind": kind, "format": "csv"}, "config": CONFIG | {"class_map": names}}
    text, remedy = remedy_of({"code": code, "figures": FIGURES}, about, "digits@1")
    assert text
    monkeypatch.chdir(tmp_path)
    for name in ("model.onnx", "calibration.csv", "evaluation.csv"):
        (tmp_path / name).touch()
    words = shlex.split(remedy) if remedy.startswith(("howsure", "GET")) else [""]
    assert ("model.onnx" in words) <= (kind == "inputs")
    assert "NAME" not in remedy.replace("--output NAME", "")
    if words[0] == "howsure":
        context = load_command(words[1]).make_context(words[1], words[2:])
        if "--class-map" in words:
            assert json.loads(words[-1]) == CLASS_MAPS[code]
        assert context
    elif words[0] == "GET":
        assert service.get(words[1]).is_success
    else:
        ast.parse(remedy)


@pytest.mark.parametrize(("accuracy", "is_low"), [(0.69, True), (0.7, False)])
@pytest.mark.parametrize("classes", [2, 3])
def test_labels_may_not_be_all_that_is_wrong(classes, accuracy, is_low):
    figures = {"offset": 1, "classes": classes, "shifted_accuracy": accuracy}
    about = {"data": {"kind": "probabilities"}, "config": {"class_map": None}}
    text, _ = remedy_of({"code": "labels-shifted", "figures": figures}, about)
    inputs_first = "If the model should be right more often than 69.0 %, mend its inputs first."
    assert text.startswith(inputs_first) == is_low
    assert ("probabilities is that of class 0, send 1 minus it instead." in text) == (classes == 2)


def test_a_command_that_mends_has_the_name_of_the_evaluation_set_that_was_sent():
    figures = {"accuracy": 0.9, "other": 0.5}
    data = {"kind": "logits", "format": "csv", "files": {"evaluation": "my eval.csv"}}
    about = {"data": data, "config": {"class_map": None}}
    _, code = remedy_of({"code": "accuracy-differs", "figures": figures}, about)
    assert "--evaluation 'my eval.csv'" in code


@pytest.mark.parametrize(("axis", "shape"), [(1, (1, 2, 2)), (3, (2, 2, 1))])
@pytest.mark.parametrize("factor", [1.0, 1 / 255])
def test_grey_arrays_are_normalised_as_it_is_printed(axis, shape, factor):
    figures = {"mean": [0.5], "std": [0.25], "axis": axis, "factor": factor}
    about = {"data": {"kind": "inputs"}, "config": {"preprocessing": None}}
    _, code = remedy_of({"code": "inputs-not-scaled", "figures": figures}, about)
    found = followed(code, inputs=np.full((3, *shape), 0.75 / factor))["inputs"]
    assert found.shape == (3, *shape)
    np.testing.assert_allclose(found, 1.0, rtol=1e-6)


@pytest.mark.parametrize(
    ("n_errors", "said"),
    [
        (5, "(5.0 %)"),
        (6, "(6.0 %, more than promised, which may be chance)"),
        (11, "(11.0 %, clearly more than promised)"),
    ],
)
def test_a_broken_promise_is_said(n_errors, said):
    target = {"max_risk": 0.05, "delta": 0.05}
    counts = {"n_samples": 300, "n_accepted": 100, "n_errors": n_errors}
    assert accepted_in_words({"target": target, **counts}).endswith(f"of them wrong {said}")


def printed_lines(text, opening):
    """Return the words after the opening of each line that has it."""
    found = (line.strip() for line in text.splitlines())
    return [shlex.split(line[len(opening) :]) for line in found if line.startswith(opening)]


def printed_commands(text, name):
    lines = [shlex.split(line) for line in text.splitlines() if f"  howsure {name} " in line]
    return [words[1:] for words in lines]


def test_a_command_that_mends_has_the_paths_and_options_that_were_typed(command, tmp_path, quick):
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
    command, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with np.load(DIGITS / "calibration.npz") as stored:
        labels = stored["labels"]
    logits = np.eye(10)[labels] * 5 + np.random.default_rng(0).normal(size=(len(labels), 10))
    logits[:, 6] = -50
    np.savez("my outputs.npz", logits=logits, labels=labels)
    made = command("calibrate", "my outputs.npz", "--name", "never").stderr
    assert "(classes-not-predicted)" in made
    assert "--dry-run" not in made
    (words,) = printed_commands(made, "predict")
    assert words[:3] == ["predict", "never@1", "my outputs.npz"]
    command(*words)
    assert len((tmp_path / words[-1]).read_text().splitlines()) == len(labels) + 1


def test_a_calibration_prints_each_sentence_once_and_the_headline_last(command):
    """Its Top-5 fails twice, where one method seems far better."""
    made = command("calibrate", DIGITS / "model.onnx", DIGITS / "calibration.npz", "--name", "once")
    lines = [line for line in (made.stdout + made.stderr).splitlines() if line.endswith(".")]
    sentences = [line.removeprefix("note: ") for line in lines]
    assert len(sentences) == len(set(sentences))
    said = made.stderr.splitlines()
    (at,) = [at for at, line in enumerate(said) if line.startswith("Fit for automatic use")]
    assert not any(line.startswith("note: ") for line in said[at:])
    assert all(line.startswith("  ") for line in said[at + 1 :])
    assert [line.strip() for line in said[at:]] == [
        line.strip() for line in sentences[-len(said[at:]) :]
    ]
    assert "Top-5 fails in 2 of 600 calibration samples: too rarely to compare" in made.stdout


@pytest.mark.parametrize(
    ("names", "asked"),
    [
        (["ash", "fir", "bay", "oak", "yew"], {"scale": 1 / 255}),
        ("01234", {"scale": 1.0}),
    ],
)
def test_a_command_that_mends_runs_as_it_is_printed(
    command, quick, tmp_path, monkeypatch, names, asked
):
    """It has the user's files and options, and names no class that the model may not have."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my net.onnx").write_bytes(colour_model(*IMAGENET))
    pixels, labels = colour_set(1500)
    with zipfile.ZipFile(io.BytesIO(zip_of(pixels, labels, names=names))) as archive:
        archive.extractall("photos")
    values = {"mean": [*IMAGENET[0]], "std": [*IMAGENET[1]]}
    option = ("--preprocessing", json.dumps(values | asked))
    files = ("my net.onnx", "photos", "--name", "mended")
    made = command("calibrate", *files, *quick, *option)
    printed = [shlex.split(line) for line in made.stderr.splitlines() if "howsure calib" in line]
    ((_, *words),) = (words for words in printed if "--dry-run" not in words)
    assert words[:3] == ["calibrate", *files[:2]]
    assert words[words.index("--name") + 1] == "mended"
    assert json.loads(words[words.index("--config") + 1])["measures"] == ["entropy"]
    again = command(*words)
    assert "warning" not in again.stderr
    assert "mended@" in again.stdout
    if names != "01234":
        assert "label 1 (bay) seems to mean class 2, label 2 (fir) seems to mean" in made.stderr


def test_a_further_set_is_mended_and_evaluated_as_it_is_printed(command, tmp_path, monkeypatch):
    """The printed lines change the set, not the calibration."""
    monkeypatch.chdir(tmp_path)
    command("calibrate", DIGITS / "model.onnx", DIGITS / "calibration.npz", "--name", "further")
    with np.load(DIGITS / "evaluation.npz") as stored:
        inputs, labels = stored["inputs"], stored["labels"]
    np.savez("moved set.npz", inputs=inputs, labels=(labels + 1) % 10)
    made = command("evaluate", "further", "moved set.npz", "--name", "later").stderr
    assert "calibrate" not in made
    lines = [line.strip() for line in made.splitlines()]
    change = next(line for line in lines if line.startswith("labels = "))
    mended = followed(change, labels=(labels + 1) % 10)["labels"]
    np.savez("moved set.npz", inputs=inputs, labels=mended)
    (printed,) = (line for line in lines if line.startswith("howsure "))
    again = command(*shlex.split(printed)[1:])
    assert "warning" not in again.stderr
    assert "later-2: " in again.stdout


@pytest.mark.parametrize("kind", ["probabilities", "pairs"])
def test_equal_rows_of_a_repeated_set_are_not_made_one(kind):
    found = {"code": "duplicate-samples", "figures": FIGURES | {"times": 3}}
    remedy = remedy_of(found, {"config": {}, "data": {"kind": kind}})
    assert "each sample is in it once" in remedy.text
    assert not remedy.code


@pytest.mark.parametrize("names", [None, {"cat": 3}])
@pytest.mark.parametrize("code", [*LABEL_FINDINGS, *SCORE_FINDINGS, IN_BOTH_SETS])
def test_findings_of_further_sets_have_remedies_of_their_own(code, names):
    text, code = remedy_for_further_set({"code": code, "figures": FIGURES}, {"class_map": names})
    assert " the set" in text
    assert "calibrate again" not in text
    ast.parse(code)


def test_remedies_are_of_known_findings():
    assert {*REMEDIES} == {*FINDINGS}


def test_one_bin_cannot_be_fewer():
    few = {"code": CODE, "figures": {"bins": 1, "samples": 20, "least_samples": 50}}
    about = {"data": {"kind": "inputs"}, "config": {}}
    assert remedy_of(few, about) == ("Add labelled samples.", "")


def test_a_shifted_set_has_a_next_step(command, tmp_path):
    rng = np.random.default_rng(3)
    command("calibrate", DIGITS / "model.onnx", DIGITS / "calibration.npz", "--name", "moving")
    with np.load(DIGITS / "evaluation.npz") as stored:
        inputs, labels = stored["inputs"], stored["labels"]
    noisy = np.clip(inputs + rng.normal(0, 6, inputs.shape), 0, 16)
    for name, own in (("alike", inputs), ("noisy", noisy)):
        np.savez(tmp_path / f"{name}.npz", inputs=own, labels=labels)
        told = command("evaluate", "moving", tmp_path / f"{name}.npz", "--name", name).stdout
        assert ("howsure calibrate MODEL NEW_SET --name moving" in told) == (name == "noisy")
