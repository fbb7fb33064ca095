"""Snippets of the page run as they stand, and answer as `POST /predict` does."""

import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from graph_models import make_model, node, value
from keyed_service import KeyedService, keyed_service, logits_of
from onnx import TensorProto
from page_snippets import fetches, run_in_shell, run_node, run_python, snippets
from page_visitor import Visitor, elements
from picture_sets import plain_png, write_zip
from running_service import DIGITS

WAIT = {"Prefer": "wait=60"}
QUICK = {"measures": ["entropy"], "top_k": [1], "bins": 4, "folds": 2}
HOSTILE = ["<script>alert(1)</script>", "it's $(date) `date` \\", "\u202eabc"]
NAMES = ('it\'s "x" <b>&$(date)', "\u05d0ids/`date` é")


@dataclass(frozen=True)
class Asked:
    """A calibration, and the rows that its page has for an example as `/predict` takes them."""

    name: str
    rows: dict[str, Any]


DIGIT = Asked("digits", {"inputs": [[0] * 64]})
SCORES = Asked("scores", {"logits": [[1, 0, 0]]})
TWO_INPUTS = Asked("two", {"inputs": {name: [[0, 0, 0]] for name in NAMES}})
LONG = Asked("long", {"inputs": [[[0] * 12] * 20]})
ALL = [DIGIT, SCORES, TWO_INPUTS, LONG]
EXPORTED = [DIGIT, TWO_INPUTS, LONG]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedService]:
    folder = tmp_path_factory.mktemp("integrate")
    with keyed_service(folder / "served") as found:
        calibrate(found, "digits", model=(DIGITS / "model.onnx").read_bytes())
        calibrate(found, "scores", ("c.csv", logits_of()), classes=HOSTILE)
        calibrate(
            found, "two", set_of(dict.fromkeys(NAMES, (3,))), model=two_inputs(), classes=HOSTILE
        )
        calibrate(found, "long", set_of({"x": (20, 12)}, 12), model=means("N", None, 12))
        pictures = write_zip(folder / "set.zip", shades()).read_bytes()
        calibrate(
            found,
            "pictures",
            ("set.zip", pictures),
            model=means("N", 3, 4, 4),
            preprocessing={"preset": "none", "resize": [4, 4]},
        )
        yield found


def calibrate(
    service: KeyedService,
    name: str,
    calibration: tuple[str, bytes] = ("c.npz", (DIGITS / "calibration.npz").read_bytes()),
    model: bytes | None = None,
    **config: Any,
) -> None:
    files: list[tuple[str, Any]] = [
        ("calibration", calibration),
        ("config", (None, json.dumps({**QUICK, **config, "name": name}))),
    ]
    if model is not None:
        files.append(("model", ("model.onnx", model)))
    made = service.client(key_of(service)).post("/calibrate", files=files, headers=WAIT)
    assert made.json().get("status") == "succeeded", made.text


def key_of(service: KeyedService) -> str:
    assert service.first is not None
    return service.first.text


def set_of(shapes: dict[str, tuple[int, ...]], n_classes: int = 3) -> tuple[str, bytes]:
    """Return rows of noise for inputs of these shapes, and labels."""
    rng = np.random.default_rng(1)
    arrays = {name: rng.integers(-3, 4, (60, *shape)) for name, shape in shapes.items()}
    file = io.BytesIO()
    np.savez(file, labels=rng.integers(0, n_classes, 60), **arrays)
    return "c.npz", file.getvalue()


def shades() -> dict[str, bytes]:
    """Return pictures in folders of their classes, each of one shade."""
    return {f"{'abc'[at % 3]}/{at}.png": plain_png(at) for at in range(60)}


def two_inputs() -> bytes:
    """Return a model of numbers and of whole numbers, whose names are of no language."""
    numbers, ids = NAMES
    model = make_model(
        [
            node("Cast", [ids], ["cast"], to=TensorProto.FLOAT),
            node("Add", [numbers, "cast"], ["logits"]),
        ],
        inputs=[value(numbers, ("N", 3)), value(ids, ("N", 3), TensorProto.INT64)],
        outputs=[value("logits", ("N", 3))],
    )
    return model.SerializeToString()


def means(*shape: str | int | None) -> bytes:
    """Return a model whose scores are means over all axes but one."""
    axes = [1] if len(shape) == 3 else [2, 3]
    n_classes = shape[2] if len(shape) == 3 else shape[1]
    model = make_model(
        [node("ReduceMean", ["x"], ["logits"], axes=axes, keepdims=0)],
        inputs=[value("x", shape)],
        outputs=[value("logits", ("N", n_classes))],
        opset=13,
    )
    return model.SerializeToString()


@pytest.fixture(scope="module")
def key(service: KeyedService) -> str:
    return key_of(service)


@pytest.fixture(scope="module")
def pages(service: KeyedService, key: str) -> dict[str, str]:
    visitor = Visitor(service, Authorization=f"Bearer {key}")
    found = {}
    for name in (asked.name for asked in (*ALL, Asked("pictures", {}))):
        answer = visitor.open(f"/pages/calibrations/{name}/integrate")
        assert answer.status_code == httpx.codes.OK, answer.text
        found[name] = answer.text
    return found


def predicted(service: KeyedService, key: str, asked: Asked) -> dict[str, Any]:
    body = {"calibration": asked.name, **asked.rows}
    answer = service.client(key).post("/predict", json=body)
    assert answer.status_code == httpx.codes.OK, answer.text
    (row,) = answer.json()["predictions"]
    return row


def of_each(found: list[Asked]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("asked", found, ids=[asked.name for asked in found])


@of_each(ALL)
def test_curl(service, pages, key, tmp_path, asked) -> None:
    text = snippets(pages[asked.name])["curl"]
    answer = json.loads(run_in_shell(text, tmp_path, HOWSURE_API_KEY=key))
    assert answer["predictions"] == [predicted(service, key, asked)]


@of_each(ALL)
def test_python(service, pages, key, tmp_path, asked) -> None:
    text = snippets(pages[asked.name])["python"]
    row = predicted(service, key, asked)
    lower, upper = row["top1"]["interval"]
    line = f"{row['label']}: {row['top1']['probability']:.3f} ({lower:.3f} to {upper:.3f})\n"
    assert run_python(text, tmp_path, HOWSURE_API_KEY=key) == line


@of_each(ALL)
def test_the_protocol_by_curl(service, pages, key, tmp_path, asked) -> None:
    text = snippets(pages[asked.name])["oip"]
    answer = json.loads(run_in_shell(text, tmp_path, HOWSURE_API_KEY=key))
    outputs = [output["data"][0] for output in answer["outputs"]]
    row = predicted(service, key, asked)
    expected = [row["class"], row["top1"]["probability"], *row["top1"]["interval"]]
    assert outputs == pytest.approx(expected, abs=1e-6)


@of_each(ALL)
def test_the_protocol_by_triton_s_client(service, pages, key, tmp_path, asked) -> None:
    text = snippets(pages[asked.name])["triton"]
    printed = run_python(text, tmp_path, HOWSURE_API_KEY=key)
    found = dict(re.findall(r"^(\w+) \[([-\d.e]+)\]$", printed, re.MULTILINE))
    row = predicted(service, key, asked)
    assert int(found["class"]) == row["class"]
    assert float(found["top1_probability"]) == pytest.approx(row["top1"]["probability"], abs=1e-6)


@pytest.mark.slow
@of_each(EXPORTED)
def test_browser_or_node(service, pages, key, tmp_path, asked) -> None:
    setup = snippets(pages[asked.name], "data-setup")["browser"]
    run_in_shell(fetches(setup), tmp_path, HOWSURE_API_KEY=key)
    printed = run_node(snippets(pages[asked.name])["browser"], tmp_path)
    row = predicted(service, key, asked)
    label, *numbers = printed.rsplit(maxsplit=3)
    assert label == row["label"]
    expected = [row["top1"]["probability"], *row["top1"]["interval"]]
    assert [float(number) for number in numbers] == pytest.approx(expected, abs=1e-6)


def test_pictures_are_sent_as_they_are(service, pages, key, tmp_path: Path) -> None:
    found = snippets(pages["pictures"])
    (tmp_path / "picture.jpg").write_bytes(plain_png(7))
    answer = json.loads(run_in_shell(found["curl"], tmp_path, HOWSURE_API_KEY=key))
    (row,) = answer["predictions"]
    printed = run_python(found["python"], tmp_path, HOWSURE_API_KEY=key)
    assert printed.startswith(f"{row['label']}: {row['top1']['probability']:.3f} ")
    outputs = json.loads(run_in_shell(found["oip"], tmp_path, HOWSURE_API_KEY=key))["outputs"]
    assert outputs[0]["name"] == "class"


def test_without_a_model_it_says_why_there_is_no_file(pages) -> None:
    assert "browser" not in snippets(pages["scores"])
    assert "has no ONNX model" in pages["scores"]


def test_names_of_strangers_are_text(pages) -> None:
    for name in ("scores", "two"):
        assert "<script>alert" not in pages[name]
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in pages[name]
    for text in snippets(pages["two"]).values():
        assert "\u202e" not in text


def test_nothing_in_it_is_a_key(pages, key) -> None:
    for page in pages.values():
        assert key.split("_")[2] not in page
        assert "$HOWSURE_API_KEY" in page


def test_its_numbers_are_those_of_the_report(service, pages, key) -> None:
    report = service.client(key).get("/report?calibration=digits").json()
    found = [a for _, a in elements(pages["digits"]) if "data-path" in a]
    assert found
    for attributes in found:
        value_at = report
        for part in attributes["data-path"].split("/")[1:]:
            value_at = value_at[int(part)] if isinstance(value_at, list) else value_at[part]
        assert json.loads(attributes["data-value"]) == value_at


def test_a_version_that_the_name_means_no_more_is_named(service, key, tmp_path) -> None:
    calibrate(service, "again", ("c.csv", logits_of()))
    visitor = Visitor(service, Authorization=f"Bearer {key}")
    first = service.client(key).get("/calibrations/again").json()["id"]
    address = f"/pages/calibrations/{first}/integrate"
    assert "again@1" not in snippets(visitor.open(address).text)["curl"]
    calibrate(service, "again", ("c.csv", logits_of()), bins=3)
    found = snippets(visitor.open(address).text)
    for name in ("curl", "oip"):
        answer = json.loads(run_in_shell(found[name], tmp_path, HOWSURE_API_KEY=key))
        told = answer.get("model_version") or str(answer["calibration"]["version"])
        assert told == "1"
    for name in ("python", "triton"):
        assert run_python(found[name], tmp_path, HOWSURE_API_KEY=key)


def test_where_no_key_is_asked_for_none_is_sent(tmp_path) -> None:
    with keyed_service(tmp_path / "open", first=False) as service:
        files = [("calibration", ("c.csv", logits_of())), ("name", (None, "a"))]
        service.client().post("/calibrate", files=files, headers=WAIT)
        page = Visitor(service).open("/pages/calibrations/a/integrate").text
        assert "HOWSURE_API_KEY" not in page
        answer = json.loads(run_in_shell(snippets(page)["curl"], tmp_path))
        assert len(answer["predictions"]) == 1
