"""A calibrator in a program: the same answers as the service's, and its refusals."""

import json
import pickle
from typing import Any

import httpx
import msgspec
import numpy as np
import pytest
from msgspec.structs import asdict, replace
from report_scenarios import outputs
from running_service import calibrated, npz
from scipy.special import softmax

from howsure import Calibrator
from howsure.calibrator import NotFittedError
from howsure.report.plain_parts import typed_part
from howsure.report.report import Report
from howsure.statistics.bins.intervals import IntervalOptions
from howsure.statistics.selective import SelectiveTarget

CHEAP = {"measures": ("margin",), "folds": 2, "bins": 5}
# Name, kind, classes, samples, and what differs from the cheapest options.
CASES: list[tuple[str, str, int, int, dict[str, Any]]] = [
    ("default", "logits", 10, 400, {"full": True}),
    ("two classes", "probabilities", 2, 300, {"measures": ("learned", "entropy")}),
    ("threshold", "probabilities", 2, 300, {"decision_threshold": 0.3}),
    ("many classes", "logits", 80, 400, {"measures": ("learned",), "top_k": (1, 5, 10)}),
    ("only Top-5", "logits", 8, 300, {"top_k": (5,)}),
    ("votes", "probabilities", 5, 300, {"measures": ("learned", "neg_log_topk_mass")}),
    ("design", "logits", 3, 300, {"measures": ("learned",)}),
    ("step", "logits", 4, 300, {"lookup": "step", "monotone": True}),
    ("energy", "logits", 5, 300, {"measures": ("energy",)}),
]
FURTHER: list[tuple[str, str, int, int, dict[str, Any]]] = [
    ("default of two", "logits", 2, 200, {"full": True}),
    ("default, probabilities", "probabilities", 6, 800, {"full": True}),
    ("default, many classes", "probabilities", 120, 600, {"full": True}),
    ("interpolated", "logits", 4, 300, {"lookup": "interpolated"}),
    (
        "served by name",
        "logits",
        7,
        300,
        {"measures": ("entropy", "margin"), "serve": {1: "margin"}},
    ),
    ("few errors", "logits", 3, 60, {"measures": ("learned",), "scale": 40.0}),
    ("no errors", "logits", 3, 60, {"measures": ("learned",), "scale": 4000.0}),
    ("simultaneous", "logits", 3, 300, {"interval": {"simultaneous": True, "level": 0.9}}),
    ("jeffreys", "logits", 3, 300, {"interval": {"method": "jeffreys"}, "lookup": "step"}),
    ("risk", "logits", 3, 2000, {"selective": ({"max_risk": 0.2, "delta": 0.1},)}),
    ("seed", "logits", 3, 300, {"seed": 7, "measures": ("learned",)}),
    ("weak prior", "logits", 3, 300, {"prior_strength": 10.0, "monotone": True}),
]


def drawn(kind: str, n_classes: int, n: int, *, name: str, scale: float = 4.0) -> Any:
    """Outputs and labels; votes are probabilities of which most are 0."""
    seed = sum(map(ord, name))
    values, labels = outputs(n, seed=seed, n_classes=n_classes, scale=scale, wrong=0.05).values()
    if kind == "probabilities":
        values = softmax(values, axis=1)
    if name == "votes":
        values = np.random.default_rng(0).multinomial(10, values) / 10.0
    return values, labels


def both(client, name: str, kind: str, n_classes: int, n: int, options: dict[str, Any]) -> Any:
    """Return the answers of a calibrator and of the service about the same rows."""
    options = dict(options)
    full = options.pop("full", False)
    scale = options.pop("scale", 4.0)
    options = ({} if full else CHEAP) | options
    values, labels = drawn(kind, n_classes, n + 40, name=name, scale=scale)
    typed = options | {
        key: make(options[key])
        for key, make in (
            ("interval", lambda interval: IntervalOptions(**interval)),
            ("selective", lambda targets: tuple(SelectiveTarget(**one) for one in targets)),
        )
        if key in options
    }
    if not full:
        typed = {"top_k": (1,)} | typed
    design = {}
    if name == "design":
        design = {"weight": 1.0 + np.arange(n) % 3, "group": np.arange(n) // 4}
    calibrator = Calibrator(kind=kind, **typed).fit(values[:n], labels[:n], **design)
    config = json.dumps({"name": name.replace(" ", "-").replace(",", "")} | options)
    arrays = {kind: values[:n], "labels": labels[:n]} | design
    made = calibrated(client, config, full=full, calibration=npz(**arrays))
    body = {"calibration": made["name"], kind: values[n:].tolist()}
    answer = client.post("/predict", json=body)
    assert answer.status_code == 200, answer.text
    assert_same_report(calibrator.report(), client.get(f"/report?calibration={made['id']}"))
    return calibrator.predict(values[n:]), answer.json()["predictions"]


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
    n_listed = len(theirs[0]["classes"])
    listed = [[one["class"] for one in row["classes"]] for row in theirs]
    assert ours.classes[:, :n_listed].tolist() == listed
    if ours.class_probability is not None:
        listed = [[one["probability"] for one in row["classes"]] for row in theirs]
        assert ours.class_probability[:, :n_listed].tolist() == listed
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
def test_answers_are_those_of_the_service(client, case) -> None:
    assert_same(*both(client, *case))


@pytest.mark.slow
@pytest.mark.parametrize("case", FURTHER, ids=lambda case: case[0])
def test_more_answers_are_those_of_the_service(client, case) -> None:
    assert_same(*both(client, *case))


@pytest.fixture(scope="module")
def logits() -> tuple[np.ndarray, np.ndarray]:
    return tuple(outputs(400, seed=1, n_classes=6, wrong=0.05).values())


@pytest.fixture(scope="module")
def fitted(logits) -> Calibrator:
    return Calibrator(kind="logits", **CHEAP | {"measures": ("learned",)}).fit(*logits)


def test_a_row_is_answered_alike_in_any_company(fitted, logits) -> None:
    values = logits[0][:50]
    together = fitted.predict(values)
    alone = [fitted.predict(values[row : row + 1]) for row in range(50)]
    for name in ("classes", "class_probability", "probability", "interval", "out_of_distribution"):
        one_by_one = np.concatenate([getattr(one, name) for one in alone])
        np.testing.assert_array_equal(getattr(together, name), one_by_one)


def test_it_is_kept_in_a_file(fitted, logits) -> None:
    again = pickle.loads(pickle.dumps(fitted)).predict(logits[0])  # noqa: S301 - our own bytes
    np.testing.assert_array_equal(again.probability, fitted.predict(logits[0]).probability)


def test_no_rows_have_no_answers(fitted) -> None:
    answers = fitted.predict(np.empty((0, 6)))
    assert answers.probability.shape == (0,)
    assert answers.interval.shape == (0, 2)


def test_what_is_accepted_and_flagged_follows_the_thresholds(logits) -> None:
    options = CHEAP | {"selective": (SelectiveTarget(0.2),)}
    calibrator = Calibrator(kind="logits", **options).fit(*logits)
    answers = calibrator.predict(logits[0])
    accepted = answers.top[1].uncertainty <= calibrator.threshold(0.2)
    np.testing.assert_array_equal(answers.accept[0.2], accepted)
    assert 0 < accepted.sum() < len(accepted)
    levels = calibrator.fitted.events[1].measures["margin"].ood_thresholds
    flagged = answers.top[1].uncertainty > np.float32(levels[0.99])
    np.testing.assert_array_equal(answers.out_of_distribution, flagged)
    assert 0 < flagged.sum() < len(flagged)
    with pytest.raises(ValueError, match=r"max_risk must be one of those fitted \(0.2\), not 0.1"):
        calibrator.threshold(0.1)


def test_a_set_for_evaluation_judges_the_fit(logits) -> None:
    values, labels = logits
    calibrator = Calibrator(kind="logits", **CHEAP | {"folds": 10})
    calibrator.fit(values[:7], labels[:7], evaluation=(values[200:], labels[200:]))
    assert calibrator.fitted.model_scores["evaluation"].n_samples == 200
    assert calibrator.notes[0] == "7 calibration samples make 7 folds, not 10."


ROW = [[0.0, 1.0, 2.0]]
REFUSED = [
    ({}, ROW, [0, 0], r"labels"),
    ({}, ROW, [3], r"labels"),
    ({}, [1.0, 2.0], [0, 1], r"logits must have shape \(n_samples, n_classes\), not \(2,\)"),
    ({}, [[1.0], [2.0]], [0, 0], r"logits must have shape"),
    ({"decision_threshold": 0.3}, ROW, [0], r"decision_threshold is for two classes, not 3"),
    ({}, [[0.0, np.nan, 0.0]], [0], r"logits\[0\]\[1\]: expected a finite number, got nan"),
    ({}, [[0.2, 0.3, 0.5]], [0], r'make Calibrator\(kind="probabilities"\)'),
    ({"kind": "probabilities"}, ROW, [0], r"probabilities\[0\]\[2\]: expected a probability"),
    ({"kind": "probabilities"}, [[0.5, 0.4]], [0], r"probabilities\[0\]: .*sum to 1"),
]


@pytest.mark.parametrize(("options", "values", "labels", "message"), REFUSED)
def test_what_breaks_a_rule_is_named(options, values, labels, message) -> None:
    with pytest.raises(ValueError, match=message):
        Calibrator(**{"kind": "logits"} | options).fit(values, labels)


def test_options_are_checked_when_it_is_made() -> None:
    with pytest.raises(ValueError, match="folds must be an integer from 2, not 1"):
        Calibrator(kind="logits", folds=1)
    with pytest.raises(ValueError, match='kind must be "logits" or "probabilities"'):
        Calibrator(kind="scores")


def test_before_the_fit_there_is_no_answer(fitted) -> None:
    with pytest.raises(NotFittedError, match="call fit"):
        Calibrator(kind="logits").predict(ROW)
    with pytest.raises(ValueError, match=r"logits must have shape \(n_samples, 6\), not \(1, 3\)"):
        fitted.predict(ROW)
