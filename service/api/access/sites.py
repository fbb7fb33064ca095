"""Names that the service answers to, and pages that may have a browser ask it."""

from collections.abc import Collection

from service.api.hot.exchange import Headers
from service.errors import ForeignSite, UnknownHost

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
ANY = "*"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_OTHER_SITES = (b"cross-site", b"same-site")
_MOST_SHOWN = 100


class Sites:
    """Keeps pages of other sites from having a browser ask what is open to this machine.

    Parameters
    ----------
    allowed : collection of str
        Names that it has for others, in lower case, without a port; ``*`` is any.
    local : str
        The address that it listens on, if only this machine can reach that; else empty. It has no
        other names then, unless they are allowed.
    """

    def __init__(self, allowed: Collection[str], *, local: str) -> None:
        self._allowed = frozenset(allowed)
        self._names = self._allowed | LOOPBACK | {local}
        self._is_local = bool(local)

    def check(self, method: str, headers: Headers, *, is_open: bool) -> None:
        """Look where a request was sent to and, with ``is_open``, which page had it sent.

        A page can have a browser send no key, so that only who asks for none has to look.

        Raises
        ------
        UnknownHost
            If it was sent to a name that is not the service's: that of a page, perhaps, whose name
            leads to this address by now.
        ForeignSite
            If a page of another site had it sent, and it may change something.
        """
        hosts = [value.decode("latin-1").lower() for name, value in headers if name == b"host"]
        knows_names = bool(self._allowed) or (is_open and self._is_local)
        if knows_names and ANY not in self._allowed:
            for host in hosts:
                if _name_of(host) not in self._names:
                    raise UnknownHost(
                        f"This service is not {host[:_MOST_SHOWN]!a}: ask it by localhost, or "
                        "name it in HOWSURE_ALLOWED_HOSTS."
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
                    "A page of another site may not have a browser ask this. Send an API key, ask "
                    "from a page of this service, or name the page's host in HOWSURE_ALLOWED_HOSTS."
                )


def _name_of(host: str) -> str:
    """Return a host without its port."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]
