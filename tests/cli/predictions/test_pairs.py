"""Pairs by the command line: from a CSV to probabilities in a file."""

import csv

import numpy as np
import pytest

from howsure.client import Client

rng = np.random.default_rng(8)
SCORES = rng.random(300).round(4)
CORRECT = rng.random(300) < SCORES


@pytest.fixture
def pairs(tmp_path, command):
    """A set of pairs, of which a calibration was made."""
    path = tmp_path / "pairs.csv"
    lines = [f"{score},{int(hit)}" for score, hit in zip(SCORES, CORRECT, strict=True)]
    path.write_text("\n".join(["score,correct", *lines]))
    quick = ("--config", '{"bins": 5, "folds": 2}')
    command("calibrate", path, "--name", "file-of-pairs", *quick)
    return path


def test_pairs_are_predicted_to_files(command, service, pairs, tmp_path):
    with Client(service.url) as client:
        expected = client.predict("file-of-pairs", scores=SCORES).top1.probability
    for ending in ("csv", "npz"):
        command("predict", "file-of-pairs", pairs, "-o", tmp_path / f"answers.{ending}")
    with np.load(tmp_path / "answers.npz") as archive:
        assert {"class", "true_label"}.isdisjoint(archive)
        np.testing.assert_allclose(archive["top1_probability"], expected, rtol=1e-6)
        assert archive["correct"].tolist() == CORRECT.tolist()
    with (tmp_path / "answers.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {"label", "class", "true_label"}.isdisjoint(rows[0])
    written = [float(row["top1_probability"]) for row in rows]
    np.testing.assert_allclose(written, expected, rtol=1e-6)
    assert [row["correct"] == "true" for row in rows] == CORRECT.tolist()


def test_pairs_are_printed_and_reported(command, pairs, tmp_path):
    rows = tmp_path / "rows.json"
    rows.write_text('{"scores": [0.9, 0.1]}')
    for path in (rows, pairs):
        printed = command("predict", "file-of-pairs", path).stdout
        assert "probability" in printed
        assert "class" not in printed
    assert "score" in command("report", "file-of-pairs", "--format", "html").stdout


def test_a_set_is_not_overwritten_by_its_predictions(command, pairs, tmp_path, monkeypatch):
    before = pairs.read_bytes()
    monkeypatch.chdir(tmp_path)
    refused = command("predict", "file-of-pairs", pairs, "-o", pairs.name, status=1)
    assert pairs.name in refused.stderr
    assert pairs.read_bytes() == before
