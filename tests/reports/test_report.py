"""The report in its formats: the same numbers in each."""

import csv
import io

import pytest

from howsure.statistics.measures import DEFAULT_MEASURES


@pytest.fixture(scope="module")
def report(client, digits_calibration) -> dict:
    return client.get("/report", params={"calibration": "digits"}).json()


def test_all_that_was_fitted_is_in_it(report, digits_calibration) -> None:
    assert set(report["events"]) == {"1", "5"}
    assert report["events"]["5"]["confusion"] is None
    for k, event in report["events"].items():
        assert event["measures"].keys() == set(DEFAULT_MEASURES)
        assert event["served"] == digits_calibration["serve"][k] == "learned"
        for row in event["comparison"]:
            # It is of the fitted table, so no set has a value of its own.
            assert row["eor"]["evaluation"] is None
            assert row["nll"]["evaluation"] is not None
        for measure in event["measures"].values():
            assert sum(row["count"] for row in measure["bins"]) == 600
            assert {"ece", "brier", "nll", "auroc", "aurc", "eor"} <= measure["scores"].keys()
    provenance = report["provenance"]
    for part in ("data", "model"):
        assert provenance[part]["sha256"] == digits_calibration[part]["sha256"]
    assert provenance["versions"] == digits_calibration["versions"]


def test_figures_are_scores_of_the_evaluation_set_else_cross_validated(
    client, report, shelf
) -> None:
    event = report["events"]["1"]
    figures, served = event["figures"], event["measures"][event["served"]]["evaluation"]
    accuracy, on = figures["accuracy"], report["model_scores"]["evaluation"]
    assert figures["set"] == "evaluation"
    assert (accuracy["value"], accuracy["n_samples"]) == (on["accuracy"]["1"], on["n_samples"])
    assert accuracy["interval"][0] < accuracy["value"] < accuracy["interval"][1]
    error, raw = figures["calibration_error"], event["baselines"]["raw_softmax"]["evaluation"]
    assert error["raw"]["mean"] == raw["ece_15"] == pytest.approx(0.0357, abs=0.0002)
    assert error["served"]["mean"] == served["ece_15"] < raw["ece_15"]
    assert served["nll"] < raw["nll"]
    assert figures["error_detection"]["served"]["mean"] == served["auroc"]

    name = shelf("quick-digits")["id"]
    event = client.get("/report", params={"calibration": name}).json()["events"]["1"]
    figures, served = event["figures"], event["measures"][event["served"]]["scores"]
    assert figures["set"] == "calibration"
    accuracy = (figures["accuracy"]["value"], figures["accuracy"]["n_samples"])
    assert accuracy == (event["accuracy"], 600)
    for name, figure in (("ece_15", "calibration_error"), ("auroc", "error_detection")):
        assert figures[figure]["served"] == {n: served[name][n] for n in ("mean", "std", "folds")}


def test_csv_has_the_same_numbers(client, report) -> None:
    answer = client.get("/report", params={"calibration": "digits", "format": "csv"})
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    for row in rows:
        found = report["events"][row["event"]][f"{row['subject_kind']}s"][row["subject"]]
        if row["phase"] == "evaluation":
            expected = found["evaluation"][row["score"]]
        else:
            expected = found["scores"][row["score"]]["mean"]
        assert (float(row["mean"]) if row["mean"] else None) == expected
    assert {row["phase"] for row in rows} == {"cross_validation", "evaluation"}


def test_markdown_has_the_same_numbers(client, report) -> None:
    markdown = client.get("/report", params={"calibration": "digits", "format": "markdown"}).text
    for event in report["events"].values():
        table = event["measures"][event["served"]]
        passed = [one for one in table["selective"] if one["threshold"] is not None]
        numbers = [f"| {one['threshold']:.6g} | {one['coverage']:.4f} |" for one in passed]
        numbers += [f"| {threshold:.6g} |" for threshold in table["ood_thresholds"].values()]
        difference = event["baselines"]["temperature"]["difference"]["evaluation"]["nll"]
        numbers += [f"{difference['mean']:+.5f} ± {difference['standard_error']:.5f}"]
        numbers += [f"{table['evaluation']['ece']:.4f}"]
        numbers += [f"| {row['index']} | {row['label']} |" for row in event["mislabelled"][:10]]
        assert [number for number in numbers if number not in markdown] == []
    model = report["model_scores"]["evaluation"]
    assert f"{model['nll']:.4f} | {model['brier_multiclass']:.4f}" in markdown
