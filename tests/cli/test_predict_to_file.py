"""``howsure predict -o``: every format in, every format out; it says what /predict says.

Formats are tried on the function behind the command; the command itself once.
"""

from collections.abc import Mapping
from pathlib import Path

import httpx
import numpy as np
import onnxruntime
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
import pytest
from dataset_files import output_columns, write_npz, write_parquet
from howsure_command import howsure
from running_service import DIGITS

from service.cli.connection import Address
from service.cli.failure import CommandFailed, one_sentence
from service.cli.scoring.score_file import Scoring, score_file

ENDINGS = (".csv", ".parquet", ".npz")
N_ROWS = 300


def score(service: httpx.Client, scoring: Scoring) -> int:
    return score_file(Address(str(service.base_url)), scoring)


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    with np.load(DIGITS / "evaluation.npz") as archive:
        return archive["inputs"][:N_ROWS], archive["labels"][:N_ROWS]


@pytest.fixture(scope="module")
def logits(rows) -> np.ndarray:
    session = onnxruntime.InferenceSession(DIGITS / "model.onnx")
    return session.run(None, {"inputs": rows[0].astype(np.float32)})[0]


def table(path: Path) -> dict[str, list]:
    """Read a result by other means than it was written by, as one list a column."""
    if path.suffix == ".parquet":
        return pa_parquet.read_table(path).to_pydict()
    if path.suffix == ".npz":
        found = {}
        with np.load(path) as archive:
            for name in archive.files:
                array = archive[name]
                columns = array.T if array.ndim == 2 else [array]
                names = [f"{name}_{k + 1}" for k in range(len(columns))]
                named = names if array.ndim == 2 else [name]
                found |= {n: c.tolist() for n, c in zip(named, columns, strict=True)}
        return found
    return pa_csv.read_csv(path).to_pydict()


def answers(service: httpx.Client, body: Mapping) -> dict[str, list]:
    """Return what /predict says in JSON, as the columns that a result is to have."""
    answer = service.post("/predict", json=body).raise_for_status().json()["predictions"]
    found: dict[str, list] = {
        "row": list(range(len(answer))),
        "class": [row["class"] for row in answer],
        "label": [row["label"] for row in answer],
        "out_of_distribution": [row["out_of_distribution"] for row in answer],
    }
    for position in range(5):
        for name, key in (("class", "class"), ("score", "score")):
            column = [row["classes"][position][key] for row in answer]
            found[f"topk_{name}_{position + 1}"] = column
    for event in ("top1", "top5"):
        for name in ("probability", "uncertainty", "bin"):
            found[f"{event}_{name}"] = [row[event][name] for row in answer]
        for name, bound in (("lower", 0), ("upper", 1)):
            found[f"{event}_{name}"] = [row[event]["interval"][bound] for row in answer]
    for risk in answer[0]["abstain"]:
        told = [row["abstain"][risk] for row in answer]
        found[f"abstain_{risk}"] = [value is not False for value in told]
    found["abstain"] = found[f"abstain_{next(iter(answer[0]['abstain']))}"]
    return found


def assert_says(path: Path, expected: Mapping[str, list]) -> None:
    found = table(path)
    assert set(found) == set(expected)
    for name, column in expected.items():
        if isinstance(column[0], float):
            # Of float32, and of a model that ran with other rows beside these.
            np.testing.assert_allclose(found[name], column, rtol=1e-4, atol=1e-6, err_msg=name)
        else:
            assert found[name] == column, name


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_result_says_what_predict_says(service, rows, tmp_path, ending) -> None:
    inputs, labels = rows
    source = write_npz(tmp_path / "rows.npz", inputs=inputs, labels=labels)
    out = tmp_path / f"answers{ending}"

    assert score(service, Scoring("digits", source, out, rows=128)) == N_ROWS

    expected = answers(service, {"calibration": "digits", "inputs": inputs.tolist()})
    assert expected["label"][0].startswith("digit ")
    assert_says(out, expected | {"true_label": labels.tolist()})
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([source.name, out.name])


def test_inputs_without_labels(service, rows, tmp_path) -> None:
    inputs, _ = rows
    np.save(tmp_path / "rows.npy", inputs)
    out = tmp_path / "answers.npz"

    score(service, Scoring("digits", tmp_path / "rows.npy", out))

    assert_says(out, answers(service, {"calibration": "digits", "inputs": inputs.tolist()}))


def test_outputs_of_a_model(service, rows, logits, tmp_path) -> None:
    labels = rows[1]
    write_parquet(tmp_path / "logits.parquet", output_columns(logits, labels))
    out = tmp_path / "answers.parquet"

    score(service, Scoring("logits", tmp_path / "logits.parquet", out, rows=100, requests=1))

    expected = answers(service, {"calibration": "logits", "logits": logits.tolist()})
    assert_says(out, expected | {"true_label": labels.tolist()})


@pytest.mark.parametrize(
    ("calibration", "source", "out", "message"),
    [
        ("digits", "rows.npz", "answers.txt", r"ends in one of \.csv, \.parquet, \.npz"),
        ("nobody", "rows.npz", "answers.csv", "Not found"),
        ("digits", "words.npz", "answers.csv", "input"),
        ("digits", "wide.npz", "answers.csv", "64"),
        ("digits", "late.npz", "answers.csv", "input.inputs"),
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
    np.savez(tmp_path / "rows.npz", logits=np.eye(10, dtype=np.float32) * 5)

    done = howsure("predict", "calibration", "rows.npz", "-o", "answers.csv", folder=tmp_path)

    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "10 rows in answers.csv"
    assert table(tmp_path / "answers.csv")["class"] == list(range(10))
