"""Multipart bodies, well-formed and not, and the service's receiver run on them."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path

from service.http.uploads import PartRule, SpooledUpload, UploadLimits, spool_multipart

BOUNDARY = b"a-boundary"
CONTENT_TYPE = "multipart/form-data; boundary=a-boundary"
MEBIBYTE = 1024**2
RULES = {
    "model": PartRule(max_bytes=MEBIBYTE, repeatable=True, is_file=True),
    "calibration": PartRule(max_bytes=MEBIBYTE, repeatable=False, is_file=True),
    "config": PartRule(max_bytes=1000, repeatable=False, is_file=False),
}
LIMITS = UploadLimits(
    max_model_bytes=MEBIBYTE, max_model_data_bytes=MEBIBYTE, max_dataset_bytes=MEBIBYTE
)


def part(headers: str, data: bytes = b"data") -> bytes:
    """Return one part with any headers."""
    return b"--" + BOUNDARY + b"\r\n" + headers.encode() + b"\r\n\r\n" + data + b"\r\n"


def file_part(name: str, filename: str, data: bytes = b"data") -> bytes:
    """Return a part with a file."""
    return part(f'Content-Disposition: form-data; name="{name}"; filename="{filename}"', data)


def text_part(name: str, data: bytes) -> bytes:
    """Return a part with a text."""
    return part(f'Content-Disposition: form-data; name="{name}"', data)


def body(*parts: bytes) -> bytes:
    """Return parts as a whole body."""
    return b"".join(parts) + b"--" + BOUNDARY + b"--\r\n"


async def streamed(chunks: Iterable[bytes]) -> AsyncIterator[bytes]:
    """Yield chunks as a server does, giving way between them."""
    for chunk in chunks:
        yield chunk
        await asyncio.sleep(0)


def pieces(data: bytes, sizes: Sequence[int]) -> list[bytes]:
    """Cut data into pieces of these sizes, over and over."""
    found, at = [], 0
    while at < len(data):
        size = sizes[len(found) % len(sizes)]
        found.append(data[at : at + size])
        at += size
    return found


def receive(
    folder: Path,
    chunks: Iterable[bytes],
    *,
    content_type: str = CONTENT_TYPE,
    limits: UploadLimits = LIMITS,
    rules: Mapping[str, PartRule] = RULES,
) -> SpooledUpload:
    """Receive a body."""
    return asyncio.run(
        spool_multipart(content_type, streamed(chunks), folder=folder, limits=limits, parts=rules)
    )
