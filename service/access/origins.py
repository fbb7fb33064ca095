"""Host names of the service, and origins whose pages may send requests to it."""

from collections.abc import Collection
from ipaddress import ip_address

from service.errors import ForeignSite, UnknownHost
from service.http.prediction_exchange import Headers

LOCAL = "localhost"
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
    keyless : bool
        Whether no caller ever needs a key. Otherwise the service has no other names than allowed
        ones while it is open to callers without a key, whatever its address.
    """

    def __init__(self, allowed: Collection[str], *, keyless: bool = False) -> None:
        self._allowed = frozenset(allowed)
        self._keyless = keyless

    def check(self, method: str, headers: Headers, *, is_open: bool) -> None:
        """Check the host of a request and, with ``is_open``, the origin of the page that sent it.

        Browsers cannot be made to send an API key cross-site, so the Origin check only applies to
        requests without one.

        Raises
        ------
        UnknownHost
            If the host is not a name of the service. A malicious page may have changed its own
            name to this address (DNS rebinding). It cannot do so with a number, so IP addresses
            pass.
        ForeignSite
            If a page of another site sent a request that may change something.
        """
        hosts = _hosts(headers)
        knows_names = bool(self._allowed) or (is_open and not self._keyless)
        if knows_names and ANY not in self._allowed:
            for host in hosts:
                if not self._is_known(_name_of(host)):
                    raise UnknownHost(
                        f"Unknown host name {host[:_MOST_SHOWN]!a}. Use localhost, or add the "
                        "name to HOWSURE_ALLOWED_HOSTS."
                    )
        if is_open and method not in SAFE_METHODS:
            self._check_origin(hosts, headers)

    def check_form(self, headers: Headers) -> None:
        """Refuse a form that does not say that a page of this service sent it.

        Every browser says one or the other; a proxy may have changed the host.

        Raises
        ------
        ForeignSite
            If it says neither, or that another page did.
        """
        sites = {value.lower() for name, value in headers if name == b"sec-fetch-site"}
        names = {name for name, _ in headers}
        if sites == {b"same-origin"} or b"authorization" in names:
            return
        if b"origin" not in names or sites & set(_OTHER_SITES):
            raise _foreign()
        self._check_origin(_hosts(headers), headers)

    def _is_known(self, name: str) -> bool:
        if name == LOCAL or name in self._allowed:
            return True
        try:
            ip_address(name.strip("[]"))
        except ValueError:
            return False
        return True

    def _check_origin(self, hosts: list[str], headers: Headers) -> None:
        origins = [value.decode("latin-1").lower() for name, value in headers if name == b"origin"]
        of_sites = [value.lower() for name, value in headers if name == b"sec-fetch-site"]
        if not origins and not any(site in _OTHER_SITES for site in of_sites):
            return
        for origin in origins or ["null"]:
            _, _, place = origin.partition("://")
            if not place or (place not in hosts and _name_of(place) not in self._allowed):
                raise _foreign()


def _hosts(headers: Headers) -> list[str]:
    return [value.decode("latin-1").lower() for name, value in headers if name == b"host"]


def _foreign() -> ForeignSite:
    return ForeignSite(
        "Pages of other sites may not send this request. Send an API key, use a page "
        "of this service, or add the page's host to HOWSURE_ALLOWED_HOSTS."
    )


def _name_of(host: str) -> str:
    """Return a host without its port."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]
