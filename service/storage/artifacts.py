"""The artifact store: files under keys that the server makes, verified when they are read."""

import hashlib
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeAlias

import obstore
from obstore.store import LocalStore, MemoryStore

from service.storage.artifact_failures import artifact_failures, damaged
from service.storage.durable import flush_to_disk

ObjectStore: TypeAlias = LocalStore | MemoryStore

CHUNK_BYTES = 8 * 1024**2
MAX_KEY_CHARACTERS = 500
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_PART = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
_KEY = re.compile(rf"calibrations/{_UUID}(?:/{_PART})+")
_PREFIX = re.compile(rf"calibrations(?:/{_UUID}(?:/{_PART})*)?")


@dataclass(frozen=True)
class Stored:
    """What was stored: its checksum, to be kept, and its size in bytes."""

    sha256: str
    size: int


class ArtifactStore:
    """Files by key, in a folder or in memory.

    A key is ``calibrations/{id}/{name}``, with further levels if wanted; a client's file name has
    no place in it.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def put_file(self, key: str, path: Path) -> Stored:
        """Store the content of a file of any size; the key appears when all of it is there.

        Raises
        ------
        StorageFull
            If no space is left; nothing is kept then.
        """
        with path.open("rb") as file:
            return self._put(key, iter(lambda: file.read(CHUNK_BYTES), b""))

    def put_bytes(self, key: str, content: bytes) -> Stored:
        """Store a content that is in memory; as `put_file`."""
        return self._put(key, iter([content]))

    def get_bytes(self, key: str, sha256: str) -> bytes:
        """Return the content of a key.

        Raises
        ------
        ArtifactDamaged
            If it is missing, or not what was stored.
        """
        with artifact_failures(key):
            content = obstore.get(self._store, _checked(key)).bytes().to_bytes()
        _verify(key, hashlib.sha256(content).hexdigest(), sha256)
        return content

    @contextmanager
    def local_path(self, key: str, sha256: str) -> Iterator[Path]:
        """Provide the content as a file to be read, for as long as the block runs.

        Raises
        ------
        ArtifactDamaged
            If it is missing, or not what was stored.
        StorageFull
            If no space is left for a copy.
        """
        path = self._path(_checked(key))
        if path is not None:
            with artifact_failures(key), path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            _verify(key, digest, sha256)
            yield path
            return
        with tempfile.TemporaryDirectory(prefix="howsure-") as folder:
            copy = Path(folder) / "artifact"
            _verify(key, self._download(key, copy), sha256)
            yield copy

    @contextmanager
    def unverified_path(self, key: str) -> Iterator[Path]:
        """Provide the content as it lies there, for who reads a little of it and checks that.

        Raises
        ------
        ArtifactDamaged
            If it is missing.
        StorageFull
            If no space is left for a copy.
        """
        path = self._path(_checked(key))
        if path is not None:
            if not path.is_file():
                raise damaged(key, "missing")
            yield path
            return
        with tempfile.TemporaryDirectory(prefix="howsure-") as folder:
            copy = Path(folder) / "artifact"
            self._download(key, copy)
            yield copy

    def delete(self, keys: Iterable[str]) -> None:
        """Delete the keys; one that is not there is no error."""
        for key in keys:
            with suppress(FileNotFoundError):
                obstore.delete(self._store, _checked(key))

    def keys(
        self, prefix: str = "calibrations", *, older_than: timedelta | None = None
    ) -> list[str]:
        """Return the keys below a prefix, sorted; only those not written for a while, if wanted."""
        if _PREFIX.fullmatch(prefix) is None:
            raise ValueError(f"not a prefix of artifact keys: {prefix!r}")
        latest = None if older_than is None else datetime.now(UTC) - older_than
        return sorted(
            found["path"]
            for batch in obstore.list(self._store, prefix)
            for found in batch
            if latest is None or found["last_modified"] <= latest
        )

    def _put(self, key: str, chunks: Iterator[bytes]) -> Stored:
        digest, size = hashlib.sha256(), 0

        def hashed() -> Iterator[bytes]:
            nonlocal size
            for chunk in chunks:
                digest.update(chunk)
                size += len(chunk)
                yield chunk

        with artifact_failures(key):
            obstore.put(self._store, _checked(key), hashed())
            self._flush(key)
        return Stored(digest.hexdigest(), size)

    def _flush(self, key: str) -> None:
        path = self._path(key)
        if path is None:
            return
        try:
            flush_to_disk(path, path.parents[key.count("/")])
        except OSError:
            self.delete([key])
            raise

    def _download(self, key: str, copy: Path) -> str:
        digest = hashlib.sha256()
        with artifact_failures(key), copy.open("wb") as file:
            for chunk in obstore.get(self._store, key).stream(min_chunk_size=CHUNK_BYTES):
                digest.update(chunk)
                file.write(chunk)
        return digest.hexdigest()

    def _path(self, key: str) -> Path | None:
        """Return where a store in a folder keeps the key; its characters need no escaping."""
        if not isinstance(self._store, LocalStore) or self._store.prefix is None:
            return None
        return self._store.prefix / key


def open_artifact_store(location: str) -> ArtifactStore:
    """Return the store at a folder's path, at ``file://…`` or in ``memory://``.

    Raises
    ------
    ValueError
        If the location is a URL of another kind.
    """
    scheme, separator, path = location.partition("://")
    if separator and scheme == "memory":
        return ArtifactStore(MemoryStore())
    if separator and scheme != "file":
        raise ValueError(f"artifacts are kept in a folder, file:// or memory://, not {scheme}://")
    folder = Path(path if separator else location).resolve()
    return ArtifactStore(LocalStore(folder, mkdir=True, automatic_cleanup=True))


def _checked(key: str) -> str:
    if _KEY.fullmatch(key) is None or len(key) > MAX_KEY_CHARACTERS:
        raise ValueError(f"not an artifact key: {key!r}")
    return key


def _verify(key: str, found: str, expected: str) -> None:
    if found != expected:
        raise damaged(key, "not what was stored")
