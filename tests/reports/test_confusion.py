"""Counts of accepted answers by label and predicted class, against a plain loop."""

import re
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
from running_service import calibrated, evaluate, npz, quick_config
from scipy.stats import binomtest

from service.reports.charts.confusion import confusion_figures
from service.reports.confusion import confusion_matrix, count_confusion

COLUMN = "margin"


def records_of(n: int, n_classes: int, seed: int) -> SimpleNamespace:
    rng = np.random.default_rng(seed)
    label = rng.integers(0, n_classes, n).astype(np.int32)
    predicted = np.where(rng.random(n) < 0.7, label, rng.integers(0, n_classes, n))
    return SimpleNamespace(
        label=label,
        top_classes=predicted[:, None].astype(np.int32),
        uncertainty={COLUMN: rng.random(n).astype(np.float32)},
    )


@pytest.mark.parametrize("threshold", [None, 0.5, -1.0])
def test_shards_are_counted_up_to_the_threshold(threshold: float | None) -> None:
    parts = [records_of(200, 5, seed) for seed in range(3)]
    expected = np.zeros((5, 5), int)
    for part in parts:
        for at in range(200):
            if threshold is None or part.uncertainty[COLUMN][at] <= threshold:
                expected[part.label[at], part.top_classes[at, 0]] += 1
    found = confusion_matrix(count_confusion(parts, COLUMN, threshold), 5)
    assert found["counts"] == expected.tolist()
    assert found["n_accepted"] == expected.sum()
    assert found["n_errors"] == expected.sum() - np.trace(expected)


def test_of_many_classes_those_with_the_most_errors_are_shown() -> None:
    part = records_of(5000, 40, 0)
    found = confusion_matrix(count_confusion([part], COLUMN, None), 40)
    wrong = part.label != part.top_classes[:, 0]
    errors = np.bincount(part.label[wrong], minlength=40)
    errors += np.bincount(part.top_classes[wrong, 0], minlength=40)
    least = min(errors[found["classes"]])
    assert all(n <= least for at, n in enumerate(errors) if at not in found["classes"])
    counts = np.array(found["counts"])
    assert counts.shape == (13, 13)
    assert counts.sum() == 5000
    pair = found["pairs"][0]
    is_pair = (part.label == pair["label"]) & (part.top_classes[:, 0] == pair["predicted"])
    assert is_pair.sum() == pair["count"]


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ([3, 2], "3 times, the most frequent error"),
        ([3, 3, 1], "3 times, no error is more frequent"),
        ([1], "once; no error is more frequent"),
        ([1, 1], "once; no error is more frequent"),
    ],
)
def test_an_error_as_frequent_as_another_is_not_the_most_frequent(counts, said) -> None:
    pairs = [{"label": 0, "predicted": at + 1, "count": n} for at, n in enumerate(counts)]
    classes = list(range(len(pairs) + 1))
    found = {"pairs": pairs, "threshold": 0.1, "classes": classes, "n_accepted": 9, "n_errors": 9}
    found["counts"] = [[0] * len(classes) for _ in classes]
    event = {"confusion": found, "figures": {}}
    provenance = {"config": {"classes": list("abcd")}, "data": {"design": ["weight"]}}
    (figure,) = confusion_figures({"events": {"1": event}, "provenance": provenance})
    assert figure.note.endswith("Samples are counted, without their weights.")
    assert figure.title == f"Top-1: “a” is taken for “b” {said}"


def rare(n: int, wrong: float) -> dict[str, np.ndarray]:
    """Logits of a model that finds a rare class; a share of these answers is wrong."""
    rng = np.random.default_rng(5)
    says = rng.random(n) < 0.06
    labels = np.where(says, rng.random(n) >= wrong, False).astype(int)
    margin = rng.uniform(3, 5, n)
    logits = np.stack([np.where(says, 0, margin), np.where(says, margin, 0)], axis=1)
    return {"logits": logits.astype(np.float32), "labels": labels}


def test_a_class_that_is_often_wrong_where_it_is_accepted_is_told(client) -> None:
    sent = rare(8000, 0.3)
    found = calibrated(
        client, quick_config(name="rare", classes=["fine", "fraud"]), calibration=npz(**sent)
    )
    report = client.get("/report", params={"calibration": found["id"]}).json()
    assert report["summary"]["headline"].startswith("Fit for automatic use on")
    (said,) = (line for line in report["summary"]["sentences"] if "of all accepted" in line)
    event = report["events"]["1"]
    accepted = event["confusion"]["counts"]
    n_answers = accepted[0][1] + accepted[1][1]
    assert f"{accepted[0][1]} of {n_answers} accepted answers “fraud” are wrong, " in said
    assert "missed" not in said
    assert (
        "“fraud”"
        in client.get("/report", params={"calibration": found["id"], "format": "html"}).text
    )


# By which answers are wrong.
DESIGNS: dict[str, Callable[[np.ndarray], dict[str, np.ndarray]]] = {
    "equal weights": lambda wrong: {"weight": np.full(len(wrong), 3.0)},
    "a group each": lambda wrong: {"group": np.arange(len(wrong))},
    "errors count twice": lambda wrong: {"weight": np.where(wrong, 2.0, 1.0)},
    "groups of four": lambda wrong: {"group": np.arange(len(wrong)) // 4},
}


@pytest.mark.parametrize("design", DESIGNS)
def test_a_class_that_is_often_wrong_is_told_with_weights_and_groups(client, design) -> None:
    """Where samples count alike and alone, with the numbers of samples without a design."""
    sent = rare(8000, 0.3)
    own = DESIGNS[design](sent["logits"].argmax(axis=1) != sent["labels"])
    config = quick_config(
        name=f"design-{design.replace(' ', '-')}",
        classes=["fine", "fraud"],
        selective=[{"max_risk": 0.1}],
    )
    found = calibrated(client, config, calibration=npz(**sent, **own))
    report = client.get("/report", params={"calibration": found["id"]}).json()
    (said,) = (line for line in report["summary"]["sentences"] if "of all accepted" in line)
    event = report["events"]["1"]
    counts = event["confusion"]["counts"]
    n_errors, n_answers = counts[0][1], counts[0][1] + counts[1][1]
    assert f"{n_errors} of {n_answers} accepted answers “fraud” are wrong, " in said
    (share,) = re.findall(r"are wrong, ([0-9.]+) % \(([0-9.]+) % to ([0-9.]+) %", said)
    rate, lower, upper = (float(number) for number in share)
    plain = binomtest(n_errors, n_answers).proportion_ci(0.95, method="exact")
    if design in ("equal weights", "a group each"):
        assert rate == pytest.approx(100 * n_errors / n_answers, abs=0.05)
        assert lower == pytest.approx(100 * plain.low, abs=0.3)
        assert upper == pytest.approx(100 * plain.high, abs=0.3)
    if design == "errors count twice":
        right = n_answers - n_errors
        assert rate == pytest.approx(200 * n_errors / (2 * n_errors + right), abs=0.05)
    assert ("weighted" in said) == ("weight" in own)


def test_a_class_that_is_often_missed_is_told_everywhere(client) -> None:
    """A model that hardly ever names a rare class, on data that also has a shifted set."""
    rng = np.random.default_rng(8)
    labels = np.where(rng.random(6000) < 0.03, 1, 0)
    margin = rng.uniform(1, 4, 6000) - 2.5 * labels * (rng.random(6000) < 0.4)
    logits = np.stack([margin, np.zeros(6000)], axis=1)
    found = calibrated(
        client,
        quick_config(name="missed", classes=["sound", "crack"]),
        calibration=npz(logits=logits, labels=labels),
    )
    about = {"calibration": found["id"]}
    report = client.get("/report", params=about).json()
    (said,) = (line for line in report["summary"]["sentences"] if "of all accepted" in line)
    counts = report["events"]["1"]["confusion"]["counts"]
    n_missed, n_samples = counts[1][0], counts[1][0] + counts[1][1]
    assert f"{n_missed} of {n_samples} accepted samples of “crack” are missed, " in said
    crack = next(one for one in report["events"]["1"]["confusion"]["by_class"] if one["index"])
    assert (crack["labelled"]["n_errors"], crack["labelled"]["n_samples"]) == (n_missed, n_samples)
    for form in ("markdown", "model-card"):
        assert said in client.get("/report", params={**about, "format": form}).text
    harder = np.where(rng.random(6000) < 0.3, 1, labels)
    evaluate(client, "missed", "moved", npz(logits=0.6 * logits, labels=harder))
    report = client.get("/report", params=about).json()
    assert report["summary"]["status"] == "shifted"
    assert said in report["summary"]["sentences"]


def test_classes_that_are_wrong_alike_are_not_told(client) -> None:
    found = calibrated(client, quick_config(name="alike"), calibration=npz(**rare(8000, 0.02)))
    report = client.get("/report", params={"calibration": found["id"]}).json()
    assert report["summary"]["status"] == "fit"
    assert not [line for line in report["summary"]["sentences"] if "of all accepted" in line]


def test_the_matrix_is_of_the_active_operating_point(client) -> None:
    made = calibrated(client, quick_config(name="point"), calibration=npz(**rare(4000, 0.02)))
    about = {"calibration": made["id"]}
    for chosen, said in (
        ({"coverage": 0.9}, "the answers that the operating point “review” accepts"),
        ({"max_risk": 0.02}, "the answers that the operating point “review” accepts"),
    ):
        decision = {"name": "review", "author": "A", "reason": "R", **chosen}
        address = f"/calibrations/{made['id']}/operating-points"
        point = client.post(address, json=decision).raise_for_status().json()
        report = client.get("/report", params=about).json()
        found, seen = report["events"]["1"]["confusion"], point["consequences"]
        assert (found["threshold"], found["operating_point"]) == (point["threshold"], "review")
        assert found["max_risk"] == chosen.get("max_risk")
        assert (found["n_accepted"], found["n_errors"]) == (seen["n_accepted"], seen["n_errors"])
        assert said in client.get("/report", params={**about, "format": "html"}).text
    withdrawn = {"author": "A", "reason": "R"}
    client.post(f"{address}/withdraw", json=withdrawn).raise_for_status()
    event = client.get("/report", params=about).json()["events"]["1"]
    assert event["confusion"]["threshold"] == event["figures"]["risk"]["threshold"]
    page = client.get("/report", params={**about, "format": "html"}).text
    assert "the answers accepted for an error rate of at most 5&nbsp;%" in page
