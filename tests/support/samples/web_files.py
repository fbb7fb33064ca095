"""Exported models that run in Node and in a browser."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from calibrated_files import COLUMNS, Calibrated, Model, calibrate
from classifier_files import FILES, ClassifierFile, perceptron
from graph_models import constant, make_model, node, value
from onnx import TensorProto
from running_service import DIGITS

from howsure.statistics.bins.table import BinTable
from howsure.statistics.measures.noise import keep_mask

N_ROWS = 200
HOLE = 3  # a row with a NaN
LABEL = "class number {}"
LAST_LAYER = {1: "last_layer_dropout_variance", 5: "neg_log_topk_mass_5"}
# Node 20 has no arrays of this type; the page takes them.
NOT_UNDER_NODE = ("float16, opset 13", "float16, opset 18, softmax")
# Max pooling passes over NaN on some processors, and trees take a branch.
LOSE_NAN = ("torch", "sklearn, boosted", "sklearn, forest")


@dataclass(frozen=True)
class WebFile:
    """A calibrated file and the rows it is run on."""

    calibrated: Calibrated
    rows: Mapping[str, np.ndarray]
    loses_nan: bool

    def write(self, folder: Path) -> list[Path]:
        """Write the model and what lies beside it; return their paths, the model's first."""
        folder.mkdir(exist_ok=True)
        content = self.calibrated.graph.SerializeToString()
        files = {"model.onnx": content, **self.calibrated.model.companions}
        for name, data in files.items():
            (folder / name).write_bytes(data)
        return [folder / name for name in files]

    def check(self, answers: Sequence[dict[str, Any]]) -> None:
        """Compare the answers with those of ONNX Runtime on this machine."""
        expected = _unprefixed(self.calibrated.answer(self.rows))
        assert len(answers) == len(expected["class"])
        for row, answer in enumerate(answers):
            if row == HOLE and self.loses_nan:
                continue
            # A probability that the model gives in float32 has no more digits than these.
            digits = 1e-7 if self.calibrated.choice.kind == "probabilities" else 1e-30
            _check_classes(answer, {name: values[row] for name, values in expected.items()})
            for k, table in self.calibrated.tables.items():
                event = {
                    name.removeprefix(f"top{k}_"): values[row]
                    for name, values in expected.items()
                    if name.startswith(f"top{k}_")
                }
                _check_event(answer[f"top{k}"], event, table, digits)
            self._check_flags(answer)

    def _check_flags(self, answer: dict[str, Any]) -> None:
        uncertainty = answer["top1"]["uncertainty"]

        def beyond(threshold: float | None) -> bool:
            return uncertainty is None or threshold is None or uncertainty > threshold

        spec = self.calibrated.spec
        assert answer["out_of_distribution"] is beyond(spec.ood_threshold)
        assert answer["abstain"] == {risk: beyond(at) for risk, at in spec.accept_thresholds}


def _check_classes(answer: dict[str, Any], expected: Mapping[str, Any]) -> None:
    assert answer["class"] == expected["class"]
    assert [one["class"] for one in answer["classes"]] == expected["topk_class"].tolist()
    scores = [_number(one["score"]) for one in answer["classes"]]
    np.testing.assert_allclose(scores, expected["topk_score"], rtol=1e-4, atol=1e-30)
    for one in (answer, *answer["classes"]):
        assert one.get("label") == (LABEL.format(one["class"]) if one["class"] >= 0 else None)


def _check_event(
    answer: dict[str, Any], expected: Mapping[str, Any], table: BinTable, digits: float
) -> None:
    uncertainty = _number(answer["uncertainty"])
    np.testing.assert_allclose(uncertainty, expected["uncertainty"], rtol=1e-4, atol=digits)
    # Two runtimes add in two orders; where an edge lies between what comes of it, the bins differ.
    bounds = sorted([uncertainty, expected["uncertainty"]])
    if not ((table.edges >= bounds[0]) & (table.edges < bounds[1])).any():
        assert answer["bin"] == expected["bin"]
    if np.isnan(uncertainty):
        assert answer["bin"] == -1
        assert [answer["probability"], *answer["interval"]] == [None] * 3
        return
    found = table.look_up(np.array([uncertainty], dtype=np.float32))
    assert answer["bin"] == found.bin[0]
    values = [answer["probability"], *answer["interval"]]
    expected_values = [found.probability[0], found.lower[0], found.upper[0]]
    np.testing.assert_allclose(values, expected_values, rtol=0, atol=1e-6)


def _number(value: float | None) -> float:
    return np.nan if value is None else value


def _unprefixed(outputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    prefix = next(name for name in outputs if name.endswith("topk_class"))
    prefix = prefix.removesuffix("topk_class")
    return {n.removeprefix(prefix): a for n, a in outputs.items() if n.startswith(prefix)}


def make_web_file(name: str) -> WebFile:
    file = WEB_FILES[name]()
    calibrated = calibrated_file(file, **MORE.get(name, {}))
    rows = {key: array.copy() for key, array in file.draw(2000).items()}
    rows = {key: array[: file.batch or N_ROWS] for key, array in rows.items()}
    for array in rows.values():
        array[HOLE].flat[0] = np.nan
    return WebFile(calibrated, rows, loses_nan=name.startswith(LOSE_NAN))


def calibrated_file(
    file: ClassifierFile,
    *,
    columns: Mapping[int, str] = COLUMNS,
    lookup: Any = "step",
    **options: Any,
) -> Calibrated:
    """Calibrate Top-1 and Top-5 in ten bins, with the metadata of a calibration."""
    model = Model(file.data, batch=file.batch, companions=file.companions, **options)
    n_classes = model.choose(file.draw(100), **file.said).n_classes
    measures = {k: column for k, column in columns.items() if k < n_classes}
    return calibrate(
        model,
        file.draw(2000),
        columns=measures,
        lookup=lookup,
        n_bins=10,
        said=file.said,
        metadata={
            "howsure.calibration": "0190a7e0-0000-7000-8000-000000000000",
            "howsure.name": "tested",
            "howsure.version": "3",
            "howsure.level": "0.95",
            "howsure.measures": json.dumps(measures),
            "howsure.classes": json.dumps([LABEL.format(index) for index in range(n_classes)]),
            "howsure.thresholds": json.dumps({"abstain": {"0.05": 0.1, "0.01": None}}),
        },
    )


def digits() -> ClassifierFile:
    with np.load(DIGITS / "calibration.npz") as arrays:
        rows = arrays["inputs"].astype(np.float32)
    return ClassifierFile((DIGITS / "model.onnx").read_bytes(), lambda n: {"inputs": rows[:n]})


def with_our_names() -> ClassifierFile:
    """Return a model whose own outputs are called as some of ours."""
    model = make_model(
        [node("Mul", ["x", "two"], ["class"]), node("ArgMax", ["class"], ["top1_bin"], axis=1)],
        outputs=[value("class"), value("top1_bin", None, TensorProto.INT64)],
        initializers=[constant("two", 2.0)],
    )

    def draw(n_rows: int) -> Mapping[str, np.ndarray]:
        rows = np.random.default_rng(n_rows).normal(size=(n_rows, 7))
        return {"x": rows.astype(np.float32)}

    return ClassifierFile(model.SerializeToString(), draw)


WEB_FILES: dict[str, Callable[[], ClassifierFile]] = {
    "digits": digits,
    **FILES,
    "interpolated": lambda: perceptron(10),
    "smooth": lambda: perceptron(10),
    "last-layer dropout": lambda: perceptron(10),
    "our names taken": with_our_names,
}
MORE: dict[str, dict[str, Any]] = {
    "interpolated": {"lookup": "interpolated"},
    "smooth": {"lookup": "smooth"},
    "last-layer dropout": {
        "columns": LAST_LAYER,
        "masks": np.stack(
            [keep_mask((24,), rate=0.2, seed=1, number=number, site=0) for number in range(8)]
        ),
    },
}


ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "browser"
DRIVER = ROOT / "tests" / "web"
TIMEOUT = 120


def require_node() -> None:
    """Skip the test where Node or ONNX Runtime Web is absent; in CI it fails."""
    _require(shutil.which("node") is not None, "node is not installed")
    runtime = EXAMPLE / "node_modules" / "onnxruntime-web"
    _require(runtime.exists(), "ONNX Runtime Web is not installed: run `make web`")


def require_browser() -> None:
    """Skip the test where Chromium or what drives it is absent; in CI it fails."""
    require_node()
    _require(_chromium() is not None, "chromium is not installed: run `make web` as root")
    driver = DRIVER / "node_modules" / "playwright-core"
    _require(driver.exists(), "playwright-core is not installed: run `make web`")


def write_rows(path: Path, feeds: Mapping[str, np.ndarray]) -> Path:
    """Write the rows as the example reads them: NaN as null, which JSON has in its place."""
    rows = {name: _nested(array) for name, array in feeds.items()}
    path.write_text(json.dumps({"inputs": rows}, allow_nan=False), encoding="utf-8")
    return path


def predict_under_node(rows: Path, files: Sequence[Path]) -> list[dict[str, Any]]:
    """Return what predict.mjs answers."""
    model, *companions = files
    return json.loads(_node(EXAMPLE / "predict.mjs", model, rows, *companions))


def predict_many_under_node(folder: Path, jobs: Sequence[Sequence[Path]]) -> list[Any]:
    """Return the answers for each job, of rows and a model's files, or its error."""
    path = folder / "jobs.json"
    path.write_text(json.dumps([[str(part) for part in job] for job in jobs]), encoding="utf-8")
    return json.loads(_node(DRIVER / "predict_many.mjs", path))


def refused_under_node(rows: Path, files: Sequence[Path]) -> str:
    """Return what predict.mjs complains of."""
    with pytest.raises(subprocess.CalledProcessError) as caught:
        predict_under_node(rows, files)
    return caught.value.stderr


def use_page(address: str, rows: Path, files: Sequence[Path]) -> dict[str, Any]:
    """Return what the page shows after these files were chosen."""
    return json.loads(_node(DRIVER / "open_page.mjs", address, rows, *files))


@contextmanager
def served_example() -> Iterator[str]:
    """Serve the folder of the example, as `python3 -m http.server` does; yield its address."""
    handler = partial(_QuietHandler, directory=EXAMPLE)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def _require(found: bool, reason: str) -> None:  # noqa: FBT001 -- an assertion
    if found:
        return
    if os.environ.get("CI"):
        pytest.fail(f"required in CI: {reason}")
    pytest.skip(reason)


def _chromium() -> str | None:
    return os.environ.get("CHROMIUM") or shutil.which("chromium")


def _node(script: Path, *arguments: object) -> str:
    done = subprocess.run(
        ["node", script, *map(str, arguments)],
        check=True,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        env=os.environ | {"CHROMIUM": _chromium() or ""},
    )
    return done.stdout


def _nested(array: np.ndarray) -> list[Any]:
    if array.dtype.kind != "f":
        return array.tolist()
    return np.where(np.isnan(array), None, array.astype(object)).tolist()
