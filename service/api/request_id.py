"""What a request is called: in its answer, in the problem it may get and in the log."""

import itertools
import re
import secrets

HEADER = b"x-request-id"
# Where an ASGI scope's state has it, as text.
REQUEST_ID = "request_id"
_PLAIN = re.compile(rb"[A-Za-z0-9._-]{1,64}")
# Of this process.
_PREFIX = secrets.token_hex(6).encode()
_count = itertools.count()


def accepted_id(sent: bytes) -> bytes:
    """Return the name that a client gave its request, empty if it is long or not plain."""
    return sent if _PLAIN.fullmatch(sent) else b""


def new_id() -> bytes:
    """Return a name that no other request has."""
    return b"%b%08x" % (_PREFIX, next(_count))
