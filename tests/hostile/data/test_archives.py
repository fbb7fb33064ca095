"""Zip and tar archives that inflate without an end, share bytes, or lead elsewhere."""

import struct
from collections.abc import Callable

import hostile_archives
import numpy as np
import pytest
from dataset_files import npy_claim
from hostile_archives import (
    DEFLATED,
    IN_ZIP64,
    Member,
    array_archive,
    deflated_zeros,
    pax_records,
    tar_file,
    tar_member,
    zip64_sizes,
    zip_file,
)
from hostile_archives import N_ROWS as ROWS
from hostile_case import TOO_LARGE, HostileCase, body_case, set_case
from picture_files import plain_png
from running_service import npy

LABELS = npy(hostile_archives.LABELS)
INPUTS = npy(np.zeros((ROWS, 64), "<f4"))


def bomb(n_rows: int, n_bytes: int) -> bytes:
    """Return 1 GiB of rows in 1 MiB, which claim to be fewer rows or bytes."""
    header = npy_claim("<f4", (n_rows, 64))
    packed, size = deflated_zeros(1024, header), len(header) + n_bytes
    return array_archive(Member("inputs.npy", method=DEFLATED, packed=packed, size=size))


def honest_bomb() -> bytes:
    return bomb(2**22, 2**30)


def overlapping(n: int = 500) -> bytes:
    """Return many members that are one: each says that it begins where the first does."""
    return zip_file([Member(f"x{k}.npy", LABELS, at=0 if k else None) for k in range(n)])


def quoted() -> bytes:
    """Return a member that holds another, which the directory names as well."""
    inner = zip_file([Member("labels.npy", LABELS)])
    begins = 30 + len("inputs.npy")
    return zip_file([Member("inputs.npy", inner), Member("labels.npy", LABELS, at=begins)])


def member(name: str, content: bytes = INPUTS, **header) -> Callable[[], bytes]:
    return lambda: array_archive(Member(name, content, **header))


ZIP = [
    set_case("honest_bomb", honest_bomb, TOO_LARGE),
    set_case("lying_bomb", lambda: bomb(ROWS, ROWS * 64 * 4)),
    set_case("claims_of_4_gib", member("inputs.npy", size=2**32 - 2), says="calibration.inputs"),
    set_case("claims_of_zip64", member("inputs.npy", size=IN_ZIP64, extra=zip64_sizes(2**60, 64))),
    set_case("bytes_that_are_not_there", member("inputs.npy", packed_size=2**31)),
    set_case("local_name_of_another", member("inputs.npy", local_name="labels.npy")),
    # Nobody believes the header before the bytes.
    HostileCase(
        "npz_local_size_of_another",
        lambda attacker, built: attacker.calibrate(built, model=b"none"),
        422,
        "invalid-onnx-model",
        build=member("inputs.npy", local_size=2**31),
    ),
    set_case("overlap", overlapping),
    set_case("member_in_member", quoted, says="shares bytes"),
    set_case(
        "member_twice", lambda: array_archive(*[Member("labels.npy", LABELS)] * 2), says="twice"
    ),
    set_case("30000_entries", lambda: overlapping(30_000), TOO_LARGE),
    body_case("predict_honest_bomb", honest_bomb, *TOO_LARGE),
    body_case("predict_member_twice", lambda: zip_file([Member("image.npy", INPUTS)] * 2)),
]
HONEST = [tar_member(f"cat/{k}.png", plain_png(k)) for k in range(ROWS)]
PICTURE = tar_member("cat/x.png", plain_png(1))
SPARSE = {"GNU.sparse.major": "1", "GNU.sparse.realsize": str(2**40)}
# As GNU writes sizes that octal digits have no room for.
BASE_256 = struct.pack(">B3xq", 0x80, 2**60)


def tar_of_pictures(name: str, *members: bytes, says: str = "calibration", **more) -> HostileCase:
    """Return the case of an archive of honest pictures and of these members."""
    build = lambda: tar_file(*HONEST, *members)  # noqa: E731
    return set_case(f"tar_{name}", build, says=says, preset="imagenet", **more)


def link(kind: bytes, to: str = "") -> bytes:
    return tar_member("cat/x.png", kind=kind, to=to)


TAR = [
    tar_of_pictures("symbolic_link", link(b"2", "/etc/passwd"), says="a symbolic link"),
    tar_of_pictures("character_device", link(b"3"), says="a device"),
    tar_of_pictures("sparse", link(b"S"), says="holes"),
    tar_of_pictures("sparse_by_pax", pax_records(**SPARSE), PICTURE, says="holes"),
    tar_of_pictures("name_of_a_parent_by_pax", pax_records(path="../../x.png"), PICTURE),
    tar_of_pictures("size_of_2_to_the_60", tar_member("cat/x.png", size=BASE_256), says="has left"),
    tar_of_pictures(
        "name_of_2_mib", tar_member("long", b"n" * 2**21, kind=b"L"), expected=TOO_LARGE
    ),
]


@pytest.mark.parametrize("case", ZIP + TAR, ids=str)
def test_it_is_refused(hostile, case: HostileCase) -> None:
    hostile(case)
