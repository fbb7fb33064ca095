"""``howsure predict -o``: every format in, every format out; it says what /predict says."""

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
from plain_answers import arrays_of, assert_says
from running_service import DIGITS, calibrated, npz, scrape, service_on

from howsure.client import HowsureError
from service.cli.connection import Address
from service.cli.failure import CommandFailed
from service.cli.scoring.score_file import Scoring, Written, score_file
from service.cli.scoring.writers import Result, csv_writer

N_ROWS = 300


def score(client: httpx.Client, *words: object, **options: Any) -> Written:
    return score_file(Address(str(client.base_url)), Scoring(*words, **options))


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    with np.load(DIGITS / "evaluation.npz") as archive:
        return archive["inputs"][:N_ROWS], archive["labels"][:N_ROWS]


def arrays_in(path: Path) -> dict[str, np.ndarray]:
    """Read a result by other means than it was written by, with its columns as in an archive."""
    if path.suffix == ".npz":
        with np.load(path) as archive:
            return dict(archive)
    read = pa_parquet.read_table if path.suffix == ".parquet" else pa_csv.read_csv
    columns = {name: np.array(column) for name, column in read(path).to_pydict().items()}
    for name in ("topk_class", "topk_score", "topk_probability"):
        columns[name] = np.stack([columns.pop(f"{name}_{k}") for k in range(1, 6)], axis=1)
    return columns


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
    arrays = arrays_in(path)
    assert arrays.keys() == arrays_of(predictions).keys() | added.keys()
    assert_says(arrays, predictions)
    for name, column in added.items():
        # A CSV of digits has no names of another type.
        same = arrays[name].astype(np.array(column).dtype)
        np.testing.assert_array_equal(same, column, err_msg=name)


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".npz"])
def test_a_result_says_what_predict_says(client, digits_calibration, rows, tmp_path, ending):
    inputs, labels = rows
    (tmp_path / "rows.npz").write_bytes(npz(inputs=inputs, labels=labels))
    out = tmp_path / f"answers{ending}"
    assert score(client, "digits", tmp_path / "rows.npz", out, rows=128).n_rows == N_ROWS
    assert_answers(client, out, "digits", labels, inputs=inputs.tolist())
    assert {path.name for path in tmp_path.iterdir()} == {"rows.npz", out.name}


def test_unlabelled_inputs_and_outputs(client, digits_calibration, rows, tmp_path) -> None:
    inputs, labels = rows
    source, out = tmp_path / "rows.npy", tmp_path / "answers.npz"
    np.save(source, inputs)
    score(client, "digits", source, out)
    assert_answers(client, out, "digits", None, inputs=inputs.tolist())

    session = onnxruntime.InferenceSession(DIGITS / "model.onnx")
    (logits,) = session.run(None, {"inputs": inputs.astype(np.float32)})
    names = [f"digit {i}" for i in range(10)]
    columns = {f"logit_{name}": logits[:, i] for i, name in enumerate(names)}
    table = pa.table(columns | {"label": [names[label] for label in labels]})
    source = tmp_path / "named.parquet"
    pa_parquet.write_table(table, source)
    options = {"name": "named", "top_k": [1, 5]}
    calibrated(client, options, calibration=source.read_bytes())
    (tmp_path / "rows.npz").write_bytes(npz(logits=logits))
    for path, known in ((tmp_path / "rows.npz", None), (source, labels)):
        written = score(client, "named", path, out, rows=100)
        assert_answers(client, out, "named", known, logits=logits.tolist())
        assert written.by_position == (known is None)


def test_pairs_are_predicted_to_files_with_what_was_correct(client, tmp_path) -> None:
    scores = np.random.default_rng(8).random(300).round(4)
    correct = (np.random.default_rng(9).random(300) < scores).astype(int)
    source, out = tmp_path / "pairs.csv", tmp_path / "answers.parquet"
    pa_csv.write_csv(pa.table({"score": scores, "correct": correct}), source)
    config = {"name": "file-of-pairs", "bins": 5, "folds": 2}
    calibrated(client, config, full=True, calibration=source.read_bytes())
    answer = client.post("/predict", json={"calibration": "file-of-pairs", "scores": [*scores]})
    expected = [row["top1"]["probability"] for row in answer.json()["predictions"]]
    score(client, "file-of-pairs", source, out)
    columns = pa_parquet.read_table(out).to_pydict()
    assert {"label", "class", "true_label", "top1_uncertainty"}.isdisjoint(columns)
    np.testing.assert_allclose(columns["score"], scores, rtol=1e-6)
    np.testing.assert_allclose(columns["top1_probability"], expected, rtol=1e-6)
    assert columns["correct"] == (correct > 0).tolist()


REFUSALS = [
    ("digits", "rows.npz", "answers.txt", r"\.csv, \.parquet, \.npz"),
    ("digits", "rows.npz", "rows.npz", "rows.npz"),
    ("nobody", "rows.npz", "answers.csv", "Not found"),
    ("digits", "wide.npz", "answers.csv", "64"),
    ("digits", "late.npz", "answers.csv", r"inputs\[290\]"),
    ("digits", "rows.npz", "nowhere/answers.csv", "No such file"),
]


@pytest.mark.parametrize(("calibration", "source", "out", "message"), REFUSALS)
def test_refusals_leave_nothing(client, rows, tmp_path, calibration, source, out, message) -> None:
    inputs = rows[0].astype(np.float32)
    late = inputs.copy()
    late[290, 3] = np.nan
    arrays = {"rows.npz": inputs, "wide.npz": np.zeros((5, 65), np.float32), "late.npz": late}
    files = {name: npz(inputs=array) for name, array in arrays.items()}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)

    with pytest.raises((CommandFailed, HowsureError, OSError), match=message):
        score(client, calibration, tmp_path / source, tmp_path / out, rows=128)

    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files


@pytest.mark.process
def test_a_model_that_is_not_loaded_refuses_no_part(rows, tmp_path, calibrated_digits) -> None:
    """The service takes numbers of a CSV, which are float64, for twice as many rows at first."""
    inputs = rows[0].astype(np.float64)
    table = pa.table({f"pixel_{k}": column for k, column in enumerate(inputs.T)})
    source, out = tmp_path / "rows.csv", tmp_path / "answers.npz"
    pa_csv.write_csv(pa.concat_tables([table] * 12), source)
    shutil.copytree(calibrated_digits.folder, tmp_path / "data")
    with service_on(tmp_path / "data", on_port=True) as cold:
        assert score(cold, "digits", source, out).n_rows == 12 * N_ROWS
        assert scrape(cold).labels("failures_total") == []


def test_names_run_nothing_and_numbers_are_numbers(tmp_path) -> None:
    names, numbers = np.array(["=1+1", "-2", "@x"]), np.array([-1.5, 2.0, 0], np.float32)
    with csv_writer(tmp_path / "answers.csv", Result("", "", "", 3)) as write:
        write({"label": names, "uncertainty": numbers, "abstain": numbers > 1})
    lines = (tmp_path / "answers.csv").read_text().splitlines()[1:]
    assert lines == ["'=1+1,-1.5,false", "'-2,2.0,true", "'@x,0.0,false"]
