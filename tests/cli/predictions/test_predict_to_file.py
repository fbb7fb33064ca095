"""``howsure predict -o``: every format in, every format out; it says what /predict says.

Formats are tried on the function behind the command; the command itself once.
"""

import csv
import shutil
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import onnxruntime
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
import pytest
from dataset_files import write_npz
from howsure_command import howsure
from plain_answers import arrays_of, assert_says
from running_service import DIGITS, calibrated, scrape, service_on

from service.cli.connection import Address
from service.cli.failure import CommandFailed, one_sentence
from service.cli.scoring.score_file import Scoring, score_file
from service.cli.scoring.writers import write_csv

ENDINGS = (".csv", ".parquet", ".npz")
N_ROWS = 300


def score(client: httpx.Client, scoring: Scoring) -> int:
    return score_file(Address(str(client.base_url)), scoring).n_rows


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    with np.load(DIGITS / "evaluation.npz") as archive:
        return archive["inputs"][:N_ROWS], archive["labels"][:N_ROWS]


@pytest.fixture(scope="module")
def logits(rows) -> np.ndarray:
    session = onnxruntime.InferenceSession(DIGITS / "model.onnx")
    return session.run(None, {"inputs": rows[0].astype(np.float32)})[0]


def arrays_in(path: Path) -> dict[str, np.ndarray]:
    """Read a result by other means than it was written by, with its columns as in an archive."""
    if path.suffix == ".npz":
        with np.load(path) as archive:
            return dict(archive)
    read = pa_parquet.read_table if path.suffix == ".parquet" else pa_csv.read_csv
    found = {name: np.array(column) for name, column in read(path).to_pydict().items()}
    for name in ("topk_class", "topk_score", "topk_probability"):
        found[name] = np.stack([found.pop(f"{name}_{place}") for place in range(1, 6)], axis=1)
    return found


def assert_answers(
    client: httpx.Client, path: Path, calibration: str, labels: np.ndarray | None, **rows: Any
) -> None:
    """Compare a result with what /predict says in JSON."""
    answer = client.post("/predict", json={"calibration": calibration, **rows})
    predictions = answer.raise_for_status().json()["predictions"]
    added = {"row": range(N_ROWS), "label": [row["label"] for row in predictions]}
    if labels is not None:
        names = client.get(f"/calibrations/{calibration}").json()["config"]["classes"]
        added |= {"true_class": labels, "true_label": np.array(names)[labels].tolist()}
    found = arrays_in(path)
    assert found.keys() == arrays_of(predictions).keys() | added.keys()
    assert_says(found, predictions)
    for name, column in added.items():
        # A CSV of digits has no names of another type.
        same = found[name].astype(np.array(column).dtype)
        np.testing.assert_array_equal(same, column, err_msg=name)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_result_says_what_predict_says(client, digits_calibration, rows, tmp_path, ending):
    inputs, labels = rows
    source = write_npz(tmp_path / "rows.npz", inputs=inputs, labels=labels)
    out = tmp_path / f"answers{ending}"

    assert score(client, Scoring("digits", source, out, rows=128)) == N_ROWS

    assert_answers(client, out, "digits", labels, inputs=inputs.tolist())
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([source.name, out.name])


def test_inputs_without_labels_and_outputs_of_a_model(
    client, digits_calibration, rows, logits, tmp_path
) -> None:
    inputs, labels = rows
    np.save(tmp_path / "rows.npy", inputs)
    score(client, Scoring("digits", tmp_path / "rows.npy", tmp_path / "inputs.npz"))
    assert_answers(client, tmp_path / "inputs.npz", "digits", None, inputs=inputs.tolist())

    names = [f"digit {i}" for i in range(10)]
    table = pa.table(
        {f"logit_{n}": logits[:, i] for i, n in enumerate(names)}
        | {"label": [names[label] for label in labels]}
    )
    pa_parquet.write_table(table, tmp_path / "named.parquet")
    content = (tmp_path / "named.parquet").read_bytes()
    calibrated(client, {"name": "named"}, calibration=content)
    np.savez(tmp_path / "rows.npz", logits=logits)

    def by_position(source: str) -> bool:
        scoring = Scoring("named", tmp_path / source, tmp_path / "answers.npz", rows=100)
        written = score_file(Address(str(client.base_url)), scoring)
        known = None if source == "rows.npz" else labels
        assert_answers(client, scoring.output, "named", known, logits=logits.tolist())
        return written.by_position

    assert by_position("rows.npz")
    assert not by_position("named.parquet")


@pytest.mark.parametrize(
    ("calibration", "source", "out", "message"),
    [
        ("digits", "rows.npz", "answers.txt", r"\.csv, \.parquet, \.npz"),
        ("nobody", "rows.npz", "answers.csv", "Not found"),
        ("digits", "wide.npz", "answers.csv", "64"),
        ("digits", "late.npz", "answers.csv", r"inputs\[290\]"),
        ("digits", "rows.npz", "nowhere/answers.csv", "No such file"),
    ],
)
def test_a_refusal_says_why_and_leaves_nothing(
    client, digits_calibration, rows, tmp_path, calibration, source, out, message
) -> None:
    inputs = rows[0].astype(np.float32)
    write_npz(tmp_path / "rows.npz", inputs=inputs)
    write_npz(tmp_path / "wide.npz", inputs=np.zeros((5, 65), np.float32))
    late = inputs.copy()
    late[290, 3] = np.nan
    write_npz(tmp_path / "late.npz", inputs=late)
    before = sorted(path.name for path in tmp_path.iterdir())

    with pytest.raises(CommandFailed, match=message), one_sentence():
        score(client, Scoring(calibration, tmp_path / source, tmp_path / out, rows=128))

    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.process
def test_the_command_without_a_server(quick, tmp_path) -> None:
    made = howsure("calibrate", DIGITS / "calibration_logits.csv", *quick, folder=tmp_path)
    assert made.returncode == 0, made.stderr
    unsure = np.zeros((2, 10), np.float32)
    np.savez(tmp_path / "rows.npz", logits=np.vstack([np.eye(10, dtype=np.float32) * 50, unsure]))

    done = howsure("predict", "calibration", "rows.npz", "-o", "answers.npz", folder=tmp_path)

    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    warning, written = done.stderr.splitlines()[-2:]
    assert "2 of 12 rows" in warning
    assert written.startswith("12 rows")
    found = arrays_in(tmp_path / "answers.npz")
    assert found["class"].tolist()[:10] == list(range(10))
    assert found["out_of_distribution"].tolist() == [False] * 10 + [True] * 2


@pytest.mark.process
def test_a_model_that_is_not_loaded_refuses_no_part(rows, tmp_path, calibrated_digits) -> None:
    """The service takes numbers of a CSV, which are float64, for twice as many rows at first."""
    inputs = rows[0].reshape(N_ROWS, -1).astype(np.float64)
    table = pa.table({f"pixel_{k}": column for k, column in enumerate(inputs.T)})
    source, out = tmp_path / "rows.csv", tmp_path / "answers.npz"
    pa_csv.write_csv(pa.concat_tables([table] * 12), source)
    shutil.copytree(calibrated_digits.folder, tmp_path / "data")
    with service_on(tmp_path / "data", on_port=True) as cold:
        assert score(cold, Scoring("digits", source, out)) == 12 * N_ROWS
        assert scrape(cold).labels("failures_total") == []


class Predicted:
    """A result of two parts, with names that a spreadsheet would run."""

    def tables(self):
        for names in (["=1+1", "-2"], ["plain", "@x"]):
            numbers, flags = np.array([-1.5, 2.0], np.float32), np.array([True, False])
            yield {"label": np.array(names), "uncertainty": numbers, "abstain": flags}


def test_names_run_nothing_and_numbers_are_numbers(tmp_path) -> None:
    write_csv(tmp_path / "answers.csv", Predicted())
    with (tmp_path / "answers.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["label"] for row in rows] == ["'=1+1", "'-2", "plain", "'@x"]
    assert [row["uncertainty"] for row in rows] == ["-1.5", "2.0"] * 2
    assert [row["abstain"] for row in rows] == ["true", "false"] * 2
