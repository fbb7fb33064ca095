"""Artifacts in an object store over a network, or in memory."""

import hashlib
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

import obstore
import structlog
from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, MemoryStore, S3Store, from_url

from service.errors import Overloaded, ServiceError, StorageFull
from service.storage.artifact_keys import ROOT, checked_key, checked_prefix, is_key
from service.storage.artifact_store import (
    CHUNK_BYTES,
    ArtifactStore,
    Buffer,
    Hashed,
    Stored,
    StoredFile,
    damaged,
    file_failures,
    verify,
)

if TYPE_CHECKING:  # these exist only for type checkers
    from obstore.store import ClientConfig, RetryConfig

# Object stores accept at most 10,000 parts a file.
MAX_PARTS = 9000
PARTS_AT_A_TIME = 3
KEYS_PER_REQUEST = 1000

# Limits one request, whose body may be gigabytes.
REQUEST_SECONDS = 3600

# The message is the only place where obstore keeps the status and the body of a response.
_STATUS = re.compile(r"non-2xx status code: (\d{3})")
_CODE = re.compile(r"<Code>(\w{1,64})</Code>")
# For many of these obstore raises no exception class of its own.
_REFUSED_STATUS = ("401", "403")
_FULL_STATUS = "507"
_FULL_CODES = frozenset(
    {
        "InsufficientCapacity",
        "InsufficientStorage",
        "QuotaExceeded",
        "XMinioAdminBucketQuotaExceeded",
        "XMinioStorageFull",
    }
)
# Addresses where a cloud machine requests credentials if none are configured.
_NO_CREDENTIALS = ("169.254.169.254", "metadata.google.internal", "/metadata/identity/")
# Stores refuse signatures that are 15 minutes old, or that come from the future.
_CLOCKS_DIFFER = re.compile(r"RequestTimeTooSkewed|request time and the (?:current|server)")
_TIMED_OUT = re.compile(r"kind: Timeout|TimedOut|timed out")

ObjectStore: TypeAlias = MemoryStore | S3Store | GCSStore | AzureStore

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class RetryPolicy:
    """Timeouts and retries of requests to an object store; pauses between retries grow.

    A client of the service waits for the store: at worst a minute and a half.
    """

    connect_seconds: float = 5
    read_seconds: float = 30
    retries: int = 3
    retry_seconds: float = 60
    first_pause_seconds: float = 0.2
    longest_pause_seconds: float = 4


class RemoteStore(ArtifactStore):
    """Artifacts in an object store; files are read through local copies in ``copies``."""

    def __init__(self, store: ObjectStore, copies: Path | None = None) -> None:
        self._store = store
        self._copies = copies

    def put_file(self, key: str, path: Path) -> Stored:
        """Upload a file, in parts if it is large. obstore aborts an upload that fails."""
        size = path.stat().st_size
        part_bytes = _part_bytes(size)
        with path.open("rb") as file:
            if size < part_bytes:
                return self.put_bytes(key, file.read())
            return self._put(key, iter(lambda: file.read(part_bytes), b""), part_bytes)

    def put_buffers(self, key: str, buffers: Sequence[Buffer]) -> Stored:
        """Upload buffers, in parts if they are large."""
        size = sum(map(len, buffers))
        return self._put(key, buffers, _part_bytes(size), small=size <= CHUNK_BYTES)

    def get_bytes(self, key: str, sha256: str) -> bytes:
        """Download the content and verify its checksum."""
        with remote_failures(checked_key(key)):
            content = obstore.get(self._store, key).bytes().to_bytes()
        verify(key, hashlib.sha256(content).hexdigest(), sha256)
        return content

    @contextmanager
    def unverified_path(self, key: str) -> Iterator[Path]:
        """Yield a temporary copy."""
        with tempfile.TemporaryDirectory(prefix="howsure-", dir=self._copies) as folder:
            copy = Path(folder) / "artifact"
            with remote_failures(checked_key(key)), copy.open("wb") as file:
                for chunk in obstore.get(self._store, key).stream(min_chunk_size=CHUNK_BYTES):
                    file.write(chunk)
            yield copy

    def delete(self, keys: Iterable[str]) -> None:
        """Delete keys, many in one request."""
        left = map(checked_key, keys)
        while page := list(islice(left, KEYS_PER_REQUEST)):
            with remote_failures():
                self._delete(page)

    def files(self, prefix: str = ROOT) -> Iterator[StoredFile]:
        """List objects in the order of their keys; unfinished multipart uploads are not listed."""
        with remote_failures():
            for page in obstore.list(self._store, checked_prefix(prefix)):
                for found in page:
                    if is_key(found["path"]):
                        yield StoredFile(found["path"], found["last_modified"])

    def check(self) -> None:
        """List the first objects."""
        next(self.files(), None)

    def _put(
        self, key: str, parts: Iterable[Buffer], part_bytes: int, *, small: bool = False
    ) -> Stored:
        content = Hashed(parts)
        with remote_failures(checked_key(key)):
            obstore.put(
                self._store,
                key,
                # obstore sends bytes in one request, and an iterator in parts.
                b"".join(content) if small else iter(content),
                chunk_size=part_bytes,
                max_concurrency=PARTS_AT_A_TIME,
            )
        return content.stored

    def _delete(self, keys: list[str]) -> None:
        try:
            obstore.delete(self._store, keys)
        except FileNotFoundError:
            # Some stores, the one in memory among them, stop at the first missing key.
            for key in keys:
                with suppress(FileNotFoundError):
                    obstore.delete(self._store, key)


def _part_bytes(size: int) -> int:
    return max(CHUNK_BYTES, -(-size // MAX_PARTS))


@contextmanager
def remote_failures(key: str | None = None) -> Iterator[None]:
    """Translate a missing object, a full store and one that does not answer."""
    try:
        with file_failures(key):  # of the local copy
            yield
    # obstore raises Python's own error for a missing object.
    except (BaseError, FileNotFoundError) as error:
        raise _failure(error, key) from error


def _failure(error: BaseError | FileNotFoundError, key: str | None) -> ServiceError:
    text = str(error)
    code, status = _first(_CODE, text), _first(_STATUS, text)
    if status == _FULL_STATUS or code in _FULL_CODES:
        return StorageFull("No space is left for artifacts.")
    if isinstance(error, FileNotFoundError) and key is not None and code != "NoSuchBucket":
        return damaged(key, "missing")
    log.error("artifact_store_fails", key=key, error=text.partition("\n\nDebug source")[0])
    return Overloaded(_reason(text, code, status))


def _reason(text: str, code: str | None, status: str | None) -> str:
    """Return a message without an address."""
    if code == "NoSuchBucket":
        return "The artifact store has no such bucket."
    if any(address in text for address in _NO_CREDENTIALS):
        return "There are no credentials for the artifact store."
    if _CLOCKS_DIFFER.search(text):
        return "The clock of this machine differs too much from the artifact store's: set it."
    if status in _REFUSED_STATUS:
        return f"The artifact store refuses the service's credentials ({code or status})."
    if "BadScheme" in text:
        return "The artifact store's address begins with http://: set AWS_ALLOW_HTTP=true."
    reason = code or status or ("time is up" if _TIMED_OUT.search(text) else "no connection")
    return f"The artifact store does not answer ({reason}); try again."


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    return None if found is None else found[1]


_VARIABLES = {"s3": "AWS", "gs": "GOOGLE", "az": "AZURE"}
# obstore reads these client options from the environment only if it is given none.
_CLIENT_VARIABLES = (
    "allow_http",
    "allow_invalid_certificates",
    "proxy_url",
    "proxy_ca_certificate",
    "proxy_excludes",
)


def open_remote_store(
    location: str, copies: Path | None = None, *, retry: RetryPolicy = RetryPolicy()
) -> RemoteStore:
    """Return the store at ``memory://``, ``s3://``, ``gs://`` or ``az://``, sending no request.

    Raises
    ------
    ValueError
        If the location is a URL of another kind, or incomplete.
    """
    scheme, _, path = location.partition("://")
    if scheme == "memory":
        return RemoteStore(MemoryStore(), copies)
    if scheme not in _VARIABLES:
        known = ", ".join(f"{name}://" for name in ("file", "memory", *_VARIABLES))
        raise ValueError(f"artifacts are kept in a folder or at {known}, not at {scheme}://")
    if "@" in path.partition("/")[0]:
        # Messages quote the location.
        raise ValueError(f"{scheme}:// takes no user and no password: set {_VARIABLES[scheme]}_…")
    try:
        found = from_url(
            location,
            client_options=_client_options(_VARIABLES[scheme], retry, os.environ),
            retry_config=_retries(retry),
        )
    except BaseError as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"expected {scheme}://bucket/folder ({reason})") from error
    return RemoteStore(cast("ObjectStore", found), copies)


def _client_options(
    prefix: str, retry: RetryPolicy, environment: Mapping[str, str]
) -> "ClientConfig":
    options: dict[str, object] = {
        "connect_timeout": timedelta(seconds=retry.connect_seconds),
        "read_timeout": timedelta(seconds=retry.read_seconds),
        "timeout": timedelta(seconds=REQUEST_SECONDS),
    }
    for name in _CLIENT_VARIABLES:
        value = environment.get(f"{prefix}_{name.upper()}")
        if value is not None:
            options[name] = value
    return cast("ClientConfig", options)


def _retries(retry: RetryPolicy) -> "RetryConfig":
    return {
        "max_retries": retry.retries,
        "retry_timeout": timedelta(seconds=retry.retry_seconds),
        "backoff": {
            "init_backoff": timedelta(seconds=retry.first_pause_seconds),
            "max_backoff": timedelta(seconds=retry.longest_pause_seconds),
            "base": 3,
        },
    }
