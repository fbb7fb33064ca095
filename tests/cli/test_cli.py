"""The command, on a folder of its own."""

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from howsure_command import howsure, started_afresh
from running_service import DIGITS
from served_process import ServedProcess

SCORES_SHOWN = ("ece", "brier", "nll", "auroc", "aurc")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cli")


def test_the_whole_job_without_a_server(folder) -> None:
    made = howsure(
        "calibrate",
        DIGITS / "model.onnx",
        DIGITS / "calibration.npz",
        "--evaluation",
        DIGITS / "evaluation.npz",
        "--name",
        "digits",
        "--bins",
        "10",
        folder=folder,
    )
    assert made.returncode == 0, made.stderr
    assert "digits@1" in made.stdout
    assert "raw_softmax" in made.stdout
    assert "600 evaluation samples" in made.stdout

    listed = howsure("list", folder=folder)
    assert "digits@1" in listed.stdout
    assert "succeeded" in listed.stdout

    answered = howsure("predict", "digits", DIGITS / "request.json", "--json", folder=folder)
    assert answered.returncode == 0, answered.stderr
    rows = json.loads(answered.stdout)["predictions"]
    assert len(rows) == len(json.loads((DIGITS / "request.json").read_text())["inputs"])
    assert all(0 < row["top1"]["probability"] < 1 for row in rows)

    table = howsure("predict", "digits", DIGITS / "request.json", folder=folder)
    assert f"{rows[0]['top1']['probability']:.4f}" in table.stdout

    written = folder / "report.csv"
    report = howsure("report", "digits", "--format", "csv", "-o", written, folder=folder)
    assert report.returncode == 0, report.stderr
    scores = list(csv.DictReader(io.StringIO(written.read_text())))
    assert {row["subject"] for row in scores} >= {"entropy", "raw_softmax"}
    assert "# digits@1" in howsure("report", "digits", "--format", "markdown", folder=folder).stdout

    for mistaken in ("digits", "digits#@1", "digits?@1", "digits@1#2"):
        assert howsure("delete", mistaken, "--yes", folder=folder).returncode == 1, mistaken
    deleted = howsure("delete", "digits@1", "--yes", folder=folder)
    assert deleted.stdout.strip() == "deleted digits@1"
    assert howsure("report", "digits", folder=folder).returncode == 1


def table_cells(text: str, *row: str) -> list[str]:
    """Return the cells of the printed line that begins with these words."""
    (line,) = [line for line in text.splitlines() if line.split()[: len(row)] == [*row]]
    return line.split()[len(row) :]


def test_further_sets_refits_promotion_and_comparison(tmp_path) -> None:
    with np.load(DIGITS / "evaluation.npz") as evaluation:
        np.savez(tmp_path / "unlabelled.npz", inputs=evaluation["inputs"])
    with ServedProcess(tmp_path) as client:

        def command(*arguments: object) -> str:
            done = howsure(*arguments, "--url", client.base_url, folder=tmp_path)
            assert done.returncode == 0, done.stderr
            return done.stdout

        files = [DIGITS / "model.onnx", DIGITS / "calibration.npz"]
        made = command(
            "calibrate", *files, "--name", "digits", "--evaluation", DIGITS / "evaluation.npz"
        )
        report = client.get("/report", params={"calibration": "digits@1"}).json()
        for event in report["events"].values():
            assert event["verdict"]["sentence"] in made

        shown = command("evaluate", "digits", DIGITS / "evaluation.npz", "--name", "a/b #1")
        (found,) = client.get("/calibrations/digits/evaluations").json()["evaluations"]
        assert found["name"] == "a/b #1"
        for k, event in found["result"]["events"].items():
            assert event["sentence"] in shown
            scores = event["measures"][event["served"]]["scores"]
            numbers = [event["accuracy"], *(scores[name] for name in SCORES_SHOWN)]
            cells = table_cells(shown, f"Top-{k}", event["served"])
            assert cells == [f"{number:.4f}" for number in numbers]

        shown = command("evaluate", "digits", tmp_path / "unlabelled.npz", "--name", "later")
        found = client.get("/calibrations/digits/evaluations/later").json()
        event = found["result"]["events"]["1"]
        discarded = event["measures"][event["served"]]["discarded"].values()
        cells = table_cells(shown, "Top-1", event["served"])
        assert cells == [f"{share:.4f}" for share in discarded]

        shown = command("refit", "digits", "--bins", "5", "--lookup", "interpolated")
        assert "digits@2" in shown
        config = client.get("/calibrations/digits@2").json()["config"]
        assert (config["bins"], config["lookup"]) == (5, "interpolated")

        assert command("promote", "digits@1").strip() == "digits now means digits@1"
        assert client.get("/calibrations/digits").json()["version"] == 1

        shown = command("compare", "digits@1", "digits@2")
        params = [("calibration", "digits@1"), ("calibration", "digits@2")]
        answer = client.get("/report", params=params).json()
        for sentence in answer["comparisons"][0]["sentences"]:
            assert sentence in shown
        event = answer["calibrations"][1]["events"]["1"]
        judged = event["measures"][event["served"]]["evaluation"]
        lines = [line.split() for line in shown.splitlines() if line.split()[:1] == ["digits@2"]]
        assert lines[0][1:3] == [event["served"], "evaluation"]
        assert lines[0][4:] == [f"{judged[name]:.4f}" for name in ("ece", "brier", "nll")]


def test_a_running_service_by_url(tmp_path) -> None:
    with ServedProcess(tmp_path) as client:
        url = str(client.base_url)
        made = howsure(
            "calibrate", DIGITS / "calibration_logits.csv", "--url", url, folder=tmp_path
        )
        assert made.returncode == 0, made.stderr
        listed = howsure("list", folder=tmp_path, HOWSURE_URL=url)
        assert "calibration@1" in listed.stdout
    assert not (tmp_path / "data").exists(), "the command worked on a store of its own"


def test_beside_a_running_service_on_the_same_folder(tmp_path) -> None:
    """SQLite has one owner: the command queues its calibration and the service runs it."""
    data = tmp_path / "data"
    data.mkdir()
    with ServedProcess(data):
        made = howsure("calibrate", DIGITS / "calibration_logits.csv", folder=tmp_path)
        assert made.returncode == 0, made.stderr
        assert "calibration@1" in made.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("predict", "nobody", DIGITS / "request.json"), "nobody"),
        (("report", "nobody"), "nobody"),
        (("delete", "nobody@1", "--yes"), "nobody"),
        (("delete", "nobody", "--yes"), "any of its versions"),
        (("calibrate", DIGITS / "README.md"), "label"),
        (("calibrate", DIGITS / "calibration.npz"), "model"),
        (("calibrate", DIGITS / "calibration_logits.csv", "--bins", "many"), "bins"),
        (("calibrate", DIGITS / "calibration_logits.csv", "--config", "{"), "JSON"),
        (("predict", "digits", DIGITS / "README.md"), "JSON"),
        (("list", "--url", "http://127.0.0.1:9"), "no answer"),
    ],
)
def test_failures_are_one_sentence(folder, arguments, says: str) -> None:
    failed = howsure(*arguments, folder=folder)

    assert failed.returncode == 1
    assert says in failed.stderr
    assert "Traceback" not in failed.stderr


@pytest.mark.parametrize(
    ("arguments", "settings", "says"),
    [
        (("list",), {"PORT": "abc"}, "HOWSURE_PORT: expected an integer from 0 to 65535"),
        (("serve", "--port", "99999"), {}, "--port: expected an integer from 0 to 65535"),
        (
            ("list",),
            {"DEVICE": "gpu"},
            "HOWSURE_DEVICE: expected auto, cpu, cuda, cuda:N or a list",
        ),
        (("list",), {"DEVICE": "cuda:0,cuda:0"}, "HOWSURE_DEVICE: expected each device once"),
        (("list",), {"DATABASE_URL": "mysql://x"}, "HOWSURE_DATABASE_URL: "),
        (("serve",), {"DATABASE_URL": "nonsense"}, "HOWSURE_DATABASE_URL: "),
        (
            ("serve", "--port", "0"),
            {"DATABASE_URL": "postgresql+psycopg://u:secret@127.0.0.1:9/x"},
            "the database does not answer",
        ),
        (("list",), {"ARTIFACTS_URL": "ftp://x"}, "HOWSURE_ARTIFACTS_URL: "),
        (("serve", "--host", "999.1.1.1"), {}, "choose another --host"),
        (("list",), {"DATA_DIR": "/dev/null/x"}, "HOWSURE_DATA_DIR"),
        (("list", "--url", "http://a:b"), {}, "--url"),
    ],
)
def test_settings_that_are_wrong_are_named(tmp_path, arguments, settings, says: str) -> None:
    variables = {f"HOWSURE_{name}": value for name, value in settings.items()}
    failed = howsure(*arguments, folder=tmp_path, **variables)

    assert failed.returncode == 1
    assert says in " ".join(failed.stderr.split())
    assert "Traceback" not in failed.stderr
    assert "secret" not in failed.stderr


def test_files_that_are_wrong_are_named(tmp_path) -> None:
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "deep.json").write_text("[" * 10_000)
    logits = DIGITS / "calibration_logits.csv"
    for file, says in (("list.json", "expected a JSON object"), ("deep.json", "nested too deep")):
        failed = howsure("calibrate", logits, "--config", tmp_path / file, folder=tmp_path)
        assert failed.returncode == 1
        assert says in failed.stderr
        assert "Traceback" not in failed.stderr
    assert howsure("calibrate", logits, folder=tmp_path).returncode == 0
    output = tmp_path / "nowhere" / "report.csv"
    failed = howsure(
        "report", "calibration", "--format", "csv", "--output", output, folder=tmp_path
    )
    assert failed.returncode == 1
    assert "cannot write" in failed.stderr
    assert "Traceback" not in failed.stderr


def test_demo(tmp_path) -> None:
    shown = started_afresh("demo", folder=tmp_path, HOWSURE_PORT="0")

    assert shown.returncode == 0, shown.stderr
    assert "digits@1" in shown.stdout
    assert re.search(r"row 0: class \d, right with probability 0\.\d+", shown.stdout)
    assert re.search(r"answers on http://127\.0\.0\.1:\d+", shown.stdout)


def test_a_port_in_use(tmp_path) -> None:
    with ServedProcess(tmp_path) as client:
        port = str(client.base_url.port)
        failed = howsure("serve", "--port", port, folder=tmp_path)
    assert failed.returncode == 1
    assert "cannot listen" in failed.stderr


def test_version_and_help(folder) -> None:
    assert re.fullmatch(
        r"howsure \d+\.\d+\.\d+\n", started_afresh("--version", folder=folder).stdout
    )
    shown = started_afresh("serve", "--help", folder=folder).stdout
    assert "HOWSURE_DATABASE_URL" in shown


def test_db_upgrade(tmp_path) -> None:
    assert howsure("db", "upgrade", folder=tmp_path).returncode == 0
    assert (tmp_path / "data" / "howsure.sqlite3").exists()
