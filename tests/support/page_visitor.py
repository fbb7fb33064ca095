"""Somebody who reads pages without scripts: follows what they say, and sends their forms."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import httpx
from keyed_service import KeyedService

HTML = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
_TOKEN = re.compile(r'(?:name="csrf" value="|\?csrf=)([\w-]+)"')


@dataclass
class Elements(HTMLParser):
    """The elements of a page, with their attributes."""

    found: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def elements(text: str) -> list[tuple[str, dict[str, str | None]]]:
    parser = Elements()
    parser.feed(text)
    return parser.found


def pointed_to(report: Any, path: str) -> Any:
    """Return what a JSON pointer, as of a page's ``data-path``, points to."""
    for part in path.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        report = report[int(name)] if isinstance(report, list) else report[name]
    return report


class Visitor:
    """A browser of a service, as far as cookies and forms go; it ends with the service."""

    def __init__(self, service: KeyedService, **headers: str) -> None:
        self.client = service.client()
        self.client.headers.update(HTML | headers)
        self.seen: httpx.Response | None = None

    def open(self, path: str) -> httpx.Response:
        self.seen = self.client.get(path)
        return self.seen

    def token(self) -> str:
        """Return the token of the page that was opened last."""
        assert self.seen is not None
        found = _TOKEN.search(self.seen.text)
        assert found, self.seen.text
        return found[1]

    def sign_in(self, key: str, **fields: str) -> httpx.Response:
        self.open("/sign-in")
        return self.send("/sign-in", key=key, **fields)

    def send(self, path: str, **fields: str) -> httpx.Response:
        """Send a form of the page that was opened last."""
        return self.client.post(path, data={"csrf": self.token(), **fields})

    def upload(self, files: list[tuple[str, Any]]) -> httpx.Response:
        """Send the form as browsers do: a field without a file has a file without a name."""
        boundary = "----of-a-form"
        parts = [_part(name, *value) for name, value in files]
        body = b"".join(b"--%b\r\n%b\r\n" % (boundary.encode(), part) for part in parts)
        return self.client.post(
            f"/pages/calibrate?csrf={self.token()}",
            content=body + b"--%b--\r\n" % boundary.encode(),
            headers={"Content-Type": f"multipart/form-data; boundary={boundary}"},
        )


def _part(name: str, filename: str | None, value: str | bytes, *_: str) -> bytes:
    said = f'Content-Disposition: form-data; name="{name}"'
    if filename is not None:
        said += f'; filename="{filename}"\r\nContent-Type: application/octet-stream'
    content = value.encode() if isinstance(value, str) else value
    return said.encode() + b"\r\n\r\n" + content
