"""Archives of pictures made to harm, or damaged: refused by name, without what they ask for."""

import io
import random
import tarfile
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from picture_files import (
    AS_THEY_ARE,
    WRITERS,
    class_folders,
    jpeg,
    opened,
    plain_png,
    refusal,
    refused_at,
)

from service.errors import InvalidDataset, InvalidInput, UnsupportedFormat
from service.runner.messages.preprocessing import Preprocessing
from service.runner.messages.reading import Reading

GOOD = class_folders()
PICTURE = plain_png(200)


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize(
    "name",
    [
        *("../1.png", "cat/../../1.png", "/etc/1.png", "cat//1.png", "cat/./1.png", ".."),
        *("cat\\1.png", "cat/\x1b[31m.png", "cat/1\n.png", "cat/../", "x" * 1100 + ".png"),
    ],
)
def test_names_are_labels_and_never_paths(path, kind, name):
    error = refusal(WRITERS[kind](path, GOOD | {name: b"" if name.endswith("/") else PICTURE}))
    assert "plain name" in error.message
    assert error.violations[0].location.startswith("calibration[")


@pytest.mark.parametrize("kind", WRITERS)
def test_a_duplicate_member_is_refused(path, kind):
    WRITERS[kind](path, GOOD | {"cat/0.pnx": PICTURE})
    path.write_bytes(path.read_bytes().replace(b"cat/0.pnx", b"cat/0.png"))
    if kind == "tar":
        data = bytearray(path.read_bytes())
        header = data.rindex(b"cat/0.png")
        member = tarfile.TarInfo("cat/0.png")
        member.size = len(PICTURE)
        data[header : header + 512] = member.tobuf(tarfile.USTAR_FORMAT)
        path.write_bytes(data)
    error = refusal(path)
    assert error.violations[0].location == "calibration[cat/0.png]"
    assert "twice" in error.message


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("content", [b"", b"GIF89a", jpeg(8, 8)[:-60], b"\xff\xd8\xff", b"not"])
def test_a_broken_picture_in_the_middle_is_named(path, kind, content):
    members = {f"{k % 2}/{k}.png": plain_png(k) for k in range(40)} | {"1/23.png": content}
    WRITERS[kind](path, members)
    with opened(path) as dataset:
        batches = dataset.batches(1)
        assert [next(batches).start for _ in range(23)] == list(range(23))
        with pytest.raises(InvalidInput) as refused:
            next(batches)
    assert refused.value.violations[0].location == "calibration[1/23.png]"


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("n_broken", [2, 10, 13])
@pytest.mark.parametrize("first", [0, 23])
@pytest.mark.parametrize(
    "reading", [AS_THEY_ARE, Reading(preprocessing=Preprocessing(crop=(3, 3)))]
)
def test_all_broken_pictures_are_named_at_once(path, kind, n_broken, first, reading):
    broken = [f"{k % 2}/{k}.png" for k in range(first, first + n_broken)]
    members = {f"{k % 2}/{k}.png": plain_png(k) for k in range(40)}
    members |= dict.fromkeys(broken, b"GIF89a")
    with (
        pytest.raises(InvalidDataset) as refused,
        opened(WRITERS[kind](path, members), reading) as dataset,
    ):
        list(dataset.batches(4))
    all_of_them, *named = refused.value.violations
    assert all_of_them.location == "calibration"
    assert all_of_them.message.startswith(f"{n_broken} pictures cannot be used; ")
    assert [found.location for found in named] == [f"calibration[{name}]" for name in broken[:10]]
    assert all("GIF" in found.message for found in named)
    assert ("and 3 more" in refused.value.message) == (n_broken == 13)


def test_a_set_of_broken_pictures_names_the_first(path):
    members = {f"{k % 2}/{k}.png": b"\xff\xd8\xff" for k in range(40)}
    with (
        pytest.raises(InvalidDataset, match="40 pictures"),
        opened(WRITERS["zip"](path, members)) as dataset,
    ):
        list(dataset.batches(4))


@pytest.mark.parametrize("kind", WRITERS)
def test_the_first_picture_of_another_size_is_named(path, kind):
    members = {f"{k % 2}/{k}.png": plain_png(k, width=4 + (k > 20)) for k in range(40)}
    error = refusal(WRITERS[kind](path, members))
    assert error.violations[0].location == "calibration[1/21.png]"
    assert "expected 4 x 3 pixels" in error.message
    assert "preprocessing.resize" in error.message


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize(
    ("members", "location"),
    [
        (GOOD | {"1.png": PICTURE}, "[1.png]"),
        (GOOD | {"cat/odd.BMP": b"BM"}, "[cat/odd.BMP]"),
        ({"README.md": b"#", "LICENSE": b""}, ""),
        ({"train/cat/1.png": PICTURE, "val/cat/1.png": PICTURE}, ""),
        ({"1/1.png": PICTURE, "2/1.png": PICTURE}, ""),
        ({"1.png": PICTURE, "2.png": PICTURE, "1.cls": b"0"}, "[2.png]"),
        ({"1.png": PICTURE, "1.cls": b" \n"}, "[1.cls]"),
        ({"1.png": PICTURE, "1.cls": b"\xff"}, "[1.cls]"),
        ({"1.png": PICTURE, "1.cls": b"9" * 2000}, "[1.cls]"),
        ({"1.png": PICTURE, "1.cls": b"-1"}, ""),
        ({"1.png": PICTURE, "1.cls": b"100000"}, ""),
        ({"1.png": PICTURE, "1.json": b'{"label": true}'}, "[1.json].label"),
        ({"1.png": PICTURE, "1.json": b'{"label": 1, "cls": 1}'}, "[1.json]"),
        (
            {"1.png": PICTURE, "1.json": b'{"cls": 1}', "2.png": PICTURE, "2.json": b"[" * 9**5},
            "[2.json]",
        ),
        ({"1.png": PICTURE, "labels.csv": b"file,label\n1.png,0\n1.png,0\n"}, "[labels.csv][1]"),
        ({"1.png": PICTURE, "labels.csv": b"file,label\n../1.png,0\n"}, "[labels.csv][0]"),
        ({"1.png": PICTURE, "labels.csv": b"file,label\n\n1.png,\n"}, "[labels.csv][0]"),
        ({"1.png": PICTURE, "labels.csv": b"file,label\n1.png\n"}, "[labels.csv][0]"),
        ({"1.png": PICTURE, "labels.csv": b"file,label\n"}, "[1.png]"),
        ({"1.png": PICTURE, "labels.csv": b"file,path,label\n"}, "[labels.csv]"),
        ({"1.png": PICTURE, "labels.csv": b"file;label\n1.png;0\n"}, "[labels.csv]"),
        ({"1.png": PICTURE, "labels.csv": b"file,label\n1.png,\xff\n"}, "[labels.csv]"),
        ({"1.png": PICTURE, "labels.csv": b'file,label\n"1.png,' + b"x" * 2**18}, "[labels.csv]"),
        ({"1.png": PICTURE, "labels.csv": b""}, "[labels.csv]"),
        ({"1.png": PICTURE, "labels.csv": b"", "metadata.csv": b""}, "[metadata.csv]"),
    ],
)
def test_files_that_break_a_layout_are_named(path, kind, members, location):
    assert refused_at(WRITERS[kind](path, members)) == f"calibration{location}"


@pytest.mark.parametrize("kind", WRITERS)
def test_every_truncation_is_refused(path, kind):
    data = WRITERS[kind](path, GOOD).read_bytes()
    end = len(data.rstrip(b"\0")) if kind == "tar" else len(data) - 1
    for size in random.Random(0).sample(range(1, end), 60):
        path.write_bytes(data[:size])
        refusal(path)
    path.write_bytes(data + b"\1")
    refusal(path)
    path.write_bytes(data + data)
    assert refused_at(path) == "calibration"


@settings(max_examples=150)
@given(st.data())
def test_changed_archives_are_read_or_refused(tmp_path_factory, data):
    kind = data.draw(st.sampled_from(sorted(WRITERS)))
    path = tmp_path_factory.mktemp("changed") / "set"
    members = {f"{name}/1.png": plain_png(7) for name in ("cat", "dog")}
    content = bytearray(WRITERS[kind](path, members).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    with suppress(InvalidInput), opened(path) as dataset:
        for batch in dataset.batches(3):
            assert batch.arrays["pixels"].shape[1:] == dataset.info.arrays["pixels"].shape[1:]


@pytest.mark.parametrize("ending", ["gz", "bz2", "xz"])
def test_compressed_archives_are_sent_decompressed(path, ending):
    with tarfile.open(path, f"w:{ending}") as archive:
        archive.addfile(tarfile.TarInfo("cat/1.png"), io.BytesIO())
    error = refusal(path)
    assert type(error) is UnsupportedFormat
    assert "send it decompressed" in error.message
