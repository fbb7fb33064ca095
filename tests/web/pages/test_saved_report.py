"""The report as files: HTML without other files, and a model card."""

import re

import httpx
import pytest
from page_visitor import elements, numbers_of

FETCHED = ("src", "srcset", "poster", "data", "action", "background", "ping")


@pytest.fixture(scope="module")
def pictures(shelf) -> None:
    """The calibration whose names are strange."""
    shelf("pictures")


@pytest.fixture(scope="module")
def file(client: httpx.Client, pictures) -> httpx.Response:
    return saved(client, "html")


@pytest.fixture(scope="module")
def card(client: httpx.Client, pictures) -> str:
    return saved(client, "model-card").text


def saved(client: httpx.Client, form: str, name: str = "pictures@1") -> httpx.Response:
    answer = client.get("/report", params={"calibration": name, "format": form})
    assert answer.status_code == httpx.codes.OK, answer.text
    return answer


def test_the_file_shows_what_the_page_shows(client, visitor, shelf) -> None:
    """A page of a name with one version: for several it has a form to compare them."""
    file = saved(client, "html", shelf("rare-errors")["id"])
    page = visitor.open(f"/report?calibration={shelf('rare-errors')['id']}")
    assert numbers_of(file.text) == numbers_of(page.text)
    for tag in ("svg", "table", "section", "h2", "h3", "figure"):
        counts = [sum(other == tag for other, _ in elements(t.text)) for t in (file, page)]
        assert counts[0] == counts[1] > 0, tag


def test_the_file_fetches_nothing(file) -> None:
    """Opened from a disk, without a network: what it shows is in it."""
    found = elements(file.text)
    assert not {tag for tag, _ in found} & {"script", "link", "img", "iframe", "object", "base"}
    for tag, attributes in found:
        assert not set(attributes) & {*FETCHED, "style"}, (tag, attributes)
        assert not any(name.startswith("on") for name in attributes)
        assert (attributes.get("href") or attributes.get("xlink:href") or "#").startswith("#")
    (sheet,) = re.findall(r"<style>(.*?)</style>", file.text, re.DOTALL)
    assert "@import" not in sheet
    assert "url(" not in sheet
    assert "prefers-color-scheme: dark" in sheet
    assert "size: A4" in sheet


def test_the_file_forbids_browsers_to_fetch(file) -> None:
    (policy,) = [a["content"] for _, a in elements(file.text) if a.get("http-equiv") is not None]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules.pop("default-src") == "'none'"
    assert re.fullmatch(r"'sha256-[\w+/]{43}='", rules.pop("style-src"))
    assert set(rules.values()) == {"'none'"}
    # Seen at its address it is under the same rules.
    assert file.headers["content-security-policy"].startswith(policy)


def test_names_of_strangers_are_text_in_the_card(card) -> None:
    assert r"\<script\>alert(1)\</script\>" in card
    assert r"abc \&amp;" in card
