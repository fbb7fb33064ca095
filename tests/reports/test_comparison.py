"""What calibrations are compared on: a set that they have in common, or nothing."""

from typing import Any

import numpy as np
import pytest
from bins_documents import digits_set
from howsure_command import howsure
from page_text import document, visible_text
from report_scenarios import Arrays, send_set
from running_service import DIGITS_PARTS, calibrated, npz

N_CLASSES = 4


def month(*, right: float, seed: int, n: int = 900, shift: int = 0) -> Arrays:
    """Return outputs of one model, and labels that they match as often as ``right``."""
    rng = np.random.default_rng(seed)
    logits = np.round(rng.normal(size=(n, N_CLASSES)) * 2, 3)
    labels = np.where(rng.random(n) < right, logits.argmax(axis=1), rng.integers(0, N_CLASSES, n))
    return {"logits": logits, "labels": (labels + shift) % N_CLASSES}


JULY, NOVEMBER = month(right=0.9, seed=1), month(right=0.4, seed=2)
DECEMBER, JANUARY = month(right=0.4, seed=3), month(right=0.9, seed=4)


def versions(client: Any, name: str, *evaluations: Arrays | None, sets=(JULY, NOVEMBER)) -> tuple:
    """Calibrate on July and on November, with these evaluation sets."""
    for data, judging in zip(sets, evaluations or (None, None), strict=True):
        evaluation = None if judging is None else npz(**judging)
        calibrated(client, {"name": name}, calibration=npz(**data), evaluation=evaluation)
    return f"{name}@1", f"{name}@2"


def judge(client: Any, names: tuple[str, ...], called: str, data: Arrays) -> None:
    for name in names:
        send_set(client, name, called, data)


def compared(client: Any, *names: str) -> dict[str, Any]:
    answer = client.get("/report", params={"calibration": names})
    assert answer.is_success, answer.text
    return answer.json()["comparisons"][0]


def test_versions_are_compared_on_the_newest_set_of_both(client, service, shelf, golden) -> None:
    names = versions(client, "months")
    sentences: dict[str, str] = {}

    def step(title: str, on: str | None, undecided: str | None) -> dict[str, Any]:
        comparison = compared(client, *names)
        assert comparison["basis"] == ("none" if on is None else "further"), title
        assert comparison["on"] == ("different sets" if on is None else f"the further set “{on}”")
        assert comparison["events"]["1"]["undecided"] == undecided
        assert comparison["same_model"] is False
        decision = comparison["to_decide"] or {"sentence": "", "commands": []}
        told = [*comparison["sentences"], decision["sentence"], *decision["commands"]]
        sentences[title] = "\n".join(told)
        return comparison

    comparison = step("sets of their own", None, "different-sets")
    assert comparison["events"]["1"]["differences"] == {}
    assert len(comparison["to_decide"]["commands"]) == 3
    judge(client, names[1:], "new year", month(right=0.9, seed=11, n=300))
    comparison = step("a set of one alone", None, "different-sets")
    assert comparison["to_decide"]["commands"] == [
        "howsure evaluate months@1 SET --name 'new year'",
        "howsure compare months@1 months@2",
    ]
    # An altered copy has the same labels in the same order.
    clean = month(right=0.9, seed=8, n=600)
    for name, called, factor in zip(names, ("clean", "noisy"), (1.0, 0.9), strict=True):
        judge(client, (name,), called, clean | {"logits": factor * clean["logits"]})
    step("altered copies", None, "different-sets")

    judge(client, names, "december", DECEMBER)
    comparison = step("one common set", "december", None)
    event = comparison["events"]["1"]
    assert event["differences"]["nll"]["pairs"] == 900
    assert event["differences"]["accuracy"]["mean"] == 0.0
    for score in ("nll", "brier"):
        first, second = (one["events"]["1"][score] for one in comparison["judged"])
        assert event["differences"][score]["mean"] == pytest.approx(second - first)
    assert event["differences"]["nll"]["mean"] < 0
    reports = client.get("/report", params={"calibration": names}).json()["calibrations"]
    for report, one in zip(reports, comparison["judged"], strict=True):
        scores = report["evaluations"][-1]["events"]["1"]["scores"]
        assert one["events"]["1"]["ece_15"] == scores["ece_15"]

    calibrated(client, {"name": "months", "bins": 1}, calibration=npz(**NOVEMBER))
    judge(client, ("months@3",), "december", DECEMBER)
    judge(client, names, "january", JANUARY)
    comparison = step("two common sets", "january", None)
    assert comparison["events"]["1"]["differences"]["nll"]["mean"] > 0
    # All are compared on one set if there is one.
    three = {"calibration": (*names, "months@3")}
    comparisons = client.get("/report", params=three).json()["comparisons"]
    assert [one["on"] for one in comparisons] == ["the further set “december”"] * 2

    judge(client, names, "easy", month(right=1.0, seed=5))
    event = step("a set without errors", "easy", "too-rare")["events"]["1"]
    assert (event["n_wrong"], event["n_right"]) == (0, 900)
    for name in ("easy", "january"):
        client.delete(f"/calibrations/months@1/evaluations/{name}").raise_for_status()
    alone = step("one is left", "december", None)["sentences"]
    assert f"Also: {alone[0]}" in sentences["two common sets"].splitlines()

    four = (*names, *(shelf(name)["id"] for name in ("rare-errors", "imported")))
    done = howsure("compare", *four, HOWSURE_URL=service.url, COLUMNS="100")
    page = client.get("/report", params=three, headers={"Accept": "text/html"}).text
    texts = {"command": done.stdout + done.stderr, "page": visible_text(page)}
    golden("comparisons.txt", document(sentences | texts))


def test_a_finding_of_a_version_does_not_forbid_a_common_further_set(client) -> None:
    names = versions(client, "warned-version", JANUARY, JANUARY)
    assert compared(client, *names)["events"]["1"]["undecided"] == "warnings"
    judge(client, names, "december", DECEMBER)
    comparison = compared(client, *names)
    assert comparison["events"]["1"]["undecided"] is None
    assert "warned-version@2" in comparison["sentences"][-1]


def test_a_further_set_may_be_the_evaluation_set_of_the_other(client) -> None:
    names = versions(client, "mixed", JANUARY, DECEMBER)
    judge(client, names[:1], "december", DECEMBER)
    comparison = compared(client, *names)
    assert comparison["on"] == "the further set “december” (mixed@2: its evaluation set)"
    assert [one["kind"] for one in comparison["judged"]] == ["further", "evaluation"]


def test_nothing_is_better_on_a_set_whose_labels_look_wrong(client) -> None:
    months = [month(right=0.97, seed=seed) for seed in (6, 7)]
    names = versions(client, "doubtful", sets=months)
    judge(client, names, "right order", month(right=0.97, seed=9))
    judge(client, names, "other order", month(right=0.97, seed=10, shift=1))
    assert compared(client, *names)["on"] == "the further set “right order”"
    client.delete("/calibrations/doubtful@1/evaluations/right order").raise_for_status()
    comparison = compared(client, *names)
    assert comparison["on"] == "the further set “other order”"
    assert comparison["events"]["1"]["undecided"] == "doubtful-set"


def test_versions_of_one_model_give_the_same_classes(client) -> None:
    data, names = digits_set("calibration"), ("one-model@1", "one-model@2")
    for half in (0, 1):
        own = npz(**{name: values[half::2] for name, values in data.items()})
        calibrated(client, {"name": "one-model"}, **DIGITS_PARTS | {"calibration": own})
    comparison = compared(client, *names)
    assert (comparison["basis"], comparison["same_model"]) == ("none", True)
    judge(client, names, "later", digits_set())
    comparison = compared(client, *names)
    assert (comparison["basis"], comparison["same_model"]) == ("further", True)


def test_repeated_rows_in_groups_prove_no_more_between_folds(client: Any) -> None:
    """Each row four times: accuracies are those of as many samples as there are groups."""
    rows = np.repeat(np.arange(len(JULY["labels"])), 4)
    data = npz(group=rows, **{name: values[rows] for name, values in JULY.items()})
    made = [calibrated(client, {"bins": bins}, calibration=data) for bins in (2, 4)]
    comparison = compared(client, *(one["id"] for one in made))
    assert comparison["basis"] == "cross-validation"
    pairs = comparison["events"]["1"]["differences"]["accuracy"]["pairs"]
    assert pairs == pytest.approx(len(JULY["labels"]), rel=0.02)
