"""Host names of the service, and origins whose pages may send requests to it."""

from collections.abc import Collection

from service.errors import ForeignSite, UnknownHost
from service.http.prediction_exchange import Headers

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
ANY = "*"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_OTHER_SITES = (b"cross-site", b"same-site")
_MOST_SHOWN = 100


class AllowedOrigins:
    """Refuses requests that other sites make a browser on this machine send.

    Parameters
    ----------
    allowed : collection of str
        Public host names of the service, in lower case, without a port; ``*`` allows any.
    local : str
        The listening address if only this machine can reach it, else empty. The service then has
        no other names, unless they are allowed.
    """

    def __init__(self, allowed: Collection[str], *, local: str) -> None:
        self._allowed = frozenset(allowed)
        self._names = self._allowed | LOOPBACK | {local}
        self._is_local = bool(local)

    def check(self, method: str, headers: Headers, *, is_open: bool) -> None:
        """Check the host of a request and, with ``is_open``, the origin of the page that sent it.

        Browsers cannot be made to send an API key cross-site, so the Origin check only applies to
        requests without one.

        Raises
        ------
        UnknownHost
            If the host is not a name of the service. A malicious page may have changed its own
            name to this address (DNS rebinding).
        ForeignSite
            If a page of another site sent a request that may change something.
        """
        hosts = [value.decode("latin-1").lower() for name, value in headers if name == b"host"]
        knows_names = bool(self._allowed) or (is_open and self._is_local)
        if knows_names and ANY not in self._allowed:
            for host in hosts:
                if _name_of(host) not in self._names:
                    raise UnknownHost(
                        f"Unknown host name {host[:_MOST_SHOWN]!a}. Use localhost, or add the "
                        "name to HOWSURE_ALLOWED_HOSTS."
                    )
        if is_open and method not in SAFE_METHODS:
            self._check_origin(hosts, headers)

    def _check_origin(self, hosts: list[str], headers: Headers) -> None:
        origins = [value.decode("latin-1").lower() for name, value in headers if name == b"origin"]
        of_sites = [value.lower() for name, value in headers if name == b"sec-fetch-site"]
        if not origins and not any(site in _OTHER_SITES for site in of_sites):
            return
        for origin in origins or ["null"]:
            _, _, place = origin.partition("://")
            if not place or (place not in hosts and _name_of(place) not in self._allowed):
                raise ForeignSite(
                    "Pages of other sites may not send this request. Send an API key, use a page "
                    "of this service, or add the page's host to HOWSURE_ALLOWED_HOSTS."
                )


def _name_of(host: str) -> str:
    """Return a host without its port."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]
