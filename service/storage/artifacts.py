"""The artifact store: files under keys that the server makes, verified when they are read."""

import hashlib
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import chain, islice
from pathlib import Path

import obstore
from obstore.store import LocalStore, MemoryStore

from service.storage.artifact_failures import artifact_failures, damaged
from service.storage.artifact_folder import files_in_folder, remove_unfinished
from service.storage.artifact_keys import ROOT, checked_key, checked_prefix, is_unfinished
from service.storage.durable import flush_to_disk
from service.storage.object_stores import ObjectStore, open_object_store
from service.storage.stored_files import Hashed, Stored, StoredFile, files_in_store

CHUNK_BYTES = 8 * 1024**2
# Object stores over networks take a file in 10,000 parts at most.
MAX_PARTS = 9000
PARTS_AT_A_TIME = 3
DELETED_AT_A_TIME = 1000


class ArtifactStore:
    """Files by key: in a folder, in memory, or in an object store over a network.

    A key is ``calibrations/{id}/{name}``, with further levels if wanted; a client's file name has
    no place in it. ``copies`` is the folder for what is fetched from elsewhere to be read as a
    file; by default the system's for temporary files.

    A store over a network that does not answer, after a few attempts, is `Overloaded`.
    """

    def __init__(self, store: ObjectStore, copies: Path | None = None) -> None:
        self._store = store
        self._copies = copies
        self._is_remote = not isinstance(store, LocalStore | MemoryStore)

    def put_file(self, key: str, path: Path) -> Stored:
        """Store the content of a file of any size; the key appears when all of it is there.

        Raises
        ------
        StorageFull
            If no space is left; nothing is kept then.
        """
        part_bytes = max(CHUNK_BYTES, -(-path.stat().st_size // MAX_PARTS))
        with path.open("rb") as file:
            first = file.read(part_bytes)
            if len(first) < part_bytes:
                return self.put_bytes(key, first)
            parts = Hashed(chain([first], iter(lambda: file.read(part_bytes), b"")))
            # What was sent of an upload that fails is taken back, unless that fails too.
            self._put(key, iter(parts), part_bytes)
        return parts.stored

    def put_bytes(self, key: str, content: bytes) -> Stored:
        """Store a content that is in memory; as `put_file`."""
        self._put(key, content, CHUNK_BYTES)
        return Stored(hashlib.sha256(content).hexdigest(), len(content))

    def get_bytes(self, key: str, sha256: str) -> bytes:
        """Return the content of a key.

        Raises
        ------
        ArtifactDamaged
            If it is missing, or not what was stored.
        """
        with self._failures(checked_key(key)):
            content = obstore.get(self._store, key).bytes().to_bytes()
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
        path = self._path(checked_key(key))
        if path is not None:
            with self._failures(key), path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            _verify(key, digest, sha256)
            yield path
            return
        with self._copy(key) as (copy, digest):
            _verify(key, digest, sha256)
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
        path = self._path(checked_key(key))
        if path is not None:
            if not path.is_file():
                raise damaged(key, "missing")
            yield path
            return
        with self._copy(key) as (copy, _):
            yield copy

    def delete(self, keys: Iterable[str]) -> None:
        """Delete the keys, many at a time; one that is not there is no error.

        In a folder also what a put did not finish, as `files` names it.
        """
        root, left = self._root(), iter(keys)
        while page := list(islice(left, DELETED_AT_A_TIME)):
            with self._failures():
                for key in page:
                    if root is not None and is_unfinished(key):
                        remove_unfinished(root, key)
                self._delete([checked_key(key) for key in page if not is_unfinished(key)])

    def keys(self, prefix: str = ROOT) -> list[str]:
        """Return the keys below a prefix, sorted."""
        return sorted(file.key for file in self.files(prefix) if not is_unfinished(file.key))

    def files(self, prefix: str = ROOT) -> Iterator[StoredFile]:
        """Yield what lies below a prefix, in a folder also what no put has finished.

        Few are in memory at a time, however many there are. They come in no certain order.
        """
        root = self._root()
        with self._failures():
            if root is not None:
                yield from files_in_folder(root, checked_prefix(prefix))
            else:
                yield from files_in_store(self._store, checked_prefix(prefix))

    def check(self) -> None:
        """Ask a store over a network whether it is there and lets this service in.

        Raises
        ------
        Overloaded
            If not; the sentence says which of the two.
        """
        if self._is_remote:
            for _ in self.files():
                return

    def _put(self, key: str, content: bytes | Iterator[bytes], part_bytes: int) -> None:
        with self._failures(checked_key(key)):
            obstore.put(
                self._store, key, content, chunk_size=part_bytes, max_concurrency=PARTS_AT_A_TIME
            )
            self._flush(key)

    def _flush(self, key: str) -> None:
        path = self._path(key)
        if path is None:
            return
        try:
            flush_to_disk(path, path.parents[key.count("/")])
        except OSError:
            self.delete([key])
            raise

    def _delete(self, keys: list[str]) -> None:
        try:
            obstore.delete(self._store, keys)
        except FileNotFoundError:
            # Some stores, a folder among them, end at the first that is not there.
            for key in keys:
                with suppress(FileNotFoundError):
                    obstore.delete(self._store, key)

    @contextmanager
    def _copy(self, key: str) -> Iterator[tuple[Path, str]]:
        """Fetch the content to a file, gone after the block; with what its checksum is."""
        with tempfile.TemporaryDirectory(prefix="howsure-", dir=self._copies) as folder:
            copy, digest = Path(folder) / "artifact", hashlib.sha256()
            with self._failures(key), copy.open("wb") as file:
                for chunk in obstore.get(self._store, key).stream(min_chunk_size=CHUNK_BYTES):
                    digest.update(chunk)
                    file.write(chunk)
            yield copy, digest.hexdigest()

    def _failures(self, key: str | None = None) -> AbstractContextManager[None]:
        return artifact_failures(key, remote=self._is_remote)

    def _root(self) -> Path | None:
        return self._store.prefix if isinstance(self._store, LocalStore) else None

    def _path(self, key: str) -> Path | None:
        """Return where a store in a folder keeps the key; its characters need no escaping."""
        root = self._root()
        return None if root is None else root / key


def open_artifact_store(location: str, copies: Path | None = None) -> ArtifactStore:
    """Return the store at a folder's path, ``file://``, ``memory://``, ``s3://`` and its like.

    Raises
    ------
    ValueError
        If the location is a URL of another kind.
    """
    return ArtifactStore(open_object_store(location), copies)


def _verify(key: str, found: str, expected: str) -> None:
    if found != expected:
        raise damaged(key, "not what was stored")
