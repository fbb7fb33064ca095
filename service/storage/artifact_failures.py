"""What an object store's failures mean to a caller."""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from obstore.exceptions import BaseError

from service.errors import ArtifactDamaged, Overloaded, ServiceError, StorageFull

# A limit on the size of files is no more room either, to whoever writes one.
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# A disk that fails, a network file system that is away, a folder that may not be written.
_AWAY = (
    *(errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.ENOTCONN, errno.EHOSTDOWN),
    *(errno.EROFS, errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE),
)
_OS_ERROR = re.compile(r"\(os error (\d+)\)")
# The store is written in another language: what a server answered survives in the message alone.
_STATUS = re.compile(r"non-2xx status code: (\d{3})")
_CODE = re.compile(r"<Code>(\w{1,64})</Code>")
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
_FULL_TEXT = "no space left on device"
_REFUSED_STATUS = ("401", "403")
# Where a machine of a cloud is asked for credentials of its own, if there are none else.
_NO_CREDENTIALS = ("169.254.169.254", "metadata.google.internal", "/metadata/identity/")
_TIMED_OUT = re.compile(r"kind: Timeout|TimedOut|timed out")

log = structlog.get_logger(__name__)


@contextmanager
def artifact_failures(key: str | None = None, *, remote: bool) -> Iterator[None]:
    """Translate a missing file, a full store and one that does not answer.

    ``remote`` is a store over a network, which may fail in any way. Of one in a folder or in
    memory what is not known is a bug and stays one.
    """
    try:
        yield
    except (BaseError, OSError) as error:
        failure = _meaning(error, key, remote=remote)
        if failure is None:
            raise
        raise failure from error


def damaged(key: str, found: str) -> ArtifactDamaged:
    """Return the error for a caller; which file it is stands in the log alone."""
    log.warning("artifact_damaged", key=key, found=found)
    return ArtifactDamaged(f"A stored file is {found}.")


def _meaning(error: BaseError | OSError, key: str | None, *, remote: bool) -> ServiceError | None:
    text, number = str(error), _error_number(error)
    if number in _NO_SPACE or _is_full(text):
        return StorageFull("No space is left for artifacts.")
    is_missing = isinstance(error, FileNotFoundError)
    if is_missing and key is not None and _code(text) != "NoSuchBucket":
        return damaged(key, "missing")
    if number in _AWAY:
        sentence = f"The artifact store cannot be used ({os.strerror(number)}); try again."
    elif remote and (is_missing or isinstance(error, BaseError)):
        sentence = _sentence(text)
    else:
        return None
    log.error("artifact_store_fails", key=key, error=text.partition("\n\nDebug source")[0])
    return Overloaded(sentence)


def _error_number(error: BaseError | OSError) -> int | None:
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    found = _OS_ERROR.search(str(error))
    return None if found is None else int(found[1])


def _is_full(text: str) -> bool:
    return _status(text) == _FULL_STATUS or _code(text) in _FULL_CODES or _FULL_TEXT in text


def _sentence(text: str) -> str:
    """Say what is wrong, without an address."""
    code, status = _code(text), _status(text)
    if code == "NoSuchBucket":
        return "The artifact store has no such bucket."
    if any(address in text for address in _NO_CREDENTIALS):
        return "There are no credentials for the artifact store."
    if status in _REFUSED_STATUS:
        return f"The artifact store refuses the service's credentials ({code or status})."
    if "BadScheme" in text:
        return "The artifact store's address is http://, which has to be allowed by a variable."
    reason = code or status or ("time is up" if _TIMED_OUT.search(text) else "no connection")
    return f"The artifact store does not answer ({reason}); try again."


def _code(text: str) -> str | None:
    found = _CODE.search(text)
    return None if found is None else found[1]


def _status(text: str) -> str | None:
    found = _STATUS.search(text)
    return None if found is None else found[1]
