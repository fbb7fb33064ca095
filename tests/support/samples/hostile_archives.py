"""Archives as no honest program writes them, made directly in their compressed form."""

import struct
import tarfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from running_service import npy

STORED, DEFLATED = 0, 8
BLOCK = 512
# What stands in a 32-bit field whose value is in the zip64 record.
IN_ZIP64 = 0xFFFFFFFF


@dataclass(frozen=True)
class Member:
    """A file of a zip archive, and what its two headers say of it where that is not so.

    Attributes
    ----------
    local_name, local_size
        In the header before the bytes; otherwise as in the directory.
    size, packed_size
        In both headers.
    at : int
        Where the directory says that it begins; the bytes are not written again then.
    """

    name: str
    content: bytes = b""
    method: int = STORED
    flags: int = 0
    packed: bytes | None = None
    size: int | None = None
    packed_size: int | None = None
    local_name: str | None = None
    local_size: int | None = None
    extra: bytes = b""
    at: int | None = None

    @property
    def data(self) -> bytes:
        if self.packed is not None:
            return self.packed
        return deflated(self.content) if self.method == DEFLATED else self.content


def zip_file(members: Sequence[Member]) -> bytes:
    """Return a zip archive of these, whatever they say."""
    body, directory = bytearray(), bytearray()
    for member in members:
        data, crc = member.data, zlib.crc32(member.content)
        size = len(member.content) if member.size is None else member.size
        packed = len(data) if member.packed_size is None else member.packed_size
        at = len(body) if member.at is None else member.at
        if member.at is None:
            name = (member.name if member.local_name is None else member.local_name).encode()
            said = size if member.local_size is None else member.local_size
            fields = (20, member.flags, member.method, 0, 33, crc, packed, said, len(name), 0)
            body += struct.pack("<4s5H3L2H", b"PK\x03\x04", *fields) + name + data
        name = member.name.encode()
        fields = (20, 20, member.flags, member.method, 0, 33, crc, packed, size, len(name))
        rest = (len(member.extra), 0, 0, 0, 0o100644 << 16, at)
        directory += struct.pack("<4s6H3L5H2L", b"PK\x01\x02", *fields, *rest)
        directory += name + member.extra
    end = (0, 0, len(members), len(members), len(directory), len(body), 0)
    return bytes(body + directory + struct.pack("<4s4H2LH", b"PK\x05\x06", *end))


N_ROWS = 30
LABELS = np.arange(N_ROWS) % 10


def array_archive(*members: Member) -> bytes:
    """Return an .npz archive of labels and inputs, or of what stands in their place."""
    plain = {"inputs.npy": np.zeros((N_ROWS, 64), "<f4"), "labels.npy": LABELS}
    for member in members:
        plain.pop(member.name, None)
    return zip_file([*members, *(Member(name, npy(array)) for name, array in plain.items())])


def zip64_sizes(size: int, packed_size: int) -> bytes:
    """Return the record that holds sizes of more than 32 bits."""
    return struct.pack("<2H2Q", 1, 16, size, packed_size)


def deflated(content: bytes) -> bytes:
    """Return raw deflate, as zip archives hold it."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(content) + packer.flush()


def deflated_zeros(n_mebibytes: int, head: bytes = b"") -> bytes:
    """Return raw deflate of ``head`` and that many MiB of zeros: a thousandth of it."""
    first = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    start = first.compress(head) + first.flush(zlib.Z_FULL_FLUSH)
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    block = packer.compress(bytes(1024**2)) + packer.flush(zlib.Z_FULL_FLUSH)
    return start + block * n_mebibytes + packer.flush(zlib.Z_FINISH)


def tar_member(
    name: str, content: bytes = b"", *, kind: bytes = b"0", size: bytes | None = None, to: str = ""
) -> bytes:
    """Return a member of a tar archive: header, content, padding.

    Parameters
    ----------
    kind : bytes
        One byte: 0 a file, 1 a hard link, 2 a symbolic one, 3 and 4 devices, 6 a FIFO, S sparse.
    size : bytes, optional
        The twelve bytes of its field, where they are not to be those of ``content``.
    to : str
        Where a link leads.
    """
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.size = kind, to, len(content)
    header = bytearray(member.tobuf(tarfile.USTAR_FORMAT))
    if size is not None:
        header[124:136] = size
        header[148:156] = b" " * 8
        header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + content + bytes(-len(content) % BLOCK)


def tar_file(*members: bytes) -> bytes:
    """Return a tar archive of these."""
    return b"".join(members) + bytes(2 * BLOCK)


def pax_records(**records: str) -> bytes:
    """Return the member that says more of the one behind it."""
    lines = b""
    for name, value in records.items():
        text = f" {name}={value}\n".encode()
        # The length counts its own digits.
        length = next(n for n in range(len(text), len(text) + 9) if n == len(str(n)) + len(text))
        lines += str(length).encode() + text
    return tar_member("pax", lines, kind=b"x")
