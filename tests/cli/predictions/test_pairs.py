"""Pairs by the command line and the client: from a CSV to probabilities in a file."""

import csv

import numpy as np
import pytest

from howsure.client import Client

rng = np.random.default_rng(8)
SCORES = rng.random(300).round(4)
CORRECT = rng.random(300) < SCORES


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.csv"
    lines = [f"{score},{int(hit)}" for score, hit in zip(SCORES, CORRECT, strict=True)]
    path.write_text("\n".join(["score,correct", *lines]))
    return path


@pytest.mark.parametrize("written", ["csv", "npz"])
def test_a_csv_of_pairs_is_calibrated_and_answered(command, service, pairs, tmp_path, written):
    done = command("calibrate", pairs, "--name", "scored-pairs", "--bins", "5")
    assert "score" in done.stdout

    output = tmp_path / f"answers.{written}"
    command("predict", "scored-pairs", pairs, "-o", output)
    with Client(str(service.base_url)) as client:
        expected = client.predict("scored-pairs", scores=SCORES)
    assert len(expected) == len(SCORES)
    if written == "npz":
        with np.load(output) as archive:
            assert "class" not in archive
            found = archive["top1_probability"]
    else:
        with output.open() as file:
            rows = list(csv.DictReader(file))
        assert {"label", "class"}.isdisjoint(rows[0])
        found = np.array([float(row["top1_probability"]) for row in rows])
    np.testing.assert_allclose(found, expected.top1.probability, rtol=1e-6)
    order = np.argsort(SCORES)
    assert found[order[-30:]].mean() > found[order[:30]].mean() + 0.4


def test_a_report_of_pairs_is_written(command, pairs, tmp_path):
    command("calibrate", pairs, "--name", "reported-pairs", "--bins", "5")
    for form in ("html", "md", "json"):
        command("report", "reported-pairs", "-o", tmp_path / f"report.{form}")
        assert "score" in (tmp_path / f"report.{form}").read_text()


def test_the_client_takes_arrays_of_pairs(service):
    with Client(str(service.base_url)) as client:
        made = client.calibrate(
            calibration={"score": SCORES, "correct": CORRECT}, name="arrays-of-pairs", bins=3
        )
        assert made.status == "succeeded"
        answers = client.predict(made, scores=[0.95, 0.05])
        sure, unsure = answers.top1.probability
        assert sure > unsure
        with pytest.raises(AttributeError, match="have no classes"):
            len(answers.class_)


def test_predictions_of_pairs_are_printed(command, pairs, tmp_path):
    command("calibrate", pairs, "--name", "printed-pairs", "--bins", "5")
    rows = tmp_path / "rows.json"
    rows.write_text('{"scores": [0.9, 0.1]}')
    for path in (rows, pairs):
        shown = command("predict", "printed-pairs", path).stdout
        assert "probability" in shown
        assert "class" not in shown


@pytest.mark.parametrize("ending", ["csv", "npz"])
def test_answers_of_pairs_say_what_was_correct(command, pairs, tmp_path, ending):
    command("calibrate", pairs, "--name", "known-pairs", "--bins", "5")
    output = tmp_path / f"answers.{ending}"
    command("predict", "known-pairs", pairs, "-o", output)
    if ending == "npz":
        with np.load(output) as archive:
            assert "true_label" not in archive
            found = archive["correct"].tolist()
    else:
        with output.open() as file:
            rows = list(csv.DictReader(file))
        assert "true_label" not in rows[0]
        found = [row["correct"] == "true" for row in rows]
    assert found == CORRECT.tolist()


def test_a_set_is_not_overwritten_by_its_answers(command, pairs, tmp_path, monkeypatch):
    command("calibrate", pairs, "--name", "kept-pairs", "--bins", "5")
    before = pairs.read_bytes()
    monkeypatch.chdir(tmp_path)
    refused = command("predict", "kept-pairs", pairs, "-o", pairs.name, status=1)
    assert "is the set itself" in refused.stderr
    assert pairs.read_bytes() == before


def test_pairs_in_percent_are_noted(command, pairs, tmp_path):
    path = tmp_path / "percent.csv"
    lines = [f"{100 * score:.2f},{hit}.0" for score, hit in zip(SCORES, CORRECT * 1, strict=True)]
    path.write_text("\n".join(["score,correct", *lines]))
    note = "Divide them by 100 if they are percentages."
    assert note in command("calibrate", path, "--dry-run").stdout
    tried = command("calibrate", pairs, "--dry-run").stdout
    assert note not in tried
    spread = np.linspace(0, len(CORRECT) - 1, 256).astype(int)
    assert f" 256 samples: {100 * CORRECT[spread].mean():.1f} % (" in tried
