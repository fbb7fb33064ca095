"""Archives of pictures: the forms that are read, headers about headers, bombs that cost no memory.

Members that are no files, and archives that lie, are in tests/hostile/data.
"""

import struct
import tarfile
import zipfile

import pytest
from hostile_archives import DEFLATED, Member, pax_records, tar_file, tar_member, zip_file
from own_process import peak_of
from picture_files import (
    class_folders,
    opened,
    plain_png,
    refusal,
    refused_at,
    shades_and_labels,
    write_tar,
    write_zip,
)

from service.child.reading.pictures.archives import MAX_DIRECTORY_BYTES
from service.errors import TooLarge

GOOD = class_folders()
PICTURE = plain_png(200)


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_all_forms_of_tar_are_read(path, form):
    long = f"{'d' * 60}/{'e' * 60}"
    names = [f"{long}/{'cat' if k % 2 else 'dög'}/{k}.png" for k in range(9)]
    write_tar(path, {name: plain_png(k) for k, name in enumerate(names)}, form)
    with opened(path) as dataset:
        assert shades_and_labels(dataset)[1] == [1, 0] * 4 + [1]


PLAIN = tar_member("cat/1.png", PICTURE)


SIZES = [struct.pack(">iq", -1, size) for size in (-512, -1024, -(2**40))]
SIZES.append(b"\x80\0\0\0" + struct.pack(">q", 3 * 2**30))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.XGLTYPE])
def test_headers_about_headers_of_impossible_size_are_refused(path, kind, size):
    path.write_bytes(tar_file(PLAIN, tar_member("x", kind=kind, size=size), PLAIN))
    assert refused_at(path) == "calibration"


ODD_RECORDS = [
    *(b"999 path=x\n", b"3 p\n", b"0 path=x\n", b"-9 path=x\n", b"path=x\n", b"11 path=xyz"),
    *(b"17 size=-5120000\n", b"30 GNU.sparse.size=1000000000\n"),
]


@pytest.mark.parametrize("records", ODD_RECORDS)
def test_odd_pax_records_are_refused(path, records):
    path.write_bytes(tar_file(tar_member("x", records, kind=b"x"), PLAIN))
    refusal(path)


def test_the_size_in_a_pax_record_overrides_the_header(path):
    record = pax_records(size=str(len(PICTURE)))
    names = "cat/1.png", "dog/1.png"
    pictures = [record + tar_member(name, PICTURE, size=b"%011o\0" % 0) for name in names]
    path.write_bytes(tar_file(*pictures))
    with opened(path) as dataset:
        assert shades_and_labels(dataset) == ([200, 200], [0, 1])


REFUSED = [
    *(({"flags": flag}, "encryption") for flag in (0x1, 0x20, 0x40)),
    ({"size": 99}, "claims 99"),
    ({"method": zipfile.ZIP_BZIP2}, "stored or deflated"),
]


@pytest.mark.parametrize(("options", "named"), REFUSED)
def test_encrypted_members_and_those_that_lie_are_refused(path, options, named):
    path.write_bytes(zip_file([Member("cat/1.png", PICTURE, **options)]))
    assert named in refusal(path).message


def test_deflated_pictures_are_read(path):
    with opened(write_zip(path, GOOD, zipfile.ZIP_DEFLATED)) as dataset:
        assert shades_and_labels(dataset)[0] == list(range(len(GOOD)))


@pytest.mark.process
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
    write_zip(path, GOOD)
    with zipfile.ZipFile(path, "a") as archive:
        link = zipfile.ZipInfo("cat/link.png")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    assert refused_at(path) == "calibration[cat/link.png]"


def test_a_directory_that_is_too_long_is_never_read(path):
    """Its first member tells who refuses it, and what to do about it."""
    head = zip_file([Member("cat/1.png", PICTURE)])[:100]
    size = MAX_DIRECTORY_BYTES + 1
    with path.open("wb") as file:
        file.write(head)
        file.seek(len(head) + size)
        file.write(struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, size, len(head), 0))
    error = refusal(path)
    assert type(error) is TooLarge
    assert ".tar" in error.message
