"""Zip archives that inflate without an end, share their bytes, or say what is not so."""

import io
import struct
import zipfile
from collections.abc import Callable

import hostile_archives
import numpy as np
import pytest
from dataset_files import npy_bytes, npy_claim
from hostile_archives import (
    DEFLATED,
    IN_ZIP64,
    Member,
    array_archive,
    deflated_zeros,
    zip64_sizes,
    zip_file,
)
from hostile_archives import N_ROWS as ROWS
from hostile_case import TOO_LARGE, HostileCase, SetCase, body_case

MEBIBYTE = 1024**2
LABELS = npy_bytes(hostile_archives.LABELS)
INPUTS = npy_bytes(np.zeros((ROWS, 64), "<f4"))


def bomb(n_rows: int, n_bytes: int) -> bytes:
    """Return 1 GiB of rows in 1 MiB, which claim to be fewer rows or bytes."""
    header = npy_claim("<f4", (n_rows, 64))
    packed, size = deflated_zeros(1024, header), len(header) + n_bytes
    return array_archive(Member("inputs.npy", method=DEFLATED, packed=packed, size=size))


def honest_bomb() -> bytes:
    return bomb(2**22, 2**30)


def bombs_of_pictures() -> bytes:
    return zip_file(
        [
            Member(f"cat/{k}.png", method=DEFLATED, packed=deflated_zeros(60), size=60 * MEBIBYTE)
            for k in range(30)
        ]
    )


def all_in_one_place(name: str, content: bytes, n_members: int) -> bytes:
    """Return many members that are one: each says that it begins where the first does."""
    first = Member(name.format(0), content, DEFLATED)
    return zip_file(
        [first, *(Member(name.format(k), content, DEFLATED, at=0) for k in range(1, n_members))]
    )


def quoted() -> bytes:
    """Return a member that holds another, which the directory names as well."""
    inner = zip_file([Member("labels.npy", LABELS)])
    begins = 30 + len("inputs.npy")
    return zip_file([Member("inputs.npy", inner), Member("labels.npy", LABELS, at=begins)])


def nested() -> bytes:
    inner = array_archive()
    for _ in range(10):
        inner = zip_file([Member("inner.npz", inner)])
    return inner


def of_two_ends() -> bytes:
    """Return an archive with a second one behind it: which is read depends on who reads."""
    return array_archive() + array_archive(
        Member("labels.npy", npy_bytes(np.zeros(ROWS, np.int64)))
    )


def compressed_otherwise() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("inputs.npy", INPUTS)
        archive.writestr("labels.npy", LABELS)
    return packed.getvalue()


def a_million_entries() -> bytes:
    """Return a directory of members that all are one, and nothing else."""
    name = b"x.npy"
    fields = (20, 20, 0, 0, 0, 33, 0, 0, 0, len(name), 0, 0, 0, 0, 0, 0)
    entry = struct.pack("<4s6H3L5H2L", b"PK\x01\x02", *fields) + name
    local = struct.pack("<4s5H3L2H", b"PK\x03\x04", 20, 0, 0, 0, 33, 0, 0, 0, len(name), 0) + name
    size = len(entry) * 1_000_000
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, size, len(local), 0)
    return local + entry * 1_000_000 + end


def member(name: str, content: bytes = INPUTS, **said) -> Callable[[], bytes]:
    return lambda: array_archive(Member(name, content, **said))


TWICE = [Member("labels.npy", LABELS)] * 2
LYING = Member("image.npy", method=DEFLATED, packed=deflated_zeros(1024), size=1000)
CASES = [
    SetCase("honest_bomb", honest_bomb, TOO_LARGE),
    SetCase("lying_bomb", lambda: bomb(ROWS, ROWS * 64 * 4)),
    body_case("predict_honest_bomb", honest_bomb, *TOO_LARGE),
    SetCase("zip_bombs", bombs_of_pictures, TOO_LARGE, preset="imagenet"),
    SetCase("claims_of_4_gib", member("inputs.npy", size=2**32 - 2), says="calibration.inputs"),
    SetCase("claims_of_zip64", member("inputs.npy", size=IN_ZIP64, extra=zip64_sizes(2**60, 64))),
    SetCase("bytes_that_are_not_there", member("inputs.npy", packed_size=2**31)),
    SetCase("local_name_of_another", member("inputs.npy", local_name="labels.npy")),
    # Nobody believes the header before the bytes.
    HostileCase(
        "npz_local_size_of_another",
        lambda attacker, built: attacker.calibrate(built, model=b"none"),
        422,
        "invalid-onnx-model",
        build=member("inputs.npy", local_size=2**31),
    ),
    SetCase("overlap", lambda: all_in_one_place("x{}.npy", LABELS, 500)),
    SetCase("member_in_member", quoted, says="shares bytes"),
    SetCase("member_twice", lambda: array_archive(*TWICE), says="twice"),
    SetCase("nested", nested),
    SetCase("of_two_ends", of_two_ends),
    SetCase("a_million_entries", a_million_entries, TOO_LARGE),
    SetCase("bzip2", compressed_otherwise, says="stored or deflated"),
    SetCase("unknown_compression", member("inputs.npy", method=99)),
    SetCase("name_of_60000_characters", member("n" * 60_000 + ".npy")),
    body_case("predict_member_twice", lambda: zip_file([Member("image.npy", INPUTS)] * 2)),
    body_case("predict_lying_bomb", lambda: zip_file([LYING])),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_is_refused(hostile, case: HostileCase | SetCase) -> None:
    hostile(case)
