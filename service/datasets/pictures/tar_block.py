"""One block of a tar archive that describes a member, as POSIX and those before it lay it out.

What ``tarfile`` makes of a block is the same, in ten times the time: owners, devices and dates too.
"""

from typing import NamedTuple

BLOCK = 512

_NAME = slice(0, 100)
_SIZE = slice(124, 136)
_CHECKSUM = slice(148, 156)
_KIND = slice(156, 157)
_MAGIC = slice(257, 263)
_PREFIX = slice(345, 500)
_USTAR = b"ustar\0"
_FOLDER = b"5"
_BASE_256 = 0x80
_BASE_256_NEGATIVE = 0xFF
_SIGN = 0x80


class TarBlock(NamedTuple):
    """What a header says of a member; ``kind`` is its type flag."""

    name: bytes
    size: int
    kind: bytes


def read_tar_block(block: bytes) -> TarBlock:
    """Return what a block says.

    Raises
    ------
    ValueError
        If it is not a whole header, or its checksum does not hold.
    """
    if len(block) != BLOCK:
        raise ValueError(f"expected {BLOCK} bytes, got {len(block)}")
    field = block[_CHECKSUM]
    expected = sum(block) - sum(field) + len(field) * ord(" ")
    claimed = _number(field)
    # Some add up bytes as if they had a sign.
    negative = 0 if claimed == expected else sum(byte >= _SIGN for byte in block)
    if claimed not in (expected, expected - 256 * negative):
        raise ValueError("the checksum does not hold")
    name, kind = _text(block[_NAME]), block[_KIND]
    prefix = _text(block[_PREFIX]) if block[_MAGIC] == _USTAR else b""
    if kind == b"\0":
        # Before there were flags a slash told a folder.
        kind = _FOLDER if name.endswith(b"/") else b"0"
    return TarBlock(b"/".join((prefix, name)) if prefix else name, _number(block[_SIZE]), kind)


def _text(field: bytes) -> bytes:
    return field.split(b"\0", 1)[0]


def _number(field: bytes) -> int:
    """Return a number: octal digits, or where they are too few the bytes themselves."""
    if field[0] == _BASE_256:
        return int.from_bytes(field[1:], "big")
    if field[0] == _BASE_256_NEGATIVE:
        return int.from_bytes(field, "big", signed=True)
    digits = _text(field).strip(b" ")
    if digits and not digits.isdigit():
        raise ValueError("a number is expected in octal digits")
    return int(digits or b"0", 8)
