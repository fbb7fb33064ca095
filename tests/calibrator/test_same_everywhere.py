"""A calibrator in a program: the same answers as the service's, and its refusals."""

import json
from typing import Any

import httpx
import msgspec
import numpy as np
import pytest
from bins_documents import exported
from msgspec.structs import asdict, replace
from onnxruntime import InferenceSession
from report_scenarios import outputs
from running_service import calibrated, npz
from scipy.special import softmax

from howsure import Calibrator
from howsure.report.plain_parts import typed_part
from howsure.report.report import Report
from howsure.statistics.bins.intervals import IntervalOptions
from howsure.statistics.plain import to_plain
from howsure.statistics.selective import SelectiveTarget

CHEAP = {"measures": ("margin",), "folds": 2, "bins": 5}
# Name, kind, classes, samples, and what differs from the cheapest options.
CASES: list[tuple[str, str, int, int, dict[str, Any]]] = [
    ("default", "logits", 10, 400, {"full": True, "folds": 3}),
    ("two classes", "probabilities", 2, 300, {"measures": ("learned", "entropy")}),
    ("threshold", "probabilities", 2, 300, {"decision_threshold": 0.3}),
    ("many classes", "logits", 80, 400, {"measures": ("learned",), "top_k": (1, 5, 10)}),
    ("only Top-5", "logits", 8, 300, {"top_k": (5,)}),
    ("votes", "probabilities", 5, 300, {"measures": ("learned", "neg_log_topk_mass")}),
    ("design", "logits", 3, 300, {"measures": ("learned",)}),
    ("step", "logits", 4, 300, {"lookup": "step", "monotone": True}),
    ("energy", "logits", 5, 300, {"measures": ("energy",)}),
    ("judged scores", "scores", 2, 300, {"full": True, "folds": 2, "bins": 5}),
]
FURTHER: list[tuple[str, str, int, int, dict[str, Any]]] = [
    ("default of two", "logits", 2, 200, {"full": True}),
    ("default, probabilities", "probabilities", 6, 800, {"full": True}),
    ("default, many classes", "probabilities", 120, 600, {"full": True}),
    ("interpolated", "logits", 4, 300, {"lookup": "interpolated"}),
    ("by name", "logits", 7, 300, {"measures": ("entropy", "margin"), "serve": {1: "margin"}}),
    ("few errors", "logits", 3, 60, {"measures": ("learned",), "scale": 40.0}),
    ("no errors", "logits", 3, 60, {"measures": ("learned",), "scale": 4000.0}),
    ("simultaneous", "logits", 3, 300, {"interval": IntervalOptions(level=0.9, simultaneous=True)}),
    ("jeffreys", "logits", 3, 300, {"interval": IntervalOptions("jeffreys"), "lookup": "step"}),
    ("risk", "logits", 3, 2000, {"selective": (SelectiveTarget(0.2, 0.1),)}),
    ("seed", "logits", 3, 300, {"seed": 7, "measures": ("learned",)}),
    ("weak prior", "logits", 3, 300, {"prior_strength": 10.0, "monotone": True}),
]


def drawn(kind: str, n_classes: int, n: int, *, name: str, scale: float = 4.0) -> Any:
    """Outputs and labels; votes are probabilities of which most are 0."""
    seed = sum(map(ord, name))
    if kind == "scores":
        rng = np.random.default_rng(seed)
        values = rng.random(n)
        return values, rng.random(n) < values
    values, labels = outputs(n, seed=seed, n_classes=n_classes, scale=scale, wrong=0.05).values()
    if kind == "probabilities":
        values = softmax(values, axis=1)
    if name == "votes":
        values = np.random.default_rng(0).multinomial(10, values) / 10.0
    return values, labels


def both(client, name: str, kind: str, n_classes: int, n: int, options: dict[str, Any]) -> Any:
    """Return a calibrator, the service's calibration of the same set, and rows for answers."""
    options = dict(options)
    full = options.pop("full", False)
    scale = options.pop("scale", 4.0)
    options = ({} if full else CHEAP) | options
    values, labels = drawn(kind, n_classes, n + 40, name=name, scale=scale)
    typed = options if full else {"top_k": (1,)} | options
    design = {}
    if name == "design":
        design = {"weight": 1.0 + np.arange(n) % 3, "group": np.arange(n) // 4}
    of_fit = {"sample_weight": design.get("weight"), "groups": design.get("group")}
    calibrator = Calibrator(kind, **typed).fit(values[:n], labels[:n], **of_fit)
    config = json.dumps({"name": name.replace(" ", "-").replace(",", "")} | to_plain(options))
    arrays = {kind: values[:n], "labels": labels[:n]} | design
    if kind == "scores":
        arrays = {"score": values[:n], "correct": labels[:n]}
    resource = calibrated(client, config, full=full, calibration=npz(**arrays))
    return calibrator, resource["id"], values[n:]


def assert_same_document(calibrator: Calibrator, document: dict[str, Any]) -> None:
    """Equal tables and thresholds: all but whence they are."""
    ours = msgspec.json.decode(msgspec.json.encode(calibrator.document_))
    whence = ("calibration", "data_sha256", "content_sha256")
    same = {name: document[name] for name in whence}
    assert ours | same == document


def assert_same_graph(calibrator: Calibrator, rows: np.ndarray) -> None:
    """The calibration as ONNX answers as the calibrator, but for rounding."""
    narrow = rows.astype(np.float32)
    session = InferenceSession(calibrator.to_onnx().SerializeToString())
    names = [output.name for output in session.get_outputs()]
    graph = dict(zip(names, session.run(None, {calibrator.kind: narrow}), strict=True))
    answers = calibrator.answer(narrow)
    np.testing.assert_array_equal(graph["class"], answers.classes[:, 0])
    for k, event in answers.top.items():
        for name in ("probability", "lower", "upper"):
            np.testing.assert_allclose(graph[f"top{k}_{name}"], getattr(event, name), atol=1e-6)
    if 1 in answers.top:
        np.testing.assert_array_equal(graph["out_of_distribution"], answers.out_of_distribution)
        for risk, accepted in answers.accept.items():
            np.testing.assert_array_equal(graph[f"abstain_{risk!r}"], ~accepted)
    if answers.class_probability is not None:
        listed = graph["topk_probability"]
        ours = answers.class_probability[:, : listed.shape[1]]
        np.testing.assert_allclose(listed, ours, atol=1e-6)


def assert_same_everywhere(client: httpx.Client, case: Any) -> None:
    """One fit: equal answers, report, tables and graph."""
    calibrator, reference, rows = both(client, *case)
    answer = client.post(
        "/predict", json={"calibration": reference, calibrator.kind: rows.tolist()}
    )
    assert answer.status_code == 200, answer.text
    assert_same(calibrator.answer(rows), answer.json()["predictions"])
    report = client.get("/report", params={"calibration": reference})
    assert_same_report(calibrator.report(), report)
    assert_same_document(calibrator, exported(client, reference))
    assert_same_graph(calibrator, rows)


def assert_same_report(report: Report, answer: httpx.Response) -> None:
    """Byte for byte, but for ids and dates, and what only the service has: files and options."""
    theirs = typed_part(answer.json(), Report)
    assert theirs.json() == answer.content
    data, config = report.provenance.data, report.provenance.config
    assert data.items() <= theirs.provenance.data.items()
    assert config["selective"] == theirs.provenance.config["selective"]
    same = {"calibration": report.calibration, "provenance": report.provenance}
    others = asdict(replace(theirs, **same))
    for name, ours in asdict(report).items():
        assert msgspec.json.encode(ours) == msgspec.json.encode(others[name])


def assert_same(ours, theirs: list[dict[str, Any]]) -> None:
    """Equal in each bit."""
    if "classes" in theirs[0]:
        n_listed = len(theirs[0]["classes"])
        listed = [[one["class"] for one in row["classes"]] for row in theirs]
        assert ours.classes[:, :n_listed].tolist() == listed
    if ours.class_probability is not None:
        listed = [[one["probability"] for one in row["classes"]] for row in theirs]
        assert ours.class_probability[:, :n_listed].tolist() == listed
    if 1 in ours.top:
        assert ours.out_of_distribution.tolist() == [row["out_of_distribution"] for row in theirs]
        for risk, accepted in ours.accept.items():
            assert [not row["abstain"][str(risk)] for row in theirs] == accepted.tolist()
    for k, event in ours.top.items():
        expected = [row[f"top{k}"] for row in theirs]
        assert event.probability.tolist() == [one["probability"] for one in expected]
        ends = np.stack([event.lower, event.upper], axis=1).tolist()
        assert ends == [one["interval"] for one in expected]
        assert event.uncertainty.astype(float).tolist() == [one["uncertainty"] for one in expected]
        assert event.bin.tolist() == [one["bin"] for one in expected]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_one_fit_is_the_same_everywhere(client, case) -> None:
    assert_same_everywhere(client, case)


@pytest.mark.slow
@pytest.mark.parametrize("case", FURTHER, ids=lambda case: case[0])
def test_more_fits_are_the_same_everywhere(client, case) -> None:
    assert_same_everywhere(client, case)


OF_ALL = ("default", "many classes", "design", "judged scores", "no errors")


@pytest.mark.parametrize("name", OF_ALL)
def test_probabilities_are_a_distribution_over_all_classes(name) -> None:
    _, kind, n_classes, n, options = next(case for case in CASES + FURTHER if case[0] == name)
    keys = ("measures", "top_k", "folds", "bins")
    options = CHEAP | {key: options[key] for key in keys if key in options}
    values, labels = drawn(
        kind, n_classes, n, name=name, scale=4000.0 if name == "no errors" else 4
    )
    calibrator = Calibrator(kind, **options).fit(values, labels)
    probabilities, answers = calibrator.predict_proba(values), calibrator.answer(values)
    assert probabilities.shape == (n, len(calibrator.classes_))
    assert (probabilities >= 0.0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-12)
    if kind != "scores":
        own = np.take_along_axis(probabilities, answers.classes, axis=1)
        np.testing.assert_array_equal(own, answers.class_probability)
        # Classes that are not recorded keep their order.
        others = np.argsort(values, axis=1)[:, : n_classes - answers.classes.shape[1]]
        behind = np.take_along_axis(probabilities, others, axis=1)
        assert (np.diff(behind, axis=1) >= 0.0).all()
