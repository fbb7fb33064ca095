"""What an object store's failures mean to a caller."""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

from obstore.exceptions import BaseError

from service.errors import ArtifactDamaged, StorageFull

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_OS_ERROR = re.compile(r"\(os error (\d+)\)")


@contextmanager
def artifact_failures(key: str) -> Iterator[None]:
    """Translate a missing file and a full disk; anything else is a bug and stays one."""
    try:
        yield
    except FileNotFoundError as error:
        raise ArtifactDamaged(f"The stored file {key} is missing.") from error
    except (BaseError, OSError) as error:
        if _error_number(error) not in _NO_SPACE:
            raise
        raise StorageFull("No space is left for artifacts.") from error


def _error_number(error: BaseException) -> int | None:
    if isinstance(error, OSError):
        return error.errno
    # The store is written in another language: the number survives in the message alone.
    found = _OS_ERROR.search(str(error))
    return None if found is None else int(found[1])
