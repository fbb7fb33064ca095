"""Calibrated files, and what the serving graph and the bin tables say to the same rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnxruntime
from graph_models import make_model, node, resolve, value

from howsure.onnx_head.spec import ExportEvent, ExportSpec
from howsure.statistics.bins.fit import fit_bin_table
from howsure.statistics.bins.lookup import Lookup
from howsure.statistics.bins.table import BinTable
from service.graph.description import OutputChoice
from service.graph.export import build_export_graph
from service.graph.load import load_onnx_model
from service.graph.serving import TOP_CLASSES, TOP_SCORES, build_serving_graph
from service.runner.messages.packed import packed, unpacked

Rows = Mapping[str, np.ndarray]
Arrays = dict[str, np.ndarray]
COLUMNS = {1: "entropy", 5: "neg_log_topk_mass_5"}
SHOWN = 5


@dataclass(frozen=True)
class Model:
    """A model's bytes, and how it is to be run and served."""

    data: bytes
    batch: int | None = None
    companions: Mapping[str, bytes] = field(default_factory=dict)
    scalars: Mapping[str, str] = field(default_factory=dict)
    masks: np.ndarray | None = None

    def run(self, model: onnx.ModelProto, rows: Rows) -> dict[str, np.ndarray]:
        """Return all outputs of a graph made of the model; maps and sequences as lists."""
        options = onnxruntime.SessionOptions()
        names, contents = list(self.companions), list(self.companions.values())
        sizes = [len(content) for content in contents]
        options.add_external_initializers_from_files_in_memory(names, contents, sizes)
        providers = ["CPUExecutionProvider"]
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers)
        n_rows = max(len(next(iter(rows.values()))), 1)
        size = self.batch or n_rows
        slices = [slice(start, start + size) for start in range(0, n_rows, size)]
        feeds = [{name: array[part] for name, array in rows.items()} for part in slices]
        parts = [session.run(None, feed) for feed in feeds]
        names = [output.name for output in session.get_outputs()]
        columns = zip(*parts, strict=True)
        return {name: _joined(part) for name, part in zip(names, columns, strict=True)}

    def choose(self, rows: Rows, **said: Any) -> OutputChoice:
        scalars = tuple(self.scalars.values())
        return resolve(self.data, rows, run=self.run, scalars=scalars, **said)


def direct_model(n_classes: int, *, opset: int = 17) -> Model:
    """Return a model whose scores ``y`` and uncertainty ``v`` are its inputs ``x`` and ``u``."""
    model = make_model(
        [node("Identity", ["x"], ["y"]), node("Identity", ["u"], ["v"])],
        inputs=[value("x", ("N", n_classes)), value("u", ("N",))],
        outputs=[value("y", ("N", n_classes)), value("v", ("N",))],
        opset=opset,
    )
    return Model(model.SerializeToString(), scalars={"output_v": "v"})


@dataclass(frozen=True)
class Calibrated:
    """A calibrated file, with the tables in it."""

    model: Model
    choice: OutputChoice
    spec: ExportSpec
    tables: Mapping[int, BinTable]
    graph: onnx.ModelProto

    def answer(self, rows: Rows) -> dict[str, np.ndarray]:
        """Return what the file answers."""
        return self.model.run(self.graph, rows)

    def serve(self, rows: Rows) -> dict[str, np.ndarray]:
        """Return what the serving graph answers."""
        return serve(self.model, self.choice, self.spec.head_top_k, rows)

    def expected(self, rows: Rows) -> dict[str, np.ndarray]:
        """Return what `POST /predict` says, and of rows that it refuses what the file is to say."""
        served = self.serve(rows)
        measured = {e.k: served[f"howsure_{e.column}"] for e in self.spec.events}
        finite = np.isfinite(served[TOP_SCORES]).all(axis=1)
        finite &= np.isfinite(list(measured.values())).all(axis=0)
        classes, scores = (served[name][:, : self.spec.n_top] for name in (TOP_CLASSES, TOP_SCORES))
        answers = {
            "class": np.where(finite, classes[:, 0], -1),
            "topk_class": np.where(finite[:, None], classes, -1),
            "topk_score": np.where(finite[:, None], scores, np.nan),
        }
        for k, uncertainty in measured.items():
            found = self.tables[k].look_up(np.where(finite, uncertainty, 0))
            answers[f"top{k}_bin"] = np.where(finite, found.bin, -1)
            answers[f"top{k}_uncertainty"] = np.where(finite, uncertainty, np.nan)
            for name in ("probability", "lower", "upper"):
                answers[f"top{k}_{name}"] = np.where(finite, getattr(found, name), np.nan)
        if 1 in measured:
            said = np.nan_to_num(answers["top1_probability"])[:, None]
            own = np.nan_to_num(served[TOP_SCORES]).astype(np.float64)
            rest = own[:, 1:].sum(axis=1, keepdims=True)
            if own.shape[1] < self.spec.n_classes:
                rest = np.maximum(rest, 1 - own[:, :1])
            listed = (1 - said) * own[:, : self.spec.n_top] / np.where(rest > 0, rest, np.inf)
            listed[:, :1] = said
            answers["topk_probability"] = np.where(finite[:, None], listed, np.nan)
            answers |= self._flags(measured[1], finite)
        return answers

    def _flags(self, uncertainty: np.ndarray, finite: np.ndarray) -> Arrays:
        def beyond(threshold: float | None) -> np.ndarray:
            if threshold is None:
                return np.ones(len(finite), dtype=np.bool_)
            return ~finite | (uncertainty > np.float32(threshold))

        flags = {}
        if self.spec.ood_threshold is not None:
            flags["out_of_distribution"] = beyond(self.spec.ood_threshold)
        risks = {f"abstain_{risk}": beyond(at) for risk, at in self.spec.accept_thresholds}
        if risks:
            flags["abstain"] = next(iter(risks.values()))
        return flags | risks


def serve(model: Model, choice: OutputChoice, top_k: Sequence[int], rows: Rows) -> Arrays:
    options = {"scalars": model.scalars, "last_layer_masks": model.masks}
    graph = build_serving_graph(load_onnx_model(model.data), choice, top_k=top_k, **options)
    return model.run(graph, rows)


def calibrate(
    model: Model | bytes | onnx.ModelProto,
    rows: Rows,
    *,
    columns: Mapping[int, str] = COLUMNS,
    lookup: Lookup = "step",
    n_bins: int = 100,
    said: Mapping[str, Any] | None = None,
    **options: Any,
) -> Calibrated:
    """Fit tables on the rows, with hits drawn from what the model itself says, and write the file.

    Parameters
    ----------
    columns
        By event; an event of more classes than the model has is left out.
    """
    if not isinstance(model, Model):
        model = Model(model if isinstance(model, bytes) else model.SerializeToString())
    choice = model.choose(rows, **(said or {}))
    columns = {k: column for k, column in columns.items() if k < choice.n_classes}
    served = serve(model, choice, tuple(columns), rows)
    rng = np.random.default_rng(5)
    tables = {}
    for k, column in columns.items():
        hits = rng.random(len(served[TOP_SCORES])) < served[TOP_SCORES][:, :k].sum(axis=1)
        tables[k] = fit_bin_table(served[f"howsure_{column}"], hits, n_bins=n_bins, lookup=lookup)
    return write(model, choice, tables, columns, **options)


def write(
    model: Model,
    choice: OutputChoice,
    tables: Mapping[int, BinTable],
    columns: Mapping[int, str],
    **options: Any,
) -> Calibrated:
    """Write the file; thresholds of Top-1 are edges of its table."""
    inner = (tables[1].edges[1:-1] if 1 in tables else np.array([])).tolist() or [None]
    thresholds = {
        "ood_threshold": inner[-1],
        "accept_thresholds": (("0.05", inner[len(inner) // 2]), ("0.01", None)),
        "metadata": {"howsure.calibration": "0190a7e0-0000-7000-8000-000000000000"},
    }
    spec = ExportSpec(
        events=tuple(ExportEvent(k, columns[k], table) for k, table in tables.items()),
        n_top=min(SHOWN, choice.n_classes),
        n_classes=choice.n_classes,
        **{**thresholds, **options},
    )
    spec = unpacked(packed(spec), ExportSpec)  # as it reaches the child
    graph = build_export_graph(
        load_onnx_model(model.data), choice, spec, model.scalars, last_layer_masks=model.masks
    )
    return Calibrated(model, choice, spec, tables, graph)


def assert_answers(calibrated: Calibrated, rows: Rows, *, prefix: str = "") -> dict[str, Any]:
    """Check that the file answers as the service does; return its answers, without prefix."""
    answers = calibrated.answer(rows)
    ours = {name.removeprefix(prefix): a for name, a in answers.items() if name.startswith(prefix)}
    expected = calibrated.expected(rows)
    assert expected.keys() <= ours.keys()
    for name, values in expected.items():
        if name.endswith(("_probability", "_lower", "_upper")):
            np.testing.assert_allclose(ours[name], values, rtol=0, atol=1e-6, err_msg=name)
        else:  # the same operations on the same numbers: the same bits
            np.testing.assert_array_equal(ours[name], values, err_msg=name)
    return ours


def _joined(parts: Sequence[Any]) -> Any:
    if isinstance(parts[0], list):
        return [entry for part in parts for entry in part]
    return np.concatenate(parts)
