"""Invalid uploads and paths: one clear problem each, nothing stored.

The rules of sets are tested in tests/child/reading, those of ONNX files in tests/graph.
"""

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from predict_bodies import npz
from running_service import calibrate, digits, kept_files

ROWS = 60
CLASSES = 10
rng = np.random.default_rng(3)


def inputs(rows: int = ROWS) -> np.ndarray:
    return rng.integers(0, 17, (rows, 64)).astype(np.uint8)


def labels(rows: int = ROWS) -> np.ndarray:
    return np.arange(rows) % CLASSES


def logits(rows: int = ROWS) -> np.ndarray:
    return rng.normal(size=(rows, CLASSES))


def changed(array: np.ndarray, index: Any, value: Any) -> np.ndarray:
    array = array.copy()
    array[index] = value
    return array


@dataclass(frozen=True)
class Case:
    name: str
    status: int
    part: str
    says: str
    parts: dict[str, Any] = field(default_factory=dict)


GOOD = npz(inputs=inputs(), labels=labels())
OUTPUTS = npz(logits=logits(), labels=labels())
MODEL = digits("model.onnx")


def upload(name: str, part: str, says: str, *, status: int = 422, **parts: Any) -> Case:
    return Case(name, status, part, says, parts)


def of_config(name: str, part: str, says: str, config: Any) -> Case:
    text = config if isinstance(config, str) else json.dumps(config)
    return upload(name, part, says, calibration=OUTPUTS, config=text)


def of_data(name: str, part: str, says: str, **arrays: Any) -> Case:
    return upload(name, part, says, model=MODEL, calibration=npz(**arrays))


def of_outputs(name: str, part: str, says: str, **arrays: Any) -> Case:
    return upload(name, part, says, calibration=npz(**arrays))


UPLOADS = [
    upload("no calibration part", "calibration", "required", model=MODEL),
    upload("inputs without a model", "model", "needed", calibration=GOOD),
    upload("model and outputs", "model", "not both", model=MODEL, calibration=OUTPUTS),
    upload("not an ONNX file", "model", "", model=b"garbage" * 99, calibration=GOOD),
    upload("an empty set", "calibration", "", model=MODEL, calibration=b"", status=415),
    upload("not a data file", "calibration", "", model=MODEL, calibration=b"\0\1" * 50, status=415),
    of_data(
        "a label past the classes",
        "calibration.labels[7]",
        "0 to 9",
        inputs=inputs(),
        labels=changed(labels(), 7, 10),
    ),
    of_data("an unknown input", "calibration", "inputs", pixels=inputs(), labels=labels()),
    of_data("a wrong width", "calibration.inputs", "64", inputs=inputs()[:, :63], labels=labels()),
    of_data("too few samples", "calibration", "20", inputs=inputs(5), labels=labels(5)),
    of_outputs(
        "NaN behind the first shard",
        "calibration.logits[4500]",
        "finite",
        logits=changed(logits(4600), (4500, 2), np.nan),
        labels=labels(4600),
    ),
    of_data(
        "infinite inputs behind the first rows",
        "calibration.inputs[599]",
        "finite",
        inputs=changed(inputs(600).astype(np.float32), (599, 5), np.inf),
        labels=labels(600),
    ),
    upload(
        "NaN in the last row of the evaluation",
        "evaluation.logits[4599]",
        "finite",
        calibration=OUTPUTS,
        evaluation=npz(logits=changed(logits(4600), (4599, 0), np.nan), labels=labels(4600)),
    ),
    of_outputs(
        "a set of another kind",
        "evaluation",
        "logits",
        logits=logits(),
        labels=labels(),
    ),
    of_config("config is no JSON", "config", "", "{bins: 3}"),
    of_config("a certain event", "config.top_k", "10", {"top_k": [10]}),
    of_config("too few names", "config.classes", "10", {"classes": ["a", "b"]}),
]


def assert_problem(answer, status: int, part: str, says: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == status
    assert problem["type"].startswith("urn:howsure:problem:")
    locations = [found["location"] for found in problem["errors"]]
    assert any(found.startswith(part) for found in locations), problem
    assert says in problem["detail"], problem
    assert "Traceback" not in answer.text
    assert "/tmp" not in answer.text  # noqa: S108 - no path of the server's may show


@pytest.mark.parametrize("case", UPLOADS, ids=lambda case: case.name)
def test_upload(service, case: Case) -> None:
    parts = dict(case.parts)
    if case.name == "a set of another kind":
        parts["evaluation"] = npz(probabilities=np.full((30, 10), 0.1), labels=labels(30))
    before = service.client.get("/calibrations").json()["calibrations"]

    answer = calibrate(service.client, **parts)

    assert_problem(answer, case.status, case.part, case.says)
    assert service.client.get("/calibrations").json()["calibrations"] == before
    known = {found["id"] for found in before}
    strangers = [f for f in kept_files(service.folder) if f.split("/")[2] not in known]
    assert strangers == []


def test_calibrate_other_media_type(client) -> None:
    answer = client.post("/calibrate", json={})

    assert answer.status_code == 415
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/calibrations/nobody", 404),
        ("GET", "/calibrations/123e4567-e89b-12d3-a456-426614174000", 404),
        ("GET", "/calibrations/nobody/bins", 404),
        ("DELETE", "/calibrations/nobody", 404),
        ("POST", "/calibrations/nobody/cancel", 404),
        ("GET", "/report?calibration=nobody", 404),
        ("GET", "/report", 422),
        ("GET", "/report?calibration=digits&format=pdf", 422),
        ("GET", "/calibrations?cursor=%00garbage", 422),
        ("GET", "/calibrations?limit=0", 422),
        ("GET", "/calibrations?status=unknown", 422),
        ("GET", "/nowhere", 404),
        ("PUT", "/predict", 405),
    ],
)
def test_other_routes(client, method: str, path: str, status: int) -> None:
    answer = client.request(method, path)

    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == status
