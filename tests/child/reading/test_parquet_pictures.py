"""Pictures in Parquet as the library `datasets` writes it: bytes in a struct, classes by names."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from dataset_files import check_read, check_refused, refusal, write_parquet
from own_process import read_apart
from picture_files import AS_THEY_ARE, encoded
from PIL import Image

from howsure.preprocessing import PRESETS, Preprocessing
from service.errors import TooLarge
from service.runner.messages.limits import DatasetLimits
from service.runner.messages.reading import Reading

N = 25
RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 256, (N, 6, 5, 3)).astype(np.uint8)
PICTURES = [encoded(pixels, "PNG") for pixels in PIXELS]
LABELS = np.arange(N) % 3
CLASSES = {"eel": 0, "cat": 1, "dog": 2}
STRUCT = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def images(contents: list[bytes | None]) -> pa.Array:
    rows = [{"bytes": content, "path": f"{k}.png"} for k, content in enumerate(contents)]
    return pa.array(rows, STRUCT)


def write(path: Path, pictures: pa.Array, **others: object) -> Path:
    """Write pictures and labels with the metadata that `datasets` writes."""
    names = {"names": list(CLASSES), "_type": "ClassLabel"}
    features = {"image": {"_type": "Image"}, "label": names}
    columns = {"image": pictures, "label": LABELS} | others
    return write_parquet(path, columns, features=features, row_group_size=10)


IMAGES = images(PICTURES)


def test_pictures_are_pixels(path):
    known = {"kind": "inputs", "format": "parquet", "class_map": CLASSES, "notes": ()}
    write(path, IMAGES)
    check_read(path, {"pixels": PIXELS}, LABELS, reading=AS_THEY_ARE, **known)


def test_columns_of_pictures_may_be_of_other_types(path):
    large = pa.StructArray.from_arrays([pa.array(PICTURES, pa.large_binary())], ["bytes"])
    write_parquet(path, {"photo": large, "label": LABELS})
    check_read(path, {"pixels": PIXELS}, LABELS, reading=AS_THEY_ARE)


def test_pictures_of_any_size_become_one_size(path):
    sizes = RNG.integers(8, 40, (N, 2))
    raw = [RNG.integers(0, 256, (*size, 3)).astype(np.uint8) for size in sizes]
    write(path, images([encoded(pixels, "PNG") for pixels in raw]))
    resized = [Image.fromarray(pixels).resize((9, 8), Image.Resampling.BILINEAR) for pixels in raw]
    reading = Reading(preprocessing=Preprocessing(resize=(8, 9)))
    pixels = np.stack([np.asarray(picture) for picture in resized])
    check_read(path, {"pixels": pixels}, LABELS, reading=reading)
    other = next(row for row in range(N) if tuple(sizes[row]) != tuple(sizes[0]))
    first = "{} x {} pixels".format(*sizes[0])
    check_refused(path, f".image[{other}]", first, reading=AS_THEY_ARE)


def test_one_of_several_columns_of_pictures_is_chosen(path):
    write(path, images(PICTURES[::-1]), mask=IMAGES, width=LABELS)
    error = refusal(path, reading=AS_THEY_ARE)
    assert "`image`, `mask`; choose by config.columns" in error.message
    reading = Reading(preprocessing=Preprocessing(), columns={"input.1": ["mask"]})
    # Whatever the model calls its input: pixels have one name.
    check_read(path, {"pixels": PIXELS}, LABELS, reading=reading)
    both = Reading(preprocessing=Preprocessing(), columns={"a": ["mask"], "b": ["width"]})
    assert "one input" in refusal(path, reading=both).message


@pytest.mark.parametrize(
    "content",
    [{"bytes": None}, {"bytes": b""}, {"bytes": b"GIF89a"}, {"bytes": PICTURES[0][:60]}, None],
    ids=["a path alone", "no bytes", "another format", "cut off", "no cell"],
)
def test_rows_without_a_picture_are_named(tmp_path, content):
    rows = [{"bytes": picture, "path": None} for picture in PICTURES]
    # Were the path opened, there would be a picture.
    (tmp_path / "a.png").write_bytes(PICTURES[0])
    for row in (0, 17):
        cell = None if content is None else content | {"path": "a.png"}
        path = write(tmp_path / "set", pa.array([*rows[:row], cell, *rows[row + 1 :]], STRUCT))
        check_refused(path, f".image[{row}]", "", reading=AS_THEY_ARE)


def test_all_broken_pictures_are_named_at_once(path):
    for n_broken in (2, N):
        pictures = [b"GIF89a"] * n_broken + PICTURES[n_broken:]
        error = refusal(write(path, images(pictures)), reading=AS_THEY_ARE)
        assert error.violations[0].message.startswith(f"{n_broken} ")
        rows = range(min(n_broken, 10))
        locations = [f"calibration.image[{row}]" for row in rows]
        assert [one.location for one in error.violations[1:]] == locations


@pytest.mark.parametrize("named", ["config.preprocessing", *PRESETS])
def test_pictures_need_preprocessing(path, named):
    check_refused(write(path, IMAGES), ".image", named)


def test_pixels_are_held_to_limits(path):
    path = write(path, IMAGES)
    for limits in (DatasetLimits(max_row_bytes=89), DatasetLimits(max_inflated_bytes=90 * N - 1)):
        assert type(refusal(path, reading=AS_THEY_ARE, limits=limits)) is TooLarge


@pytest.mark.process
def test_memory_does_not_grow_with_a_row_group_of_pictures(path):
    n_samples, filler = 4000, 75_000
    jpeg = encoded(PIXELS[0], "JPEG")
    # A JPEG with comments of noise, which costs nothing to decode: no two are alike.
    comments = [
        jpeg[:2] + b"".join(b"\xff\xfe\x92\x7e" + RNG.bytes(0x927C) for _ in range(2)) + jpeg[2:]
        for _ in range(n_samples)
    ]
    pictures = pa.StructArray.from_arrays([pa.array(comments, pa.binary())], ["bytes"])
    del comments
    columns = {"image": pictures, "label": np.arange(n_samples) % 3}
    write_parquet(path, columns, row_group_size=n_samples, compression="none")
    del columns, pictures
    assert path.stat().st_size > n_samples * filler
    n_read, grown = read_apart(path)
    path.unlink()
    assert n_read == n_samples
    # The one row group has 300 MB, its pages and their dictionary up to 77 MB each.
    assert grown < 350
