"""What docs/export.md says of an exported file holds for one of the digits."""

import contextlib
import io
import json
import re
from pathlib import Path
from runpy import run_path
from typing import Any

import httpx
import numpy as np
import onnx
import pytest
import tritonclient
from colour_pictures import IMAGENET, colour_model, colour_set
from google.protobuf import text_format
from graph_models import constant, make_model, steps, value
from picture_files import encoded, scene
from PIL import Image
from running_service import DIGITS, calibrated, digits, npz
from tritonclient.utils import np_to_triton_dtype

ORIENTATION = 0x0112  # of EXIF
PAGE = (Path(__file__).parents[2] / "docs" / "export.md").read_text(encoding="utf-8")


def block(language: str, of: str = "") -> str:
    """Return the block of a language, of several the one that contains a text."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    (text,) = (text for text in found if of in text)
    return text


def printed_by(code: str) -> list[str]:
    """Run a snippet of the page, and return the lines that it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "export.md", "exec"), {})  # noqa: S102 -- our own page
    return printed.getvalue().splitlines()


def numpy_type(tensor: onnx.TypeProto.Tensor) -> np.dtype:
    return onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)


@pytest.fixture(scope="module")
def exported(client: httpx.Client, digits_calibration: dict) -> httpx.Response:
    return client.get("/calibrations/digits/model.onnx").raise_for_status()


@pytest.fixture(scope="module")
def model(exported: httpx.Response) -> onnx.ModelProto:
    return onnx.load_model_from_string(exported.content)


@pytest.fixture(scope="module")
def outputs(model: onnx.ModelProto) -> dict[str, onnx.TypeProto.Tensor]:
    """Our outputs of the file, by name."""
    own = {output.name for output in onnx.load(DIGITS / "model.onnx").graph.output}
    return {o.name: o.type.tensor_type for o in model.graph.output if o.name not in own}


def test_the_python_snippet_prints_what_the_service_answers(
    exported: httpx.Response, client: httpx.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "digits.onnx").write_bytes(exported.content)
    (tmp_path / "evaluation.npz").write_bytes(digits("evaluation.npz"))
    monkeypatch.chdir(tmp_path)
    printed = printed_by(block("python", of="digits.onnx"))

    with np.load(DIGITS / "evaluation.npz") as arrays:
        rows = arrays["inputs"][:3].tolist()
    answer = client.post("/predict", json={"calibration": "digits", "inputs": rows})
    expected = [
        "{label}: {0:.3f} ({1:.3f} to {2:.3f})".format(
            row["top1"]["probability"], *row["top1"]["interval"], label=row["label"]
        )
        for row in answer.raise_for_status().json()["predictions"]
    ]
    assert printed == expected


SCALED = {"scale": 1 / 255, "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
GREY = {"colour": "grey", "layout": "nhw", "mean": [0.4], "std": [0.3], "scale": 1 / 255}


@pytest.mark.parametrize(
    "preprocessing",
    [
        {"resize": 6, "crop": 4, "colour": "bgr", "interpolation": "bicubic"} | SCALED,
        {"resize": [5, 9], "crop": 4, "interpolation": "nearest"} | GREY,
    ],
)
def test_the_snippet_for_pictures_prints_what_the_service_answers(
    client: httpx.Client,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    preprocessing: dict[str, Any],
) -> None:
    pixels, labels = colour_set(400)
    step = -1 if preprocessing.get("colour") == "bgr" else 1
    mean, std = (values[::step] for values in IMAGENET)
    model = colour_model(mean, std, layout=preprocessing.get("layout", "nchw"), step=step)
    if preprocessing.get("colour") == "grey":
        model, pixels = grey_model(), pixels[..., :1]
    own_order = {name: preprocessing[name][::step] for name in ("mean", "std")}
    config = {"name": "photos", "preprocessing": preprocessing | own_order}
    calibrated(client, config, model=model, calibration=npz(pixels=pixels, labels=labels))
    exported = client.get("/calibrations/photos/model.onnx").raise_for_status()
    (tmp_path / "photos.onnx").write_bytes(exported.content)
    upright = Image.Exif()
    upright[ORIENTATION] = 6  # to be turned by a right angle
    monkeypatch.chdir(tmp_path)
    jpeg = {"Content-Type": "image/jpeg"}
    for seed, size in enumerate([(19, 13), (30, 30), (4, 9)]):
        content = encoded(Image.fromarray(scene(*size, seed=seed)), "JPEG", exif=upright)
        (tmp_path / "cat.jpg").write_bytes(content)
        named = {"calibration": "photos"}
        answer = client.post("/predict", params=named, content=content, headers=jpeg)
        (row,) = answer.raise_for_status().json()["predictions"]
        expected = f"{row['label']}: {row['top1']['probability']:.3f}"
        assert printed_by(block("python", of="photos.onnx")) == [expected]


def grey_model() -> bytes:
    weights = np.random.default_rng(0).normal(size=(16, 5))
    model = make_model(
        steps("f = Flatten(x); y = MatMul(f, w)"),
        inputs=[value("x", ("N", 4, 4))],
        outputs=[value("y", ("N", 5))],
        initializers=[constant("w", weights)],
    )
    return bytes(model.SerializeToString())


def test_the_table_lists_every_output(outputs: dict[str, onnx.TypeProto.Tensor]) -> None:
    rows = re.findall(r"^\| (`[^|]*) \| (\w+) \[([^]]*)\] \|", PAGE, re.MULTILINE)
    documented = {
        name: (dtype, len(shape.split(",")))
        for names, dtype, shape in rows
        for name in re.findall(r"`(\w[\w.]*)`", names)
    }

    for name, tensor in outputs.items():
        found = numpy_type(tensor).name, len(tensor.shape.dim)
        known = re.sub(r"^abstain_.*", "abstain_0.05", name.replace("top5_", "top1_"))
        assert documented[known] == found, name


def test_the_table_lists_every_entry_of_the_metadata(model: onnx.ModelProto) -> None:
    documented = set(re.findall(r"`(howsure\.\w+)`", PAGE))
    entries = {entry.key: entry.value for entry in model.metadata_props}

    assert documented == {key for key in entries if key.startswith("howsure.")}
    for name in re.findall(r"^\| `(howsure\.\w+)` \| JSON", PAGE, re.MULTILINE):
        json.loads(entries[name])


@pytest.mark.parametrize("language", ["csharp", "js"])
def test_other_snippets_name_what_is_there(
    language: str, outputs: dict[str, onnx.TypeProto.Tensor], model: onnx.ModelProto
) -> None:
    known = {*outputs, *(given.name for given in model.graph.input), "digits.onnx"}
    known |= {entry.key for entry in model.metadata_props}
    known |= {"onnxruntime-web/wasm", "./calibrated_model.mjs"}

    snippet = re.sub(r'\$"[^"]*"', "", block(language))  # what is put together in C#
    assert set(re.findall(r'"([^"]*)"', snippet)) <= known


def test_tritons_configuration_fits_the_file(
    model: onnx.ModelProto, outputs: dict[str, onnx.TypeProto.Tensor]
) -> None:
    # Triton's messages alone: their package itself needs gRPC.
    messages = run_path(str(Path(tritonclient.__path__[0], "grpc", "model_config_pb2.py")))
    config = text_format.Parse(block("pbtxt"), messages["ModelConfig"]())
    inputs = {given.name: given.type.tensor_type for given in model.graph.input}

    assert config.backend == "onnxruntime"
    assert config.max_batch_size > 0
    assert {tensor.name for tensor in config.input} == set(inputs)
    assert {tensor.name for tensor in config.output} == set(outputs)
    for tensor in (*config.input, *config.output):
        declared = {**inputs, **outputs}[tensor.name]
        data_type = tensor.DESCRIPTOR.fields_by_name["data_type"].enum_type.values[tensor.data_type]
        assert data_type.name == f"TYPE_{np_to_triton_dtype(numpy_type(declared))}", tensor.name
        # Triton compares the file's shape with a free batch and what the model is to see.
        batch, *dims = declared.shape.dim
        assert batch.dim_param
        assert len(tensor.dims) > 0
        seen = tensor.reshape.shape if tensor.HasField("reshape") else tensor.dims
        assert [dim.dim_value for dim in dims] == list(seen), tensor.name
