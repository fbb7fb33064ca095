"""Zip archives of pictures: the forms that are read, and bombs that cost no memory.

Archives that lie are in tests/hostile/data.
"""

import struct
import zipfile

import pytest
from hostile_archives import DEFLATED, Member, zip_file
from own_process import peak_of
from picture_files import (
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


@pytest.mark.parametrize("flag", [0x1, 0x20, 0x40])
def test_encrypted_members_are_refused(path, flag):
    path.write_bytes(zip_file([Member("cat/1.png", PICTURE, flags=flag)]))
    assert "encryption" in refusal(path).message


def test_deflated_pictures_are_read(path):
    with opened(write_zip(path, GOOD, zipfile.ZIP_DEFLATED)) as dataset:
        assert shades_and_labels(dataset)[0] == list(range(len(GOOD)))


@pytest.mark.parametrize("claimed", [len(PICTURE), len(PICTURE) + 70_000_000])
def test_a_bomb_takes_no_memory(path, claimed):
    """One claims to be small, the other is larger than a file may be."""
    bomb = Member("cat/0.png", PICTURE + bytes(70_000_000), DEFLATED, size=claimed)
    others = [Member(name, GOOD[name]) for name in GOOD if name != "cat/0.png"]
    path.write_bytes(zip_file([bomb, *others]))
    error = refusal(path)
    assert (type(error) is TooLarge) == (claimed > len(PICTURE))
    assert error.violations[0].location == "calibration[cat/0.png]"
    assert peak_of(lambda: refusal(path)) < 5_000_000


def test_links_in_zip_archives_are_refused(path):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in GOOD.items():
            archive.writestr(name, content)
        link = zipfile.ZipInfo("cat/link.png")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    assert refused_at(path) == "calibration[cat/link.png]"


def test_a_directory_that_is_too_long_is_never_read(path):
    """Its first member tells who refuses it, and what to do about it."""
    head = zip_file([Member("cat/1.png", PICTURE)])[:100]
    size = MAX_DIRECTORY_BYTES + 1
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, size, len(head), 0)
    with path.open("wb") as file:
        file.write(head)
        file.seek(len(head) + size)
        file.write(end)
    error = refusal(path)
    assert type(error) is TooLarge
    assert ".tar" in error.message
