"""Answers to requests that are refused before any route sees them."""

from http import HTTPStatus

import msgspec

from service.api.errors import MEDIA_TYPE, WORTH_RETRYING, retry_after, status_of
from service.api.hot.exchange import HotAnswer
from service.api.oip_errors import PREFIX
from service.api.oip_errors import STATUS as OIP_STATUS
from service.api.quota_headers import quota_headers
from service.api.request_id import new_id
from service.errors import MethodNotAllowed, ServiceError
from service.operations.problem import problem_of

CHALLENGE = (b"www-authenticate", b'Bearer realm="howsure"')
_BELOW_PREFIX = (f"{PREFIX}/".encode(), f"{PREFIX}?".encode())


def refusal(target: bytes, error: Exception, request_id: bytes = b"") -> HotAnswer:
    """Return the answer to a request whose first line asks for ``target``, as far as it is known.

    Below ``/v2`` it is the Open Inference Protocol's, elsewhere a problem. ``request_id``: empty
    where the request has none yet.
    """
    request_id = request_id or new_id()
    status = HTTPStatus.INTERNAL_SERVER_ERROR
    if isinstance(error, ServiceError):
        status = status_of(error)
    found = problem_of(error)
    more = [(b"retry-after", b"%d" % retry_after(error))] if status in WORTH_RETRYING else []
    if status == HTTPStatus.UNAUTHORIZED:
        more = [CHALLENGE]
    if isinstance(error, MethodNotAllowed):
        more = [(b"allow", error.allowed.encode())]
    more += [(name.encode(), value.encode()) for name, value in quota_headers(error).items()]
    if target == PREFIX.encode() or target.startswith(_BELOW_PREFIX):
        body = msgspec.json.encode({"error": found["detail"]})
        headers = [(b"content-type", b"application/json"), *more]
        return HotAnswer(OIP_STATUS.get(status, status), body, headers, request_id)
    named = {"status": int(status), "request_id": request_id.decode()}
    headers = [(b"content-type", MEDIA_TYPE.encode()), *more]
    return HotAnswer(status, msgspec.json.encode(found | named), headers, request_id)
