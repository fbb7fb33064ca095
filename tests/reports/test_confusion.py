"""Counts of accepted answers by label and predicted class, against a plain loop."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from report_scenarios import activate, rare_class, send_set, withdraw
from running_service import calibrated, npz, report_of
from scipy.stats import binomtest

from howsure.report.confusion import confusion_matrix, count_confusion

COLUMN = "margin"


def records_of(n: int, n_classes: int, seed: int) -> SimpleNamespace:
    rng = np.random.default_rng(seed)
    label = rng.integers(0, n_classes, n).astype(np.int32)
    predicted = np.where(rng.random(n) < 0.7, label, rng.integers(0, n_classes, n))
    top_classes, values = predicted[:, None].astype(np.int32), rng.random(n).astype(np.float32)
    return SimpleNamespace(label=label, top_classes=top_classes, uncertainty={COLUMN: values})


@pytest.mark.parametrize("threshold", [None, 0.5, -1.0])
def test_shards_are_counted_up_to_the_threshold(threshold: float | None) -> None:
    parts = [records_of(200, 5, seed) for seed in range(3)]
    expected = np.zeros((5, 5), int)
    for part in parts:
        for at in range(200):
            if threshold is None or part.uncertainty[COLUMN][at] <= threshold:
                expected[part.label[at], part.top_classes[at, 0]] += 1
    matrix = confusion_matrix(count_confusion(parts, COLUMN, threshold), 5)
    assert matrix["counts"] == expected.tolist()
    assert matrix["n_accepted"] == expected.sum()
    assert matrix["n_errors"] == expected.sum() - np.trace(expected)


def test_of_many_classes_those_with_the_most_errors_are_shown() -> None:
    part = records_of(5000, 40, 0)
    matrix = confusion_matrix(count_confusion([part], COLUMN, None), 40)
    wrong = part.label != part.top_classes[:, 0]
    errors = np.bincount(part.label[wrong], minlength=40)
    errors += np.bincount(part.top_classes[wrong, 0], minlength=40)
    least = min(errors[matrix["classes"]])
    assert all(n <= least for at, n in enumerate(errors) if at not in matrix["classes"])
    counts = np.array(matrix["counts"])
    assert counts.shape == (13, 13)
    assert counts.sum() == 5000
    pair = matrix["pairs"][0]
    is_pair = (part.label == pair.label) & (part.top_classes[:, 0] == pair.predicted)
    assert is_pair.sum() == pair.count


def told(report: dict[str, Any], name: str) -> list[str]:
    """Return the sentences of the summary about a class."""
    return [sentence for sentence in report["summary"]["sentences"] if f"“{name}”" in sentence]


NAMED_RARELY = rare_class(2500, 0.3)
IS_WRONG = NAMED_RARELY["logits"].argmax(axis=1) != NAMED_RARELY["labels"]
DESIGNS = {"none": {}, "errors count twice": {"weight": np.where(IS_WRONG, 2.0, 1.0)}}
DESIGNS["groups of four"] = {"group": np.arange(2500) // 4}


@pytest.mark.parametrize("design", DESIGNS)
def test_a_class_that_is_often_wrong_is_told(client, design: str) -> None:
    """Counts are those of samples; their share is that of the design."""
    config = {"classes": ["fine", "fraud"], "selective": [{"max_risk": 0.1}]}
    made = calibrated(client, config, calibration=npz(**NAMED_RARELY, **DESIGNS[design]))
    report = report_of(client, made["id"])
    assert report["summary"]["status"] == "fit"
    assert len(told(report, "fraud")) == 1
    confusion = report["events"]["1"]["confusion"]
    (_, wrong), (_, hits) = confusion["counts"]
    named = next(one["named"] for one in confusion["by_class"] if one["index"] == 1)
    assert (named["n_errors"], named["n_samples"]) == (wrong, wrong + hits)
    if design == "errors count twice":
        assert named["share"] == pytest.approx(2 * wrong / (2 * wrong + hits))
    elif design == "none":
        plain = binomtest(wrong, wrong + hits).proportion_ci(0.95, method="exact")
        assert named["interval"] == pytest.approx([plain.low, plain.high], abs=0.003)


def test_a_class_that_is_often_missed_is_told(client) -> None:
    """A model that hardly ever names a rare class, on data that also has a shifted set."""
    rng = np.random.default_rng(8)
    labels = np.where(rng.random(6000) < 0.03, 1, 0)
    margin = rng.uniform(1, 4, 6000) - 2.5 * labels * (rng.random(6000) < 0.4)
    logits = np.stack([margin, np.zeros(6000)], axis=1)
    config = {"name": "missed", "classes": ["sound", "crack"]}
    calibrated(client, config, calibration=npz(logits=logits, labels=labels))
    report = report_of(client, "missed")
    (sentence,) = told(report, "crack")
    (_, (missed, hits)) = report["events"]["1"]["confusion"]["counts"]
    assert f"{missed} of {missed + hits} " in sentence
    harder = np.where(rng.random(6000) < 0.3, 1, labels)
    send_set(client, "missed", "moved", {"logits": 0.6 * logits, "labels": harder})
    report = report_of(client, "missed")
    assert report["summary"]["status"] == "shifted"
    assert told(report, "crack") == [sentence]


def test_the_matrix_is_of_the_active_operating_point(client) -> None:
    """Of a model whose classes are wrong alike, of which no class is told."""
    config = {"name": "matrix", "classes": ["fine", "fraud"]}
    calibrated(client, config, calibration=npz(**rare_class(4000, 0.02)))
    assert told(report_of(client, "matrix"), "fraud") == []
    for choice in ({"coverage": 0.9}, {"max_risk": 0.02}):
        point = activate(client, "matrix", name="review", **choice)
        confusion = report_of(client, "matrix")["events"]["1"]["confusion"]
        expected = point | point["consequences"] | {"operating_point": "review"}
        expected["max_risk"] = choice.get("max_risk")
        for name in ("operating_point", "max_risk", "threshold", "n_accepted", "n_errors"):
            assert confusion[name] == expected[name]
    withdraw(client, "matrix")
    event = report_of(client, "matrix")["events"]["1"]
    assert event["confusion"]["threshold"] == event["figures"]["risk"]["threshold"]
    assert event["confusion"]["operating_point"] is None
