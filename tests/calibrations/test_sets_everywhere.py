"""All formats of a set give the same calibration, evaluation and predictions."""

import io
import json
from collections.abc import Mapping
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from hostile_archives import Member, tar_file, tar_member, zip_file
from model_services import labelled_sets, model_file
from picture_files import encoded as picture_file
from running_service import DIGITS, calibrated, digits, evaluate, npy, npz, send

ROWS = np.load(DIGITS / "calibration.npz")["inputs"].astype(np.float32)
LABELS = np.load(DIGITS / "calibration.npz")["labels"]
FEATURES = [f"pixel {i}" for i in range(ROWS.shape[1])]
CONFIG: dict[str, Any] = {"bins": 4, "folds": 2, "measures": ["margin"], "selective": []}
FEW = slice(0, 40)

GREYS = labelled_sets()
PIXELS = (GREYS["calibration_inputs"][:300] * 16).astype(np.uint8).transpose(0, 2, 3, 1)
SHOWN = GREYS["calibration_labels"][:300]
GREY = {"preprocessing": {"colour": "grey", "scale": 1 / 16}}


def csv(rows: np.ndarray, labels: np.ndarray | None) -> bytes:
    names = FEATURES if labels is None else [*FEATURES, "label"]
    cells = rows if labels is None else np.column_stack([rows, labels])
    text = io.BytesIO()
    np.savetxt(text, cells, fmt="%.9g", delimiter=",", header=",".join(names), comments="")
    return text.getvalue()


def parquet(columns: Mapping[str, Any], names: Mapping[str, Any] | None = None) -> bytes:
    table = pa.table(dict(columns))
    if names is not None:
        told = json.dumps({"info": {"features": names}})
        table = table.replace_schema_metadata({"huggingface": told})
    file = io.BytesIO()
    pa_parquet.write_table(table, file, row_group_size=64)
    return file.getvalue()


def features(rows: np.ndarray, labels: np.ndarray | None) -> bytes:
    columns = {name: rows[:, i] for i, name in enumerate(FEATURES)}
    return parquet(columns if labels is None else {**columns, "label": labels})


def lists(rows: np.ndarray, labels: np.ndarray | None) -> bytes:
    flat = pa.array(rows.reshape(-1))
    columns = {"x": pa.FixedSizeListArray.from_arrays(flat, rows.shape[1])}
    columns["id"] = pa.array(np.arange(len(rows)))
    return parquet(columns if labels is None else {**columns, "label": pa.array(labels)})


def pngs(pixels: np.ndarray) -> list[bytes]:
    return [picture_file(grey[..., 0], "PNG") for grey in pixels]


def zipped(pixels: np.ndarray, labels: np.ndarray | None) -> bytes:
    folders = [""] * len(pixels) if labels is None else [f"{label}/" for label in labels]
    return zip_file(
        [
            Member(f"{folder}{i:04}.png", content)
            for i, (folder, content) in enumerate(zip(folders, pngs(pixels), strict=True))
        ]
    )


def tarred(pixels: np.ndarray, labels: np.ndarray | None) -> bytes:
    """Return a WebDataset shard."""
    members = []
    for i, content in enumerate(pngs(pixels)):
        members.append(tar_member(f"{i:04}.png", content))
        if labels is not None:
            members.append(tar_member(f"{i:04}.cls", str(labels[i]).encode()))
    return tar_file(*members)


def pictures_in_parquet(pixels: np.ndarray, labels: np.ndarray | None) -> bytes:
    """Return what the library `datasets` writes of pictures and a ClassLabel."""
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    cells = [{"bytes": content, "path": f"{i}.png"} for i, content in enumerate(pngs(pixels))]
    columns = {"image": pa.array(cells, kind)}
    told = {"image": {"_type": "Image"}}
    if labels is None:
        return parquet(columns, told)
    told["label"] = {"names": [str(i) for i in range(10)], "_type": "ClassLabel"}
    return parquet({**columns, "label": labels}, told)


ROW_FILES = {
    "csv": (csv, "text/csv", {}),
    "parquet": (features, "application/vnd.apache.parquet", {}),
    "lists": (lists, "application/vnd.apache.parquet", {"columns": {"inputs": "x"}}),
}
PICTURE_FILES = {
    "zip": (zipped, "application/zip"),
    "tar": (tarred, "application/x-tar"),
    "parquet": (pictures_in_parquet, "application/vnd.apache.parquet"),
}


def made(
    client: httpx.Client, name: str, config: Mapping[str, Any] | None = None, **parts: bytes
) -> dict[str, Any]:
    """Calibrate the digits model, or that of pictures where there is preprocessing."""
    config = CONFIG | {"name": name} | dict(config or {})
    model = model_file("small_cnn.onnx") if "preprocessing" in config else digits("model.onnx")
    return calibrated(client, config, model=model, **parts)


def tables(client: httpx.Client, name: str) -> list[Any]:
    """Return the bins, but for what depends on the bytes of a row: which of equal ones is where."""
    return [table["bins"] for table in client.get(f"/calibrations/{name}/bins").json()["tables"]]


def answers(client: httpx.Client, name: str, media_type: str, content: bytes) -> list[Any]:
    answer = send(client, name, content, {"Content-Type": media_type})
    assert answer.status_code == httpx.codes.OK, answer.text
    return answer.json()["predictions"]


@pytest.fixture(scope="module")
def rows_in_npz(client: httpx.Client) -> list[Any]:
    """Rows as they have always been: their bins, and answers to a few of them."""
    npz_set = npz(inputs=ROWS, labels=LABELS)
    made(client, "rows", calibration=npz_set)
    return answers(client, "rows", "application/x-npz", npz(inputs=ROWS[FEW]))


@pytest.fixture(scope="module")
def pixels_in_npz(client: httpx.Client) -> list[Any]:
    npz_set = npz(pixels=PIXELS, labels=SHOWN)
    made(client, "pixels", GREY, calibration=npz_set)
    return answers(client, "pixels", "application/x-npz", npz(pixels=PIXELS[FEW]))


@pytest.mark.parametrize("kind", ROW_FILES)
def test_tables_of_inputs(client, rows_in_npz, kind):
    write, media_type, config = ROW_FILES[kind]
    name = f"rows-{kind}"
    sets = {"calibration": write(ROWS, LABELS), "evaluation": write(ROWS[FEW], LABELS[FEW])}
    found = made(client, name, config, **sets)
    assert found["data"]["samples"] == len(ROWS)
    assert found["data"]["evaluation_samples"] == 40
    assert tables(client, name) == tables(client, "rows")
    assert answers(client, name, media_type, write(ROWS[FEW], None)) == rows_in_npz
    # Labels in what is asked are left out of it.
    assert answers(client, name, media_type, write(ROWS[FEW], LABELS[FEW])) == rows_in_npz


def test_a_renamed_label_column_is_optional_in_requests(client, rows_in_npz):
    named = csv(ROWS, LABELS).replace(b"label", b"digit", 1)
    config = {"columns": {"inputs": FEATURES, "label": "digit"}}
    made(client, "called-otherwise", config, calibration=named)
    assert answers(client, "called-otherwise", "text/csv", csv(ROWS[FEW], None)) == rows_in_npz
    beside = csv(ROWS[FEW], LABELS[FEW]).replace(b"label", b"digit", 1)
    assert answers(client, "called-otherwise", "text/csv", beside) == rows_in_npz


def shuffled(rows: np.ndarray, labels: np.ndarray) -> bytes:
    """Return a table with the columns in reverse order and the label first."""
    table = {"label": labels} | {name: rows[:, i] for i, name in reversed([*enumerate(FEATURES)])}
    return parquet(table)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_columns_of_later_tables_are_found_by_name(client, rows_in_npz, kind):
    write, _, _ = ROW_FILES[kind]
    name = f"by-name-{kind}"
    other = shuffled(ROWS[FEW], LABELS[FEW])
    found = made(client, name, calibration=write(ROWS, LABELS), evaluation=other)
    assert found["config"]["columns"] == {"inputs": FEATURES}
    media_type = "application/vnd.apache.parquet"
    assert answers(client, name, media_type, other) == rows_in_npz
    in_order = evaluate(client, name, "in order", features(ROWS[FEW], LABELS[FEW])).json()
    reversed_order = evaluate(client, name, "reversed", other).json()
    assert in_order["result"]["events"] == reversed_order["result"]["events"]


def test_a_missing_column_is_named_with_the_nearest_name(client):
    made(client, "missing", calibration=csv(ROWS, LABELS))
    renamed = csv(ROWS[FEW], None).replace(b"pixel 3,", b"pixle 3,", 1)
    answer = send(client, "missing", renamed, {"Content-Type": "text/csv"})
    assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    detail = answer.json()["detail"]
    assert "missing: `pixel 3`" in detail
    assert "did you mean `pixel 3`?" in detail


def test_a_pair_of_arrays(client, rows_in_npz):
    sets = {"calibration": (ROWS, LABELS), "evaluation": (ROWS[FEW], LABELS[FEW])}
    files = {"model": digits("model.onnx")}
    for name, (rows, labels) in sets.items():
        files |= {name: npy(rows), f"{name}_labels": npy(labels)}
    config = {"config": json.dumps(CONFIG | {"name": "pair"})}
    answer = client.post("/calibrate", files=files, data=config, headers={"Prefer": "wait=60"})
    assert answer.json()["status"] == "succeeded", answer.text
    assert tables(client, "pair") == tables(client, "rows")
    few = npy(LABELS[FEW])
    further = evaluate(client, "pair", "few", npy(ROWS[FEW]), evaluation_labels=few).json()
    assert (further["labelled"], further["result"]["n_samples"]) == (True, 40)


@pytest.mark.parametrize("kind", PICTURE_FILES)
def test_archives_of_pictures(client, pixels_in_npz, kind):
    write, media_type = PICTURE_FILES[kind]
    name = f"pixels-{kind}"
    sets = {"calibration": write(PIXELS, SHOWN), "evaluation": write(PIXELS[FEW], SHOWN[FEW])}
    found = made(client, name, GREY, **sets)
    assert found["data"]["format"] == kind
    assert found["config"]["preprocessing"]["colour"] == "grey"
    assert found["config"]["class_map"] == {str(i): i for i in range(10)}
    assert tables(client, name) == tables(client, "pixels")
    assert answers(client, name, media_type, write(PIXELS[FEW], None)) == pixels_in_npz
    further = evaluate(client, name, "without labels", write(PIXELS[FEW], None))
    assert further.json()["result"]["n_samples"] == 40, further.text


def test_classes_that_order_alone_numbers_must_all_be_there(client):
    named = np.array([f"digit {label}" for label in SHOWN])
    some = SHOWN < 9
    parts = {
        "model": ("model.onnx", model_file("small_cnn.onnx")),
        "calibration": ("set", zipped(PIXELS[some], named[some])),
    }
    refused = client.post("/calibrate", files=parts, data={"config": json.dumps(GREY)})
    assert refused.status_code == httpx.codes.UNPROCESSABLE_ENTITY, refused.text
    assert "9 classes by name where the model has 10" in refused.json()["detail"]
    mapped = GREY | {"class_map": {f"digit {i}": i for i in range(10)}}
    taken = client.post("/calibrate", files=parts, data={"config": json.dumps(mapped)})
    assert taken.status_code == httpx.codes.ACCEPTED, taken.text


def test_folders_in_requests_are_ignored(client, pixels_in_npz):
    asked = zipped(PIXELS[FEW], np.array([f"{i % 2 + 7}" for i in range(40)]))
    assert answers(client, "pixels", "application/zip", asked) == pixels_in_npz


@pytest.mark.parametrize(
    ("name", "media_type", "content", "status", "told"),
    [
        ("rows", "text/csv", b"a,b\n1,2\n", 422, "expected shape [rows, 64]"),
        ("rows", "application/zip", zipped(PIXELS[:2], None), 422, "preprocessing"),
        ("rows", "application/vnd.apache.parquet", b"PAR1" + bytes(40), 422, "Parquet"),
        ("rows", "application/x-tar", bytes(2000), 415, "body"),
        ("pixels", "application/zip", zipped(PIXELS[:2], None)[:-9], 422, "body"),
        ("pixels", "application/x-tar", tarred(PIXELS[:1], None)[:700], 422, "body"),
    ],
)
def test_what_is_wrong_is_named(
    client, rows_in_npz, pixels_in_npz, name, media_type, content, status, told
):
    answer = send(client, name, content, {"Content-Type": media_type})
    assert answer.status_code == status, answer.text
    assert told in answer.text


def test_more_rows_than_a_request_may_have(client, rows_in_npz):
    answer = send(client, "rows", b"x\n" + b"0\n" * 10_001, {"Content-Type": "text/csv"})
    assert answer.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE, answer.text
