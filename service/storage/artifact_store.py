"""Artifact stores: files by key, in a folder or in an object store."""

import errno
import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import BinaryIO, TypeAlias

import structlog

from service.errors import ArtifactDamaged, Overloaded, StorageFull
from service.storage.artifact_keys import ROOT, checked_key, checked_prefix, is_key, is_unfinished

CHUNK_BYTES = 8 * 1024**2
# A limit on the size of files means no space, too.
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# A failing disk, an unreachable network file system, a folder without permission.
_UNAVAILABLE = (
    *(errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.ENOTCONN, errno.EHOSTDOWN),
    *(errno.EROFS, errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE),
)

Buffer: TypeAlias = bytes | memoryview

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Stored:
    """The checksum and the size in bytes of stored content."""

    sha256: str
    size: int


@dataclass(frozen=True)
class StoredFile:
    """A key, or an unfinished file of a folder, and when it was written by the store's clock."""

    key: str
    modified: datetime


class Hashed:
    """Parts of a content that are hashed and counted as they are read."""

    def __init__(self, parts: Iterable[Buffer]) -> None:
        self._parts = parts
        self._digest = hashlib.sha256()
        self._size = 0

    def __iter__(self) -> Iterator[Buffer]:
        for part in self._parts:
            self._digest.update(part)
            self._size += len(part)
            yield part

    @property
    def stored(self) -> Stored:
        """Checksum and size of the parts that have been read."""
        return Stored(self._digest.hexdigest(), self._size)


class ArtifactStore(ABC):
    """Files by key, in a folder, in memory or in an object store.

    A key is ``calibrations/{id}/{name}``, where the name may have several levels. It never holds
    a client's file name.

    A store that cannot be used now raises `Overloaded`.
    """

    @abstractmethod
    def put_file(self, key: str, path: Path) -> Stored:
        """Store a file of any size. The key appears when all of the content is stored.

        Raises
        ------
        StorageFull
            If no space is left; nothing is kept then.
        """

    def put_bytes(self, key: str, content: bytes) -> Stored:
        """Store content from memory; otherwise as `put_file`."""
        return self.put_buffers(key, [content])

    @abstractmethod
    def put_buffers(self, key: str, buffers: Sequence[Buffer]) -> Stored:
        """Store buffers as one content without joining them in memory; otherwise as `put_file`."""

    @abstractmethod
    def get_bytes(self, key: str, sha256: str) -> bytes:
        """Return the content of a key.

        Raises
        ------
        ArtifactDamaged
            If it is missing, or not what was stored.
        """

    @contextmanager
    def local_path(self, key: str, sha256: str) -> Iterator[Path]:
        """Yield the path of a file with the content, valid until the block ends.

        Raises
        ------
        ArtifactDamaged
            If it is missing, or not what was stored.
        StorageFull
            If no space is left for a copy.
        """
        with self.unverified_path(key) as path:
            with file_failures(key), path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            verify(key, digest, sha256)
            yield path

    @abstractmethod
    def unverified_path(self, key: str) -> AbstractContextManager[Path]:
        """Yield the file without verifying its SHA-256; for callers that verify what they read.

        Raises
        ------
        ArtifactDamaged
            If it is missing.
        StorageFull
            If no space is left for a copy.
        """

    @abstractmethod
    def delete(self, keys: Iterable[str]) -> None:
        """Delete any number of keys and unfinished files; missing ones are no error."""

    @abstractmethod
    def files(self, prefix: str = ROOT) -> Iterator[StoredFile]:
        """Yield the files below a prefix, those of a calibration one after the other.

        In a folder, unfinished files are included. Few files are in memory at a time.
        """

    def keys(self, prefix: str = ROOT) -> list[str]:
        """Return the keys below a prefix, sorted."""
        return sorted(file.key for file in self.files(prefix) if not is_unfinished(file.key))

    @abstractmethod
    def check(self) -> None:
        """Check that the store answers and accepts the service's credentials.

        Raises
        ------
        Overloaded
            If not; the message gives the reason.
        """


class FolderStore(ArtifactStore):
    """Artifacts in a folder.

    Content is written to ``{key}#{number}``, flushed, and renamed to its key.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        root.mkdir(parents=True, exist_ok=True)

    def put_file(self, key: str, path: Path) -> Stored:
        """Copy a file into the folder."""
        with path.open("rb") as file:
            return self._put(key, iter(lambda: file.read(CHUNK_BYTES), b""))

    def put_buffers(self, key: str, buffers: Sequence[Buffer]) -> Stored:
        """Write buffers to the folder."""
        return self._put(key, buffers)

    def get_bytes(self, key: str, sha256: str) -> bytes:
        """Read the file and verify its checksum."""
        with file_failures(checked_key(key)):
            content = (self._root / key).read_bytes()
        verify(key, hashlib.sha256(content).hexdigest(), sha256)
        return content

    @contextmanager
    def unverified_path(self, key: str) -> Iterator[Path]:
        """Yield the store's own file."""
        path = self._root / checked_key(key)
        if not path.is_file():
            raise damaged(key, "missing")
        yield path

    def delete(self, keys: Iterable[str]) -> None:
        """Delete files and the folders that become empty."""
        with file_failures():
            for key in keys:
                self._remove(self._root / (key if is_unfinished(key) else checked_key(key)))

    def files(self, prefix: str = ROOT) -> Iterator[StoredFile]:
        """Walk the folder."""
        with file_failures():
            for path in _walk(self._root / checked_prefix(prefix)):
                name = path.relative_to(self._root).as_posix()
                if is_key(name) or is_unfinished(name):
                    # A file may be deleted or renamed while the folder is read.
                    with suppress(FileNotFoundError):
                        yield StoredFile(name, datetime.fromtimestamp(path.stat().st_mtime, UTC))

    def check(self) -> None:
        """Do nothing: the folder was made when the store was opened."""

    def _put(self, key: str, parts: Iterable[Buffer]) -> Stored:
        path, content = self._root / checked_key(key), Hashed(parts)
        with file_failures(key):
            with _unfinished(path) as file:
                try:
                    file.writelines(content)
                    file.flush()
                    os.fsync(file.fileno())
                    Path(file.name).replace(path)
                except BaseException:
                    self._remove(Path(file.name))
                    raise
            try:
                flush_to_disk(path, self._root)
            except OSError:
                self._remove(path)
                raise
        return content.stored

    def _remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        for folder in path.parents:
            if folder == self._root:
                return
            try:
                folder.rmdir()
            except OSError:  # it is not empty, or another thread removed it
                return


def open_artifact_store(location: str, copies: Path | None = None) -> ArtifactStore:
    """Return the store at a folder's path, ``file://``, ``memory://``, ``s3://`` or the like.

    ``copies`` is the folder for local copies of remote files; by default the system's folder for
    temporary files.

    Raises
    ------
    ValueError
        If the location is a URL of another kind, or incomplete.
    """
    scheme, separator, path = location.partition("://")
    if not separator or scheme == "file":
        return FolderStore(Path(path if separator else location).resolve())
    # Commands that use a folder, or no store, do not load the libraries of object stores.
    from service.storage.remote_store import open_remote_store  # noqa: PLC0415 - see above

    return open_remote_store(location, copies)


@contextmanager
def file_failures(key: str | None = None) -> Iterator[None]:
    """Translate a missing file, a full disk and a folder that cannot be used.

    Any other error of the operating system is a bug and is raised as it is.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _NO_SPACE:
            raise StorageFull("No space is left for artifacts.") from error
        if error.errno == errno.ENOENT and key is not None:
            raise damaged(key, "missing") from error
        if error.errno not in _UNAVAILABLE:
            raise
        raise _unavailable(key, error) from error


def _unavailable(key: str | None, error: OSError) -> Overloaded:
    log.error("artifact_store_fails", key=key, error=str(error))
    return Overloaded(f"The artifact store cannot be used ({error.strerror}); try again.")


def damaged(key: str, found: str) -> ArtifactDamaged:
    """Return the error for a caller; only the log names the file."""
    log.warning("artifact_damaged", key=key, found=found)
    return ArtifactDamaged(f"A stored file is {found}.")


def verify(key: str, found: str, expected: str) -> None:
    """Compare two checksums.

    Raises
    ------
    ArtifactDamaged
        If they differ.
    """
    if found != expected:
        raise damaged(key, "not what was stored")


def flush_to_disk(path: Path, root: Path) -> None:
    """Flush a file and its parent folders up to ``root`` to the disk.

    A database row must not outlive the file that it names.
    """
    _flush(path)
    for folder in path.parents:
        _flush(folder)
        if folder == root:
            return


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unfinished(path: Path) -> BinaryIO:
    """Create a file beside ``path`` with the first free number."""
    for number in count(1):
        # Another thread may remove the folder while it is empty.
        with suppress(FileNotFoundError):
            path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError, FileExistsError):
            return path.with_name(f"{path.name}#{number}").open("xb")
    raise AssertionError("there is always another number")


def _walk(folder: Path) -> Iterator[Path]:
    try:
        entries = os.scandir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return
    with entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(Path(entry.path))
            else:
                yield Path(entry.path)
