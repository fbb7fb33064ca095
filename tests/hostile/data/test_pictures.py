"""Pictures that claim more pixels than there is memory, or are something else altogether."""

import struct
from collections.abc import Callable

import pytest
from hostile_archives import deflated_zeros, tar_file, tar_member
from hostile_case import TOO_LARGE, HostileCase, body_case, set_case
from picture_files import GREY, PNG, jpeg, plain_png, png, png_chunk

ROWS = 30


def zeros(width: int, height: int, *, bits: int = 8, n_mebibytes: int = 0, more=b"") -> bytes:
    """Return a PNG whose head says this, and whose rows are that many MiB of zeros."""
    # Raw deflate, with the head and the tail of zlib.
    packed = b"\x78\x9c" + deflated_zeros(n_mebibytes) + bytes(4)
    return png(width, height, bits, packed, colour=GREY, more=more)


def jpeg_of(width: int, height: int) -> bytes:
    """Return a small JPEG whose head says another size."""
    content = bytearray(jpeg(16, 16))
    at = content.index(b"\xff\xc0")
    content[at + 5 : at + 9] = struct.pack(">2H", height, width)
    return bytes(content)


def picture(name: str, build: Callable[[], bytes], *expected, says: str = "aaa.png") -> HostileCase:
    """The picture as the first of a set, in a tar archive."""

    def archive() -> bytes:
        honest = [tar_member(f"dog/{k}.png", plain_png(k)) for k in range(ROWS)]
        return tar_file(tar_member("cat/aaa.png", build()), *honest)

    return set_case(name, archive, *expected, says=says, preset="imagenet")


# A name, and 80 MiB of zeros in the form of zlib.
BOMB = b"k\0\0\x78\x9c" + deflated_zeros(80) + bytes(4)
CASES = [
    picture("png_bomb", lambda: zeros(30_000, 30_000, bits=1, n_mebibytes=110), TOO_LARGE),
    picture("png_of_no_size", lambda: zeros(0, 0)),
    picture("png_of_text_bombs", lambda: zeros(8, 8, more=png_chunk(b"zTXt", BOMB) * 2)),
    picture("png_chunk_of_4_gib", lambda: PNG + b"\xff\xff\xff\xffIHDR" + bytes(64)),
    picture("jpeg_of_no_size", lambda: jpeg_of(0, 0)),
    picture("postscript", lambda: b"%!PS-Adobe-3.0 EPSF-3.0\n(secret) (r) file", says="PostScript"),
    body_case(
        "picture_at_predict_of_a_model_of_numbers",
        lambda: zeros(50_000, 50_000),
        kind="image/png",
        says="",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_is_refused(hostile, case: HostileCase) -> None:
    hostile(case)
