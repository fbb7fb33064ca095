"""The report in its formats: the same numbers in each."""

import csv
import io
import json
import re
from typing import Any

import pytest
from page_visitor import HTML, numbers_of, pointed_to

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


def part_of(report: dict, row: dict[str, str]) -> Any:
    """Return the part of a report that a row of its CSV is of."""
    kind, subject = row["subject_kind"], row["subject"].removeprefix("'")
    if kind == "model":
        return report["model_scores"][subject]
    if kind == "further_set":
        (found,) = [one for one in report["evaluations"] if one["name"] == subject]
        return found["events"][row["event"]]
    event = report["events"][row["event"]]
    if kind in ("oracle", "figures"):
        return event[kind]
    costs = {one["measure"]: one for one in event["comparison"]}.get(subject, {})
    return event[f"{kind}s"][subject] | {key: costs.get(key) for key in ("passes", "ms_per_row")}


def csv_rows(client, name: str) -> list[dict[str, str]]:
    answer = client.get("/report", params={"calibration": name, "format": "csv"})
    assert answer.headers["content-type"].startswith("text/csv")
    return list(csv.DictReader(io.StringIO(answer.text)))


@pytest.mark.parametrize("name", ["digits", "pictures@1"])
def test_csv_has_the_same_numbers(client, digits_calibration, shelf, name) -> None:
    shelf("pictures")
    report = client.get("/report", params={"calibration": name}).json()
    rows = csv_rows(client, name)
    for row in rows:
        part = part_of(report, row)
        if row["phase"] == "evaluation":
            expected = part["evaluation"][row["score"]]
        elif row["phase"] == "cross_validation":
            expected = part["scores"][row["score"]]["mean"]
        else:
            expected = pointed_to(part, f"/{row['score']}")
        assert (float(row["mean"]) if row["mean"] else None) == expected
    assert {row["phase"] for row in rows} == {"cross_validation", "evaluation", ""}
    named = {(row["subject_kind"], row["score"]) for row in rows}
    wanted = [
        *(("measure", f"merged_odds/{part}") for part in ("eor", "lower", "upper", "one_sided")),
        *(("measure", f"{part}") for part in ("aece", "amce", "mce_10", "guarantee/alpha")),
        *(("measure", f"{part}") for part in ("coarse/cells/0/weight", "ood_thresholds/0.9")),
        *(("model", f"confident_errors/0/{part}") for part in ("count", "share", "bound")),
        *([("further_set", "discarded/0.9")] if report["evaluations"] else []),
    ]
    assert [one for one in wanted if one not in named] == []


def test_numbers_of_one_name_are_one_number(client, report) -> None:
    """On the evaluation set: on each page, in Markdown and in CSV."""
    served = report["events"]["1"]["served"]
    scores = report["events"]["1"]["measures"][served]["evaluation"]
    places = {
        f"/events/1/figures/{part}/served/mean": score
        for part, score in (("calibration_error", "ece_15"), ("error_detection", "auroc"))
    }
    names = ("ece_15", "aece", "auroc", "aurc")
    places |= {f"/events/1/measures/{served}/evaluation/{score}": score for score in names}
    pages = {
        "/report?calibration=digits": {"ece_15", "auroc"},
        "/pages/calibrations/digits/measures": {*names},
        "/report?calibration=digits&calibration=digits": {*names},
    }
    for address, wanted in pages.items():
        page = client.get(address, headers=HTML).raise_for_status().text
        shown = [
            (places[place], json.loads(value))
            for _, path, value in numbers_of(page)
            if (place := re.sub(r"^/calibrations/\d", "", path)) in places
        ]
        assert {score for score, _ in shown} == wanted
        assert all(value == scores[score] for score, value in shown)
    text = client.get("/report", params={"calibration": "digits", "format": "markdown"}).text
    table = text.partition("Scores on the evaluation set:\n\n")[2].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table[:3]]
    written = dict(zip(cells[0], cells[2], strict=True))
    for score in names:
        assert written[score] == f"{scores[score]:.4f}"
        (row,) = [
            row
            for row in csv_rows(client, "digits")
            if (row["event"], row["subject"], row["phase"], row["score"])
            == ("1", served, "evaluation", score)
        ]
        assert float(row["mean"]) == scores[score]


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
