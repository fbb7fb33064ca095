"""Names from strangers' graphs in the report as Markdown and in the model card."""

import json

import pytest
from report_documents import typed

from service.http.openapi.examples import FOLDER
from service.reports.markdown import model_card, report_markdown

EXAMPLE = FOLDER / "report.json"
HOSTILE = "output:a|b <img src=x> *c* _d_"


@pytest.fixture
def report():
    found = json.loads(EXAMPLE.read_text())
    event = found["events"]["1"]
    event["measures"][HOSTILE] = event["measures"].pop(event["served"])
    event["served"] = HOSTILE
    for row in event["comparison"]:
        row["measure"] = HOSTILE
    event["verdict"]["sentence"] = f"{HOSTILE} is right."
    return found


def test_a_measure_s_name_brings_no_markup_into_the_report(report) -> None:
    text = report_markdown(typed(report))
    assert HOSTILE not in text
    assert r"output:a\|b \<img src=x> \*c\* \_d\_" in text
    assert "<img" not in text.replace(r"\<img", "")


def test_a_measure_s_name_brings_no_markup_into_the_model_card(report) -> None:
    lines = model_card(typed(report)).splitlines()
    shown = [line for line in lines if "<img" in line.replace(r"\<img", "")]
    assert len(shown) == 2
    assert all(r"`output:a\|b <img src=x> *c* _d_`" in line for line in shown)


def test_rows_of_tables_have_as_many_cells_as_their_header(report) -> None:
    for text in (report_markdown(typed(report)), model_card(typed(report))):
        n_cells = 0
        for line in text.splitlines():
            cells = line.replace(r"\|", "").count("|") if line.startswith("|") else 0
            assert not (cells and n_cells) or cells == n_cells, line
            n_cells = cells


def test_a_verdict_without_what_baselines_are_fitted_on_can_be_rendered(report) -> None:
    said = report["events"]["1"]["verdict"].pop("fitted_on")
    assert said not in report_markdown(typed(report))


def test_both_documents_give_the_accuracy_of_the_set_that_scores_are_of(report) -> None:
    event = report["events"]["1"]
    accuracy, served = event["figures"]["accuracy"], event["measures"][event["served"]]
    digest = report["provenance"]["data"]["sha256"]
    assert accuracy["value"] != pytest.approx(event["accuracy"], abs=1e-4)
    for judged, scores in (
        ("evaluation", served["evaluation"]),
        ("calibration", {name: score["mean"] for name, score in served["scores"].items()}),
    ):
        text = report_markdown(typed(report))
        assert f"Accuracy on the {judged} set: {accuracy['value']:.4f} (" in text
        assert ("On the calibration set: " in text) == (judged == "evaluation")
        assert "conditional_entropy" in text  # names of scores stay as they are
        _, front, text = model_card(typed(report)).split("---\n", 2)
        assert digest in text
        assert f"{accuracy['interval'][0]:.4f}" in text
        assert f"name: {judged} set" in front
        assert f"name: Top-1 accuracy\n      value: {accuracy['value']}\n" in front
        for name in scores.keys() - {"ece"}:
            assert f"name: Top-1 {name}\n      value: {scores[name]}\n" in front
        event["figures"]["set"], served["evaluation"] = "calibration", None


@pytest.mark.parametrize("n_accepted", [562, 0])
def test_a_model_card_gives_the_error_rate_of_the_active_operating_point(
    report, n_accepted
) -> None:
    """Not that of an error rate of the configuration, which another threshold keeps."""
    row = "error rate of accepted answers, at most 0.05 requested | calibration |"
    assert row in model_card(typed(report))
    counts = {"n_samples": 600, "n_accepted": n_accepted, "n_errors": 3, "coverage": 0.5}
    counts |= {"risk": 0.0321, "risk_interval": [0.0123, 0.0456], "errors": 3.0}
    counts |= {name: [0.0, 1.0] for name in ("coverage_interval", "errors_interval")}
    point = {"name": "night-shift", "created_at": "2026-01-01T00:00:00Z", "threshold": 0.1}
    point |= {"author": "A", "reason": "B", "measure": "entropy", "chosen_by": {"coverage": 0.5}}
    consequences = counts | {"evaluation": counts | {"risk": 0.0432}}
    report["operating_point"] = point | {"consequences": consequences}
    card = model_card(typed(report))
    assert row not in card
    for name, risk in (("calibration", "0.0321"), ("evaluation", "0.0432")):
        line = f"accepted by `night-shift` | {name} | {risk} | 0.0123 | 0.0456 | {n_accepted} |"
        assert (line in card) == (n_accepted > 0)


def test_both_documents_give_the_error_rates_of_accepted_answers_on_other_sets(report) -> None:
    """They are what a reviewer signs for."""
    (accepted,) = report["evaluations"][0]["events"]["1"]["accepted"]
    accepted |= {"n_accepted": 500, "n_errors": 32, "coverage": 5 / 6, "effective": None}
    accepted |= {"risk": 0.064, "risk_interval": [0.0442, 0.0892]}
    assert "32 of 500 are wrong, 6.4 % (4.4 % to 8.9 %)" in report_markdown(typed(report))
    card, rate = model_card(typed(report)), "error rate of accepted answers, at most 0.05 requested"
    judged, name = report["events"]["1"]["figures"]["risk"], report["evaluations"][0]["name"]
    assert f"| {rate} | {name} | 0.0640 | 0.0442 | 0.0892 | 500 |" in card
    assert f"| {rate} | evaluation | {judged['evaluation']['value']:.4f} | " in card
