"""The report as a page: its first sentence, its figures, and its links to other forms."""

import re
import xml.etree.ElementTree as ET

import httpx
import pytest
from keyed_service import KeyedService
from page_visitor import HTML, Visitor, elements, text_of

REPORT = "/report?calibration=digits@1"


@pytest.fixture(scope="module")
def shown(service: KeyedService) -> httpx.Response:
    return Visitor(service).open(REPORT)


@pytest.fixture(scope="module")
def files(shown: httpx.Response) -> list[str]:
    """Return the addresses of figures as files."""
    found = [attributes.get("href") or "" for tag, attributes in elements(shown.text) if tag == "a"]
    return [address for address in found if address.endswith(".svg")]


def test_the_report_begins_with_a_sentence_with_interval_and_n(shown) -> None:
    assert shown.text.index('class="sentence"') < shown.text.index("<figure")
    sentence = r"right [\d.]+ % of the time\s+\([\d.]+ % to [\d.]+ %, n = [\d,]+\)"
    assert re.search(sentence, text_of(shown.text))


def test_people_get_a_page_and_programs_json(service) -> None:
    client = service.client()
    for address, accept, kind in (
        (REPORT, HTML["Accept"], "text/html"),
        (REPORT, "*/*", "application/json"),
        (REPORT, "text/html;q=0.1, application/json", "application/json"),
        (f"{REPORT}&format=csv", HTML["Accept"], "text/csv"),
        (f"{REPORT}&calibration=scores", HTML["Accept"], "text/html"),
        (f"{REPORT}&calibration=scores", "*/*", "application/json"),
        (f"{REPORT}&calibration=scores&format=json", HTML["Accept"], "application/json"),
    ):
        answer = client.get(address, headers={"Accept": accept})
        assert answer.headers["content-type"].startswith(kind)


def test_each_figure_is_drawn_in_the_page(shown) -> None:
    found = elements(shown.text)
    charts = [attributes["data-chart"] for tag, attributes in found if tag == "figure"]
    assert {"before_after", "reliability", "classes", "risk_coverage"} <= set(charts)
    assert sum(tag == "svg" for tag, _ in found) == len(charts)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_figure_is_a_file_of_its_own(service, files, theme) -> None:
    answer = service.client().get(files[0], params={"theme": theme})
    assert answer.headers["content-type"] == "image/svg+xml"
    assert "var(" not in answer.text
    assert ET.fromstring(answer.text).get("role") == "img"  # noqa: S314 -- our own


@pytest.mark.parametrize(
    "name", ["no/1.svg", "reliability/7.svg", "reliability/1.png", "reliability/1"]
)
def test_there_are_no_other_files(service, files, name) -> None:
    start = files[0].rsplit("/", 2)[0]
    assert service.client().get(f"{start}/{name}").status_code == httpx.codes.NOT_FOUND


def test_all_forms_are_linked_and_named_by_their_links(service, shown) -> None:
    kinds = {}
    for tag, link in elements(shown.text):
        if tag == "a" and "download" in link:
            answer = service.client().get(link["href"])
            kinds[link["download"]] = answer.headers["content-type"].partition(";")[0]
    assert kinds == {
        "digits-1.html": "text/html",
        "digits-1.md": "text/markdown",
        "digits-1-card.md": "text/markdown",
        "digits-1.csv": "text/csv",
        "digits-1.json": "application/json",
    }


def test_the_report_offers_other_versions_for_a_comparison(service) -> None:
    client = service.client()
    ids = [client.get(f"/calibrations/digits@{version}").json()["id"] for version in (1, 2)]
    [form] = [
        form
        for form in re.findall(r"<form.*?</form>", Visitor(service).open(REPORT).text, re.DOTALL)
        if "Compare with @1" in form
    ]
    assert 'method="get" action="/report"' in form
    fields = [a for _, a in elements(form) if a.get("name") == "calibration"]
    # Other tests of this service may have made more versions.
    hidden, *others = [(a["type"], a["value"]) for a in fields]
    assert hidden == ("hidden", ids[0])
    assert ("checkbox", ids[1]) in others
    alone = Visitor(service).open("/report?calibration=scores")
    assert "Compare with other versions" not in alone.text
