"""Tar archives of anything but files, and with sizes and names that lead elsewhere."""

import struct
from collections.abc import Callable

import httpx
import pytest
from hostile_archives import (
    deflated_zeros,
    gzip_of_zeros,
    pax_records,
    tar_file,
    tar_member,
)
from hostile_case import TOO_LARGE, UNREAD, Attacker, HostileCase, SetCase
from picture_files import plain_png

ROWS = 30


def base_256(size: int) -> bytes:
    """Return a size as GNU writes those that octal digits have no room for."""
    return struct.pack(">B3xq", 0x80, size)


def after_pictures(*members: bytes) -> Callable[[], bytes]:
    """Return an archive of honest pictures and of these."""
    honest = [tar_member(f"cat/{k}.png", plain_png(k)) for k in range(ROWS)]
    return lambda: tar_file(*honest, *members)


def as_pictures(name: str, build: Callable[[], bytes], *expected, **more) -> SetCase:
    return SetCase(f"tar_{name}", build, *expected, preset="imagenet", **more)


def link(kind: bytes, to: str) -> Callable[[], bytes]:
    return after_pictures(tar_member("cat/x.png", kind=kind, to=to))


def inferred(encoding: str, bomb: bytes) -> HostileCase:
    def send(attacker: Attacker) -> httpx.Response:
        return attacker.infer(bomb, Content_Encoding=encoding)

    return HostileCase(f"{encoding}_bomb_at_infer", send, 413)


PICTURE, HOLES = tar_member("cat/x.png", plain_png(1)), tar_member("cat/x.png", kind=b"S")
SPARSE = {"GNU.sparse.major": "1", "GNU.sparse.realsize": str(2**40)}
CASES = [
    as_pictures("symbolic_link", link(b"2", "/etc/passwd"), says="a symbolic link"),
    as_pictures("character_device", link(b"3", ""), says="a device"),
    as_pictures("sparse", after_pictures(HOLES), says="holes"),
    as_pictures("sparse_by_pax", after_pictures(pax_records(**SPARSE), PICTURE), says="holes"),
    as_pictures(
        "name_of_a_parent_by_pax", after_pictures(pax_records(path="../../x.png"), PICTURE)
    ),
    as_pictures(
        "size_of_2_to_the_60",
        after_pictures(tar_member("cat/x.png", size=base_256(2**60))),
        says="more than the archive has left",
    ),
    as_pictures(
        "name_of_2_mib", after_pictures(tar_member("long", b"n" * 2**21, kind=b"L")), TOO_LARGE
    ),
    as_pictures("two_archives", lambda: after_pictures()() * 2, says="behind its end"),
    SetCase("gzip_bomb", lambda: gzip_of_zeros(1024), UNREAD, "gzip"),
    inferred("gzip", gzip_of_zeros(64)),
    inferred("deflate", b"\x78\x9c" + deflated_zeros(64)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_is_refused(hostile, case: HostileCase | SetCase) -> None:
    hostile(case)
