"""What an object store's failures mean to a caller."""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from obstore.exceptions import BaseError

from service.errors import ArtifactDamaged, StorageFull

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_OS_ERROR = re.compile(r"\(os error (\d+)\)")

log = structlog.get_logger(__name__)


@contextmanager
def artifact_failures(key: str) -> Iterator[None]:
    """Translate a missing file and a full disk; anything else is a bug and stays one."""
    try:
        yield
    except FileNotFoundError as error:
        raise damaged(key, "missing") from error
    except (BaseError, OSError) as error:
        if _error_number(error) not in _NO_SPACE:
            raise
        raise StorageFull("No space is left for artifacts.") from error


def damaged(key: str, found: str) -> ArtifactDamaged:
    """Return the error for a caller; which file it is stands in the log alone."""
    log.warning("artifact_damaged", key=key, found=found)
    return ArtifactDamaged(f"A stored file is {found}.")


def _error_number(error: BaseException) -> int | None:
    if isinstance(error, OSError):
        return error.errno
    # The store is written in another language: the number survives in the message alone.
    found = _OS_ERROR.search(str(error))
    return None if found is None else int(found[1])
