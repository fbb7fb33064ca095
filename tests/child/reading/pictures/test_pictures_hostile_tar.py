"""Tar archives of pictures: the forms that are read, and headers that describe other headers.

Members that are no files, and sizes that lie, are in tests/hostile/data.
"""

import tarfile

import pytest
from own_process import peak_of
from picture_files import (
    class_folders,
    opened,
    plain_png,
    refusal,
    shades_and_labels,
    write_tar,
)

GOOD = class_folders()
PICTURE = plain_png(200)


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_all_forms_of_tar_are_read(path, form):
    long = f"{'d' * 60}/{'e' * 60}"
    names = [f"{long}/{'cat' if k % 2 else 'dög'}/{k}.png" for k in range(9)]
    write_tar(path, {name: plain_png(k) for k, name in enumerate(names)}, form)
    with opened(path) as dataset:
        assert shades_and_labels(dataset)[1] == [1, 0] * 4 + [1]


def test_archives_older_than_ustar_are_read(path):
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


def header(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    member = tarfile.TarInfo(name)
    member.size, member.type = size, kind
    return member.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.XGLTYPE])
@pytest.mark.parametrize("present", [False, True])
def test_a_long_name_of_gigabytes_is_never_read(path, kind, *, present):
    size = 3 * 1024**3
    with path.open("wb") as file:
        file.write(header("x", size, kind))
        if present:
            file.truncate(512 + size + 1024)
    assert peak_of(lambda: refusal(path)) < 5_000_000


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.XGLTYPE])
@pytest.mark.parametrize("size", [-512, -1024, -(2**40)])
def test_extended_headers_of_negative_size_are_refused(path, kind, size):
    picture = header("cat/1.png", len(PICTURE)) + PICTURE.ljust(512, b"\0")
    path.write_bytes(picture + header("x", size, kind) + picture + bytes(1024))
    assert refusal(path).violations[0].location == "calibration"


def test_a_size_that_is_too_small_is_found_by_the_next_header(path):
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
def test_odd_pax_records_are_refused(path, records):
    start = header("x", len(records), tarfile.XHDTYPE) + records.ljust(512, b"\0")
    path.write_bytes(start + header("cat/1.png", 10**6) + bytes(1024))
    refusal(path)


def test_the_size_in_a_pax_record_overrides_the_header(path):
    record = b"%d size=%d\n" % (len(b"00 size=%d\n" % len(PICTURE)), len(PICTURE))
    blocks = []
    for name in ("cat/1.png", "dog/1.png"):
        blocks += [header("x", len(record), tarfile.XHDTYPE), record.ljust(512, b"\0")]
        blocks += [header(name, 0), PICTURE.ljust(512, b"\0")]
    path.write_bytes(b"".join([*blocks, bytes(1024)]))
    with opened(path) as dataset:
        assert shades_and_labels(dataset) == ([200, 200], [0, 1])
