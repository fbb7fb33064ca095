"""The report in its formats: the same numbers in each."""

import csv
import io

import httpx
import pytest


@pytest.fixture(scope="module")
def report(client, digits_calibration) -> dict:
    return client.get("/report", params={"calibration": "digits"}).json()


def test_layout(report, digits_calibration) -> None:
    assert set(report["events"]) == {"1", "5"}
    for k, event in report["events"].items():
        assert event["served"] == digits_calibration["serve"][k]
        assert set(event["measures"]) == {
            "entropy",
            "neg_log_pmax",
            "neg_log_topk_mass",
            "margin",
        }
        assert "raw_softmax" in event["baselines"]
        for found in event["measures"].values():
            assert sum(row["count"] for row in found["bins"]) == 600
            assert found["evaluation"] is not None
            assert {"ece", "brier", "nll", "auroc", "aurc", "eor"} <= set(found["scores"])
    provenance = report["provenance"]
    assert provenance["data"]["sha256"] == digits_calibration["data"]["sha256"]
    assert provenance["model"]["sha256"] == digits_calibration["model"]["sha256"]
    assert provenance["versions"] == digits_calibration["versions"]


def test_calibration_mends_the_overconfident_digits(report) -> None:
    """The committed, smaller equivalent of the tests on Fashion-MNIST."""
    event = report["events"]["1"]
    served = event["measures"][event["served"]]["evaluation"]
    raw = event["baselines"]["raw_softmax"]["evaluation"]

    assert raw["ece_15"] == pytest.approx(0.0357, abs=0.0002)
    assert served["ece"] < raw["ece_15"]
    assert served["nll"] < raw["nll"]


def test_served_measure_has_the_least_cross_validated_nll(report) -> None:
    for event in report["events"].values():
        nll = {name: found["scores"]["nll"]["mean"] for name, found in event["measures"].items()}
        assert nll[event["served"]] == min(nll.values())


def test_csv_has_the_same_numbers(client, report) -> None:
    answer = client.get("/report", params={"calibration": "digits"}, headers={"Accept": "text/csv"})
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


def test_bins_csv_has_the_same_numbers(client, report) -> None:
    answer = client.get("/calibrations/digits/bins", params={"format": "csv"})
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    for row in rows:
        found = report["events"][row["event"]]["measures"][row["measure"]]["bins"]
        assert float(row["probability"]) == found[int(row["bin"])]["probability"]
        assert int(row["hits"]) == found[int(row["bin"])]["hits"]
    assert len(rows) == sum(
        len(found["bins"])
        for event in report["events"].values()
        for found in event["measures"].values()
    )


def test_markdown(client, report) -> None:
    answer = client.get(
        "/report", params={"calibration": "digits"}, headers={"Accept": "text/markdown"}
    )
    assert answer.headers["content-type"].startswith("text/markdown")
    served = report["events"]["1"]["served"]
    assert f"**{served}** (served)" in answer.text
    ece = report["events"]["1"]["measures"][served]["evaluation"]["ece"]
    assert f"{ece:.4f}" in answer.text


def test_markdown_has_the_verdict_and_the_decisions(client, report) -> None:
    text = client.get("/report", params={"calibration": "digits", "format": "markdown"}).text
    for event in report["events"].values():
        found = event["measures"][event["served"]]
        assert event["verdict"]["sentence"] in text
        assert found["guarantee"]["sentence"] in text
        assert found["coarse"]["note"] in text
        for threshold in found["ood_thresholds"].values():
            assert f"| {threshold:.6g} |" in text
        for target in found["selective"]:
            if target["threshold"] is not None:
                assert f"| {target['threshold']:.6g} | {target['coverage']:.4f} |" in text
        difference = event["baselines"]["temperature"]["difference"]["evaluation"]["nll"]
        assert f"{difference['mean']:+.5f} ± {difference['standard_error']:.5f}" in text
        for row in event["mislabelled"][:10]:
            assert f"| {row['index']} | {row['label']} | {row['predicted']} |" in text
    model = report["model_scores"]["evaluation"]
    assert f"{model['nll']:.4f} | {model['brier_multiclass']:.4f}" in text


def test_markdown_tables_have_as_many_cells_as_columns(client, report) -> None:
    text = client.get("/report", params={"calibration": "digits", "format": "markdown"}).text
    blocks = [block for block in text.split("\n\n") if block.startswith("|")]
    assert len(blocks) > len(report["events"]) * 5
    for block in blocks:
        assert len({line.count("|") for line in block.splitlines()}) == 1, block


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("*/*", "application/json"),
        ("text/markdown;q=0.5, application/json;q=0.9", "application/json"),
        ("text/markdown, application/json;q=0.9", "text/markdown"),
        ("text/*", "text/csv"),
        ("application/json;q=0, text/csv;q=0.1", "text/csv"),
    ],
)
def test_accept(client, digits_calibration, accept: str, media_type: str) -> None:
    answer = client.get("/report", params={"calibration": "digits"}, headers={"Accept": accept})
    assert answer.status_code == httpx.codes.OK
    assert answer.headers["content-type"].startswith(media_type)
