"""The report as a page: its order, its figures, and its links to other forms."""

import re
import xml.etree.ElementTree as ET

import httpx
import pytest
from page_visitor import HTML, elements

from service.web.page import unbroken

REPORT = "/report?calibration=pictures@1"


@pytest.fixture(scope="module")
def report(client: httpx.Client, shelf) -> dict:
    shelf("pictures")
    return client.get(REPORT).json()


@pytest.fixture(scope="module")
def page(client: httpx.Client, report) -> str:
    return client.get(REPORT, headers=HTML).text


@pytest.fixture(scope="module")
def figure(page: str) -> str:
    """Return the address of a figure as a file."""
    links = [attributes.get("href") or "" for tag, attributes in elements(page) if tag == "a"]
    return next(address for address in links if address.endswith(".svg"))


def test_the_first_finding_is_open_and_the_others_take_a_line_each(visitor, shelf) -> None:
    shelf("wrong-labels")
    text = visitor.open("/report?calibration=wrong-labels").text
    opened = re.findall(r'<li class="finding[^>]*><details( open)?>', text)
    assert opened == [" open"] + [""] * (text.count('<li class="finding') - 1)
    assert len(opened) > 1


def test_an_imported_report_has_no_empty_parts(visitor, shelf) -> None:
    text = visitor.open(f"/report?calibration={shelf('imported')['id']}").text
    assert 'id="calibration-1"' not in text
    assert 'id="measured-1"' in text


def test_no_line_breaks_between_a_number_and_its_percent_sign(client, page) -> None:
    for text in (page, client.get(f"{REPORT}&format=html").text):
        written = re.sub(r"<(svg|pre)\b.*?</\1>", "", text, flags=re.DOTALL)
        plain = re.sub(r"<[^>]+>", "", written)
        assert len(re.findall(r"\d&nbsp;%", plain)) > 50
        assert not re.search(r"\d[ \n]%", plain)


KEPT = ["<code>7 % 3</code>", '<input value="7 % 3"> <p>', "<option>7 % 3</option>"]


@pytest.mark.parametrize("kept", KEPT)
def test_what_is_copied_or_sent_keeps_its_spaces(kept) -> None:
    assert unbroken(f"<p>7 % wrong</p>{kept}") == f"<p>7&nbsp;% wrong</p>{kept}"


def test_each_event_is_a_tab_and_all_are_in_the_page(page) -> None:
    tags = elements(page)
    tabs = [a["id"] for tag, a in tags if tag == "input" and a["type"] == "radio"]
    assert tabs == ["show-1", "show-5"]
    assert {"top-1", "top-5"} <= {a.get("id") for tag, a in tags if tag == "h2"}
    parts = {a.get("id") for tag, a in tags if tag == "h3"}
    assert {"measured-1", "measured-5", "calibration-1", "bins-5"} <= parts
    links = [a.get("href", "") for tag, a in tags if tag == "a"]
    assert any(link.endswith("/operating-point") for link in links)
    charts = [a["data-chart"] for tag, a in tags if tag == "figure"]
    assert charts[:3] == ["risk_coverage", "class_errors", "reliability"]
    widths = [a["class"] for tag, a in tags if tag == "svg"]
    assert widths.count("chart") == len(charts)
    assert widths.count("chart wide") == 3


ACCEPTED = [
    ("", HTML["Accept"], "text/html"),
    ("", "*/*", "application/json"),
    ("", "text/html;q=0.1, application/json", "application/json"),
    ("", "text/markdown;q=0.5, application/json;q=0.9", "application/json"),
    ("", "text/markdown, application/json;q=0.9", "text/markdown"),
    ("", "text/*", "text/csv"),
    ("", "application/json;q=0, text/csv;q=0.1", "text/csv"),
    ("&format=csv", HTML["Accept"], "text/csv"),
    ("&calibration=pictures@2", HTML["Accept"], "text/html"),
    ("&calibration=pictures@2", "*/*", "application/json"),
    ("&calibration=pictures@2&format=json", HTML["Accept"], "application/json"),
]


@pytest.mark.parametrize(("query", "accept", "kind"), ACCEPTED)
def test_people_get_a_page_and_programs_json(client, report, query, accept, kind) -> None:
    answer = client.get(f"{REPORT}{query}", headers={"Accept": accept})
    assert answer.headers["content-type"].startswith(kind)


def test_a_figure_is_a_file_of_its_own(client, figure) -> None:
    for theme in ("light", "dark"):
        answer = client.get(figure, params={"theme": theme})
        assert answer.headers["content-type"] == "image/svg+xml"
        assert "var(" not in answer.text
        assert ET.fromstring(answer.text).get("role") == "img"
    start = figure.rsplit("/", 2)[0]
    for name in ("no/1.svg", "reliability/7.svg", "reliability/1.png", "reliability/1"):
        assert client.get(f"{start}/{name}").status_code == httpx.codes.NOT_FOUND


def test_all_forms_are_linked_and_named_by_their_links(client, page) -> None:
    kinds = {}
    for tag, link in elements(page):
        if tag == "a" and "download" in link:
            answer = client.get(link["href"])
            kinds[link["download"]] = answer.headers["content-type"].partition(";")[0]
    assert kinds == {
        "pictures-1.html": "text/html",
        "pictures-1.md": "text/markdown",
        "pictures-1-card.md": "text/markdown",
        "pictures-1.csv": "text/csv",
        "pictures-1.json": "application/json",
    }


@pytest.mark.parametrize("tab", ["", "/try"])
def test_a_version_says_which_one_its_name_stands_for(client, visitor, report, tab) -> None:
    meant = client.get("/calibrations/pictures").json()["version"]
    for version in (1, 2):
        calibration = client.get(f"/calibrations/pictures@{version}").json()["id"]
        address = f"/pages/calibrations/{calibration}{tab}"
        text = visitor.open(address if tab else f"/report?calibration={calibration}").text
        note = f'<a href="/report?calibration=pictures"><bdi>pictures</bdi>@{meant}</a>'
        assert (note in text) == (version != meant)


def test_the_report_offers_other_versions_for_a_comparison(client, visitor, page, shelf) -> None:
    ids = [client.get(f"/calibrations/pictures@{version}").json()["id"] for version in (1, 2)]
    forms = re.findall(r'<form method="get" action="/report".*?</form>', page, re.DOTALL)
    (form,) = [form for form in forms if ids[1] in form]
    fields = [a for _, a in elements(form) if a.get("name") == "calibration"]
    hidden, *others = [(a["type"], a["value"]) for a in fields]
    assert hidden == ("hidden", ids[0])
    assert ("checkbox", ids[1]) in others
    alone = visitor.open(f"/report?calibration={shelf('scores')['id']}").text
    assert 'action="/report"' not in alone
