"""Headers of every answer: what a browser may not do with it."""

from service.api.hot.exchange import Headers

CONTENT_SECURITY = b"content-security-policy"
CACHE = b"cache-control"

# HSTS is for whoever ends TLS: this service speaks plain HTTP.
STANDING: Headers = (
    (b"x-content-type-options", b"nosniff"),
    (CACHE, b"no-store"),
    (CONTENT_SECURITY, b"default-src 'none'; base-uri 'none'; frame-ancestors 'none'"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)


def completed(given: Headers) -> list[tuple[bytes, bytes]]:
    """Return headers with those that stand, but for what a route says otherwise."""
    names = {name for name, _ in given}
    return [*given, *((name, value) for name, value in STANDING if name not in names)]
