"""Archives of pictures made to harm, or damaged: refused by name, without what they ask for."""

import io
import random
import struct
import tarfile
import tracemalloc
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from dataset_files import patched
from hypothesis import given, settings
from hypothesis import strategies as st
from picture_files import encoded, jpeg
from picture_sets import (
    AS_THEY_ARE,
    WRITERS,
    class_folders,
    opened,
    plain_png,
    shades_and_labels,
    write_tar,
    write_zip,
)

from service.datasets import DatasetLimits, Reading, open_dataset
from service.errors import InvalidInput, TooLarge, UnsupportedFormat

GOOD = class_folders()
PICTURE = plain_png(200)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "set"


def refusal(path: Path, reading: Reading = AS_THEY_ARE, **options: object) -> InvalidInput:
    """Read a whole set and return the error that refused it."""
    with pytest.raises(InvalidInput) as refused, opened(path, reading, **options) as dataset:
        shades_and_labels(dataset)
    (violation,) = refused.value.violations
    assert violation.location.startswith("calibration")
    assert refused.value.message.isprintable()
    assert len(refused.value.message) < 500
    assert str(path.parent) not in refused.value.message
    return refused.value


def refused_at(path: Path, reading: Reading = AS_THEY_ARE, **options: object) -> str:
    return refusal(path, reading, **options).violations[0].location


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize(
    "name",
    [
        *("../1.png", "cat/../../1.png", "/etc/1.png", "cat//1.png", "cat/./1.png", ".."),
        *("cat\\1.png", "cat/\x1b[31m.png", "cat/1\n.png", "cat/../", "x" * 1100 + ".png"),
    ],
)
def test_names_are_labels_and_never_paths(path: Path, kind: str, name: str) -> None:
    error = refusal(WRITERS[kind](path, GOOD | {name: b"" if name.endswith("/") else PICTURE}))
    assert "plain name" in error.message
    assert error.violations[0].location.startswith("calibration[")


@pytest.mark.parametrize("kind", WRITERS)
def test_a_member_stands_once(path: Path, kind: str) -> None:
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
def test_a_broken_picture_in_the_middle_is_named(path: Path, kind: str, content: bytes) -> None:
    members = {f"{k % 2}/{k}.png": plain_png(k) for k in range(40)} | {"1/23.png": content}
    WRITERS[kind](path, members)
    with opened(path) as dataset:
        batches = dataset.batches(1)
        assert [next(batches).start for _ in range(23)] == list(range(23))
        with pytest.raises(InvalidInput) as refused:
            next(batches)
    assert refused.value.violations[0].location == "calibration[1/23.png]"


@pytest.mark.parametrize("kind", WRITERS)
def test_the_first_picture_of_another_size_is_named(path: Path, kind: str) -> None:
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
def test_what_breaks_a_layout_is_named(path: Path, kind: str, members, location: str) -> None:
    assert refused_at(WRITERS[kind](path, members)) == f"calibration{location}"


def test_what_model_it_is_for_must_be_said(path: Path) -> None:
    assert "preprocessing" in refusal(write_zip(path, GOOD), Reading()).message


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize(
    "limits",
    [
        DatasetLimits(max_samples=8),
        DatasetLimits(max_row_bytes=35),
        DatasetLimits(max_inflated_bytes=9 * 36 - 1),
        DatasetLimits(max_classes=2),
    ],
)
def test_limits_are_kept(path: Path, kind: str, limits: DatasetLimits) -> None:
    WRITERS[kind](path, GOOD)
    with pytest.raises(InvalidInput) as refused:
        open_dataset(path, location="calibration", limits=limits, reading=AS_THEY_ARE)
    assert type(refused.value) is TooLarge


@pytest.mark.parametrize("kind", WRITERS)
def test_every_truncation_is_refused(path: Path, kind: str) -> None:
    data = WRITERS[kind](path, GOOD).read_bytes()
    end = len(data.rstrip(b"\0")) if kind == "tar" else len(data) - 1
    for size in random.Random(0).sample(range(1, end), 60):
        path.write_bytes(data[:size])
        refusal(path)
    path.write_bytes(data + b"\1")
    refusal(path)
    path.write_bytes(data + data)
    assert refused_at(path) == "calibration"


# Zip


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_refused(path: Path, compression: int) -> None:
    assert "stored or deflated" in refusal(write_zip(path, GOOD, compression)).message


@pytest.mark.parametrize("flag", [0x1, 0x20, 0x40])
def test_encrypted_members_are_refused(path: Path, flag: int) -> None:
    data = bytearray(write_zip(path, GOOD).read_bytes())
    data[data.rindex(b"PK\x01\x02") + 8] |= flag
    path.write_bytes(data)
    assert "encryption" in refusal(path).message


def test_deflated_pictures_are_read(path: Path) -> None:
    with opened(write_zip(path, GOOD, zipfile.ZIP_DEFLATED)) as dataset:
        assert shades_and_labels(dataset)[0] == list(range(len(GOOD)))


def test_archives_beyond_four_gibibytes_are_read(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python writes the records of such an archive when the limit says it is one."""
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 50)
    with opened(write_zip(path, GOOD)) as dataset:
        assert shades_and_labels(dataset)[0] == list(range(len(GOOD)))


def test_a_bomb_that_lies_about_its_size_yields_no_more_than_it_claims(path: Path) -> None:
    write_zip(path, GOOD | {"cat/0.png": PICTURE + bytes(50_000_000)}, zipfile.ZIP_DEFLATED)
    patched(
        path,
        struct.pack("<L", len(PICTURE) + 50_000_000),
        struct.pack("<L", len(PICTURE)),
        last=True,
    )
    tracemalloc.start()
    error = refusal(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert error.violations[0].location == "calibration[cat/0.png]"
    assert peak < 5_000_000


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_claim_beyond_what_the_bytes_can_hold_is_refused(path: Path, compression: int) -> None:
    write_zip(path, GOOD | {"cat/0.png": PICTURE + bytes(777)}, compression)
    real = struct.pack("<L", len(PICTURE) + 777)
    patched(path, real, struct.pack("<L", 2**30), last=True)
    error = refusal(path)
    assert error.violations[0].location == "calibration[cat/0.png]"
    assert "cannot hold" in error.message


def test_an_honest_bomb_is_refused_before_it_is_inflated(path: Path) -> None:
    write_zip(path, GOOD | {"cat/0.png": PICTURE + bytes(70_000_000)}, zipfile.ZIP_DEFLATED)
    tracemalloc.start()
    error = refusal(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert type(error) is TooLarge
    assert error.violations[0].location == "calibration[cat/0.png]"
    assert peak < 5_000_000


def test_a_flipped_bit_is_found_by_the_checksum(path: Path) -> None:
    write_zip(path, GOOD)
    patched(path, b"IEND", b"IENE")
    assert "checksum" in refusal(path).message


def test_members_that_share_bytes_are_refused(path: Path) -> None:
    data = bytearray(write_zip(path, GOOD).read_bytes())
    last = data.rindex(b"PK\x01\x02")
    before = data.rindex(b"PK\x01\x02", 0, last)
    data[last + 42 : last + 46] = data[before + 42 : before + 46]
    path.write_bytes(data)
    assert "bytes of its own" in refusal(path).message


def test_links_in_zip_archives_are_refused(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in GOOD.items():
            archive.writestr(name, content)
        link = zipfile.ZipInfo("cat/link.png")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    assert refused_at(path) == "calibration[cat/link.png]"


def test_a_directory_that_is_too_long_is_never_read(path: Path) -> None:
    """Its first member tells who refuses it, and what to do about it."""
    write_zip(path, GOOD)
    head = path.read_bytes()[:100]
    size = 33 * 1024**2
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, size, len(head), 0)
    with path.open("wb") as file:
        file.write(head)
        file.seek(len(head) + size)
        file.write(end)
    error = refusal(path)
    assert type(error) is TooLarge
    assert ".tar" in error.message


# Tar


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_all_forms_of_tar_are_read(path: Path, form: int) -> None:
    long = f"{'d' * 60}/{'e' * 60}"
    names = [f"{long}/{'cat' if k % 2 else 'dög'}/{k}.png" for k in range(9)]
    write_tar(path, {name: plain_png(k) for k, name in enumerate(names)}, form)
    with opened(path) as dataset:
        assert shades_and_labels(dataset)[1] == [1, 0] * 4 + [1]


def test_archives_older_than_ustar_are_read(path: Path) -> None:
    blocks = []
    for name, content in GOOD.items():
        member = tarfile.TarInfo(name)
        member.size = len(content)
        header = bytearray(member.tobuf(tarfile.USTAR_FORMAT))
        header[257:] = bytes(255)
        header[148:156] = b" " * 8
        header[148:156] = b"%06o\0 " % sum(header)
        blocks += [bytes(header), content, bytes(-len(content) % 512)]
    path.write_bytes(b"".join([*blocks, bytes(1024)]))
    with opened(path) as dataset:
        assert shades_and_labels(dataset)[0] == list(range(len(GOOD)))


@pytest.mark.parametrize(
    "kind",
    [
        tarfile.SYMTYPE,
        tarfile.LNKTYPE,
        tarfile.CHRTYPE,
        tarfile.FIFOTYPE,
        tarfile.GNUTYPE_SPARSE,
        b"V",
    ],
)
def test_members_that_are_no_files_are_refused(path: Path, kind: bytes) -> None:
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as archive:
        member = tarfile.TarInfo("cat/odd.png")
        member.type, member.linkname = kind, "/etc/passwd"
        archive.addfile(member)
    error = refusal(path)
    assert error.violations[0].location == "calibration[cat/odd.png]"
    assert "expected plain files" in error.message


def header(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    member = tarfile.TarInfo(name)
    member.size, member.type = size, kind
    return member.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.XGLTYPE])
@pytest.mark.parametrize("present", [False, True])
def test_a_long_name_of_gigabytes_is_never_read(path: Path, kind: bytes, *, present: bool) -> None:
    size = 3 * 1024**3
    with path.open("wb") as file:
        file.write(header("x", size, kind))
        if present:
            file.truncate(512 + size + 1024)
    tracemalloc.start()
    refusal(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000_000


@pytest.mark.parametrize("size", [-512, -1, 10_000, 2**62])
def test_sizes_that_lie_are_refused(path: Path, size: int) -> None:
    path.write_bytes(header("cat/1.png", size) + PICTURE.ljust(512, b"\0") + bytes(1024))
    assert refused_at(path) == "calibration[cat/1.png]"


def test_a_size_that_is_too_small_is_found_by_what_follows(path: Path) -> None:
    content = bytes([1]) * 1500
    path.write_bytes(header("cat/1.png", 512) + content.ljust(1536, b"\0") + bytes(1024))
    error = refusal(path)
    assert error.violations[0].location == "calibration"
    assert "damaged bytes at byte 1024 after calibration[cat/1.png]" in error.message


@pytest.mark.parametrize(
    "records",
    [
        *(b"999 path=x\n", b"3 p\n", b"0 path=x\n", b"-9 path=x\n", b"path=x\n", b"11 path=xyz"),
        *(b"17 size=-5120000\n", b"30 GNU.sparse.size=1000000000\n"),
    ],
)
def test_odd_pax_records_are_refused(path: Path, records: bytes) -> None:
    start = header("x", len(records), tarfile.XHDTYPE) + records.ljust(512, b"\0")
    path.write_bytes(start + header("cat/1.png", 10**6) + bytes(1024))
    refusal(path)


def test_a_pax_size_wins(path: Path) -> None:
    record = b"%d size=%d\n" % (len(b"00 size=%d\n" % len(PICTURE)), len(PICTURE))
    blocks = []
    for name in ("cat/1.png", "dog/1.png"):
        blocks += [header("x", len(record), tarfile.XHDTYPE), record.ljust(512, b"\0")]
        blocks += [header(name, 0), PICTURE.ljust(512, b"\0")]
    path.write_bytes(b"".join([*blocks, bytes(1024)]))
    with opened(path) as dataset:
        assert shades_and_labels(dataset) == ([200, 200], [0, 1])


@settings(max_examples=150)
@given(st.data())
def test_no_change_of_bytes_brings_anything_but_pictures_or_a_refusal(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
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
def test_compressed_archives_are_sent_decompressed(path: Path, ending: str) -> None:
    with tarfile.open(path, f"w:{ending}") as archive:
        archive.addfile(tarfile.TarInfo("cat/1.png"), io.BytesIO())
    error = refusal(path)
    assert type(error) is UnsupportedFormat
    assert "send it decompressed" in error.message


def test_a_picture_is_no_set(path: Path) -> None:
    for content in (jpeg(8, 8), PICTURE, encoded(np.zeros((8, 8, 3), np.uint8), "WEBP")):
        path.write_bytes(content)
        assert "a single picture" in refusal(path).message
