"""Invalid uploads and paths: one clear problem each, nothing stored.

The rules of sets are tested in tests/child/reading, those of ONNX files in tests/graph.
"""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from dataset_files import changed, output_columns
from graph_models import make_model, node, steps, value
from onnx import TensorProto
from refusals import assert_refused
from runner_models import of_rows
from running_service import Service, calibrate, digits, kept_files, npz, service_on

ROWS, CLASSES = 60, 10
MODEL = digits("model.onnx")
rng = np.random.default_rng(3)


def inputs(rows: int = ROWS) -> np.ndarray:
    return rng.integers(0, 17, (rows, 64)).astype(np.float32)


def labels(rows: int = ROWS) -> np.ndarray:
    return np.arange(rows) % CLASSES


def logits(rows: int = ROWS) -> np.ndarray:
    return rng.normal(size=(rows, CLASSES))


GOOD = npz(inputs=inputs(), labels=labels())
OUTPUTS = npz(logits=logits(), labels=labels())
PROBABILITIES = np.full((ROWS, CLASSES), 0.1)
NOT_FINITE = npz(logits=changed(logits(4600), (4599, 0), np.nan), labels=labels(4600))


def of_data(**arrays: np.ndarray) -> dict[str, bytes]:
    return {"model": MODEL, "calibration": npz(**arrays)}


def with_config(calibration: bytes, **config: Any) -> dict[str, Any]:
    return {"calibration": calibration, "config": json.dumps(config)}


def of_text(calibration: bytes) -> dict[str, bytes]:
    """Return an upload with a model whose input is text."""
    model = make_model(
        [node("Cast", ["text"], ["y"], to=TensorProto.FLOAT)],
        inputs=[value("text", ("N", 3), TensorProto.STRING)],
    )
    return {"model": model.SerializeToString(), "calibration": calibration}


TEXT = np.full((ROWS, 3), "1")


def table(prefix: str, values: np.ndarray) -> bytes:
    """Return a CSV table of outputs."""
    return pd.DataFrame(output_columns(values, labels(), prefix)).to_csv(index=False).encode()


LOGITS, SHARES = {"output": {"kind": "logits"}}, {"output": {"kind": "probabilities"}}
KIND = "config.output.kind"
PROBABLE = npz(probabilities=PROBABILITIES, labels=labels())
# What a set is said to hold, and the name that its arrays or columns would have.
OTHER_KINDS = [
    (OUTPUTS, SHARES, "rename"),
    (PROBABLE, LOGITS, "`logits` in .npz"),
    (table("logit_", logits()), SHARES, "`prob_0`, `prob_1`"),
    (table("prob_", PROBABILITIES), LOGITS, "`logit_0`, `logit_1`"),
]
WRONG_LABEL = of_data(inputs=inputs(), labels=changed(labels(), 7, 10))
LATE_NAN = {"calibration": OUTPUTS, "evaluation": NOT_FINITE}
OF_TWO_KINDS = {"calibration": OUTPUTS, "evaluation": PROBABLE}
# Where the problem is, what it names, and the parts that are sent.
UPLOADS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "no calibration part": ("calibration", "required", {"model": MODEL}),
    "inputs without a model": ("model", "needed", {"calibration": GOOD}),
    "model and outputs": ("model", "not both", {"model": MODEL, "calibration": OUTPUTS}),
    "text for a model of text": ("model", "str (?, 3)", of_text(npz(text=TEXT, labels=labels()))),
    "a table of text for it": ("model", "str (?, 3)", of_text(b"text,label\n" + b"a b,1\n" * 60)),
    "numbers for it": ("model", "str (?, 3)", of_text(GOOD)),
    "not an ONNX file": ("model", "", {"model": b"garbage" * 99, "calibration": GOOD}),
    "not a data file": ("calibration", "", {"model": MODEL, "calibration": b"\0\1" * 50}),
    "a label past the classes": ("calibration.labels[7]", "0 to 9", WRONG_LABEL),
    "an unknown input": ("calibration.pixels", "inputs", of_data(pixels=inputs(), labels=labels())),
    "too few samples": ("calibration", "20", of_data(inputs=inputs(5), labels=labels(5))),
    "NaN in the last shard of the evaluation": ("evaluation.logits[4599][0]", "finite", LATE_NAN),
    "an evaluation set of another kind": ("evaluation", "logits", OF_TWO_KINDS),
    **{
        f"another kind, {named}": (KIND, named, with_config(content, **config))
        for content, config, named in OTHER_KINDS
    },
    "no such output": ("config.output.name", "", with_config(OUTPUTS, output={"name": "scores"})),
    "an event that is certain": ("config.top_k", "10", with_config(OUTPUTS, top_k=[10])),
    "too few names": ("config.classes", "10", with_config(OUTPUTS, classes=["a", "b"])),
}


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that holds nothing."""
    folder = tmp_path_factory.mktemp("empty")
    with service_on(folder) as client:
        yield Service(client, folder)


@pytest.mark.process
@pytest.mark.parametrize("case", UPLOADS)
def test_upload(empty: Service, case: str) -> None:
    location, named, parts = UPLOADS[case]
    response = calibrate(empty.client, **parts)
    assert_refused(response, location, named, status=415 if case == "not a data file" else 422)
    assert empty.client.get("/calibrations").json()["calibrations"] == []
    assert kept_files(empty.folder) == []


def dynamic_model(layout: str, *, n_channels: int = 3) -> bytes:
    """Return a convolutional model of pictures of any size, and of any number of channels."""
    turned = "turned = Transpose<perm = [0, 3, 1, 2]>(x); " if layout == "nhwc" else ""
    text = f"{turned}c = Conv({'turned' if turned else 'x'}, kernel); g = GlobalAveragePool(c)"
    kernel = rng.normal(size=(CLASSES, n_channels, 3, 3))
    shape = ("N", None, None, None)
    model = of_rows(*steps(f"{text}; y = Flatten(g)"), shape=shape, kernel=kernel)
    return model.SerializeToString()


PICTURES = rng.integers(0, 256, (ROWS, 8, 9, 3)).astype(np.uint8)
AS_NCHW = {"preprocessing": {"layout": "nchw"}}


OTHER_LAYOUTS = [
    ("nchw", {"x": PICTURES}, {}, ("[rows, 8, 9, 3]", "x.transpose(0, 3, 1, 2)")),
    ("nhwc", {"pixels": PICTURES}, AS_NCHW, ("[rows, 3, 8, 9]", "x.transpose(0, 2, 3, 1)")),
]


@pytest.mark.parametrize(("layout", "arrays", "config", "named"), OTHER_LAYOUTS)
def test_pictures_in_another_layout_for_a_model_of_any_size(client, layout, arrays, config, named):
    parts = {"model": dynamic_model(layout), "calibration": npz(**arrays, labels=labels())}
    response = calibrate(client, **parts, config=json.dumps(config))
    assert_refused(response, None, *named, f"preprocessing.layout to {layout}")


def test_no_layout_is_suggested_that_fails_as_well(client):
    parts = of_data(x=PICTURES, labels=labels()) | {"model": dynamic_model("nchw", n_channels=4)}
    (error,) = calibrate(client, **parts).json()["errors"]
    assert "transpose" not in error["message"]
    assert "Conv" in error["message"]
