"""The report as a page: its first sentence, its figures, and its links to other forms."""

import html
import json
import re
import xml.etree.ElementTree as ET

import httpx
import pytest
from keyed_service import KeyedService
from page_visitor import HTML, Visitor, elements, numbers_of
from running_service import refit

from service.reports.numbers import percent
from service.web.page import unbroken

REPORT = "/report?calibration=digits@1"


@pytest.fixture(scope="module")
def shown(service: KeyedService) -> httpx.Response:
    return Visitor(service).open(REPORT)


@pytest.fixture(scope="module")
def files(shown: httpx.Response) -> list[str]:
    """Return the addresses of figures as files."""
    found = [attributes.get("href") or "" for tag, attributes in elements(shown.text) if tag == "a"]
    return [address for address in found if address.endswith(".svg")]


def test_the_report_begins_with_the_summary_then_findings_then_figures(service) -> None:
    report = service.client().get("/report", params={"calibration": "warned"}).json()
    text = html.unescape(Visitor(service).open("/report?calibration=warned").text)
    codes = [found["code"] for found in report["findings"]]
    assert codes[0] == "labels-shifted"
    order = [text.index(report["summary"]["headline"])]
    order += [text.index(f"<code>{code}</code>") for code in codes]
    order += [text.index('<p class="big">'), text.index("<figure")]
    assert order == sorted(order)
    assert "Do not use this calibration yet" in report["summary"]["headline"]
    assert "labels = (labels - 1) % 3" in text
    # The first finding is open, the others take a line each.
    opened = re.findall(r'<li class="finding[^>]*><details( open)?>', text)
    assert opened == [" open"] + [""] * (len(codes) - 1)


def test_the_report_names_the_active_operating_point_and_who_decided(service) -> None:
    """The page, the saved file, the Markdown and the JSON; no longer after it was withdrawn."""
    client = service.client()
    made = refit(client, "scores", bins=7).json()
    points = f"/calibrations/{made['id']}/operating-points"
    signed = {"author": "<i>Ann", "reason": "agreed"}

    def told() -> list[bool]:
        address = f"/report?calibration={made['id']}"
        forms = ("", "&format=html", "&format=markdown")
        texts = [html.unescape(Visitor(service).open(address + form).text) for form in forms]
        point = client.get(address).json()["operating_point"]
        assert point is None or point["author"] == "<i>Ann"
        return [point is not None, *("Active operating point" in text for text in texts)]

    assert told() == [False] * 4
    client.post(points, json={"name": "automatic", "threshold": 0.5, **signed})
    assert told() == [True] * 4
    page = Visitor(service).open(f"/report?calibration={made['id']}").text
    (line,) = re.findall(r'<p class="active">(.*?)</p>', page)
    assert f'href="/pages/calibrations/{made["id"]}/operating-point">automatic</a>' in line
    assert re.search(r"since 20[\d: -]+ UTC, by <bdi>&lt;i&gt;Ann</bdi>: <bdi>agreed</bdi>", line)
    markdown = client.get(f"/report?calibration={made['id']}&format=markdown").text
    assert "by \\<i\\>Ann: agreed\n" in markdown
    client.post(f"{points}/withdraw", json=signed)
    assert told() == [False] * 4
    client.delete(f"/calibrations/{made['id']}")


def test_further_sets_are_a_table_with_their_accepted_answers(service, shown) -> None:
    (further,) = service.client().get(REPORT).json()["evaluations"]
    part = shown.text.partition(">Further sets</h2>")[2].partition("</section>")[0]
    found = {path: json.loads(value) for _, path, value in numbers_of(part)}
    first, folded = part.split("<summary>Top-5</summary>")
    for k, table in (("1", first), ("5", folded)):
        event = further["events"][k]
        assert event["accepted"]
        assert f"<span>{event['verdict']}</span>" in table
        assert found[f"/evaluations/0/events/{k}/accuracy"] == event["accuracy"]
        assert found[f"/evaluations/0/events/{k}/stated"] == event["stated"]
        for at, one in enumerate(event["accepted"]):
            path = f"/evaluations/0/events/{k}/accepted/{at}"
            assert one["coverage"] == one["n_accepted"] / one["n_samples"]
            assert one["risk"] == one["n_errors"] / one["n_accepted"]
            assert found[f"{path}/coverage"] == one["coverage"]
            assert found[f"{path}/risk"] == one["risk"]
            assert found[f"{path}/risk_interval/1"] == one["risk_interval"][1]


def test_an_imported_report_has_no_empty_parts(service) -> None:
    text = Visitor(service).open("/report?calibration=moved").text
    assert "Calibration error: before" not in text
    assert 'id="calibration-1"' not in text
    assert 'href="#calibration-1"' not in text


def test_the_summary_is_that_of_the_json(service, shown) -> None:
    summary = service.client().get("/report", params={"calibration": "digits@1"}).json()["summary"]
    text = html.unescape(shown.text).replace("\u00a0", " ")
    for sentence in (summary["headline"], *summary["sentences"]):
        assert sentence in text


def test_no_line_breaks_between_a_number_and_its_percent_sign(service, shown) -> None:
    saved = service.client().get("/report?calibration=digits@1&format=html")
    for page in (shown.text, saved.text):
        written = re.sub(r"<(svg|pre)\b.*?</\1>", "", page, flags=re.DOTALL)
        text = re.sub(r"<[^>]+>", "", written)
        assert len(re.findall(r"\d&nbsp;%", text)) > 50
        assert not re.search(r"\d[ \n]%", text)


@pytest.mark.parametrize(
    "kept", ["<code>7 % 3</code>", '<input value="7 % 3"> <p>', "<option>7 % 3</option>"]
)
def test_what_is_copied_or_sent_keeps_its_spaces(kept) -> None:
    assert unbroken(f"<p>7 % wrong</p>{kept}") == f"<p>7&nbsp;% wrong</p>{kept}"


def test_each_event_is_a_tab_and_all_are_in_the_page(service, shown) -> None:
    tabs = [a["id"] for tag, a in elements(shown.text) if tag == "input" and a["type"] == "radio"]
    assert tabs == ["show-1", "show-5"]
    for k in (1, 5):
        assert f'<h2 id="top-{k}">' in shown.text
    targets = {a["id"] for _, a in elements(shown.text) if "id" in a}
    links = {a["href"][1:] for tag, a in elements(shown.text) if a.get("href", "").startswith("#")}
    assert links - targets == set()
    assert {"calibration-1", "bins-5", "provenance"} <= links


def test_numbers_of_one_name_are_one_number(service, shown) -> None:
    """The accuracy and the calibration error at the top, in charts and on the home page."""
    report = service.client().get("/report", params={"calibration": "digits@1"}).json()
    event = report["events"]["1"]
    served = event["measures"][event["served"]]
    figures = event["figures"]
    assert figures["set"] == "evaluation"
    assert figures["accuracy"]["value"] == report["model_scores"]["evaluation"]["accuracy"]["1"]
    assert figures["calibration_error"]["served"]["mean"] == served["evaluation"]["ece_15"]
    (title,) = re.findall(r"Top-1: calibration error from [^<]*", shown.text)[:1]
    for judged in (event["baselines"]["raw_softmax"], served):
        assert percent(judged["evaluation"]["ece_15"]).replace(" ", "\u00a0") in title
    assert (
        f"off by {percent(served['evaluation']['ece_15'])} on average"
        in event["verdict"]["sentence"]
    )
    detection = percent(figures["error_detection"]["served"]["mean"]).replace(" ", "\u00a0")
    assert f"correct answer in {detection} of pairs" in shown.text


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


@pytest.mark.parametrize("tab", ["", "/operating-point", "/try"])
def test_a_version_says_which_one_its_name_stands_for(service, tab) -> None:
    client = service.client()
    meant = client.get("/calibrations/digits").json()["version"]
    for version in (1, 2):
        found = client.get(f"/calibrations/digits@{version}").json()["id"]
        address = f"/pages/calibrations/{found}{tab}" if tab else f"/report?calibration={found}"
        text = Visitor(service).open(address).text
        note = f"@{meant}</a>. Callers get this version only as <code>digits@{version}</code>"
        assert (note in text) == (version != meant)


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
