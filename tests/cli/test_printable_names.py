"""Names of classes, columns, inputs and outputs are printable; those stored earlier are escaped."""

import uuid
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from databases import opened_database
from howsure_command import howsure, restored_process
from keyed_service import logits_of
from refusals import assert_refused
from runner_models import of_rows, rows, steps, weights
from running_service import QUICK, calibrated, dry_run, npz, service_on

import models
from service.backups.format import FORMAT, NAME, FilesPart, Manifest, Part, sealed
from service.storage.fit_results import seal
from service.storage.tenants import ALL_TENANTS

UNPRINTABLE = ["\x1b[31m", "a\0b", "a\r\nb", "a\x9bb", "\u202eabc", "a\u2028b"]
N = 60
CLASS = np.arange(N) % 3
LOGITS = npz(logits=np.eye(3)[CLASS] + np.linspace(0, 1, N)[:, None], labels=CLASS)
INPUTS = npz(inputs=rows(N), labels=CLASS)


def model(old: str = "x", new: str = "x") -> bytes:
    """Return a model of three classes with a tensor of another name."""
    made = of_rows(*steps("y = MatMul(x, w)"), w=weights(3))
    (node,) = made.graph.node
    for value in (*made.graph.input, *made.graph.output):
        value.name = new if value.name == old else value.name
    for names in (node.input, node.output):
        names[:] = [new if name == old else name for name in names]
    return bytes(made.SerializeToString())


def parquet(column: str = "0", label: str = "c") -> bytes:
    """Return a table with a column, or a class, of another name."""
    table = pd.DataFrame(rows(N)).rename(columns=str).rename(columns={"0": column})
    return bytes(table.assign(label=np.array(["a", "b", label], object)[CLASS]).to_parquet())


PARTS = {
    "config.classes": lambda name: {"content": LOGITS, "classes": ["a", "b", name]},
    "config.class_map": lambda name: {
        "content": parquet(),
        "model": model(),
        "class_map": {"a": 0, "b": 1, "c": 2, name: 2},
    },
    "config.columns": lambda name: {
        "content": parquet(name),
        "model": model(),
        "columns": {"x": [name, "1", "2", "3", "4", "5"]},
    },
    "a label": lambda name: {"content": parquet(label=name), "model": model()},
    "a column": lambda name: {"content": parquet(name), "model": model()},
    "an input": lambda name: {"content": INPUTS, "model": model("x", name)},
    "an output": lambda name: {"content": INPUTS, "model": model("y", name)},
}


@pytest.mark.parametrize(("number", "part"), [*enumerate(PARTS)])
def test_unprintable_names_are_refused(client, number, part) -> None:
    """Two names at each place; at two places or more, each name."""
    for name in (UNPRINTABLE[number % 6], UNPRINTABLE[(number + 3) % 6]):
        options = PARTS[part](name)
        response = dry_run(client, options.pop("content"), **options)
        place = {"a label": "calibration", "a column": "calibration"}.get(part, "model")
        place = part if part.startswith("config") else place
        assert_refused(response, place, "printable characters", ascii(name))
    options = PARTS[part]("\u00e9\u5b57\U0001f600")
    dry_run(client, options.pop("content"), **options).raise_for_status()


def test_what_a_backup_says_of_itself_is_printed_as_escapes(tmp_path: Path) -> None:
    files = FilesPart(Part("files.jsonl", "0" * 64, 0), 0)
    manifest = Manifest(FORMAT, "\x1b[31m", "", "\x9b", (), files)
    (tmp_path / NAME).write_bytes(sealed(manifest))
    done = howsure("db", "restore", tmp_path, folder=tmp_path)
    assert done.returncode == 1
    assert r"\u001b[31m" in done.stderr


@pytest.mark.process
def test_names_that_are_stored_are_printed_as_escapes(tmp_path: Path) -> None:
    with service_on(tmp_path, on_port=True) as client:
        made = calibrated(client, QUICK, calibration=logits_of())["id"]
        url = f"sqlite:///{tmp_path / 'howsure.sqlite3'}"
        with opened_database(url) as database, database.session(ALL_TENANTS) as session:
            row = session.get_one(models.Calibration, uuid.UUID(made))
            row.config = row.config | {"classes": ["\x1b[31m", "\x9b", "\u202ea"]}
            session.flush()
            seal(session, row.tenant_id, row.id)
        reports = [
            client.get("/report", params={"calibration": made, "format": form}).text
            for form in ("csv", "markdown", "model-card", "html")
        ]
        listed = client.get(f"/calibrations/{made}/samples", params={"format": "csv"})
        listed.raise_for_status()
        with restored_process():
            for words in (
                ["operating-point", made],
                ["operating-point", made, "--coverage", "0.5"],
                ["report", made, "--format", "json"],
                ["bins", made],
            ):
                done = howsure(*words, HOWSURE_URL=str(client.base_url))
                assert done.returncode == 0, done.stderr
                reports += [done.stdout, done.stderr]
    texts = [*reports, listed.text]
    for text in texts:
        assert not set("\x1b\x9b\u202e") & set(text)
    assert r"\u202ea" in listed.text
    assert sum(r"\u202ea" in text for text in texts) > 3
