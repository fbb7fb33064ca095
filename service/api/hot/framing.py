"""Where a request ends and for whom it is: what two servers in a row must not read differently."""

from service.api.hot.exchange import Headers
from service.errors import MalformedRequest

VERSIONS = ("1.0", "1.1")


def check_framing(version: str, headers: Headers) -> None:
    """Refuse a head that another server may read otherwise; the parser has refused most of them.

    Raises
    ------
    MalformedRequest
        If it is of another version than HTTP/1.0 and 1.1, which asks for one ``Host``; or if its
        body comes otherwise than with a length or, in HTTP/1.1, in chunks.
    """
    if version not in VERSIONS:
        raise MalformedRequest.at("request", "expected HTTP/1.1 or HTTP/1.0")
    n_hosts = 0
    for name, value in headers:
        if name == b"host":
            n_hosts += 1
        elif name == b"transfer-encoding" and (
            version != "1.1" or value.strip().lower() != b"chunked"
        ):
            raise MalformedRequest.at("Transfer-Encoding", "expected chunked alone, of HTTP/1.1")
    if n_hosts > 1 or (not n_hosts and version == "1.1"):
        raise MalformedRequest.at("Host", "expected this header once")
