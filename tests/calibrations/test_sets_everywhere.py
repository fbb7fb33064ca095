"""All formats of a set give the same calibration, evaluation and predictions.

That columns are found by their names is tested in test_columns_by_name.py.
"""

import io
from collections.abc import Mapping
from typing import Any

import httpx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from dataset_files import write_parquet
from hostile_archives import Member, tar_file, tar_member, zip_file
from model_services import labelled_sets, model_file
from picture_files import encoded as picture_file
from refusals import assert_refused
from running_service import (
    DIGITS,
    calibrated,
    digits,
    dry_run,
    evaluate,
    npy,
    npz,
    quick_config,
    send,
)

ROWS = np.load(DIGITS / "calibration.npz")["inputs"][:200].astype(np.float32)
LABELS = np.load(DIGITS / "calibration.npz")["labels"][:200]
FEATURES = [f"pixel {i}" for i in range(ROWS.shape[1])]
FEW = slice(0, 40)

GREYS = labelled_sets()
PIXELS = (GREYS["calibration_inputs"][:120] * 16).astype(np.uint8).transpose(0, 2, 3, 1)
SHOWN = GREYS["calibration_labels"][:120]
GREY = {"preprocessing": {"colour": "grey", "scale": 1 / 16}}
CSV, PARQUET = "text/csv", "application/vnd.apache.parquet"
Labels = np.ndarray | None


def csv(rows: np.ndarray, labels: Labels) -> bytes:
    frame = pd.DataFrame(rows, columns=FEATURES)
    frame = frame if labels is None else frame.assign(label=labels)
    return frame.to_csv(index=False, float_format="%.9g").encode()


def parquet(columns: dict[str, Any], labels: Labels, features: Any = None) -> bytes:
    file, label = io.BytesIO(), {} if labels is None else {"label": labels}
    write_parquet(file, columns | label, features=features, row_group_size=64)
    return file.getvalue()


def flat(rows: np.ndarray, labels: Labels) -> bytes:
    return parquet({name: rows[:, i] for i, name in enumerate(FEATURES)}, labels)


def lists(rows: np.ndarray, labels: Labels) -> bytes:
    whole = pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), rows.shape[1])
    return parquet({"x": whole, "id": pa.array(np.arange(len(rows)))}, labels)


def pngs(pixels: np.ndarray) -> list[bytes]:
    return [picture_file(grey[..., 0], "PNG") for grey in pixels]


def zipped(pixels: np.ndarray, labels: Labels) -> bytes:
    folders = [""] * len(pixels) if labels is None else [f"{label}/" for label in labels]
    files = enumerate(zip(folders, pngs(pixels), strict=True))
    return zip_file([Member(f"{folder}{i:04}.png", content) for i, (folder, content) in files])


def tarred(pixels: np.ndarray, labels: Labels) -> bytes:
    """Return a WebDataset shard."""
    members = []
    for i, content in enumerate(pngs(pixels)):
        members.append(tar_member(f"{i:04}.png", content))
        if labels is not None:
            members.append(tar_member(f"{i:04}.cls", str(labels[i]).encode()))
    return tar_file(*members)


def pictures_in_parquet(pixels: np.ndarray, labels: Labels) -> bytes:
    """Return what the library `datasets` writes of pictures and a ClassLabel."""
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    cells = [{"bytes": content, "path": f"{i}.png"} for i, content in enumerate(pngs(pixels))]
    names: dict[str, Any] = {"image": {"_type": "Image"}}
    if labels is not None:
        names["label"] = {"names": [str(i) for i in range(10)], "_type": "ClassLabel"}
    return parquet({"image": pa.array(cells, kind)}, labels, names)


def made(client: httpx.Client, name: str, config: Mapping[str, Any] = {}, **parts: bytes) -> Any:
    """Calibrate the digits model, or that of pictures where there is preprocessing."""
    model = model_file("small_cnn.onnx") if "preprocessing" in config else digits("model.onnx")
    return calibrated(client, {"name": name, **config}, model=model, **parts)


def tables(client: httpx.Client, name: str) -> list[Any]:
    """Return the bins, but for what depends on the bytes of a row: which of equal ones is where."""
    return [table["bins"] for table in client.get(f"/calibrations/{name}/bins").json()["tables"]]


def predictions(client: httpx.Client, name: str, media_type: str, content: bytes) -> list[Any]:
    response = send(client, name, content, {"Content-Type": media_type})
    return response.raise_for_status().json()["predictions"]


@pytest.fixture(scope="module")
def rows_in_npz(client: httpx.Client) -> list[Any]:
    """Rows as they have always been: their bins, and predictions for a few of them."""
    made(client, "rows", calibration=npz(inputs=ROWS, labels=LABELS))
    return predictions(client, "rows", "application/x-npz", npz(inputs=ROWS[FEW]))


@pytest.fixture(scope="module")
def pixels_in_npz(client: httpx.Client) -> list[Any]:
    made(client, "pixels", GREY, calibration=npz(pixels=PIXELS, labels=SHOWN))
    return predictions(client, "pixels", "application/x-npz", npz(pixels=PIXELS[FEW]))


TABLES = [(csv, CSV, {}), (flat, PARQUET, {}), (lists, PARQUET, {"columns": {"inputs": "x"}})]


@pytest.mark.parametrize(("write", "media_type", "config"), TABLES)
def test_tables_of_inputs(client, rows_in_npz, write, media_type, config):
    sets = {"calibration": write(ROWS, LABELS), "evaluation": write(ROWS[FEW], LABELS[FEW])}
    data = made(client, "table", config, **sets)["data"]
    assert (data["samples"], data["evaluation_samples"]) == (len(ROWS), 40)
    assert tables(client, "table") == tables(client, "rows")
    # Labels in what is asked are left out of it.
    assert predictions(client, "table", media_type, sets["evaluation"]) == rows_in_npz


def test_a_pair_of_arrays(client, rows_in_npz):
    sets = {"calibration": (ROWS, LABELS), "evaluation": (ROWS[FEW], LABELS[FEW])}
    files = {"model": digits("model.onnx")}
    for name, (rows, labels) in sets.items():
        files |= {name: npy(rows), f"{name}_labels": npy(labels)}
    config = {"config": quick_config(name="pair")}
    response = client.post("/calibrate", files=files, data=config, headers={"Prefer": "wait=60"})
    assert response.json()["status"] == "succeeded", response.text
    assert tables(client, "pair") == tables(client, "rows")
    few = npy(LABELS[FEW])
    further = evaluate(client, "pair", "few", npy(ROWS[FEW]), evaluation_labels=few).json()
    assert (further["labelled"], further["result"]["n_samples"]) == (True, 40)


ARCHIVES = [
    ("zip", zipped, "application/zip"),
    ("tar", tarred, "application/x-tar"),
    ("parquet", pictures_in_parquet, PARQUET),
]


@pytest.mark.parametrize(("kind", "write", "media_type"), ARCHIVES)
def test_archives_of_pictures(client, pixels_in_npz, kind, write, media_type):
    sets = {"calibration": write(PIXELS, SHOWN), "evaluation": write(PIXELS[FEW], SHOWN[FEW])}
    resource = made(client, kind, GREY, **sets)
    assert resource["data"]["format"] == kind
    assert resource["config"]["preprocessing"]["colour"] == "grey"
    assert resource["config"]["class_map"] == {str(i): i for i in range(10)}
    assert tables(client, kind) == tables(client, "pixels")
    content = write(PIXELS[FEW], None)
    assert predictions(client, kind, media_type, content) == pixels_in_npz


def test_classes_that_order_alone_numbers_must_all_be_there(client):
    named = np.array([f"digit {label}" for label in SHOWN])
    pictures, model = zipped(PIXELS[SHOWN < 9], named[SHOWN < 9]), model_file("small_cnn.onnx")
    assert_refused(dry_run(client, pictures, model=model, **GREY), None, "9 classes")
    class_map = {f"digit {i}": i for i in range(10)}
    assert dry_run(client, pictures, model=model, **GREY, class_map=class_map).is_success


def test_folders_in_requests_are_ignored(client, pixels_in_npz):
    sent = zipped(PIXELS[FEW], np.arange(40) % 2 + 7)
    assert predictions(client, "pixels", "application/zip", sent) == pixels_in_npz
    further = evaluate(client, "pixels", "without labels", zipped(PIXELS[FEW], None))
    assert further.json()["result"]["n_samples"] == 40, further.text


WRONG = [
    ("rows", CSV, b"a,b\n1,2\n", 422, "[rows, 64]"),
    ("rows", CSV, b"x\n" + b"0\n" * 10_001, 413, "10000"),
    ("rows", "application/zip", zipped(PIXELS[:2], None), 422, "preprocessing"),
    ("rows", "application/x-tar", bytes(2000), 415, "body"),
    ("pixels", "application/zip", zipped(PIXELS[:2], None)[:-9], 422, "body"),
]


@pytest.mark.parametrize(("name", "media_type", "content", "status", "named"), WRONG)
@pytest.mark.usefixtures("rows_in_npz", "pixels_in_npz")
def test_what_is_wrong_is_named(client, name, media_type, content, status, named):
    response = send(client, name, content, {"Content-Type": media_type})
    assert response.status_code == status, response.text
    assert named in response.text
