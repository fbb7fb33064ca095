"""``howsure predict -o``: every format in, every format out; it says what /predict says.

Formats are tried on the function behind the command; the command itself once.
"""

from pathlib import Path
from typing import Any

import httpx
import numpy as np
import onnxruntime
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
import pytest
from dataset_files import output_columns, write_npz, write_parquet
from howsure_command import ServedProcess, howsure
from plain_answers import arrays_of, assert_says
from running_service import DIGITS, WAIT, quick_config, scrape

from howsure.client import Client
from service.cli.connection import Address
from service.cli.failure import CommandFailed, one_sentence
from service.cli.scoring.score_file import Scoring, score_file

ENDINGS = (".csv", ".parquet", ".npz")
N_ROWS = 300


def score(service: httpx.Client, scoring: Scoring) -> int:
    return score_file(Address(str(service.base_url)), scoring).n_rows


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
    service: httpx.Client, path: Path, calibration: str, labels: np.ndarray | None, **rows: Any
) -> None:
    """Compare a result with what /predict says in JSON."""
    answer = service.post("/predict", json={"calibration": calibration, **rows})
    predictions = answer.raise_for_status().json()["predictions"]
    added = {"row": range(N_ROWS), "label": [row["label"] for row in predictions]}
    if labels is not None:
        names = service.get(f"/calibrations/{calibration}").json()["config"]["classes"]
        added |= {"true_class": labels, "true_label": np.array(names)[labels].tolist()}
    found = arrays_in(path)
    assert found.keys() == arrays_of(predictions).keys() | added.keys()
    assert_says(found, predictions)
    for name, column in added.items():
        np.testing.assert_array_equal(found[name], column, err_msg=name)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_result_says_what_predict_says(service, rows, tmp_path, ending) -> None:
    inputs, labels = rows
    source = write_npz(tmp_path / "rows.npz", inputs=inputs, labels=labels)
    out = tmp_path / f"answers{ending}"

    assert score(service, Scoring("digits", source, out, rows=128)) == N_ROWS

    assert arrays_in(out)["label"][0].startswith("digit ")
    assert_answers(service, out, "digits", labels, inputs=inputs.tolist())
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([source.name, out.name])


def test_inputs_without_labels(service, rows, tmp_path) -> None:
    inputs, _ = rows
    np.save(tmp_path / "rows.npy", inputs)
    out = tmp_path / "answers.npz"

    score(service, Scoring("digits", tmp_path / "rows.npy", out))

    assert_answers(service, out, "digits", None, inputs=inputs.tolist())


def test_outputs_of_a_model(service, rows, logits, tmp_path) -> None:
    labels = rows[1]
    write_parquet(tmp_path / "logits.parquet", output_columns(logits, labels))
    out = tmp_path / "answers.parquet"

    score(service, Scoring("logits", tmp_path / "logits.parquet", out, rows=100, requests=1))

    assert_answers(service, out, "logits", labels, logits=logits.tolist())


def test_rows_without_the_names_of_the_calibration_are_told(service, rows, logits, tmp_path):
    names = [f"digit {i}" for i in range(10)]
    labels = [names[label] for label in rows[1]]
    table = pa.table({f"logit_{n}": logits[:, i] for i, n in enumerate(names)} | {"label": labels})
    pa_parquet.write_table(table, tmp_path / "named.parquet")
    parts = {"calibration": ("named.parquet", (tmp_path / "named.parquet").read_bytes())}
    config = {"config": (None, quick_config(name="named"))}
    service.post("/calibrate", files=parts | config, headers=WAIT).raise_for_status()
    np.savez(tmp_path / "rows.npz", logits=logits)

    def by_position(source: str) -> bool:
        scoring = Scoring("named", tmp_path / source, tmp_path / "answers.npz")
        return score_file(Address(str(service.base_url)), scoring).by_position

    assert by_position("rows.npz")
    assert not by_position("named.parquet")


@pytest.mark.parametrize(
    ("calibration", "source", "out", "message"),
    [
        ("digits", "rows.npz", "answers.txt", r"ends in one of \.csv, \.parquet, \.npz"),
        ("nobody", "rows.npz", "answers.csv", "Not found"),
        ("digits", "words.npz", "answers.csv", "input"),
        ("digits", "wide.npz", "answers.csv", "64"),
        ("digits", "late.npz", "answers.csv", "got a missing value"),
        ("digits", "rows.npz", "nowhere/answers.csv", "No such file"),
    ],
)
def test_a_refusal_says_why_and_leaves_nothing(
    service, rows, tmp_path, calibration, source, out, message
) -> None:
    inputs = rows[0].astype(np.float32)
    write_npz(tmp_path / "rows.npz", inputs=inputs)
    write_npz(tmp_path / "wide.npz", inputs=np.zeros((5, 65), np.float32))
    write_npz(tmp_path / "words.npz", inputs=np.array(["a", "b"]))
    late = inputs.copy()
    late[90, 3] = np.nan
    write_npz(tmp_path / "late.npz", inputs=late)
    before = sorted(path.name for path in tmp_path.iterdir())

    with pytest.raises(CommandFailed, match=message), one_sentence():
        score(service, Scoring(calibration, tmp_path / source, tmp_path / out, rows=128))

    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_the_command_without_a_server(quick, tmp_path) -> None:
    made = howsure("calibrate", DIGITS / "calibration_logits.csv", *quick, folder=tmp_path)
    assert made.returncode == 0, made.stderr
    unsure = np.zeros((2, 10), np.float32)
    np.savez(tmp_path / "rows.npz", logits=np.vstack([np.eye(10, dtype=np.float32) * 50, unsure]))

    done = howsure("predict", "calibration", "rows.npz", "-o", "answers.csv", folder=tmp_path)

    assert done.returncode == 0, done.stderr
    warning, written = done.stderr.splitlines()[-2:]
    assert warning.startswith("out of distribution: 2 of 12 rows are less certain")
    assert written == "12 rows written to answers.csv"
    assert done.stdout == ""
    found = arrays_in(tmp_path / "answers.csv")
    assert found["class"].tolist()[:10] == list(range(10))
    assert found["out_of_distribution"].tolist() == [False] * 10 + [True] * 2


def test_a_model_that_is_not_loaded_refuses_no_part(rows, tmp_path) -> None:
    """The service takes numbers of a CSV, which are float64, for twice as many rows at first."""
    inputs = rows[0].reshape(N_ROWS, -1).astype(np.float64)
    table = pa.table({f"pixel_{k}": column for k, column in enumerate(inputs.T)})
    source, out = tmp_path / "rows.csv", tmp_path / "answers.npz"
    pa_csv.write_csv(pa.concat_tables([table] * 12), source)
    (tmp_path / "data").mkdir()
    with ServedProcess(tmp_path / "data") as cold:
        with Client(str(cold.base_url)) as uploading:
            uploading.calibrate(DIGITS / "model.onnx", DIGITS / "calibration.npz", name="digits")
        assert score(cold, Scoring("digits", source, out)) == 12 * N_ROWS
        assert scrape(cold).labels("failures_total") == []
