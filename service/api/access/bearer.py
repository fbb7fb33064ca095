"""The header that a key is sent in; no query and no cookie is looked at."""

from service.api.hot.exchange import Headers


def authorization(headers: Headers) -> list[bytes]:
    """Return the values of ``Authorization``; names of headers are lower case."""
    return [value for name, value in headers if name == b"authorization"]
