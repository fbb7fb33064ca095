"""What calibrations are compared on: a set that they have in common, or nothing."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from running_service import DIGITS, calibrated, digits, evaluate, npz, quick_config

N_CLASSES = 4


def month(*, right: float, seed: int, n: int = 1500, shift: int = 0) -> bytes:
    """Return outputs of one model, and labels that they match as often as ``right``."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, N_CLASSES)) * 2
    labels = np.where(rng.random(n) < right, logits.argmax(axis=1), rng.integers(0, N_CLASSES, n))
    return npz(logits=logits.astype(np.float32), labels=(labels + shift) % N_CLASSES)


JULY, NOVEMBER = month(right=0.9, seed=1), month(right=0.4, seed=2)
DECEMBER, JANUARY = month(right=0.4, seed=3), month(right=0.9, seed=4)


def versions(client: Any, name: str, *evaluations: bytes | None) -> tuple[str, str]:
    """Calibrate on July and on November, with these evaluation sets."""
    for data, judging in zip((JULY, NOVEMBER), evaluations or (None, None), strict=True):
        calibrated(client, quick_config(name=name), calibration=data, evaluation=judging)
    return f"{name}@1", f"{name}@2"


def judge(client: Any, names: tuple[str, ...], called: str, data: bytes) -> None:
    for name in names:
        answer = evaluate(client, name, called, data)
        assert answer.json()["status"] == "succeeded", answer.text


def compared(client: Any, *names: str) -> dict[str, Any]:
    answer = client.get("/report", params={"calibration": names})
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json()["comparisons"][0]
    return found


def numbers(found: Mapping[str, Any], score: str) -> list[float]:
    return [one["events"]["1"][score] for one in found["judged"]]


def test_a_difference_of_sets_is_none_of_versions(client) -> None:
    names = versions(client, "sets")
    found = compared(client, *names)
    assert found["basis"] == "none"
    assert found["events"]["1"]["differences"] == {}
    assert found["events"]["1"]["undecided"] == "different-sets"
    said = " ".join(found["sentences"])
    assert "no difference between sets@1 and sets@2 is known" in said
    assert "right more often" not in said
    for name, accuracy in zip(names, numbers(found, "accuracy"), strict=True):
        assert f"{name} is right on {100 * accuracy:.1f} % of its calibration set" in said
    assert found["to_decide"]["commands"] == [
        "howsure evaluate sets@1 SET --name NAME",
        "howsure evaluate sets@2 SET --name NAME",
        "howsure compare sets@1 sets@2",
    ]
    judge(client, ("sets@2",), "new year", JANUARY)
    assert compared(client, *names)["to_decide"]["commands"] == [
        "howsure evaluate sets@1 SET --name 'new year'",
        "howsure compare sets@1 sets@2",
    ]


def test_versions_are_compared_on_the_newest_further_set_of_both(client) -> None:
    names = versions(client, "newest")
    judge(client, names, "december", DECEMBER)
    found = compared(client, *names)
    assert (found["basis"], found["on"]) == ("further", "the further set “december”")
    event = found["events"]["1"]
    assert event["undecided"] is None
    assert event["differences"]["nll"]["pairs"] == 1500
    assert event["differences"]["accuracy"]["mean"] == 0.0
    for score in ("nll", "brier"):
        first, second = numbers(found, score)
        assert event["differences"][score]["mean"] == pytest.approx(second - first)
    assert found["sentences"][0].startswith(
        "Top-1, on the further set “december”: newest@2 states better than newest@1"
    )
    reports = client.get("/report", params={"calibration": names}).json()["calibrations"]
    for report, judged in zip(reports, found["judged"], strict=True):
        scores = report["evaluations"][0]["events"]["1"]["scores"]
        assert judged["events"]["1"]["ece_15"] == scores["ece_15"]

    judge(client, names, "january", JANUARY)
    found = compared(client, *names)
    assert found["on"] == "the further set “january”"
    assert "newest@1 states better than newest@2" in found["sentences"][0]


def test_all_are_compared_on_one_set_if_there_is_one(client) -> None:
    names = versions(client, "three")
    calibrated(client, quick_config(name="three", bins=1), calibration=NOVEMBER)
    judge(client, (*names, "three@3"), "december", DECEMBER)
    judge(client, names, "january", JANUARY)
    params = {"calibration": (*names, "three@3")}
    found = client.get("/report", params=params).json()["comparisons"]
    assert [one["on"] for one in found] == ["the further set “december”"] * 2


def test_other_common_sets_are_told_beside_the_newest(client) -> None:
    names = versions(client, "several")
    judge(client, names, "december", DECEMBER)
    judge(client, names, "january", JANUARY)
    judge(client, names, "labels in another order", month(right=0.97, seed=9, shift=1))
    found = compared(client, *names)
    assert found["on"] == "the further set “january”"
    (also,) = (said for said in found["sentences"] if said.startswith("Also: "))
    client.delete(f"/calibrations/{names[0]}/evaluations/january").raise_for_status()
    alone = compared(client, *names)
    assert alone["on"] == "the further set “december”"
    assert also == f"Also: {alone['sentences'][0]}"
    assert not [said for said in alone["sentences"] if said.startswith("Also: ")]


def test_a_finding_of_a_version_does_not_forbid_a_common_further_set(client) -> None:
    names = versions(client, "warned-version", JANUARY, JANUARY)
    report = client.get("/report", params={"calibration": names[1]}).json()
    assert report["summary"]["status"] == "warned"
    assert compared(client, *names)["events"]["1"]["undecided"] == "warnings"
    judge(client, names, "december", DECEMBER)
    found = compared(client, *names)
    assert found["events"]["1"]["undecided"] is None
    assert "warned-version@2 states better than warned-version@1" in found["sentences"][0]
    assert found["sentences"][-1].startswith("Fix the findings of warned-version@2")


def test_a_further_set_may_be_the_evaluation_set_of_the_other(client) -> None:
    names = versions(client, "mixed", JANUARY, DECEMBER)
    judge(client, names[:1], "december", DECEMBER)
    found = compared(client, *names)
    assert found["on"] == "the further set “december” (mixed@2: its evaluation set)"
    assert [one["kind"] for one in found["judged"]] == ["further", "evaluation"]


def test_an_altered_copy_is_another_set(client) -> None:
    """A noisy copy has the same labels in the same order."""
    names = versions(client, "copies")
    with np.load(DIGITS / "evaluation.npz") as evaluation:
        labels = evaluation["labels"] % N_CLASSES
    rng = np.random.default_rng(8)
    for name, called in zip(names, ("clean", "noisy"), strict=True):
        logits = rng.normal(size=(len(labels), N_CLASSES)) + 3.0 * np.eye(N_CLASSES)[labels]
        judge(client, (name,), called, npz(logits=logits, labels=labels))
    assert compared(client, *names)["basis"] == "none"


def test_nothing_is_better_on_a_set_whose_labels_look_wrong(client) -> None:
    july = [month(right=0.97, seed=seed) for seed in (6, 7)]
    for data in july:
        calibrated(client, quick_config(name="doubtful"), calibration=data)
    names = ("doubtful@1", "doubtful@2")
    judge(client, names, "other order", month(right=0.97, seed=9, shift=1))
    found = compared(client, *names)
    assert found["events"]["1"]["undecided"] == "doubtful-set"
    assert "no comparison, because labels of this set look wrong" in found["sentences"][0]
    judge(client, names, "right order", month(right=0.97, seed=9))
    judge(client, names, "again", month(right=0.97, seed=10, shift=1))
    assert compared(client, *names)["on"] == "the further set “right order”"


def test_versions_of_one_model_give_the_same_classes(client) -> None:
    with np.load(DIGITS / "calibration.npz") as data:
        arrays = dict(data)
    for half in (0, 1):
        rows = npz(**{name: values[half::2] for name, values in arrays.items()})
        calibrated(
            client, quick_config(name="one-model"), model=digits("model.onnx"), calibration=rows
        )
    names = ("one-model@1", "one-model@2")
    for basis in ("none", "further"):
        if basis == "further":
            judge(client, names, "later", digits("evaluation.npz"))
        found = compared(client, *names)
        assert (found["basis"], found["same_model"]) == (basis, True)
        assert "they give the same classes" in found["sentences"][-1]
    assert not compared(client, *versions(client, "no-model"))["same_model"]


def test_a_set_without_errors_names_no_better_version(client) -> None:
    names = versions(client, "no-errors")
    judge(client, names, "easy", month(right=1.0, seed=5))
    found = compared(client, *names)
    assert found["on"] == "the further set “easy”"
    event = found["events"]["1"]
    assert (event["undecided"], event["n_wrong"], event["n_right"]) == ("too-rare", 0, 1500)
    assert "too few wrong answers (0) to tell which" in found["sentences"][0]
