"""Exported models that run in Node and in a browser."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bins_documents import digits_set
from calibrated_files import COLUMNS, Calibrated, Model, calibrate
from classifier_files import FILES, ClassifierFile, perceptron
from graph_models import constant, make_model, node, value
from onnx import TensorProto
from running_service import DIGITS
from scripted_server import served_by

from howsure.statistics.measures.noise import keep_mask

N_ROWS = 200
HOLE = 3  # a row with a NaN
LABEL = "class number {}"
LAST_LAYER = {1: "last_layer_dropout_variance", 5: "neg_log_topk_mass_5"}
# Node 20 has no arrays of this type; the page takes them.
NOT_UNDER_NODE = ("float16, opset 13", "float16, opset 18, softmax")


@dataclass(frozen=True)
class WebFile:
    """A calibrated file and the rows it is run on."""

    calibrated: Calibrated
    rows: Mapping[str, np.ndarray]

    def write(self, folder: Path) -> list[Path]:
        """Write the rows, the model and what lies beside it; return their paths in this order."""
        folder.mkdir(exist_ok=True)
        content = self.calibrated.graph.SerializeToString()
        files = {"model.onnx": content, **self.calibrated.model.companions}
        for name, data in files.items():
            (folder / name).write_bytes(data)
        return [write_rows(folder / "rows.json", self.rows), *(folder / name for name in files)]

    def check(self, answers: Sequence[dict[str, Any]]) -> None:
        """Compare the answers with those of ONNX Runtime on this machine, the hole's apart."""
        outputs = self.calibrated.answer(self.rows)
        assert len(answers) == len(next(iter(outputs.values())))
        kept = [row for row in range(len(answers)) if row != HOLE]
        answers = [answers[row] for row in kept]
        prefix = next(n for n in outputs if n.endswith("topk_class")).removesuffix("topk_class")

        def ours(name: str) -> np.ndarray:
            return outputs[f"{prefix}{name}"][kept]

        ranked = [[(one["class"], one["score"]) for one in row["classes"]] for row in answers]
        classes, scores = np.moveaxis(np.array(ranked), 2, 0)
        np.testing.assert_array_equal([row["class"] for row in answers], ours("class"))
        np.testing.assert_array_equal(classes, ours("topk_class"))
        np.testing.assert_allclose(scores, ours("topk_score"), rtol=1e-4, atol=1e-30)
        for row in answers:
            for one in (row, *row["classes"]):
                assert one["label"] == LABEL.format(one["class"])
        # A probability that the model gives in float32 has no more digits than these.
        digits = 1e-7 if self.calibrated.choice.kind == "probabilities" else 1e-30
        for k, table in self.calibrated.tables.items():
            events = [row[f"top{k}"] for row in answers]
            uncertainty = np.array([event["uncertainty"] for event in events], np.float32)
            own = ours(f"top{k}_uncertainty")
            np.testing.assert_allclose(uncertainty, own, rtol=1e-4, atol=digits)
            # Two runtimes add in two orders; an edge may lie between what comes of it.
            found = table.look_up(uncertainty)
            np.testing.assert_array_equal([event["bin"] for event in events], found.bin)
            values = [[event["probability"], *event["interval"]] for event in events]
            columns = np.stack([found.probability, found.lower, found.upper], axis=1)
            np.testing.assert_allclose(values, columns, rtol=0, atol=1e-6)
            measured = {"measure", "bin", "uncertainty", "probability", "interval"}
            assert all(event.keys() == measured for event in events)
        spec = self.calibrated.spec
        for row in answers:
            of_row = {"class", "label", "classes", "out_of_distribution", "abstain"}
            assert row.keys() == of_row | {f"top{k}" for k in self.calibrated.tables}
            uncertainty = row["top1"]["uncertainty"]
            assert row["out_of_distribution"] is (uncertainty > spec.ood_threshold)
            accepts = {r: at is not None and uncertainty <= at for r, at in spec.accept_thresholds}
            assert row["abstain"] == {risk: not accepted for risk, accepted in accepts.items()}


def make_web_file(name: str) -> WebFile:
    file = WEB_FILES[name]()
    calibrated = calibrated_file(file, **MORE.get(name, {}))
    rows = {key: array.copy() for key, array in file.draw(2000).items()}
    rows = {key: array[: file.batch or N_ROWS] for key, array in rows.items()}
    for array in rows.values():
        array[HOLE].flat[0] = np.nan
    return WebFile(calibrated, rows)


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
    rows = digits_set("calibration")["inputs"].astype(np.float32)
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
    return json.loads(_node(DRIVER / "predict_many.mjs", _listed(folder, jobs)))


def use_page(folder: Path, jobs: Sequence[Sequence[Path]], address: str) -> list[dict[str, Any]]:
    """Return what the page shows after the files of each job were chosen, in one browser."""
    return json.loads(_node(DRIVER / "open_page.mjs", _listed(folder, jobs), address))


def _listed(folder: Path, jobs: Sequence[Sequence[Path]]) -> Path:
    path = folder / "jobs.json"
    path.write_text(json.dumps([[str(part) for part in job] for job in jobs]), encoding="utf-8")
    return path


@contextmanager
def served_example() -> Iterator[str]:
    """Serve the folder of the example, as `python3 -m http.server` does; yield its address."""
    with served_by(partial(_QuietHandler, directory=EXAMPLE)) as port:
        yield f"http://127.0.0.1:{port}/"


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
