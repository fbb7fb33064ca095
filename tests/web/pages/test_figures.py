"""Figures of a report: in its page, and as files."""

import xml.etree.ElementTree as ET
from collections.abc import Iterator

import httpx
import pytest
from keyed_service import KeyedService, keyed_service, logits_of
from page_visitor import Visitor, elements

WAIT = {"Prefer": "wait=60"}
MOST_OF_A_PAGE = 1_000_000


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedService]:
    with keyed_service(tmp_path_factory.mktemp("figures"), first=False) as found:
        files = [
            ("calibration", ("c.csv", logits_of(n=400))),
            ("config", (None, '{"name": "digits", "bins": 6}')),
        ]
        made = found.client().post("/calibrate", files=files, headers=WAIT)
        assert made.json()["status"] == "succeeded", made.text
        yield found


@pytest.fixture(scope="module")
def page(served: KeyedService) -> httpx.Response:
    return Visitor(served).open("/report?calibration=digits")


@pytest.fixture(scope="module")
def figures(page) -> list[dict[str, str]]:
    return [attributes for tag, attributes in elements(page.text) if tag == "figure"]


@pytest.fixture(scope="module")
def files(page) -> list[str]:
    found = [attributes.get("href") or "" for tag, attributes in elements(page.text) if tag == "a"]
    return [address for address in found if address.endswith(".svg")]


def test_the_page_has_pictures_and_is_small(page, figures) -> None:
    assert {"before_after", "reliability", "classes", "risk_coverage"} <= {
        found["data-chart"] for found in figures
    }
    drawn = [attributes for tag, attributes in elements(page.text) if tag == "svg"]
    assert len(drawn) == len(figures)
    assert len(page.content) < MOST_OF_A_PAGE


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_figure_is_a_file_of_its_own(served, files, theme) -> None:
    answer = served.client().get(files[0], params={"theme": theme})
    assert answer.headers["content-type"] == "image/svg+xml"
    assert "var(" not in answer.text
    assert ET.fromstring(answer.text).get("role") == "img"  # noqa: S314 -- our own


@pytest.mark.parametrize(
    "name",
    ["no/1.svg", "reliability/7.svg", "reliability/1.png", "reliability/1.json", "reliability/1"],
)
def test_there_are_no_other_files(served, files, name) -> None:
    start = files[0].rsplit("/", 2)[0]
    assert served.client().get(f"{start}/{name}").status_code == httpx.codes.NOT_FOUND
