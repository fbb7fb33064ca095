"""Archives of pictures that break a rule, or are damaged: refused by name."""

import bz2
import gzip
import lzma

import pytest
from dataset_files import check_mutations
from hostile_archives import Member, tar_file, tar_member, zip_file
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

from howsure.preprocessing import Preprocessing
from service.errors import InvalidDataset, InvalidInput, UnsupportedFormat
from service.runner.messages.reading import Reading

GOOD = class_folders()
PICTURE = plain_png(200)
FORTY = {f"{k % 2}/{k}.png": plain_png(k) for k in range(40)}


@pytest.fixture(params=WRITERS)
def write(request, path):
    return lambda members: WRITERS[request.param](path, members)


NAMES = [
    *("../1.png", "cat/../../1.png", "/etc/1.png", "cat//1.png", "cat/./1.png", ".."),
    *("cat/\x1b[31m.png", "cat/1\n.png", "cat/../", "x" * 1100 + ".png"),
]


@pytest.mark.parametrize("name", NAMES)
def test_names_are_labels_and_never_paths(write, name):
    error = refusal(write(GOOD | {name: b"" if name.endswith("/") else PICTURE}))
    assert "plain name" in error.message
    assert error.violations[0].location.startswith("calibration[")


TWICE = [
    zip_file([Member("cat/0.png", PICTURE)] * 2),
    tar_file(*[tar_member("cat/0.png", PICTURE)] * 2),
]


@pytest.mark.parametrize("content", TWICE, ids=["zip", "tar"])
def test_a_duplicate_member_is_refused(path, content):
    path.write_bytes(content)
    assert refused_at(path) == "calibration[cat/0.png]"


@pytest.mark.parametrize("content", [b"", b"GIF89a", jpeg(8, 8)[:-60], b"\xff\xd8\xff", b"not"])
def test_a_broken_picture_in_the_middle_is_named(write, content):
    with opened(write(FORTY | {"1/23.png": content})) as dataset:
        batches = dataset.batches(1)
        assert [next(batches).start for _ in range(23)] == list(range(23))
        with pytest.raises(InvalidInput) as refused:
            next(batches)
    assert refused.value.violations[0].location == "calibration[1/23.png]"


CROPPED = Reading(preprocessing=Preprocessing(crop=(3, 3)))


BROKEN_PICTURES = [(2, 0, CROPPED), (10, 23, AS_THEY_ARE), (13, 23, CROPPED), (40, 0, AS_THEY_ARE)]


@pytest.mark.parametrize(("n_broken", "first", "reading"), BROKEN_PICTURES)
def test_all_broken_pictures_are_named_at_once(write, n_broken, first, reading):
    broken = list(FORTY)[first : first + n_broken]
    path = write(FORTY | dict.fromkeys(broken, b"GIF89a"))
    with pytest.raises(InvalidDataset) as refused, opened(path, reading) as dataset:
        list(dataset.batches(4))
    summary, *named = refused.value.violations
    assert summary.location == "calibration"
    assert summary.message.startswith(f"{n_broken} ")
    assert [one.location for one in named] == [f"calibration[{name}]" for name in broken[:10]]
    assert all("GIF" in one.message for one in named)


JSON = {"1.png": PICTURE, "2.png": PICTURE, "1.json": b'{"cls": 1}'}


def table(content: bytes) -> dict[str, bytes]:
    return {"1.png": PICTURE, "labels.csv": content}


BROKEN_LAYOUTS = [
    (FORTY | {"1/21.png": plain_png(21, width=5)}, "[1/21.png]"),
    (GOOD | {"1.png": PICTURE}, "[1.png]"),
    (GOOD | {"cat/odd.BMP": b"BM"}, "[cat/odd.BMP]"),
    ({"README.md": b"#", "LICENSE": b""}, ""),
    ({"train/cat/1.png": PICTURE, "val/cat/1.png": PICTURE}, ""),
    ({"1.png": PICTURE, "2.png": PICTURE, "1.cls": b"0"}, "[2.png]"),
    ({"1.png": PICTURE, "1.cls": b"\xff"}, "[1.cls]"),
    ({"1.png": PICTURE, "1.cls": b"9" * 2000}, "[1.cls]"),
    ({"1.png": PICTURE, "1.cls": b"-1"}, ""),
    (table(b"file,label\n\n1.png,\n"), "[labels.csv][0]"),
    ({"1.png": PICTURE, "1.json": b'{"label": true}'}, "[1.json].label"),
    (JSON | {"2.json": b"[" * 9**5}, "[2.json]"),
    (table(b"file,label\n1.png,0\n1.png,0\n"), "[labels.csv][1]"),
    (table(b"file,label\n../1.png,0\n"), "[labels.csv][0]"),
    (table(b"file,path,label\n"), "[labels.csv]"),
    (table(b"file;label\n1.png;0\n"), "[labels.csv]"),
    (table(b"file,label\n1.png,\xff\n"), "[labels.csv]"),
    (table(b'file,label\n"1.png,' + b"x" * 2**18), "[labels.csv]"),
    ({"1.png": PICTURE, "1.cls": b"100000"}, ""),
    ({"1.png": PICTURE, "1.json": b'{"label": 1, "cls": 1}'}, "[1.json]"),
    (table(b"file,label\n1.png\n"), "[labels.csv][0]"),
    (table(b"file,label\n"), "[1.png]"),
    (table(b"") | {"metadata.csv": b""}, "[metadata.csv]"),
]


@pytest.mark.parametrize(("members", "location"), BROKEN_LAYOUTS)
def test_files_that_break_a_layout_are_named(write, members, location):
    assert refused_at(write(members)) == f"calibration{location}"


NO_PICTURES = {
    "workbook": (("[Content_Types].xml", "xl/workbook.xml"), "Excel"),
    "table": (("data.csv",), "'data.csv'; send that file itself"),
    "parts": (("part-0.parquet", "part-1.parquet", "_SUCCESS"), "2 tables"),
}


@pytest.mark.parametrize(("names", "said"), NO_PICTURES.values(), ids=NO_PICTURES)
def test_archives_without_pictures_are_called_what_they_are(write, names, said):
    assert said in refusal(write(dict.fromkeys(names, b"1"))).message


@pytest.mark.parametrize("kind", WRITERS)
def test_damaged_archives_are_read_or_refused(path, kind):
    data = WRITERS[kind](path, GOOD).read_bytes()
    end = len(data.rstrip(b"\0")) if kind == "tar" else len(data) - 1
    check_mutations(path, step=end // 60, end=end, times=120, reading=AS_THEY_ARE)
    for longer in (data + b"\1", data + data):
        path.write_bytes(longer)
        refusal(path)


@pytest.mark.parametrize("module", [gzip, bz2, lzma])
def test_compressed_archives_are_sent_decompressed(path, module):
    path.write_bytes(module.compress(tar_file(tar_member("cat/1.png"))))
    error = refusal(path)
    assert type(error) is UnsupportedFormat
    assert "decompressed" in error.message
