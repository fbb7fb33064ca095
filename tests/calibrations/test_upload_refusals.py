"""Invalid uploads and paths: one clear problem each, nothing stored.

The rules of sets are tested in tests/child/reading, those of ONNX files in tests/graph.
"""

import json
from typing import Any

import numpy as np
import pytest
from graph_models import constant, make_model, node, value
from onnx import TensorProto
from running_service import calibrate, digits, kept_files, npz

ROWS, CLASSES = 60, 10
MODEL = digits("model.onnx")
rng = np.random.default_rng(3)


def inputs(rows: int = ROWS) -> np.ndarray:
    return rng.integers(0, 17, (rows, 64)).astype(np.float32)


def labels(rows: int = ROWS) -> np.ndarray:
    return np.arange(rows) % CLASSES


def logits(rows: int = ROWS) -> np.ndarray:
    return rng.normal(size=(rows, CLASSES))


def changed(array: np.ndarray, index: Any, value: Any) -> np.ndarray:
    array = array.copy()
    array[index] = value
    return array


GOOD = npz(inputs=inputs(), labels=labels())
OUTPUTS = npz(logits=logits(), labels=labels())


def of_data(**arrays: np.ndarray) -> dict[str, bytes]:
    return {"model": MODEL, "calibration": npz(**arrays)}


def of_config(config: Any) -> dict[str, Any]:
    return {"calibration": OUTPUTS, "config": json.dumps(config)}


def of_text(calibration: bytes) -> dict[str, bytes]:
    """Return an upload with a model whose input is text."""
    model = make_model(
        [node("Cast", ["text"], ["y"], to=TensorProto.FLOAT)],
        inputs=[value("text", ("N", 3), TensorProto.STRING)],
    )
    return {"model": model.SerializeToString(), "calibration": calibration}


TEXT = np.full((ROWS, 3), "1")
TEXT_UNSUPPORTED = "input 'text' str (?, 3): this model takes text, which is not supported yet"

PROBABILITIES = np.full((ROWS, CLASSES), 0.1)


def of_kind(kind: str, calibration: bytes) -> dict[str, Any]:
    return {"calibration": calibration, "config": json.dumps({"output": {"kind": kind}})}


def table(prefix: str, values: np.ndarray) -> bytes:
    """Return a CSV table of outputs."""
    names = ",".join(f"{prefix}{index}" for index in range(CLASSES))
    rows = (",".join(map(str, [*row, label])) for row, label in zip(values, labels(), strict=True))
    return "\n".join([f"{names},label", *rows, ""]).encode()


# Where the problem is, what it says, and the parts that are sent.
UPLOADS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "no calibration part": ("calibration", "required", {"model": MODEL}),
    "inputs without a model": ("model", "needed", {"calibration": GOOD}),
    "model and outputs": ("model", "not both", {"model": MODEL, "calibration": OUTPUTS}),
    "text for a model of text": (
        "model",
        TEXT_UNSUPPORTED,
        of_text(npz(text=TEXT, labels=labels())),
    ),
    "a table of text for it": (
        "model",
        TEXT_UNSUPPORTED,
        of_text(b"text,label\n" + b"a b,1\n" * 60),
    ),
    "a table without labels for it": ("model", TEXT_UNSUPPORTED, of_text(b"text\na b\n")),
    "numbers for it": ("model", TEXT_UNSUPPORTED, of_text(GOOD)),
    "text for a model of numbers": (
        "calibration.inputs",
        "expected numbers, got text",
        of_data(inputs=TEXT, labels=labels()),
    ),
    "not an ONNX file": ("model", "", {"model": b"garbage" * 99, "calibration": GOOD}),
    "not a data file": ("calibration", "", {"model": MODEL, "calibration": b"\0\1" * 50}),
    "a label past the classes": (
        "calibration.labels[7]",
        "0 to 9",
        of_data(inputs=inputs(), labels=changed(labels(), 7, 10)),
    ),
    "an unknown input": ("calibration", "inputs", of_data(pixels=inputs(), labels=labels())),
    "too few samples": ("calibration", "20", of_data(inputs=inputs(5), labels=labels(5))),
    "infinity behind the first rows": (
        "calibration.inputs[599]",
        "finite",
        of_data(inputs=changed(inputs(600), (599, 5), np.inf), labels=labels(600)),
    ),
    "NaN in the last shard of the evaluation": (
        "evaluation.logits[4599]",
        "finite",
        {
            "calibration": OUTPUTS,
            "evaluation": npz(logits=changed(logits(4600), (4599, 0), np.nan), labels=labels(4600)),
        },
    ),
    "an evaluation set of another kind": (
        "evaluation",
        "logits",
        {
            "calibration": OUTPUTS,
            "evaluation": npz(probabilities=np.full((30, 10), 0.1), labels=labels(30)),
        },
    ),
    "logits that are said to be probabilities": (
        "config.output.kind",
        "the scores of calibration are named logits; if they are probabilities, rename them",
        of_kind("probabilities", OUTPUTS),
    ),
    "probabilities that are said to be logits": (
        "config.output.kind",
        "named probabilities; if they are logits, rename them (`logits` in .npz",
        of_kind("logits", npz(probabilities=PROBABILITIES, labels=labels())),
    ),
    "a table of logits that are said to be probabilities": (
        "config.output.kind",
        "`prob_0`, `prob_1`",
        of_kind("probabilities", table("logit_", logits())),
    ),
    "a table of probabilities that are said to be logits": (
        "config.output.kind",
        "`logit_0`, `logit_1`",
        of_kind("logits", table("prob_", PROBABILITIES)),
    ),
    "an output of no model": (
        "config.output.name",
        "there is no model with outputs",
        of_config({"output": {"name": "scores"}}),
    ),
    "an event that is certain": ("config.top_k", "10", of_config({"top_k": [10]})),
    "too few names": ("config.classes", "10", of_config({"classes": ["a", "b"]})),
}


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


@pytest.mark.parametrize("case", UPLOADS)
def test_upload(service, case: str) -> None:
    part, says, parts = UPLOADS[case]
    before = service.client.get("/calibrations").json()["calibrations"]

    answer = calibrate(service.client, **parts)

    assert_problem(answer, 415 if case == "not a data file" else 422, part, says)
    assert service.client.get("/calibrations").json()["calibrations"] == before
    known = {found["id"] for found in before}
    assert all(path.split("/")[2] in known for path in kept_files(service.folder))


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


def dynamic_model(layout: str, *, n_channels: int = 3) -> bytes:
    """Return a convolutional model of pictures of any size, and of any number of channels."""
    weights = rng.normal(size=(CLASSES, n_channels, 3, 3))
    turned = [node("Transpose", ["x"], ["turned"], perm=[0, 3, 1, 2])] if layout == "nhwc" else []
    model = make_model(
        [
            *turned,
            node("Conv", ["turned" if turned else "x", "w"], ["c"]),
            node("GlobalAveragePool", ["c"], ["g"]),
            node("Flatten", ["g"], ["y"]),
        ],
        inputs=[value("x", ("N", None, None, None))],
        initializers=[constant("w", weights)],
    )
    return bytes(model.SerializeToString())


@pytest.mark.parametrize(
    ("wanted", "look", "fix"),
    [
        ("nchw", "channel-last, [rows, 8, 9, 3]", "write x.transpose(0, 3, 1, 2), or "),
        ("nhwc", "channel-first, [rows, 3, 8, 9]", "write x.transpose(0, 2, 3, 1), or "),
    ],
)
@pytest.mark.parametrize("as_pixels", [False, True])
def test_pictures_in_another_layout_for_a_model_of_any_size(client, wanted, look, fix, as_pixels):
    pixels = rng.integers(0, 256, (ROWS, 8, 9, 3)).astype(np.uint8)
    config: dict[str, Any] = {"top_k": [1]}
    if as_pixels:
        arrays = {"pixels": pixels}
        config["preprocessing"] = {"layout": "nhwc" if wanted == "nchw" else "nchw"}
    else:
        arrays = {"x": pixels if wanted == "nchw" else pixels.transpose(0, 3, 1, 2)}
    parts = {"model": dynamic_model(wanted), "calibration": npz(**arrays, labels=labels())}
    answer = calibrate(client, **parts, config=json.dumps(config))
    (fault,) = answer.json()["errors"]
    assert (
        f"they look {look}; {fix}for pictures set preprocessing.layout to {wanted}"
        in (fault["message"])
    )


def test_no_layout_is_suggested_that_fails_as_well(client):
    pixels = rng.random((ROWS, 8, 9, 3)).astype(np.float32)
    parts = {
        "model": dynamic_model("nchw", n_channels=4),
        "calibration": npz(x=pixels, labels=labels()),
    }
    answer = calibrate(client, **parts)
    (fault,) = answer.json()["errors"]
    assert fault["message"].endswith("does not take these rows: its Conv node failed")
