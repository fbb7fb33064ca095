"""The report as a page: every number on it is one of the report, and strangers' text is text."""

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from keyed_service import KeyedService, keyed_service, logits_of
from page_visitor import HTML, Visitor, elements

WAIT = {"Prefer": "wait=60"}
HOSTILE = ["<script>alert(1)</script>", "=1+1", "\u202eabc &amp;"]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedService]:
    with keyed_service(tmp_path_factory.mktemp("report"), first=False) as found:
        config = json.dumps({"name": "digits", "classes": HOSTILE, "bins": 6})
        files = [
            ("calibration", ("c.csv", logits_of(n=400))),
            ("evaluation", ("e.csv", logits_of(n=300))),
            ("config", (None, config)),
        ]
        made = found.client().post("/calibrate", files=files, headers=WAIT)
        assert made.json()["status"] == "succeeded", made.text
        further = [("evaluation", ("f.csv", logits_of(n=200))), ("name", (None, HOSTILE[0]))]
        address = "/calibrations/digits/evaluations"
        found.client().post(address, files=further, headers=WAIT)
        yield found


@pytest.fixture(scope="module")
def shown(service: KeyedService) -> httpx.Response:
    return Visitor(service).open("/report?calibration=digits")


@pytest.fixture(scope="module")
def report(service: KeyedService) -> dict[str, Any]:
    return service.client().get("/report?calibration=digits").json()


def at(report: Any, path: str) -> Any:
    for part in path.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        report = report[int(name)] if isinstance(report, list) else report[name]
    return report


def test_every_number_is_one_of_the_report(shown, report) -> None:
    found = [a for _, a in elements(shown.text) if "data-path" in a]
    assert len(found) > 50
    for attributes in found:
        value = at(report, attributes["data-path"])
        assert json.loads(attributes["data-value"]) == value, attributes
        assert isinstance(value, int | float | None)
    # All bins are there.
    for k, event in report["events"].items():
        served = f"/events/{k}/measures/{event['served']}/bins"
        n_bins = len(event["measures"][event["served"]]["bins"])
        counts = [a for a in found if re.fullmatch(f"{served}/\\d+/count", a["data-path"])]
        assert len({a["data-path"] for a in counts}) == n_bins


def test_numbers_stand_nowhere_else_in_figures(shown) -> None:
    """A figure in a sentence is marked as well; digits elsewhere are parts of names and times."""
    text = re.sub(r'<span class="number".*?</span>', "", shown.text)
    for part in re.findall(r'<p class="(?:sentence|big)">(.*?)</p>', text, re.DOTALL):
        assert not re.search(r"\d", part), part


def test_it_begins_with_a_sentence_with_interval_and_n(shown) -> None:
    assert shown.text.index('class="sentence"') < shown.text.index("<figure")
    text = re.sub(r"<[^>]+>", "", shown.text)
    sentence = next(line for line in text.splitlines() if " right " in line)
    following = text[text.index(sentence) :][:200]
    assert re.search(
        r"right [\d.]+ % of the time\s+\([\d.]+ % to [\d.]+ %, n = [\d,]+\)", following
    )


def test_figures_come_with_interval_or_spread_and_n(report) -> None:
    figures = report["events"]["1"]["figures"]
    accuracy = figures["accuracy"]
    assert accuracy["value"] == report["events"]["1"]["accuracy"]
    assert accuracy["interval"][0] < accuracy["value"] < accuracy["interval"][1]
    assert accuracy["n_samples"] == 400
    error = figures["calibration_error"]
    event = report["events"]["1"]
    assert error["raw"]["mean"] == event["baselines"]["raw_softmax"]["scores"]["ece_15"]["mean"]
    served = event["measures"][event["served"]]["scores"]
    assert error["served"]["mean"] == served["ece_15"]["mean"]
    assert figures["error_detection"]["served"]["mean"] == served["auroc"]["mean"]


def test_names_of_strangers_are_text(shown) -> None:
    assert "<script>alert" not in shown.text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown.text
    assert {tag for tag, _ in elements(shown.text)} >= {"bdi", "table", "dl"}


def test_programs_get_what_they_got_before(service) -> None:
    client = service.client()
    for accept, kind in (
        ("*/*", "application/json"),
        ("application/json", "application/json"),
        ("text/csv", "text/csv"),
        ("text/markdown", "text/markdown"),
        ("text/html;q=0.1, application/json", "application/json"),
        (HTML["Accept"], "text/html"),
    ):
        address = "/report?calibration=digits"
        answer = client.get(address, headers={"Accept": accept})
        assert answer.headers["content-type"].startswith(kind)
        answer = client.get(address + "&format=csv", headers={"Accept": accept})
        assert answer.headers["content-type"].startswith("text/csv")


@pytest.mark.parametrize(
    ("query", "status"),
    [("calibration=none", 404), ("", 422), ("calibration=a&calibration=b", 404)],
)
def test_what_is_not_there_is_said_on_a_page(service, query: str, status: int) -> None:
    answer = service.client().get(f"/report?{query}", headers=HTML)
    assert answer.status_code == status
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["x-request-id"] in answer.text


def test_it_is_small(shown) -> None:
    assert len(shown.content) < 500_000  # with fifteen pictures and their numbers
