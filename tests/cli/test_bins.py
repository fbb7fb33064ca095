"""Bin tables from the command line: out of one folder, into another."""

import io
import json
from pathlib import Path

import pyarrow.parquet as pa_parquet
from howsure_command import howsure
from running_service import DIGITS


def command(*arguments: object, folder: Path) -> str:
    done = howsure(*arguments, folder=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_from_one_service_to_another(tmp_path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    command("calibrate", DIGITS / "calibration_logits.csv", "--bins", "5", folder=here)
    written = {name: tmp_path / f"bins.{name}" for name in ("json", "csv", "parquet")}
    for name, path in written.items():
        assert command("bins", "calibration", "--format", name, "-o", path, folder=here) == ""
    document = json.loads(written["json"].read_text())
    assert json.loads(command("bins", "calibration@1", folder=here)) == document
    rows = pa_parquet.read_table(io.BytesIO(written["parquet"].read_bytes())).num_rows
    assert rows == sum(len(table["bins"]) for table in document["tables"])
    assert len(written["csv"].read_text().splitlines()) == rows + 1

    done = howsure("import", written["json"], "--name", "brought", folder=there)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("brought@1  ")
    assert "nothing was judged here" in " ".join(done.stderr.split())
    asked = json.loads(command("bins", "brought", folder=there))
    assert asked["content_sha256"] == document["content_sha256"]


def test_what_cannot_be_done_is_said_in_a_sentence(tmp_path) -> None:
    (tmp_path / "other.json").write_text('{"schema": "howsure.bins/9"}')
    for arguments, says in (
        (("bins", "nobody"), "nobody"),
        (("bins", "nobody", "--format", "parquet"), "use --output FILE"),
        (("import", tmp_path / "other.json"), "howsure.bins/1"),
    ):
        failed = howsure(*arguments, folder=tmp_path)
        assert failed.returncode == 1
        assert says in " ".join(failed.stderr.split())
        assert "Traceback" not in failed.stderr
