"""The command, on a folder of its own."""

import csv
import io
import json
import re

import numpy as np
import pyarrow.parquet as pa_parquet
from howsure_command import ServedProcess, howsure, howsure_here, started_afresh
from running_service import DIGITS

SCORES_SHOWN = ("ece_15", "brier", "nll", "auroc", "aurc")
LOGITS = ("calibrate", DIGITS / "calibration_logits.csv")


def test_the_whole_job_without_a_server(tmp_path) -> None:
    files = [DIGITS / "model.onnx", DIGITS / "calibration.npz"]
    options = ["--evaluation", DIGITS / "evaluation.npz", "--name", "digits", "--bins", "10"]
    made = howsure("calibrate", *files, *options, folder=tmp_path)
    assert made.returncode == 0, made.stderr
    assert "digits@1" in made.stdout
    assert "raw_softmax" in made.stdout
    accuracy = json.loads(howsure("report", "digits", "--format", "json", folder=tmp_path).stdout)
    accuracy = accuracy["events"]["1"]["figures"]["accuracy"]["value"]
    assert f"Top-1: accuracy {accuracy:.4f} and scores on 600 evaluation samples" in made.stdout

    listed = howsure("list", folder=tmp_path)
    assert "digits@1" in listed.stdout
    assert "succeeded" in listed.stdout

    answered = howsure("predict", "digits", DIGITS / "request.json", "--json", folder=tmp_path)
    assert answered.returncode == 0, answered.stderr
    rows = json.loads(answered.stdout)["predictions"]
    assert len(rows) == len(json.loads((DIGITS / "request.json").read_text())["inputs"])
    assert all(0 < row["top1"]["probability"] < 1 for row in rows)

    choice = ("--coverage", "0.8", "--activate", "--author", "A", "--reason", "R")
    decided = howsure("operating-point", "digits", *choice, folder=tmp_path)
    assert decided.stdout.startswith("digits@1: automatic is active"), decided.stderr

    deleted = howsure("delete", "digits@1", "--yes", folder=tmp_path)
    assert deleted.stdout.strip() == "deleted digits@1"


def test_a_further_version_says_what_the_name_means(quick, command) -> None:
    given = ("calibrate", DIGITS / "calibration_logits.csv", *quick, "--name", "twice")
    assert "now means" not in command(*given).stderr
    assert "twice now means twice@2; `howsure promote NAME@VERSION`" in command(*given).stderr
    command("promote", "twice@1")
    assert "twice still means twice@1; " in command(*given).stderr


def test_predictions_and_reports_are_printed(tmp_path, command) -> None:
    rows = tmp_path / "rows.json"
    rows.write_text(json.dumps({"logits": np.eye(10).tolist()}))
    told = json.loads(command("predict", "logits", rows, "--json").stdout)["predictions"]
    table = command("predict", "logits", rows).stdout
    assert f"{told[0]['top1']['probability']:.4f}" in table

    with np.load(DIGITS / "evaluation.npz") as archive:
        inputs = archive["inputs"]
    np.save(tmp_path / "rows.npy", inputs[:60])
    columns = ",".join(f"pixel{k}" for k in range(inputs.shape[1]))
    np.savetxt(tmp_path / "rows.csv", inputs[:60], "%g", ",", header=columns, comments="")
    tables = [command("predict", "digits", tmp_path / f"rows.{end}") for end in ("npy", "csv")]
    assert tables[0].stdout == tables[1].stdout
    assert "10 more rows" in tables[0].stderr
    assert tables[0].stdout.count("digit ") == 50

    written = tmp_path / "report.csv"
    command("report", "logits", "--format", "csv", "-o", written)
    scores = list(csv.DictReader(io.StringIO(written.read_text())))
    assert {row["subject"] for row in scores} >= {"entropy", "raw_softmax"}
    for form, begins in (
        ("markdown", "# logits@1"),
        ("html", "<!doctype html>"),
        ("model-card", "---\n"),
    ):
        assert command("report", "logits", "--format", form).stdout.startswith(begins)


def test_rows_of_a_table_are_printed_by_name(tmp_path, command, quick) -> None:
    with np.load(DIGITS / "calibration.npz") as archive:
        cells = np.column_stack([archive["inputs"], archive["labels"]])[:600]
    names = [f"pixel{k}" for k in range(cells.shape[1] - 1)]
    path = tmp_path / "set.csv"
    np.savetxt(path, cells, "%g", ",", header=",".join([*names, "label"]), comments="")
    command("calibrate", DIGITS / "model.onnx", path, "--name", "pixels", *quick)
    rows = cells[:3, :-1].tolist()
    by_name = [dict(reversed([*zip(names, row, strict=True)])) for row in rows]
    one = tmp_path / "one.json"
    one.write_text(json.dumps(by_name[0]))
    assert command("predict", "pixels", one).stdout.count("top1") == 1
    found = []
    for kind, content in (("lists", rows), ("objects", by_name)):
        written = tmp_path / f"{kind}.json"
        written.write_text(json.dumps(content))
        found.append(command("predict", "pixels", written))
    assert found[0].stdout == found[1].stdout
    assert "no column names" in found[0].stderr
    assert found[1].stderr == ""
    beside = path.read_text().replace("label\n", "label,row\n", 1).replace("\n", ",0\n")
    path.write_text(beside.replace("row,0", "row", 1))
    refused = command("predict", "pixels", path, "-o", tmp_path / "out.csv", status=1)
    assert "got also `row`" in " ".join(refused.stderr.split())


def test_bins_are_carried_to_another_name(tmp_path, command) -> None:
    written, columns = tmp_path / "bins.json", tmp_path / "bins.parquet"
    assert command("bins", "logits", "-o", written).stdout == ""
    document = json.loads(written.read_text())
    assert json.loads(command("bins", "logits@1").stdout) == document
    command("bins", "logits", "--format", "parquet", "-o", columns)
    rows = sum(len(table["bins"]) for table in document["tables"])
    assert pa_parquet.read_table(columns).num_rows == rows

    done = command("import", written, "--name", "brought")
    assert done.stdout.startswith("brought@1  ")
    assert "nothing was judged here" in " ".join(done.stderr.split())
    brought = json.loads(command("bins", "brought").stdout)
    assert brought["content_sha256"] == document["content_sha256"]


def table_cells(text: str, *row: str) -> list[str]:
    """Return the cells of the printed line that begins with these words."""
    (line,) = [line for line in text.splitlines() if line.split()[: len(row)] == [*row]]
    return line.split()[len(row) :]


def test_further_sets_refits_promotion_and_comparison(tmp_path, service, command) -> None:
    with np.load(DIGITS / "evaluation.npz") as evaluation:
        np.savez(tmp_path / "unlabelled.npz", inputs=evaluation["inputs"])
    files = [DIGITS / "model.onnx", DIGITS / "calibration.npz"]
    options = ["--name", "judged", "--evaluation", DIGITS / "evaluation.npz"]
    made = command("calibrate", *files, *options).stdout
    report = service.get("/report", params={"calibration": "judged@1"}).json()
    for event in report["events"].values():
        assert event["verdict"]["sentence"] in made

    shown = command("evaluate", "judged", DIGITS / "evaluation.npz", "--name", "a/b #1").stdout
    (found,) = service.get("/calibrations/judged/evaluations").json()["evaluations"]
    assert found["name"] == "a/b #1"
    for k, event in found["result"]["events"].items():
        assert event["sentence"] in shown
        scores = event["measures"][event["served"]]["scores"]
        numbers = [event["accuracy"], *(scores[name] for name in SCORES_SHOWN)]
        cells = table_cells(shown, f"Top-{k}", event["served"])
        assert cells == [f"{number:.4f}" for number in numbers]
        for one in event["accepted"]:
            counts = f"{one['n_accepted']} of 600 answers, {one['n_errors']} of them wrong"
            rate = f"an error rate of at most {100 * one['target']['max_risk']:g} %"
            assert f"Top-{k}, accepted for {rate}: {counts}" in shown

    shown = command("evaluate", "judged", tmp_path / "unlabelled.npz", "--name", "later").stdout
    found = service.get("/calibrations/judged/evaluations/later").json()
    event = found["result"]["events"]["1"]
    discarded = event["measures"][event["served"]]["discarded"].values()
    cells = table_cells(shown, "Top-1", event["served"])
    assert cells == [f"{share:.4f}" for share in discarded]
    gone = command("delete", "judged", "--evaluation", "a/b #1", "--yes").stdout
    assert gone == "deleted evaluation a/b #1 of judged@1\n"
    (left,) = service.get("/calibrations/judged/evaluations").json()["evaluations"]
    assert left["name"] == "later"

    assert (
        "judged@2" in command("refit", "judged", "--bins", "5", "--lookup", "interpolated").stdout
    )
    config = service.get("/calibrations/judged@2").json()["config"]
    assert (config["bins"], config["lookup"]) == (5, "interpolated")

    assert command("promote", "judged@1").stdout.strip() == "judged now means judged@1"
    assert service.get("/calibrations/judged").json()["version"] == 1

    shown = command("compare", "judged@1", "judged@2").stdout
    params = [("calibration", "judged@1"), ("calibration", "judged@2")]
    answer = service.get("/report", params=params).json()
    for sentence in answer["comparisons"][0]["sentences"]:
        assert sentence in shown
    event = answer["calibrations"][1]["events"]["1"]
    judged = event["measures"][event["served"]]["evaluation"]
    assert "Top-1 on the same evaluation set, 600 samples" in shown
    lines = [line.split() for line in shown.splitlines() if line.split()[:1] == ["judged@2"]]
    assert lines[0][1] == event["served"]
    assert lines[0][3:] == [f"{judged[name]:.4f}" for name in ("ece_15", "brier", "nll")]


def test_compare_names_the_set_once_or_says_how_to_find_one(tmp_path, service, command) -> None:
    with np.load(DIGITS / "calibration.npz") as data:
        for part in (0, 1, 2):
            np.savez(tmp_path / f"{part}.npz", **{key: data[key][part::3] for key in data.files})
    for part in (0, 1, 2):
        files = [DIGITS / "model.onnx", tmp_path / f"{part}.npz"]
        command("calibrate", *files, "--name", "months")
    names = ("months@1", "months@2", "months@3")
    shown = command("compare", *names).stdout
    assert "Top-1 on different sets" in shown
    assert "right more often" not in shown
    found = service.get("/calibrations/months@2").json()["data"]
    assert f"its calibration set {found['sha256'][:12]}, {found['samples']:,} samples" in shown
    for name in names:
        assert f"howsure evaluate {name} SET --name NAME" in shown

    for name in names:
        command("evaluate", name, DIGITS / "evaluation.npz", "--name", "later")
    shown = command("compare", *names).stdout
    assert shown.count("Top-1 on the further set “later”, 600 samples") == 1
    assert "Top-1, on the further set “later”: " in shown
    assert shown.count("Both run the same model") == 1
    assert "SET --name" not in shown
    for name in names:
        resource = service.get(f"/calibrations/{name}/evaluations/later").json()
        event = resource["result"]["events"]["1"]
        scores = event["measures"][event["served"]]["scores"]
        shown_scores = [event["accuracy"], *(scores[one] for one in ("ece_15", "brier", "nll"))]
        cells = next(one.split() for one in shown.splitlines() if one.split()[:1] == [name])
        assert cells[2:] == [f"{value:.4f}" for value in shown_scores]


def test_a_running_service_by_url(tmp_path, service) -> None:
    listed = howsure("list", folder=tmp_path, HOWSURE_URL=str(service.base_url))
    assert "logits@1" in listed.stdout
    assert not (tmp_path / "data").exists(), "the command worked on a store of its own"


def test_beside_a_running_service_on_the_same_folder(tmp_path) -> None:
    """SQLite has one owner: the command queues its calibration and the service runs it."""
    data = tmp_path / "data"
    data.mkdir()
    with ServedProcess(data):
        made = howsure("calibrate", DIGITS / "calibration_logits.csv", folder=tmp_path)
        assert made.returncode == 0, made.stderr
        assert "calibration@1" in made.stdout


def test_demo(tmp_path) -> None:
    shown = started_afresh("demo", folder=tmp_path, HOWSURE_PORT="0")

    assert shown.returncode == 0, shown.stderr
    assert "digits@1" in shown.stdout
    assert re.search(r"row 0: class \d, correct with probability 0\.\d+", shown.stdout)
    assert re.search(r"answers on http://127\.0\.0\.1:\d+", shown.stdout)


def test_a_port_in_use(command, service) -> None:
    failed = command("serve", "--port", service.base_url.port, status=1)
    assert "cannot listen" in failed.stderr


def test_version_and_help() -> None:
    assert re.fullmatch(r"howsure \d+\.\d+\.\d+\n", howsure_here("--version").stdout)
    assert "HOWSURE_DATABASE_URL" in howsure_here("serve", "--help").stdout
