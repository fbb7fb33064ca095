"""Zip archives of pictures made to harm: refused, quickly, without the memory they ask for."""

import struct
import zipfile
from pathlib import Path

import pytest
from dataset_files import patched
from memory import peak_of
from picture_sets import (
    class_folders,
    opened,
    plain_png,
    refusal,
    refused_at,
    shades_and_labels,
    write_zip,
)

from service.child.reading.pictures.archives import MAX_DIRECTORY_BYTES
from service.errors import TooLarge

GOOD = class_folders()
PICTURE = plain_png(200)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "set"


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
    error = refusal(path)
    assert error.violations[0].location == "calibration[cat/0.png]"
    assert peak_of(lambda: refusal(path)) < 5_000_000


def test_a_stored_member_has_as_many_bytes_as_it_claims(path: Path) -> None:
    write_zip(path, GOOD | {"cat/0.png": PICTURE + bytes(777)})
    real = struct.pack("<L", len(PICTURE) + 777)
    patched(path, real, struct.pack("<L", 2**30), last=True)
    assert refused_at(path) == "calibration[cat/0.png]"


def test_an_honest_bomb_is_refused_before_it_is_inflated(path: Path) -> None:
    write_zip(path, GOOD | {"cat/0.png": PICTURE + bytes(70_000_000)}, zipfile.ZIP_DEFLATED)
    error = refusal(path)
    assert type(error) is TooLarge
    assert error.violations[0].location == "calibration[cat/0.png]"
    assert peak_of(lambda: refusal(path)) < 5_000_000


def test_a_flipped_bit_is_found_by_the_checksum(path: Path) -> None:
    write_zip(path, GOOD)
    patched(path, b"IEND", b"IENE")
    assert "damaged" in refusal(path).message


def test_members_that_share_bytes_are_refused(path: Path) -> None:
    data = bytearray(write_zip(path, GOOD).read_bytes())
    last = data.rindex(b"PK\x01\x02")
    before = data.rindex(b"PK\x01\x02", 0, last)
    data[last + 42 : last + 46] = data[before + 42 : before + 46]
    path.write_bytes(data)
    assert "shares bytes" in refusal(path).message


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
    size = MAX_DIRECTORY_BYTES + 1
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, size, len(head), 0)
    with path.open("wb") as file:
        file.write(head)
        file.seek(len(head) + size)
        file.write(end)
    error = refusal(path)
    assert type(error) is TooLarge
    assert ".tar" in error.message
