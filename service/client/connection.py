"""Where a service is, and how patiently it is asked."""

import os

DEFAULT_URL = "http://127.0.0.1:8000"
TIMEOUT_SECONDS = 60.0
RETRIES = 5


def url_of(given: str | None) -> str:
    """Return the address of the service: as given, else ``HOWSURE_URL``, else this machine's."""
    return given or os.environ.get("HOWSURE_URL") or DEFAULT_URL


def headers_of(api_key: str | None) -> dict[str, str]:
    """Return the header that sends a key: as given, else ``HOWSURE_API_KEY``, else none."""
    found = api_key or os.environ.get("HOWSURE_API_KEY")
    return {"Authorization": f"Bearer {found}"} if found else {}
