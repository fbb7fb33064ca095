"""Commands: rows and reports in their formats, and where a command finds its service."""

import csv
import io
import json
import re
import webbrowser

import numpy as np
import pyarrow.parquet as pa_parquet
import pytest
from howsure_command import howsure
from model_services import MEMBERS, PASSES, as_file, labelled_sets
from running_service import DIGITS, service_on

FORMATS = {"csv": "event,", "markdown": "# ", "html": "<!doctype html>", "model-card": "---\n"}


def test_rows_are_read_from_every_form(tmp_path, command, digits_calibration) -> None:
    with np.load(DIGITS / "evaluation.npz") as archive:
        inputs = archive["inputs"][:60]
    (tmp_path / "rows.json").write_text(json.dumps({"inputs": inputs.tolist()}))
    np.save(tmp_path / "rows.npy", inputs)
    columns = ",".join(f"pixel{k}" for k in range(inputs.shape[1]))
    np.savetxt(tmp_path / "rows.csv", inputs, "%g", ",", header=columns, comments="")
    tables = [
        command("predict", "digits", tmp_path / f"rows.{end}") for end in ("json", "npy", "csv")
    ]
    assert len({table.stdout for table in tables}) == 1
    assert "10 more rows" in tables[0].stderr
    rows = json.loads(command("predict", "digits", tmp_path / "rows.json", "--json").stdout)
    printed = re.findall(r"top1 +(0\.\d{4})", tables[0].stdout)
    first = [row["top1"]["probability"] for row in rows["predictions"][:50]]
    assert printed == [f"{probability:.4f}" for probability in first]


def test_rows_of_a_table_are_read_by_name(tmp_path, command, quick) -> None:
    with np.load(DIGITS / "calibration.npz") as archive:
        cells = np.column_stack([archive["inputs"], archive["labels"]])
    names = [f"pixel{k}" for k in range(cells.shape[1] - 1)]
    path = tmp_path / "set.csv"
    np.savetxt(path, cells, "%g", ",", header=",".join([*names, "label"]), comments="")
    command("calibrate", DIGITS / "model.onnx", path, "--name", "pixels", *quick)
    rows = cells[:3, :-1].tolist()
    by_name = [dict(reversed([*zip(names, row, strict=True)])) for row in rows]
    bodies = {"one": by_name[0], "lists": rows, "objects": by_name}
    for name, body in bodies.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(body))
    one, lists, objects = (command("predict", "pixels", tmp_path / f"{n}.json") for n in bodies)
    assert one.stdout.count("top1") == 1
    assert lists.stdout == objects.stdout
    assert "no column names" in lists.stderr
    assert objects.stderr == ""


def test_reports_and_bins_are_written(tmp_path, command, shelf) -> None:
    shelf("logits")
    for form, opening in FORMATS.items():
        assert command("report", "logits", "--format", form).stdout.startswith(opening)
    command("report", "logits", "--format", "csv", "-o", tmp_path / "report.csv")
    rows = csv.DictReader(io.StringIO((tmp_path / "report.csv").read_text()))
    assert {row["subject"] for row in rows} >= {"margin", "raw_softmax"}
    written, columns = tmp_path / "bins.json", tmp_path / "bins.parquet"
    assert command("bins", "logits", "-o", written).stdout == ""
    document = json.loads(written.read_text())
    assert json.loads(command("bins", "logits@1").stdout) == document
    command("bins", "logits", "--format", "parquet", "-o", columns)
    n_rows = sum(len(table["bins"]) for table in document["tables"])
    assert pa_parquet.read_table(columns).num_rows == n_rows


def test_a_report_is_opened_from_a_file(service, shelf, tmp_path, monkeypatch) -> None:
    shelf("logits")
    monkeypatch.setattr(webbrowser, "_tryorder", None)  # found once a process otherwise
    opened, browser = tmp_path / "opened", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}\n')
    browser.chmod(0o700)
    words = ("report", "logits", "--open", "--url", service.url)
    with_screen = {"BROWSER": f"{browser} %s"}
    done = howsure(*words, "-o", "other.html", folder=tmp_path, **with_screen)
    assert (done.returncode, done.stdout.strip()) == (0, "other.html"), done.stderr
    path = tmp_path / "other.html"
    assert opened.read_text() == path.as_uri()
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    opened.unlink()
    screens = dict.fromkeys(("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"), "")
    assert howsure(*words, folder=tmp_path, **screens).stdout.strip() == "logits-1.html"
    assert not opened.exists()


def test_a_model_before_the_set_is_the_first_member(command, tmp_path) -> None:
    calibration = tmp_path / "calibration.npz"
    calibration.write_bytes(as_file(labelled_sets()))
    first, other = PASSES / MEMBERS[0], PASSES / "member_other_classes.onnx"
    command("calibrate", calibration, "--model", first, "--dry-run")
    failed = command("calibrate", first, calibration, "--model", other, "--dry-run", status=1)
    assert "model[1]" in failed.stderr
    # The classes of the second come first.
    assert re.findall(r"\b9|10\b", failed.stderr) == ["9", "10"]


@pytest.mark.process
def test_beside_a_running_service_on_the_same_folder(tmp_path, quick) -> None:
    """SQLite has one owner: the command queues its calibration and the service runs it."""
    with service_on(tmp_path / "data"):
        made = howsure("calibrate", DIGITS / "calibration_logits.csv", *quick, folder=tmp_path)
        assert made.returncode == 0, made.stderr
        assert "calibration@1" in made.stdout
