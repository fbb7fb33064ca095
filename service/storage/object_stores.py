"""The object stores that artifacts may be kept in, by URL."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, LocalStore, MemoryStore, S3Store, from_url

if TYPE_CHECKING:  # these two are of type checkers alone
    from obstore.store import ClientConfig, RetryConfig

ObjectStore: TypeAlias = LocalStore | MemoryStore | S3Store | GCSStore | AzureStore

# Of one request, whose body may be gigabytes as long as it keeps coming.
REQUEST_SECONDS = 3600


@dataclass(frozen=True)
class Patience:
    """How long a store over a network is waited for; it is asked anew with growing pauses.

    Whoever waits for an answer of ours waits for the store's: that ends in a minute and a half at
    worst.
    """

    connect_seconds: float = 5
    read_seconds: float = 30
    retries: int = 3
    retry_seconds: float = 60
    first_pause_seconds: float = 0.2
    longest_pause_seconds: float = 4


_VARIABLES = {"s3": "AWS", "gs": "GOOGLE", "az": "AZURE"}
# The library reads these of its client's options from the environment itself, unless it is given
# any: then it takes no others.
_CLIENT_VARIABLES = (
    "allow_http",
    "allow_invalid_certificates",
    "proxy_url",
    "proxy_ca_certificate",
    "proxy_excludes",
)


def open_object_store(location: str, patience: Patience = Patience()) -> ObjectStore:
    """Return the store at a folder's path, ``file://``, ``memory://``, ``s3://`` and its like.

    Nothing is asked over a network yet.

    Raises
    ------
    ValueError
        If the location is a URL of another kind, or incomplete.
    """
    scheme, separator, path = location.partition("://")
    if separator and scheme == "memory":
        return MemoryStore()
    if not separator or scheme == "file":
        folder = Path(path if separator else location).resolve()
        return LocalStore(folder, mkdir=True, automatic_cleanup=True)
    if scheme not in _VARIABLES:
        known = ", ".join(f"{name}://" for name in ("file", "memory", *_VARIABLES))
        raise ValueError(f"artifacts are kept in a folder or at {known}, not at {scheme}://")
    if "@" in path.partition("/")[0]:
        # It would be told in messages.
        raise ValueError(f"{scheme}:// takes no user and no password: set {_VARIABLES[scheme]}_…")
    try:
        found = from_url(
            location,
            client_options=_client_options(_VARIABLES[scheme], patience, os.environ),
            retry_config=_retries(patience),
        )
    except BaseError as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"expected {scheme}://bucket/folder ({reason})") from error
    return cast("ObjectStore", found)


def _client_options(
    prefix: str, patience: Patience, environment: Mapping[str, str]
) -> "ClientConfig":
    options: dict[str, object] = {
        "connect_timeout": timedelta(seconds=patience.connect_seconds),
        "read_timeout": timedelta(seconds=patience.read_seconds),
        "timeout": timedelta(seconds=REQUEST_SECONDS),
    }
    for name in _CLIENT_VARIABLES:
        value = environment.get(f"{prefix}_{name.upper()}")
        if value is not None:
            options[name] = value
    return cast("ClientConfig", options)


def _retries(patience: Patience) -> "RetryConfig":
    return {
        "max_retries": patience.retries,
        "retry_timeout": timedelta(seconds=patience.retry_seconds),
        "backoff": {
            "init_backoff": timedelta(seconds=patience.first_pause_seconds),
            "max_backoff": timedelta(seconds=patience.longest_pause_seconds),
            "base": 3,
        },
    }
