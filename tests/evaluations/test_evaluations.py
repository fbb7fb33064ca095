"""Further sets, refits, promotions and comparisons over HTTP."""

import io
import json

import httpx
import numpy as np
import pandas as pd
import pytest
from running_service import calibrated, digits, evaluate, kept_files, npz, quick_config, refit

CALIBRATION = np.load(io.BytesIO(digits("calibration.npz")))
EVALUATION = np.load(io.BytesIO(digits("evaluation.npz")))
INPUTS, LABELS = EVALUATION["inputs"], EVALUATION["labels"]
UNLABELLED = npz(inputs=INPUTS)
LATE_INFINITY = INPUTS.astype(np.float32)
LATE_INFINITY[-1, 3] = np.inf


@pytest.fixture(scope="module")
def clean(client, digits_calibration) -> dict:
    answer = evaluate(client, "digits", "clean half", digits("evaluation.npz"))
    assert answer.status_code == httpx.codes.CREATED, answer.text
    assert answer.json()["status"] == "succeeded", answer.json()["error"]
    return answer.json()


@pytest.fixture(scope="module")
def noisy(client, digits_calibration) -> dict:
    rng = np.random.default_rng(4)
    pixels = INPUTS + rng.normal(0, 6, INPUTS.shape)
    data = npz(inputs=np.clip(pixels, 0, 16).astype(np.float32), labels=LABELS)
    return evaluate(client, "digits", "noisy", data).json()


def test_a_clean_set_is_scored_as_the_evaluation_was(client, clean) -> None:
    """The same samples, sent with the calibration or afterwards, get the same scores."""
    report = client.get("/report", params={"calibration": "digits"}).json()
    for k, event in report["events"].items():
        for name, found in event["measures"].items():
            scores = clean["result"]["events"][k]["measures"][name]["scores"]
            assert scores == pytest.approx(found["evaluation"], rel=1e-12, nan_ok=False)
    assert clean["labelled"] is True
    assert clean["data"]["samples"] == 600


def test_a_shifted_set_is_reported_as_shifted(clean, noisy) -> None:
    assert clean["result"]["shifted"] is False
    assert noisy["result"]["shifted"] is True
    assert "shifted" in noisy["result"]["sentence"]
    served = noisy["result"]["events"]["1"]["served"]
    events = [found["result"]["events"]["1"]["measures"][served] for found in (clean, noisy)]
    assert events[0]["scores"]["nll"] < events[1]["scores"]["nll"]


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("unlabelled", {}),
        ("labelled", {"labels": LABELS}),
        # Nothing is said of labels: their answers are to the wrong inputs.
        ("of other rows", {"labels": np.roll(LABELS, 7)}),
    ],
)
def test_inputs_on_another_scale_are_found(client, digits_calibration, name, labels) -> None:
    found = evaluate(client, "digits", name, npz(inputs=INPUTS * 255.0, **labels)).json()
    (finding,) = found["result"]["findings"]
    assert finding["code"] == "inputs-out-of-range"
    assert (finding["figures"]["rows"], finding["figures"]["most"]) == (600, 16 * 255)
    assert found["result"]["sentence"].startswith("600 of 600 samples for evaluation")
    client.delete(f"/calibrations/digits/evaluations/{name}").raise_for_status()


ORDER = np.array([3, 0, 1, 2, 7, 4, 9, 5, 6, 8])


@pytest.mark.parametrize(
    ("code", "labels"),
    [("labels-shifted", (LABELS + 1) % 10), ("labels-permuted", ORDER[LABELS])],
)
def test_labels_of_a_further_set_are_checked_as_those_of_a_calibration(
    client, digits_calibration, code, labels
) -> None:
    content = npz(inputs=INPUTS, labels=labels)
    result = evaluate(client, "digits", code, content).json()["result"]
    made = calibrated(client, quick_config(), model=digits("model.onnx"), calibration=content)
    (finding,) = result["findings"]
    (known,) = [found for found in made["findings"] if found["code"] == code]
    assert finding == {name: known[name] for name in finding}
    assert result["sentence"].startswith(finding["message"])
    # The inputs are those of the calibration set: nothing about them has shifted.
    assert result["outcome"] == result["events"]["1"]["outcome"] == "worse"
    assert "Top-1: worse than stated; " in result["sentence"]
    assert "the set is shifted" not in result["sentence"]
    report = client.get("/report", params={"calibration": "digits@1"}).json()
    (shown,) = [found for found in report["evaluations"] if found["name"] == code]
    assert [found["code"] for found in shown["findings"]] == [code]
    assert shown["outcome"] == "worse"
    page = client.get("/report", params={"calibration": "digits@1", "format": "html"}).text
    assert f"“{code}” is worse than stated" in page
    assert f"“{code}” is shifted" not in page


def test_a_clean_set_has_no_finding(clean, noisy) -> None:
    for found, outcome in ((clean, "alike"), (noisy, "shifted")):
        assert found["result"]["findings"] == []
        assert found["result"]["outcome"] == outcome


def test_a_random_half_is_not_shifted_where_many_scores_are_equal(client) -> None:
    """Votes of trees: cross-fitted values differ between folds and are no values of one formula."""
    rng = np.random.default_rng(2)
    votes = rng.binomial(20, rng.beta(0.5, 0.5, 600)) / 20
    probabilities, labels = np.stack([1 - votes, votes], 1), rng.random(600) < votes
    halves = [
        npz(probabilities=probabilities[part], labels=labels[part].astype(np.int64))
        for part in (slice(300), slice(300, None))
    ]
    made = calibrated(client, {"name": "votes"}, calibration=halves[0])
    assert made["serve"]["1"] == "learned"
    found = evaluate(client, "votes", "the other half", halves[1]).json()
    assert found["result"]["shifted"] is False, found["result"]["sentence"]


def test_report_tells_of_further_sets(client, clean, noisy) -> None:
    report = client.get("/report", params={"calibration": "digits@1"}).json()
    found = {row["name"]: row for row in report["evaluations"]}
    assert list(found)[:2] == ["clean half", "noisy"]
    for resource in (clean, noisy):
        row, result = found[resource["name"]], resource["result"]
        assert row["samples"] == resource["data"]["samples"]
        assert (row["shifted"], row["sentence"]) == (result["shifted"], result["sentence"])
        for k, event in row["events"].items():
            served = result["events"][k]["measures"][report["events"][k]["served"]]
            assert event["scores"] == served["scores"]
            assert event["discarded"] == served["discarded"]
    markdown = client.get("/report", params={"calibration": "digits@1", "format": "markdown"}).text
    assert "## Further sets" in markdown
    assert noisy["result"]["sentence"] in markdown


def test_a_labelled_set_that_is_clearly_worse_turns_the_verdict(client, clean, noisy) -> None:
    """Accepted answers are counted at the tested thresholds."""
    report = client.get("/report", params={"calibration": "digits@1"}).json()
    found = {row["name"]: row["events"]["1"] for row in report["evaluations"]}
    assert (found["clean half"]["disproves"], found["noisy"]["disproves"]) == (False, True)
    event = report["events"]["1"]
    targets = event["measures"][event["served"]]["selective"]
    for target, judged in zip(targets, found["clean half"]["accepted"], strict=True):
        # The same samples as those of the evaluation set.
        assert target["evaluation"].items() <= judged.items()
        assert (judged["target"], judged["threshold"]) == (target["target"], target["threshold"])
    summary = report["summary"]
    assert summary["status"] == "shifted"
    assert summary["headline"].startswith("Do not use for data like “noisy”: ")
    assert (
        f"{100 * (1 - found['noisy']['accuracy']):.1f} % of answers are wrong"
        in (summary["headline"])
    )
    assert "“clean half”" not in json.dumps(summary, ensure_ascii=False)


def test_without_labels_there_are_no_scores(client, digits_calibration) -> None:
    found = evaluate(client, "digits", "unlabelled", UNLABELLED).json()
    assert found["status"] == "succeeded", found["error"]
    assert found["labelled"] is False
    event = found["result"]["events"]["1"]
    assert event["accuracy"] is None
    for measure in event["measures"].values():
        assert measure["scores"] is None
        assert sum(measure["occupancy"]) == 600
    assert found["result"]["shifted"] is False


def test_mislabelled_candidates_find_flipped_labels(client, digits_calibration) -> None:
    rng = np.random.default_rng(6)
    flipped = rng.choice(600, 12, replace=False)
    labels = LABELS.copy()
    labels[flipped] = (labels[flipped] + rng.integers(1, 10, 12)) % 10
    found = evaluate(client, "digits", "flipped", npz(inputs=INPUTS, labels=labels)).json()
    first = [row["index"] for row in found["result"]["mislabelled"]["1"][:12]]
    assert len(set(first) & set(flipped.tolist())) >= 7


def test_evaluations_are_listed_in_the_order_of_their_arrival(client, clean, noisy) -> None:
    listed = client.get("/calibrations/digits/evaluations").json()["evaluations"]
    names = [found["name"] for found in listed]
    assert names.index(clean["name"]) < names.index(noisy["name"])


@pytest.mark.parametrize("name", ["/", "50% #1?", "x/cancel"])
def test_every_name_has_an_address(client, digits_calibration, name: str) -> None:
    answer = evaluate(client, "digits", name, UNLABELLED)
    assert answer.status_code == httpx.codes.CREATED, answer.text
    where = answer.headers["location"]
    assert client.get(where).json()["name"] == name
    assert client.post(f"{where}/cancel").status_code == httpx.codes.CONFLICT
    assert client.delete(where).status_code == httpx.codes.NO_CONTENT
    assert client.get(where).status_code == httpx.codes.NOT_FOUND


@pytest.mark.parametrize(
    ("name", "data", "status", "part"),
    [
        (None, UNLABELLED, 422, "name"),
        ("..", UNLABELLED, 422, "name"),
        ("no file", None, 422, "evaluation"),
        ("other kind", npz(logits=np.zeros((9, 10))), 422, "evaluation"),
        ("bad labels", npz(inputs=INPUTS, labels=LABELS + 1), 422, "evaluation.labels"),
        ("late infinity", npz(inputs=LATE_INFINITY), 422, "evaluation.inputs[599]"),
        ("clean half", digits("evaluation.npz"), 409, ""),
    ],
)
def test_bad_further_sets(service, clean, name, data, status: int, part: str) -> None:
    before = kept_files(service.folder)
    answer = evaluate(service.client, "digits", name, data)

    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert not part or any(e["location"].startswith(part) for e in answer.json()["errors"])
    assert kept_files(service.folder) == before


def test_an_evaluation_keeps_records_and_no_samples(service, clean) -> None:
    left = [path for path in kept_files(service.folder) if clean["id"] in path]
    assert len(left) == 1
    assert "/evaluation_records-0000000000-" in left[0]


def test_a_refit_equals_a_new_calibration(client, digits_calibration) -> None:
    """Other bins by refit and by a new run of the model give the same tables and scores."""
    changes = {"bins": 5, "lookup": "interpolated", "interval": {"method": "wilson"}}
    answer = refit(client, "digits@1", **changes)
    assert answer.status_code == httpx.codes.CREATED, answer.text
    refitted = answer.json()
    assert refitted["status"] == "succeeded", refitted["error"]
    assert refitted["name"] == "digits"
    assert refitted["version"] > 1
    assert refitted["refit_of"] == digits_calibration["id"]
    assert refitted["config"]["bins"] == 5

    anew = calibrated(
        client,
        changes | {"name": "anew"},
        model=digits("model.onnx"),
        calibration=digits("calibration.npz"),
        evaluation=digits("evaluation.npz"),
    )
    reports = [
        client.get("/report", params={"calibration": found["id"]}).json()
        for found in (refitted, anew)
    ]
    for report in reports:  # a run of its own takes a time of its own
        for event in report["events"].values():
            assert all(row.pop("ms_per_row") > 0 for row in event["comparison"])
    assert reports[0]["events"] == reports[1]["events"]
    client.delete(f"/calibrations/{anew['id']}")
    client.delete(f"/calibrations/{refitted['id']}")
    body = {"calibration": refitted["id"], "inputs": INPUTS[:2].tolist()}
    assert client.post("/predict", json=body).status_code == httpx.codes.NOT_FOUND
    body["calibration"] = "digits"
    assert client.post("/predict", json=body).status_code == httpx.codes.OK


@pytest.mark.parametrize(
    ("changes", "status", "part"),
    [
        ({}, 422, "body"),
        ({"top_k": [1, 3]}, 422, "config.top_k"),
        ({"bins": 0}, 422, "config.bins"),
        ({"serve": {"1": "energy"}}, 422, "config"),
    ],
)
def test_bad_refits(client, digits_calibration, changes, status: int, part: str) -> None:
    answer = client.post("/calibrations/digits@1/refit", json=changes)

    assert answer.status_code == status, answer.text
    assert any(e["location"].startswith(part) for e in answer.json()["errors"])


def test_promotion_decides_what_a_name_means(client) -> None:
    data = digits("calibration_logits.csv")
    for _ in range(2):
        calibrated(client, quick_config(name="promoted"), calibration=data)

    def meant() -> int:
        body = {"calibration": "promoted", "logits": [[0.0] * 9 + [1.0]]}
        return client.post("/predict", json=body).json()["calibration"]["version"]

    def marked() -> list[bool]:
        page = client.get("/calibrations", params={"name": "promoted"}).json()
        listed = {row["version"]: row["promoted"] for row in page["calibrations"]}
        read = [client.get(f"/calibrations/promoted@{v}").json()["promoted"] for v in (1, 2)]
        assert [listed[1], listed[2]] == read
        return read

    assert meant() == 2
    assert marked() == [False, False]
    promoted = client.post("/calibrations/promoted@1/promote")
    assert promoted.status_code == httpx.codes.OK
    assert promoted.json()["promoted"] is True
    assert meant() == 1
    assert marked() == [True, False]
    client.post("/calibrations/promoted@2/promote")
    assert meant() == 2
    assert marked() == [False, True]


def test_comparison_is_paired_on_a_shared_evaluation_set(client, digits_calibration) -> None:
    refitted = refit(client, "digits@1", bins=2).json()
    params = [("calibration", "digits@1"), ("calibration", refitted["id"])]
    answer = client.get("/report", params=params)
    assert answer.status_code == httpx.codes.OK, answer.text
    (comparison,) = answer.json()["comparisons"]
    event = comparison["events"]["1"]
    assert event["paired"] is True
    assert event["differences"]["nll"]["pairs"] == 600
    reports = answer.json()["calibrations"]
    nll = [r["events"]["1"]["measures"][r["events"]["1"]["served"]]["evaluation"] for r in reports]
    assert event["differences"]["nll"]["mean"] == pytest.approx(nll[1]["nll"] - nll[0]["nll"])
    assert event["differences"]["accuracy"]["mean"] == 0
    assert "digits@1" in comparison["sentences"][0]
    client.delete(f"/calibrations/{refitted['id']}")


def test_comparison_is_paired_on_outputs_of_the_same_samples(client, digits_calibration) -> None:
    """Their labels are in the same order; another order of the rows is another set."""
    rng = np.random.default_rng(0)
    own = {"logits": rng.normal(size=(600, 10)), "labels": LABELS}
    own["logits"][np.arange(600), LABELS] += 2.0
    order = rng.permutation(600)
    for name, rows in (("same rows", slice(None)), ("other order", order)):
        judging = npz(**{key: values[rows] for key, values in own.items()})
        found = calibrated(
            client, quick_config(name="own"), calibration=npz(**own), evaluation=judging
        )
        params = [("calibration", "digits@1"), ("calibration", found["id"])]
        (comparison,) = client.get("/report", params=params).json()["comparisons"]
        is_same = name == "same rows"
        assert comparison["events"]["1"]["paired"] == is_same
        assert ("the same labels in the same order" in comparison["on"]) == is_same
        client.delete(f"/calibrations/{found['id']}")


def test_comparison_without_shared_samples(client, digits_calibration) -> None:
    data = digits("calibration_logits.csv")
    calibrated(client, quick_config(name="other"), calibration=data)
    params = [("calibration", "digits@1"), ("calibration", "other")]
    (comparison,) = client.get("/report", params=params).json()["comparisons"]
    assert comparison["events"]["1"]["paired"] is False


def test_flags_follow_their_thresholds(client, digits_calibration) -> None:
    report = client.get("/report", params={"calibration": "digits@1"}).json()
    event = report["events"]["1"]
    served = event["measures"][event["served"]]
    threshold = served["ood_thresholds"]["0.99"]
    accept = {
        f"{found['target']['max_risk']:g}": found["threshold"] for found in served["selective"]
    }
    assert set(accept) == {"0.05", "0.01"}
    assert accept["0.05"] is not None
    body = {"calibration": "digits@1", "inputs": CALIBRATION["inputs"].tolist()}
    predictions = client.post("/predict", json=body).json()["predictions"]
    flagged = [p["out_of_distribution"] for p in predictions]
    assert 1 <= sum(flagged) <= 6, "one per cent of the calibration set lies beyond its 99 % point"
    for prediction in predictions:
        uncertainty = prediction["top1"]["uncertainty"]
        assert prediction["out_of_distribution"] == (uncertainty > threshold)
        for risk, limit in accept.items():
            expected = None if limit is None else uncertainty > limit
            assert prediction["abstain"][risk] == expected


def test_names_that_the_calibration_has_shown_are_not_doubted(client) -> None:
    """Turned or recoloured pictures make some classes look like others; the labels are right."""
    names = np.array([f"digit {number}" for number in range(10)])

    def table(inputs) -> bytes:
        frame = pd.DataFrame(inputs, columns=[f"pixel {number}" for number in range(64)])
        return frame.assign(label=names[LABELS]).to_csv(index=False).encode()

    config = quick_config(name="by-name")
    calibrated(client, config, model=digits("model.onnx"), calibration=table(INPUTS))
    result = evaluate(client, "by-name", "turned", table(INPUTS[:, ::-1])).json()["result"]
    assert not {"labels-permuted", "labels-shifted"} & {one["code"] for one in result["findings"]}
    assert result["outcome"] == "shifted"
    page = client.get("/report", params={"calibration": "by-name", "format": "html"}).text
    assert "Do not use for data like “turned”" in page
