"""Studies: tables of papers from calibrations that are made for them, and deleted again."""

import csv
import json
from pathlib import Path

import pytest
from howsure_command import howsure
from running_service import DIGITS, DIGITS_PARTS, calibrated, evaluate, report_of
from shelf import SMALL_MODEL

from howsure.statistics.measures import MEASURE_NAMES
from howsure.statistics.scores import SCORES
from service.cli.connection import service_client
from service.cli.studies.calibrations import StudyData, study_calibrations
from service.cli.studies.registry import ONE_PASS, PREFIX, STUDIES
from service.cli.studies.table import CELLS, StudyRow, StudyTable

MODEL, SET = DIGITS / "model.onnx", DIGITS / "calibration.npz"
OUTPUTS = DIGITS / "calibration_logits.csv"
QUICKLY = ("--config", json.dumps({"folds": 2}))


def names_of(service) -> set[str]:
    listed = service.client.get("/calibrations").json()["calibrations"]
    return {one["name"] for one in listed if one["name"].startswith(PREFIX)}


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_has_columns_and_measures_that_exist(name: str) -> None:
    study = STUDIES[name]
    others = {"accuracy"} if study.rows == "models" else set()
    if study.rows == "methods":
        others = {"lower", "median", "upper"}
    assert set(study.columns) <= {*SCORES, *CELLS} | others
    assert {measure for run in study.runs for measure in run.measures} <= {*MEASURE_NAMES}
    assert len({run.name for run in study.runs}) == len(study.runs)


def test_an_unknown_name_lists_the_studies() -> None:
    done = howsure("study", MODEL, SET, "--like", "nobody")
    assert done.returncode == 1
    assert all(f"  {name} " in done.stderr for name in STUDIES)


FILES = [
    ("oberman-table-2", [MODEL], "0 sets and 1 ONNX files"),
    ("oberman-table-2", [OUTPUTS, OUTPUTS], "2 sets"),
    ("ding-table-1", [MODEL, SET, SET], "2 sets and 1 ONNX"),
    ("ding-table-1", ["missing.npz"], "no file 'missing.npz'"),
    ("ding-table-1", [OUTPUTS, MODEL.parent / "evaluation.npz", "--evaluation", SET], "share no"),
    ("ovadia-appendix-g", ["a", "b"], "one calibration"),
]


@pytest.mark.parametrize(("name", "files", "message"), FILES)
def test_files_that_are_no_study_are_named(service, name, files, message) -> None:
    done = howsure("study", *files, "--like", name, HOWSURE_URL=service.url)
    assert (done.returncode, message in done.stderr) == (1, True), done.stderr
    assert not names_of(service)


def test_numbers_are_those_of_reports(service, tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    words = ("study", OUTPUTS, "--like", "oberman-table-2", *QUICKLY, "--output", file)
    done = howsure(*words, HOWSURE_URL=service.url)
    assert done.returncode == 0, done.stderr
    reason = "it needs an ONNX model"
    left_out = [line for line in done.stderr.splitlines() if line.startswith("left out")]
    assert len(left_out) == 1
    assert left_out[0].endswith(reason)
    assert left_out[0].count("dropout_variance, rate") == 3
    rows = list(csv.DictReader(file.read_text().splitlines()))
    assert [row["bins"] for row in rows] == ["10"] * 3 + ["100"] * 3
    config = {"name": "beside", "bins": 100, "lookup": "step", "folds": 2, "top_k": [1, 5]}
    config["measures"] = list(ONE_PASS.measures)
    calibrated(service.client, config, calibration=OUTPUTS.read_bytes(), full=True)
    event = report_of(service.client, "beside")["events"]["1"]
    for row in rows[3:]:
        scores = event["measures"][row["measure"]]["scores"]
        values = {name: scores[name]["pooled"] for name in ("brier", "nll", "auroc", "eor")}
        values["ece"] = scores["ece"]["mean"]
        assert {name: float(row[name]) for name in values} == pytest.approx(values)
    assert not names_of(service)


def test_an_ensemble_has_a_row_and_other_rows_say_what_they_need(service) -> None:
    words = ("study", MODEL, SMALL_MODEL, SET, "--like", "finlay-table-3", "--format", "json")
    done = howsure(*words, *QUICKLY, "--keep", HOWSURE_URL=service.url)
    assert done.returncode == 0, done.stderr
    table = json.loads(done.stdout)
    rows = {(row["texts"][0], row["texts"][2]): row["numbers"] for row in table["rows"]}
    measures = {"learned", "entropy", "neg_log_pmax", "last_layer_dropout_variance"}
    assert {name for event, name in rows if event == "Top-1"} == {*measures, "ensemble_variance"}
    columns = table["scores"]
    shares = [columns.index(name) for name in ("share_1", "share_2", "share_rest")]
    assert all(sum(row[at] for at in shares) == pytest.approx(1.0) for row in rows.values())
    ((reason, labels),) = table["omitted"].items()
    assert "no Dropout node" in reason
    assert labels == [f"dropout_variance, rate {rate}" for rate in (0.002, 0.01, 0.05)]
    names = {
        f"study-finlay-table-3-{run}" for run in ("one-pass", "last-layer-dropout", "ensemble")
    }
    assert names_of(service) == names
    assert "kept: study-finlay-table-3-one-pass@1" in done.stderr
    for name in names:
        (one,) = service.client.get("/calibrations", params={"name": name}).json()["calibrations"]
        assert service.client.delete(f"/calibrations/{one['id']}").is_success


def test_models_have_a_row_each(service) -> None:
    words = ("study", MODEL, SMALL_MODEL, SET, "--like", "ding-table-1", "--format", "markdown")
    done = howsure(*words, *QUICKLY, HOWSURE_URL=service.url)
    assert done.returncode == 0, done.stderr
    assert "| model | 0.9467 |" in done.stdout
    assert f"| {SMALL_MODEL.stem} | 0." in done.stdout
    assert not names_of(service)


def test_quartiles_are_of_the_changed_sets(service) -> None:
    calibrated(service.client, {"name": "drifting"}, **DIGITS_PARTS)
    words = ("study", "drifting", "--like", "ovadia-appendix-g", "--format", "csv")
    none = howsure(*words, HOWSURE_URL=service.url)
    assert (none.returncode, "--manifest" in none.stderr) == (1, True)
    data = (DIGITS / "evaluation.npz").read_bytes()
    for name, intensity in (("plain", "0"), ("changed", "2")):
        parts = {"role": "stress", "type": "blur", "intensity": intensity}
        assert evaluate(service.client, "drifting", name, data, **parts).is_success
    done = howsure(*words, HOWSURE_URL=service.url)
    rows = list(csv.DictReader(done.stdout.splitlines()))
    served = next(r for r in rows if (r["score"], r["method"]) == ("brier", "served"))
    one = report_of(service.client, "drifting")["evaluations"][-1]["events"]["1"]
    brier = one["methods"]["served"]["scores"]["brier"]
    quartiles = [float(served[name]) for name in ("lower", "median", "upper")]
    assert (served["sets"], quartiles) == ("1", pytest.approx([brier] * 3))


def test_an_interrupted_study_leaves_no_calibration(service) -> None:
    def interrupted() -> None:
        with (
            service_client(service.url) as client,
            study_calibrations(client, "stopped", {"folds": 2}, keep=False) as calibrations,
        ):
            for _ in calibrations.reports(StudyData([], OUTPUTS), ONE_PASS, (5, 10)):
                assert names_of(service) == {"study-stopped-one-pass"}
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not names_of(service)


def test_markdown_holds_names_as_text() -> None:
    row = StudyRow(("a|b",), (None,))
    table = StudyTable("T", ("model",), ("eor",), [row], {"it needs *more*": ["x", "y"]})
    text = table.text("markdown")
    assert "| a\\|b | - |" in text
    assert text.endswith("Without x; y: it needs \\*more\\*.\n")
