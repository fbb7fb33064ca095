"""Snippets of the page run as they stand, and answer as `POST /predict` does."""

import contextlib
import html
import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from graph_models import make_model, node, passthrough, steps, value
from keyed_service import KeyedService, keyed_service, logits_of
from onnx import TensorProto
from page_visitor import Visitor
from picture_files import plain_png, write_zip
from runner_models import of_rows
from running_service import calibrated, digits, npz
from web_files import EXAMPLE, require_node

pytestmark = pytest.mark.process

SECONDS = 60
HOSTILE = ["<script>alert(1)</script>", "it's $(date) `date` \\", "abc"]
NAMES = ('it\'s "x" <b>&$(date)', "\u05d0ids/`date` é")
COLUMNS = ("age", 'it\'s "x"', "$(date)")
# The row that the page has for an example of each calibration, as `/predict` takes it.
ROWS: dict[str, dict[str, Any]] = {
    "digits": {"inputs": [[0] * 64]},
    "scores": {"logits": [[1, 0, 0]]},
    "two": {"inputs": {name: [[0, 0, 0]] for name in NAMES}},
    "table": {"inputs": [dict.fromkeys(COLUMNS, 0)]},
    "classes": {"logits": [{"cat": 1, "it's a dog": 0, "eel": 0}]},
    "long": {"inputs": [[[0] * 12] * 20]},
}


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedService]:
    folder = tmp_path_factory.mktemp("integrate")
    with keyed_service(folder / "served") as found:
        client = found.client(key_of(found))

        def calibrate(name: str, calibration: bytes, model: bytes | None = None, **config: Any):
            calibrated(client, config | {"name": name}, calibration=calibration, model=model)

        calibrate("digits", digits("calibration.npz"), digits("model.onnx"))
        calibrate("scores", logits_of(), classes=HOSTILE, measures=["margin", "entropy"])
        calibrate("two", set_of(3, dict.fromkeys(NAMES, (3,))), two_inputs(), classes=HOSTILE)
        draw, labels = np.random.default_rng(2).normal(size=(60, 3)), np.arange(60) % 3
        table = written({**dict(zip(COLUMNS, draw.T, strict=True)), "label": labels})
        calibrate("table", table, passthrough(shape=("N", 3)).SerializeToString())
        named = [f"logit_{name}" for name in ROWS["classes"]["logits"][0]]
        kinds = np.array(["cat", "it's a dog", "eel"])[labels]
        calibrate("classes", written({**dict(zip(named, draw.T, strict=True)), "label": kinds}))
        calibrate("long", set_of(12, {"x": (20, 12)}), means("N", None, 12))
        shades = {f"{'abc'[at % 3]}/{at}.png": plain_png(at) for at in range(60)}
        pictures = write_zip(folder / "set.zip", shades).read_bytes()
        preset = {"preset": "none", "resize": [4, 4]}
        calibrate("pictures", pictures, means("N", 3, 4, 4), preprocessing=preset)
        yield found


def key_of(service: KeyedService) -> str:
    assert service.first is not None
    return service.first.text


def written(columns: dict[str, Any]) -> bytes:
    """Return a table as a Parquet file."""
    file = io.BytesIO()
    pa_parquet.write_table(pa.table(columns), file)
    return file.getvalue()


def set_of(n_classes: int, shapes: dict[str, tuple[int, ...]]) -> bytes:
    """Return rows of noise for inputs of these shapes, and labels."""
    rng = np.random.default_rng(1)
    arrays = {name: rng.integers(-3, 4, (60, *shape)) for name, shape in shapes.items()}
    return npz(labels=rng.integers(0, n_classes, 60), **arrays)


def two_inputs() -> bytes:
    """Return a model of two inputs, float and int64, whose names need quoting everywhere."""
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
    """Return a model whose scores are means over all axes but that of the classes."""
    axes = [1] if len(shape) == 3 else [2, 3]
    nodes = steps(f"y = ReduceMean<axes = {axes}, keepdims = 0>(x)")
    return of_rows(*nodes, shape=shape).SerializeToString()


@pytest.fixture(scope="module")
def key(keyed: KeyedService) -> str:
    return key_of(keyed)


@pytest.fixture(scope="module")
def pages(keyed: KeyedService, key: str) -> dict[str, str]:
    visitor = Visitor(keyed, Authorization=f"Bearer {key}")
    found = {}
    for name in (*ROWS, "pictures"):
        answer = visitor.open(f"/pages/calibrations/{name}/integrate")
        assert answer.status_code == httpx.codes.OK, answer.text
        found[name] = answer.text
    return found


def snippets(page: str, attribute: str = "data-snippet") -> dict[str, str]:
    """Return the text of each snippet by its name, as a reader copies it."""
    found = re.findall(rf'<\w+[^>]* {attribute}="(\w+)"[^>]*>([^<]*)</', page)
    return {name: html.unescape(text) for name, text in found}


def run(words: list[str], folder: Path, **environment: str) -> str:
    """Return what a command prints, for which `python` is this one."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    done = subprocess.run(
        words,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env=os.environ | {"PATH": path} | environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_in_shell(text: str, folder: Path, **environment: str) -> Any:
    return json.loads(run(["bash", "-euc", text], folder, **environment))


def run_python(text: str, folder: Path, key: str) -> str:
    """Return what Python code prints, in this process."""
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
        patch.chdir(folder)
        patch.setenv("HOWSURE_API_KEY", key)
        exec(compile(text, "snippet", "exec"), {"__name__": "__main__"})  # noqa: S102
    return out.getvalue()


def predicted(keyed: KeyedService, key: str, name: str) -> dict[str, Any]:
    answer = keyed.client(key).post("/predict", json={"calibration": name, **ROWS[name]})
    assert answer.status_code == httpx.codes.OK, answer.text
    (row,) = answer.json()["predictions"]
    return row


@pytest.mark.parametrize("name", ROWS)
def test_snippets_print_the_answer_of_the_api(keyed, pages, key, tmp_path, name) -> None:
    row, texts = predicted(keyed, key, name), snippets(pages[name])
    probability, (lower, upper) = row["top1"]["probability"], row["top1"]["interval"]

    answer = run_in_shell(texts["curl"], tmp_path, HOWSURE_API_KEY=key)
    assert answer["predictions"] == [row]

    line = f"{row['label']}: {probability:.3f} ({lower:.3f} to {upper:.3f})\n"
    assert run_python(texts["python"], tmp_path, key) == line

    answer = run_in_shell(texts["oip"], tmp_path, HOWSURE_API_KEY=key)
    outputs = [output["data"][0] for output in answer["outputs"]]
    assert outputs == pytest.approx([row["class"], probability, lower, upper], abs=1e-6)

    printed = run_python(texts["triton"], tmp_path, key)
    found = dict(re.findall(r"^(\w+) \[([-\d.e]+)\]$", printed, re.MULTILINE))
    assert int(found["class"]) == row["class"]
    assert float(found["top1_probability"]) == pytest.approx(probability, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["two", "long", pytest.param("digits", marks=pytest.mark.further)])
def test_browser_or_node(keyed, pages, key, tmp_path, name) -> None:
    require_node()
    setup = snippets(pages[name], "data-setup")["browser"].replace("\\\n", " ").splitlines()
    # What comes from registries is there: these ask the service.
    fetches = "\n".join(line for line in setup if shlex.split(line)[0] == "curl")
    run(["bash", "-euc", fetches], tmp_path, HOWSURE_API_KEY=key)
    (tmp_path / "node_modules").symlink_to(EXAMPLE / "node_modules")
    (tmp_path / "snippet.mjs").write_text(snippets(pages[name])["browser"], encoding="utf-8")
    printed = run(["node", "snippet.mjs"], tmp_path)
    row = predicted(keyed, key, name)
    label, *numbers = printed.rsplit(maxsplit=3)
    assert label == row["label"]
    expected = [row["top1"]["probability"], *row["top1"]["interval"]]
    assert [float(number) for number in numbers] == pytest.approx(expected, abs=1e-6)


def test_pictures_are_sent_as_they_are(pages, key, tmp_path: Path) -> None:
    found = snippets(pages["pictures"])
    (tmp_path / "picture.jpg").write_bytes(plain_png(7))
    (row,) = run_in_shell(found["curl"], tmp_path, HOWSURE_API_KEY=key)["predictions"]
    printed = run_python(found["python"], tmp_path, key)
    assert printed.startswith(f"{row['label']}: {row['top1']['probability']:.3f} ")
    outputs = run_in_shell(found["oip"], tmp_path, HOWSURE_API_KEY=key)["outputs"]
    assert outputs[0]["name"] == "class"


def test_the_command_for_another_measure_sends_the_key_too(keyed, key) -> None:
    visitor = Visitor(keyed)
    visitor.sign_in(key)
    assert "$HOWSURE_API_KEY" in visitor.open("/pages/calibrations/scores/measures").text


def test_names_and_keys_are_no_part_of_the_code(pages, key) -> None:
    for page in pages.values():
        assert "<script>alert" not in page
        assert key.split("_")[2] not in page
        assert "$HOWSURE_API_KEY" in page


def test_a_version_that_its_name_no_longer_means_is_named(keyed, key, tmp_path) -> None:
    client = keyed.client(key)
    first = calibrated(client, {"name": "again"}, calibration=logits_of())
    visitor = Visitor(keyed, Authorization=f"Bearer {key}")
    address = f"/pages/calibrations/{first['id']}/integrate"
    assert "again@1" not in snippets(visitor.open(address).text)["curl"]
    calibrated(client, {"name": "again", "bins": 3}, calibration=logits_of())
    found = snippets(visitor.open(address).text)
    answer = run_in_shell(found["curl"], tmp_path, HOWSURE_API_KEY=key)
    assert answer["calibration"]["version"] == 1
    answer = run_in_shell(found["oip"], tmp_path, HOWSURE_API_KEY=key)
    assert answer["model_version"] == "1"
    for name in ("python", "triton"):
        assert run_python(found[name], tmp_path, key)


def test_where_no_key_is_asked_for_none_is_sent(client, shelf, tmp_path) -> None:
    page = client.get(f"/pages/calibrations/{shelf('logits')['id']}/integrate").text
    assert "HOWSURE_API_KEY" not in page
    answer = run_in_shell(snippets(page)["curl"], tmp_path)
    assert len(answer["predictions"]) == 1
