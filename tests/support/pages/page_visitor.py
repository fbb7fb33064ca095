"""A reader of pages without scripts: follows links, sends forms, and reads the numbers."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import httpx
from keyed_service import KeyedService
from request_formats import CONTENT_TYPE, body, part, text_part
from running_service import Service

HTML = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
_VOID = frozenset({"br", "img", "input", "link", "meta"})
Attributes = dict[str, str | None]


@dataclass
class _Page(HTMLParser):
    default: str = ""
    sources: list[str] = field(default_factory=list)
    elements: list[tuple[str, Attributes]] = field(default_factory=list)
    numbers: list[tuple[str, str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(tag, attributes := dict(attrs))
        if tag not in _VOID:
            self.sources.append(self._source(attributes))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(tag, dict(attrs))

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            self.sources.pop()

    def _note(self, tag: str, attributes: Attributes) -> None:
        self.elements.append((tag, attributes))
        if "data-path" in attributes:
            found = (attributes["data-path"] or "", attributes["data-value"] or "")
            self.numbers.append((self._source(attributes), *found))

    def _source(self, attributes: Attributes) -> str:
        outside = self.sources[-1] if self.sources else self.default
        return attributes.get("data-source") or outside


def elements(text: str) -> list[tuple[str, Attributes]]:
    """Return the elements of a page with their attributes."""
    parser = _Page()
    parser.feed(text)
    return parser.elements


def assert_nothing_inline(page: httpx.Response) -> None:
    """A page has no style and no script but those of files, which its policy demands as well."""
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "unsafe" not in page.headers["content-security-policy"]
    for tag, attributes in elements(page.text):
        assert not any(name == "style" or name.startswith("on") for name in attributes)
        assert tag != "script" or (attributes["src"] or "").startswith("/pages/static/")


def numbers_of(text: str, default: str = "") -> list[tuple[str, str, str]]:
    """Return source, JSON pointer and value of each number; ``data-source`` holds within."""
    parser = _Page(default)
    parser.feed(text)
    return parser.numbers


def pointed_to(document: Any, path: str) -> Any:
    """Return what a JSON pointer (RFC 6901) leads to."""
    for step in path.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        document = document[int(name)] if isinstance(document, list) else document[name]
    return document


def text_of(markup: str) -> str:
    """Return markup without its tags, and with plain spaces."""
    return re.sub(r"<[^>]+>", "", markup).replace("&nbsp;", " ")


class Visitor:
    """A browser of a service, as far as cookies and forms go."""

    def __init__(self, service: KeyedService | Service, **headers: str) -> None:
        if isinstance(service, KeyedService):
            self.client = service.client()  # ends with the service
        else:
            self.client = httpx.Client(base_url=service.url, timeout=60)
        # As browsers send it with each form.
        origin = f"http://{self.client.base_url.netloc.decode()}"
        self.client.headers.update(HTML | {"Origin": origin} | headers)
        self.seen: httpx.Response | None = None

    def open(self, path: str) -> httpx.Response:
        self.seen = self.client.get(path)
        return self.seen

    def sign_in(self, key: str, **fields: str) -> httpx.Response:
        self.open("/sign-in")
        return self.send("/sign-in", key=key, **fields)

    def send(self, path: str, **fields: str) -> httpx.Response:
        """Send a form."""
        return self.client.post(path, data=fields)

    def upload(
        self, files: list[tuple[str, Any]], path: str = "/pages/calibrate"
    ) -> httpx.Response:
        """Send the form as browsers do: a field without a file has a file without a name."""
        parts = [_part(name, *value) for name, value in files]
        headers = {"Content-Type": CONTENT_TYPE}
        return self.client.post(path, content=body(*parts), headers=headers)


def _part(name: str, filename: str | None, value: str | bytes, *_: str) -> bytes:
    if isinstance(value, str):
        return text_part(name, value.encode())
    file = f'filename="{filename}"\r\nContent-Type: application/octet-stream'
    return part(f'Content-Disposition: form-data; name="{name}"; {file}', value)
