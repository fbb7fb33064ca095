"""The digits example: splits, network, numbers, and the script that makes them."""

import csv
import json
from pathlib import Path
from runpy import run_path

import numpy as np
import onnx
import onnxruntime
import pytest
from graph_models import run_session
from scipy.special import log_softmax
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss, top_k_accuracy_score

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDER = REPOSITORY / "examples" / "digits"
PARTS = ("calibration", "evaluation")


def load_part(folder: Path, part: str) -> tuple[np.ndarray, np.ndarray]:
    with np.load(folder / f"{part}.npz", allow_pickle=False) as arrays:
        assert sorted(arrays) == ["inputs", "labels"]
        return arrays["inputs"], arrays["labels"]


def run(path: Path, inputs: np.ndarray) -> np.ndarray:
    return run_session(path.read_bytes(), {"inputs": inputs.astype(np.float32)})["logits"]


def readme_numbers() -> dict[str, list[float]]:
    rows = [
        [cell.strip() for cell in line.strip("|\n").split("|")]
        for line in (FOLDER / "README.md").read_text(encoding="utf-8").splitlines()
        if line.startswith(("| calibration |", "| evaluation |"))
    ]
    return {row[0]: [float(cell) for cell in row[1:]] for row in rows}


SCRIPT = run_path(str(FOLDER / "make_example.py"))


def test_the_parts_are_the_whole_set_and_share_no_image() -> None:
    parts = SCRIPT["split_digits"]()
    images, labels = load_digits(return_X_y=True)
    rows = np.concatenate([np.c_[part.inputs, part.labels] for part in parts.values()])
    assert sorted(map(tuple, rows)) == sorted(map(tuple, np.c_[images, labels].astype(int)))
    # No two of scikit-learn's images are equal, so disjoint rows are disjoint pictures.
    assert len(np.unique(rows[:, :64], axis=0)) == len(images)


@pytest.mark.parametrize("part", PARTS)
def test_the_readme_tells_the_truth(part: str) -> None:
    inputs, labels = load_part(FOLDER, part)
    logits = run(FOLDER / "model.onnx", inputs).astype(np.float64)
    probabilities = np.exp(log_softmax(logits, axis=1))
    confidence, hits = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    bins = np.ceil(15 * confidence).astype(int)
    ece = np.abs(np.bincount(bins, weights=hits - confidence)).sum() / len(labels)
    expected = [len(labels), hits.mean(), top_k_accuracy_score(labels, logits, k=5)]
    expected += [confidence.mean(), ece, log_loss(labels, probabilities)]
    assert readme_numbers()[part] == pytest.approx(expected, abs=6e-5)
    # The network is good, not perfect and over-confident.
    assert 0.93 <= hits.mean() <= 0.98
    assert 0.01 < confidence.mean() - hits.mean() < 0.05


def test_the_graph_is_what_is_promised() -> None:
    onnx_model = onnx.load(FOLDER / "model.onnx")
    assert (onnx_model.ir_version, onnx_model.opset_import[0].version) == (8, 17)
    names = {entry.key: json.loads(entry.value) for entry in onnx_model.metadata_props}
    assert names["classes"] == [str(digit) for digit in range(10)]
    assert (FOLDER / "model.onnx").stat().st_size < 100_000
    session = onnxruntime.InferenceSession(FOLDER / "model.onnx")
    (source,), (sink,) = session.get_inputs(), session.get_outputs()
    assert (source.name, source.type, source.shape) == ("inputs", "tensor(float)", ["N", 64])
    assert (sink.name, sink.type, sink.shape) == ("logits", "tensor(float)", ["N", 10])


def test_the_csv_holds_the_networks_outputs_exactly() -> None:
    inputs, labels = load_part(FOLDER, "calibration")
    with (FOLDER / "calibration_logits.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["label"]) for row in rows] == labels.tolist()
    logits = np.array([[row[f"logit_{k}"] for k in range(10)] for row in rows], dtype=np.float32)
    # ONNX Runtime picks its kernels by processor; on the one that wrote the file they are equal.
    np.testing.assert_allclose(logits, run(FOLDER / "model.onnx", inputs), rtol=1e-4, atol=1e-4)


def test_the_script_makes_the_example_again(tmp_path: Path) -> None:
    SCRIPT["make_example"](tmp_path, tmp_path / "external")
    for part in PARTS:
        for made, kept in zip(load_part(tmp_path, part), load_part(FOLDER, part), strict=True):
            np.testing.assert_array_equal(made, kept)
        # Training amplifies the rounding of another machine's linear algebra; the data do not move.
        inputs, labels = load_part(tmp_path, part)
        assert (inputs.dtype, labels.dtype, len(labels)) == (np.uint8, np.int64, 600)
        accuracy = (run(tmp_path / "model.onnx", inputs).argmax(axis=1) == labels).mean()
        assert 0.93 <= accuracy <= 0.98
    made_files = {path.name for path in tmp_path.iterdir() if path.is_file()}
    kept_files = {path.name for path in FOLDER.iterdir() if path.is_file()}
    assert made_files == kept_files - {"README.md", "make_example.py"}
