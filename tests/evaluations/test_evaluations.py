"""Further sets, refits and comparisons over HTTP."""

import json
from typing import Any

import httpx
import numpy as np
import pandas as pd
import pytest
from bins_documents import digits_set
from running_service import (
    DIGITS_PARTS,
    calibrated,
    codes,
    digits,
    evaluate,
    kept_files,
    npz,
    refit,
    report_of,
)

EVALUATION = digits_set()
INPUTS, LABELS = EVALUATION["inputs"], EVALUATION["labels"]
UNLABELLED = npz(inputs=INPUTS)
PIXELS = np.clip(INPUTS + np.random.default_rng(4).normal(0, 6, INPUTS.shape), 0, 16)
NOISY = npz(inputs=PIXELS.astype(np.float32), labels=LABELS)
LATE_INFINITY = INPUTS.astype(np.float32)
LATE_INFINITY[-1, 3] = np.inf
SETS = {**DIGITS_PARTS, "evaluation": digits("evaluation.npz")}


@pytest.fixture(scope="module")
def judged(client) -> dict[str, Any]:
    """The digits as a calibration of these tests' own, which further sets are sent to."""
    return calibrated(client, {"name": "judged"}, **SETS)


def further(client, name: str, content: bytes) -> dict[str, Any]:
    response = evaluate(client, "judged@1", name, content)
    assert response.status_code == httpx.codes.CREATED, response.text
    resource: dict[str, Any] = response.json()
    assert resource["status"] == "succeeded", resource["error"]
    return resource


@pytest.fixture(scope="module")
def clean(client, judged) -> dict[str, Any]:
    return further(client, "clean half", SETS["evaluation"])


@pytest.fixture(scope="module")
def noisy(client, judged) -> dict[str, Any]:
    return further(client, "noisy", NOISY)


# Nothing is said of labels of other rows: their answers are to the wrong inputs.
@pytest.mark.parametrize("labels", [{}, {"labels": np.roll(LABELS, 7)}], ids=["none", "others"])
def test_inputs_on_another_scale_are_found(client, judged, labels) -> None:
    name = f"scaled, {len(labels)} labels"
    result = further(client, name, npz(inputs=INPUTS * 255.0, **labels))["result"]
    (finding,) = result["findings"]
    assert finding["code"] == "inputs-out-of-range"
    assert (finding["figures"]["rows"], finding["figures"]["most"]) == (600, 16 * 255)


ORDER = np.array([3, 0, 1, 2, 7, 4, 9, 5, 6, 8])
WRONG_LABELS = [("labels-shifted", (LABELS + 1) % 10), ("labels-permuted", ORDER[LABELS])]


@pytest.mark.parametrize(("code", "labels"), WRONG_LABELS)
def test_labels_of_a_further_set_are_checked_as_those_of_a_calibration(
    client, judged, code, labels
) -> None:
    content = npz(inputs=INPUTS, labels=labels)
    result = further(client, code, content)["result"]
    made = calibrated(client, model=DIGITS_PARTS["model"], calibration=content)
    (finding,) = result["findings"]
    (known,) = [one for one in made["findings"] if one["code"] == code]
    assert finding == {name: known[name] for name in finding}
    # The inputs are those of the calibration set: nothing about them has shifted.
    assert result["outcome"] == result["events"]["1"]["outcome"] == "worse"
    (row,) = [one for one in report_of(client, "judged@1")["evaluations"] if one["name"] == code]
    assert codes(row) == [code]
    assert row["outcome"] == "worse"


def test_a_random_half_is_not_shifted_where_many_scores_are_equal(client) -> None:
    """Votes of trees: cross-fitted values differ between folds and are no values of one formula."""
    rng = np.random.default_rng(2)
    votes = rng.binomial(20, rng.beta(0.5, 0.5, 600)) / 20
    probabilities, labels = np.stack([1 - votes, votes], 1), rng.random(600) < votes
    halves = zip(np.split(probabilities, 2), np.split(labels.astype(np.int64), 2), strict=True)
    first, second = (npz(probabilities=values, labels=own) for values, own in halves)
    made = calibrated(client, {"name": "votes"}, full=True, calibration=first)
    assert made["serve"]["1"] == "learned"
    other = evaluate(client, "votes", "the other half", second).json()
    assert other["result"]["shifted"] is False, other["result"]["sentence"]


def test_report_tells_of_further_sets(client, clean, noisy) -> None:
    report = report_of(client, "judged@1")
    rows = {row["name"]: row for row in report["evaluations"]}
    for resource in (clean, noisy):
        row, result = rows[resource["name"]], resource["result"]
        assert row["samples"] == resource["data"]["samples"]
        assert (row["shifted"], row["sentence"]) == (result["shifted"], result["sentence"])
        for k, event in row["events"].items():
            served = result["events"][k]["measures"][report["events"][k]["served"]]
            assert (event["scores"], event["discarded"]) == (served["scores"], served["discarded"])
    address, listed, query = "/calibrations/judged@1/evaluations", [], {"limit": 1}
    while not listed or "cursor" in query:
        page = client.get(address, params=query).json()
        listed += [one["name"] for one in page["evaluations"]]
        query = {"limit": 1} | ({"cursor": page["next_cursor"]} if page["next_cursor"] else {})
    assert listed == [*rows]


def test_a_labelled_set_that_is_clearly_worse_turns_the_verdict(client) -> None:
    """Accepted answers are counted at the tested thresholds."""
    calibrated(client, {"name": "verdict"}, **SETS)
    evaluate(client, "verdict", "clean half", SETS["evaluation"])
    assert report_of(client, "verdict")["summary"]["status"] != "shifted"
    evaluate(client, "verdict", "noisy", NOISY)
    report = report_of(client, "verdict")
    rows = {row["name"]: row["events"]["1"] for row in report["evaluations"]}
    assert (rows["clean half"]["disproves"], rows["noisy"]["disproves"]) == (False, True)
    event = report["events"]["1"]
    targets = event["measures"][event["served"]]["selective"]
    for target, counted in zip(targets, rows["clean half"]["accepted"], strict=True):
        # The same samples as those of the evaluation set.
        assert target["evaluation"].items() <= counted.items()
        assert (counted["target"], counted["threshold"]) == (target["target"], target["threshold"])
    summary = report["summary"]
    assert summary["status"] == "shifted"
    assert "“noisy”" in summary["headline"]
    assert f"{100 * (1 - rows['noisy']['accuracy']):.1f} %" in summary["headline"]
    assert "“clean half”" not in json.dumps(summary, ensure_ascii=False)


def test_flipped_labels_come_first_among_suspects(client, judged) -> None:
    flipped = np.random.default_rng(6).choice(600, 12, replace=False)
    labels = np.where(np.isin(np.arange(600), flipped), (LABELS + 3) % 10, LABELS)
    result = further(client, "flipped", npz(inputs=INPUTS, labels=labels))["result"]
    first = [row["index"] for row in result["mislabelled"]["1"][:12]]
    assert np.isin(first, flipped).sum() >= 7


@pytest.mark.parametrize("name", ["/", "50% #1?", "x/cancel"])
def test_every_name_has_an_address(client, judged, name: str) -> None:
    response = evaluate(client, "judged@1", name, npz(inputs=INPUTS[:40]))
    assert response.status_code == httpx.codes.CREATED, response.text
    where = response.headers["location"]
    assert client.get(where).json()["name"] == name
    assert client.post(f"{where}/cancel").status_code == httpx.codes.CONFLICT
    assert client.delete(where).status_code == httpx.codes.NO_CONTENT
    assert client.get(where).status_code == httpx.codes.NOT_FOUND


BAD_SETS = [
    *((name, UNLABELLED, 422, "name") for name in (None, "..")),
    ("no file", None, 422, "evaluation"),
    ("other kind", npz(logits=np.zeros((9, 10))), 422, "evaluation"),
    ("bad labels", npz(inputs=INPUTS, labels=LABELS + 1), 422, "evaluation.labels"),
    ("late infinity", npz(inputs=LATE_INFINITY), 422, "evaluation.inputs[599]"),
    ("clean half", SETS["evaluation"], 409, ""),
]


@pytest.mark.parametrize(("name", "content", "status", "location"), BAD_SETS)
def test_bad_further_sets(service, clean, name, content, status: int, location: str) -> None:
    before = kept_files(service.folder)
    response = evaluate(service.client, "judged@1", name, content)
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    errors = response.json().get("errors", [])
    assert not location or any(error["location"].startswith(location) for error in errors)
    assert kept_files(service.folder) == before


def test_a_refit_equals_a_new_calibration(client) -> None:
    """Other bins by refit and by a new run of the model give the same tables and scores."""
    first = calibrated(client, {"name": "refitted"}, **SETS)
    changes = {"bins": 4, "lookup": "interpolated", "interval": {"method": "wilson"}}
    second = refit(client, "refitted@1", **changes).json()
    assert second["status"] == "succeeded", second["error"]
    assert (second["name"], second["version"]) == ("refitted", 2)
    assert (second["refit_of"], second["config"]["bins"]) == (first["id"], 4)
    anew = calibrated(client, changes, **SETS)
    events = [report_of(client, one["id"])["events"]["1"] for one in (second, anew)]
    for event in events:  # a run of its own takes a time of its own
        assert all(row.pop("ms_per_row") > 0 for row in event["comparison"])
    assert events[0] == events[1]
    client.delete(f"/calibrations/{second['id']}")
    for reference, status in ((second["id"], 404), ("refitted", 200)):
        body = {"calibration": reference, "inputs": INPUTS[:2].tolist()}
        assert client.post("/predict", json=body).status_code == status


BAD_REFITS = [
    *(({}, "body"), ({"top_k": [1, 3]}, "config.top_k"), ({"bins": 0}, "config.bins")),
    ({"serve": {"1": "energy"}}, "config"),
]


@pytest.mark.parametrize(("changes", "location"), BAD_REFITS)
def test_bad_refits(client, digits_calibration, changes, location: str) -> None:
    response = client.post("/calibrations/digits@1/refit", json=changes)
    assert response.status_code == httpx.codes.UNPROCESSABLE_ENTITY, response.text
    assert any(error["location"].startswith(location) for error in response.json()["errors"])


@pytest.mark.parametrize("is_same", [True, False])
def test_comparison_is_paired_on_outputs_of_the_same_samples(client, judged, is_same) -> None:
    """Their labels are in the same order; another order of the rows is another set."""
    rng = np.random.default_rng(0)
    own = {"logits": rng.normal(size=(600, 10)), "labels": LABELS}
    own["logits"][np.arange(600), LABELS] += 2.0
    rows = slice(None) if is_same else rng.permutation(600)
    evaluation = npz(**{key: values[rows] for key, values in own.items()})
    made = calibrated(client, calibration=npz(**own), evaluation=evaluation)
    (comparison,) = report_of(client, "judged@1", made["id"])["comparisons"]
    assert comparison["events"]["1"]["paired"] == is_same
    assert ("the same labels in the same order" in comparison["on"]) == is_same


def test_names_that_the_calibration_has_shown_are_not_doubted(client) -> None:
    """Turned or recoloured pictures make some classes look like others; the labels are right."""
    names = np.array([f"digit {number}" for number in range(10)])

    def table(inputs) -> bytes:
        frame = pd.DataFrame(inputs, columns=[f"pixel {number}" for number in range(64)])
        return frame.assign(label=names[LABELS]).to_csv(index=False).encode()

    parts = {"model": DIGITS_PARTS["model"], "calibration": table(INPUTS)}
    calibrated(client, {"name": "turned-names"}, **parts)
    result = evaluate(client, "turned-names", "turned", table(INPUTS[:, ::-1])).json()["result"]
    assert not {"labels-permuted", "labels-shifted"} & set(codes(result))
    assert result["outcome"] == "shifted"
    assert report_of(client, "turned-names")["summary"]["status"] == "shifted"


def test_a_stress_set_never_changes_the_verdict(client, judged) -> None:
    """One that disproves the calibration as traffic."""
    shuffled = npz(inputs=INPUTS, labels=np.where(LABELS % 3 == 0, (LABELS + 1) % 10, LABELS))
    texts = {"role": "stress", "type": "labels of 3", "intensity": "1.5"}
    before = report_of(client, "judged@1")["summary"]
    sent = evaluate(client, "judged@1", "stressed", shuffled, **texts).json()
    assert [sent[name] for name in texts] == ["stress", "labels of 3", 1.5]
    report = report_of(client, "judged@1")
    stressed = next(one for one in report["evaluations"] if one["name"] == "stressed")
    assert stressed["events"]["1"]["disproves"]
    assert stressed["events"]["1"]["best_sentence"]
    assert report["summary"] == before
    evaluate(client, "judged@1", "traffic", shuffled, role="traffic")
    assert report_of(client, "judged@1")["summary"]["status"] == "shifted"
    client.delete("/calibrations/judged@1/evaluations/traffic").raise_for_status()


REFUSED_TEXTS = [
    ({"role": "other"}, "role"),
    ({"type": ""}, "type"),
    ({"type": "\x1b[2J"}, "type"),
    ({"type": "x" * 101}, "type"),
    ({"intensity": "-1"}, "intensity"),
    ({"intensity": "nan"}, "intensity"),
    ({"intensity": "much"}, "intensity"),
    ({"strength": "3"}, "strength"),
]


@pytest.mark.parametrize(("texts", "part"), REFUSED_TEXTS)
def test_a_part_that_breaks_its_rule_is_named(client, judged, texts, part) -> None:
    response = evaluate(client, "judged@1", "refused", UNLABELLED, **texts)
    assert response.status_code in (400, 422), response.text
    assert part in response.json()["errors"][0]["location"]
