"""The header that a key is sent in, and where what it says is kept."""

from starlette.types import Scope

from service.api.hot.exchange import Headers
from service.operations.api_keys.caller import CALLER

__all__ = ["CALLER", "authorization"]


def authorization(headers: Headers) -> list[bytes]:
    """Return the values of ``Authorization``; names of headers are lower case."""
    return [value for name, value in headers if name == b"authorization"]


def peer_of(scope: Scope) -> str:
    """Return the address that a request comes from; empty where it has none, as on Unix sockets."""
    client = scope.get("client")
    return "" if client is None else str(client[0])
