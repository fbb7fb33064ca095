"""What lies in an artifact store, a file at a time: there may be more of them than memory."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

import obstore

from service.storage.artifact_keys import is_key
from service.storage.object_stores import ObjectStore

LIST_PAGE = 1000


@dataclass(frozen=True)
class Stored:
    """What was stored: its checksum, to be kept, and its size in bytes."""

    sha256: str
    size: int


@dataclass(frozen=True)
class StoredFile:
    """A key, or in a folder what a put that is not finished wrote for it, and when it was written.

    The time is the store's.
    """

    key: str
    modified: datetime


class Hashed:
    """Parts of a content as they pass, and what they were once they have."""

    def __init__(self, parts: Iterable[bytes]) -> None:
        self._parts = parts
        self._digest = hashlib.sha256()
        self._size = 0

    def __iter__(self) -> Iterator[bytes]:
        for part in self._parts:
            self._digest.update(part)
            self._size += len(part)
            yield part

    @property
    def stored(self) -> Stored:
        """What has passed."""
        return Stored(self._digest.hexdigest(), self._size)


def files_in_store(store: ObjectStore, prefix: str) -> Iterator[StoredFile]:
    """Yield the files of a store over a network, or in memory; others than artifacts are not told.

    Uploads in parts that were never finished are not listed by any such store.
    """
    for page in obstore.list(store, prefix, chunk_size=LIST_PAGE):
        for found in page:
            if is_key(found["path"]):
                yield StoredFile(found["path"], found["last_modified"])
