"""Uploads: ``multipart/form-data`` streamed to disk, in constant memory and off the event loop."""

import errno
import hashlib
import shutil
import unicodedata
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from anyio import CancelScope, to_thread
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import (
    DEFAULT_MAX_HEADER_SIZE,
    MultipartParser,
    parse_options_header,
)

from service.errors import InvalidInput, MalformedRequest, StorageFull, TooLarge, UnsupportedFormat

GIBIBYTE = 1024**3
MAX_LABEL_LENGTH = 255
UNNAMED = "unnamed"


@dataclass(frozen=True)
class UploadLimits:
    """Maximum bytes of a file by its kind, bytes of a whole body, and number of its parts."""

    max_model_bytes: int
    max_model_data_bytes: int
    max_dataset_bytes: int
    max_total_bytes: int = 256 * GIBIBYTE
    max_parts: int = 256


@dataclass(frozen=True)
class PartRule:
    """The rule for parts of one name: files go to disk and may repeat, texts stay in memory."""

    max_bytes: int
    repeatable: bool
    is_file: bool


@dataclass(frozen=True)
class SpooledFile:
    """A received file; ``label`` is the sender's name for it, only for display."""

    path: Path
    label: str
    sha256: str
    size: int


@dataclass(frozen=True)
class SpooledUpload:
    """The parts of a received form; its owner must call `discard`."""

    _folder: Path
    _files: Mapping[str, Sequence[SpooledFile]]
    _texts: Mapping[str, str]

    def files(self, name: str) -> list[SpooledFile]:
        """Return the files sent under this name, in order."""
        return list(self._files.get(name, ()))

    def text(self, name: str) -> str | None:
        """Return the text of this part; None if it was not sent."""
        return self._texts.get(name)

    def discard(self) -> None:
        """Remove everything from disk; it may be called again."""
        shutil.rmtree(self._folder, ignore_errors=True)


def file_label(name: str) -> str:
    """Return a file name without folders and invisible characters."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    # Categories C*: control, direction, surrogate and unassigned characters.
    shown = "".join(c for c in last if not unicodedata.category(c).startswith("C")).strip()
    if shown in ("", ".", ".."):
        return UNNAMED
    return shown[:MAX_LABEL_LENGTH]


BODY = "body"

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_PLAIN_ENCODINGS = {b"7bit", b"8bit", b"binary"}
_MAX_SHOWN = 60


@dataclass
class _Part:
    """A part that is being received."""

    name: str
    rule: PartRule
    label: str
    file: BinaryIO | None
    path: Path
    # Browsers send a part for a file field without a file.
    is_left_out: bool = False
    text: bytearray = field(default_factory=bytearray)
    sha256: "hashlib._Hash" = field(default_factory=hashlib.sha256)
    size: int = 0


class UploadSpool:
    """Receives one form into a new folder; for one thread at a time."""

    def __init__(
        self, boundary: bytes, *, folder: Path, limits: UploadLimits, parts: Mapping[str, PartRule]
    ) -> None:
        self._limits = limits
        self._rules = parts
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._on_part_begin,
                "on_header_field": self._on_header_field,
                "on_header_value": self._on_header_value,
                "on_header_end": self._on_header_end,
                "on_headers_finished": self._on_headers_finished,
                "on_part_data": self._on_part_data,
                "on_part_end": self._on_part_end,
                "on_end": self._on_end,
            },
        )
        self._n_bytes = 0
        self._n_parts = 0
        self._is_complete = False
        self._field = bytearray()
        self._value = bytearray()
        self._headers: dict[bytes, bytes] = {}
        self._part: _Part | None = None
        self._files: dict[str, list[SpooledFile]] = {}
        self._texts: dict[str, str] = {}
        self._folder = folder / f"upload-{uuid.uuid4().hex}"

    def open(self) -> None:
        """Create the folder; after a failure, `discard` cleans up."""
        with full_storage():
            self._folder.mkdir(parents=True)

    def feed(self, data: bytes) -> None:
        """Parse and store the next bytes of the body.

        Raises
        ------
        MalformedRequest
            If the body is no multipart form.
        InvalidInput, UnsupportedFormat
            If a part is unknown or repeated, a text instead of a file, or encoded.
        TooLarge
            If a part, the body or the number of parts is above its limit.
        StorageFull
            If the disk is full.
        """
        self._n_bytes += len(data)
        if self._n_bytes > self._limits.max_total_bytes:
            raise TooLarge.at(
                BODY, f"expected at most {self._limits.max_total_bytes} bytes in all, got more"
            )
        try:
            with full_storage():
                self._parser.write(data)
        except FormParserError as error:
            if "header size" in str(error):
                raise TooLarge.at(
                    BODY,
                    f"expected headers of a part of at most {DEFAULT_MAX_HEADER_SIZE} bytes each; "
                    "is a file name too long?",
                ) from error
            raise MalformedRequest.at(
                BODY, "expected multipart/form-data with the boundary its header names"
            ) from error

    def finish(self) -> SpooledUpload:
        """Return the form once the body has ended."""
        if not self._is_complete:
            found = "one cut off before its closing boundary" if self._n_bytes else "nothing"
            raise MalformedRequest.at(BODY, f"expected a whole form, got {found}")
        return SpooledUpload(self._folder, self._files, self._texts)

    def discard(self) -> None:
        """Remove everything, in any state."""
        if self._part is not None and self._part.file is not None:
            # Closing flushes the buffer, which fails on a full disk.
            with suppress(OSError):
                self._part.file.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _on_part_begin(self) -> None:
        self._n_parts += 1
        if self._n_parts > self._limits.max_parts:
            raise TooLarge.at(BODY, f"expected at most {self._limits.max_parts} parts, got more")
        self._headers = {}

    def _on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._field += data[start:end]

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _on_header_end(self) -> None:
        name = bytes(self._field).lower()
        if name in self._headers:
            raise MalformedRequest.at(BODY, "expected each header of a part once, got one twice")
        self._headers[name] = bytes(self._value)
        self._field.clear()
        self._value.clear()

    def _on_headers_finished(self) -> None:
        kind, options = parse_options_header(self._headers.get(b"content-disposition"))
        if kind != b"form-data" or b"name" not in options:
            raise MalformedRequest.at(
                BODY, "expected each part to have `Content-Disposition: form-data; name=…`"
            )
        name = options[b"name"].decode("utf-8", "replace")
        rule = self._rules.get(name)
        if rule is None:
            known = ", ".join(f"`{known}`" for known in self._rules)
            shown = ascii(name[:_MAX_SHOWN])[1:-1] or BODY
            raise InvalidInput.at(shown, f"there is no such part; expected one of {known}")
        if not rule.repeatable and (name in self._files or name in self._texts):
            raise InvalidInput.at(name, "expected this part once, got it twice")
        encoding = self._headers.get(b"content-transfer-encoding", b"binary").strip().lower()
        if encoding not in _PLAIN_ENCODINGS:
            raise UnsupportedFormat.at(name, "expected plain bytes, got an encoded part")
        filename = options.get(b"filename", b"").decode("utf-8", "replace")
        is_left_out = rule.is_file and options.get(b"filename") == b""
        if rule.is_file and not filename and not is_left_out:
            raise InvalidInput.at(
                name, f"expected a file, got a text; with curl write -F {name}=@FILE"
            )
        path = self._folder / f"part-{self._n_parts}"
        file = path.open("xb") if rule.is_file else None
        self._part = _Part(name, rule, file_label(filename), file, path, is_left_out)

    def _on_part_data(self, data: bytes, start: int, end: int) -> None:
        part = self._received()
        part.size += end - start
        if part.is_left_out and part.size:
            raise InvalidInput.at(part.name, "expected a file with a name, got one without")
        if part.size > part.rule.max_bytes:
            raise TooLarge.at(part.name, f"expected at most {part.rule.max_bytes} bytes, got more")
        piece = memoryview(data)[start:end]
        if part.file is None:
            part.text += piece
        else:
            part.sha256.update(piece)
            part.file.write(piece)

    def _on_part_end(self) -> None:
        part = self._received()
        if part.file is None:
            try:
                self._texts[part.name] = part.text.decode("utf-8")
            except UnicodeDecodeError as error:
                raise InvalidInput.at(part.name, "expected text in UTF-8") from error
        else:
            part.file.close()
            if part.is_left_out:
                part.path.unlink()
                self._part = None
                return
            self._files.setdefault(part.name, []).append(
                SpooledFile(part.path, part.label, part.sha256.hexdigest(), part.size)
            )
        self._part = None

    def _on_end(self) -> None:
        self._is_complete = True

    def _received(self) -> _Part:
        if self._part is None:
            raise MalformedRequest.at(BODY, "expected each part to begin with its headers")
        return self._part


@contextmanager
def full_storage() -> Iterator[None]:
    """Turn the errors of a full disk into `StorageFull`."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise StorageFull("There is no space left for this upload; try again later.") from error


# Bytes that are parsed, hashed and written per call to a worker thread. On the event loop a slow
# disk would block all other requests. Calls for 64 KiB each would cost more than the work
# (400 MiB: 1.95 s; 0.87 s with 1 MiB each, 0.91 s on the loop).
BATCH_BYTES = 1024**2
MAX_BOUNDARY_LENGTH = 256

_HEADER = "content-type"


async def spool_multipart(
    content_type: str,
    stream: AsyncIterator[bytes],
    *,
    folder: Path,
    limits: UploadLimits,
    parts: Mapping[str, PartRule],
) -> SpooledUpload:
    """Receive a form into a new folder below ``folder``.

    ``parts`` maps the name of each allowed part to its rule. After a failure or cancellation
    nothing is left on disk.

    Raises
    ------
    UnsupportedFormat
        If the media type is not multipart/form-data, or a part is encoded.
    MalformedRequest
        If the body is no form or is incomplete.
    InvalidInput
        If a part is unknown or repeated, or a text instead of a file.
    TooLarge
        If a part, the body or the number of parts is above its limit.
    StorageFull
        If the disk is full.
    """
    boundary = _boundary(content_type)
    spool = UploadSpool(boundary, folder=folder, limits=limits, parts=parts)
    try:
        await to_thread.run_sync(spool.open)
        pending: list[bytes] = []
        n_pending = 0
        async for chunk in stream:
            pending.append(chunk)
            n_pending += len(chunk)
            if n_pending >= BATCH_BYTES:
                await to_thread.run_sync(spool.feed, b"".join(pending))
                pending, n_pending = [], 0
        await to_thread.run_sync(spool.feed, b"".join(pending))
        return spool.finish()
    except BaseException:
        with CancelScope(shield=True):
            await to_thread.run_sync(spool.discard)
        raise


def _boundary(content_type: str) -> bytes:
    """Return the boundary in a Content-Type header."""
    kind, options = parse_options_header(content_type.encode("latin-1", "replace"))
    if kind != b"multipart/form-data":
        shown = ascii(kind.decode("latin-1")[:60])[1:-1] or "none"
        raise UnsupportedFormat.at(_HEADER, f"expected multipart/form-data, got {shown}")
    boundary = options.get(b"boundary", b"")
    if not 0 < len(boundary) <= MAX_BOUNDARY_LENGTH:
        raise MalformedRequest.at(
            _HEADER, f"expected a boundary of 1 to {MAX_BOUNDARY_LENGTH} characters"
        )
    return boundary
