"""The home page: a row for each name."""

import html
import json
import re
from collections.abc import Iterator

import httpx
import numpy as np
import pytest
from keyed_service import KeyedService, keyed_service, logits_of
from page_visitor import Visitor, elements, numbers_of, pointed_to
from report_scenarios import DECISION, activate, of_outputs, outputs, send_set, withdraw
from running_service import QUICK, calibrated, npz
from running_service import calibrate as send_calibration

from howsure.numbers import percent
from service.web import home

LOGITS = logits_of()
WRONG_LABELS = npz(**outputs(150, seed=51, scale=6.0, shift=1))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedService]:
    """Run a service whose calibrations are those of this module."""
    with keyed_service(tmp_path_factory.mktemp("home"), first=False) as service:
        yield service


@pytest.fixture(scope="module", autouse=True)
def first_page(service: KeyedService) -> str:
    """The page before anything was calibrated."""
    return Visitor(service).open("/").text


@pytest.fixture
def client(service: KeyedService) -> httpx.Client:
    return service.client()


def calibrate(client: httpx.Client, name: str, content: bytes = LOGITS, **config: object) -> dict:
    return calibrated(client, {"name": name} | config, calibration=content)


def failed(client: httpx.Client, name: str) -> dict:
    """Calibrate so strictly that the labels, which look wrong, let it fail."""
    config = json.dumps(QUICK | {"name": name, "strict": True})
    resource = send_calibration(client, calibration=WRONG_LABELS, config=config).json()
    assert resource["status"] == "failed", resource
    return resource


def row_of(visitor: Visitor, name: str) -> str:
    """Return the row of a name as HTML."""
    return visitor.open("/").text.partition(f'<tr data-name="{name}"')[2].partition("</tr>")[0]


def rows_of(visitor: Visitor, address: str = "/") -> list[dict[str, str | None]]:
    found = elements(visitor.open(address).text)
    return [attributes for tag, attributes in found if tag == "tr" and "data-name" in attributes]


def test_an_empty_service_shows_how_to_begin(service, first_page) -> None:
    url = "http://{}:{}".format(*service.address)
    for command in ("howsure demo", f"--url {url}", f"calibration.npz {url}/calibrate"):
        assert command in first_page


def test_a_row_is_the_version_that_a_name_means(client, visitor) -> None:
    """The promoted version, not the newest; the newest name is first."""
    first = calibrate(client, "shown")
    calibrate(client, "shown", bins=3)
    client.post(f"/calibrations/{first['id']}/promote")
    calibrate(client, "other")
    rows = rows_of(visitor)
    assert [row["data-name"] for row in rows] == ["other", "shown"]
    assert rows[1]["data-id"] == first["id"]


def test_numbers_of_a_row_are_those_of_its_report(client, visitor) -> None:
    """Of the evaluation set if there is one."""
    calibrate(client, "judged")
    evaluation = logits_of(n=90)
    calibrated(client, {"name": "evaluated"}, calibration=LOGITS, evaluation=evaluation)
    for name, judged in (("judged", "calibration"), ("evaluated", "evaluation")):
        report = client.get(f"/report?calibration={name}").json()
        assert report["events"]["1"]["figures"]["set"] == judged
        numbers = numbers_of(row_of(visitor, name))
        assert len(numbers) == 3
        for _, path, value in numbers:
            assert json.loads(value) == pointed_to(report, path)


def test_findings_and_failures_are_marked_with_a_link(client, visitor) -> None:
    made = calibrate(client, "marked", WRONG_LABELS)
    row = row_of(visitor, "marked")
    first, *others = [one for one in made["findings"] if one["level"] == "warning"]
    link = re.search(r'<a class="level warning" href="([^"]*)" title="([^"]*)">(.*?)</a>', row)
    assert link is not None
    assert link[1] == f"/report?calibration={made['id']}#findings"
    assert html.unescape(link[2]) == first["message"]
    assert f"{first['code']} +{len(others)}".removesuffix(" +0") in link[3]
    # Numbers that a warning doubts are muted.
    assert row.count('<td class="n doubted"') == 2
    text = visitor.open(f"/?made={made['id']}").text
    assert all(finding["code"] in text for finding in made["findings"])
    failed(client, "marked")
    link = '<a class="state failed" href="/?made=marked@2">'
    assert link in row_of(visitor, "marked")
    alone = failed(client, "failing")
    row = html.unescape(row_of(visitor, "failing"))
    assert f'href="/?made={alone["id"]}"' in row
    assert alone["error"]["detail"] in row
    assert alone["error"]["detail"] in html.unescape(visitor.open(f"/?made={alone['id']}").text)


def test_a_notice_leaves_numbers_as_they_are(client, visitor) -> None:
    logits = 3 * np.random.default_rng(0).normal(size=(400, 4))
    labels = logits[:, :3].argmax(axis=1)  # none of the last class, which gives a notice
    calibrate(client, "noted", npz(logits=logits, labels=labels))
    row = row_of(visitor, "noted")
    assert 'class="level notice"' in row
    assert "doubted" not in row


def test_each_row_says_in_a_word_what_its_report_says(client, visitor) -> None:
    """The state of a name is the summary of its report."""
    strict, none = [{"max_risk": 0.0001}], []
    of_outputs(outputs(400, seed=52, scale=6.0))(client, "good")
    of_outputs(outputs(400, seed=53, scale=6.0), selective=strict)(client, "few")
    of_outputs(outputs(400, seed=54, scale=6.0), selective=none)(client, "plain")
    calibrate(client, "moved", WRONG_LABELS)
    of_outputs(outputs(400, seed=55, scale=6.0))(client, "disproved")
    send_set(client, "disproved", "upside down", outputs(300, seed=56, scale=18.0, wrong=0.7))
    expected = {
        "good": ("fit", "succeeded"),
        "few": ("unfit", "unfit"),
        "moved": ("warned", "failed"),
        "plain": ("unknown", ""),
        "disproved": ("shifted", "failed"),
    }
    for name, (status, look) in expected.items():
        pattern = r'<a class="state ([a-z]*)" [^>]*title="([^"]*)">([^<]*)</a>'
        (mark,) = re.findall(pattern, row_of(visitor, name))
        report = client.get(f"/report?calibration={name}").json()
        summary, risk = report["summary"], report["events"]["1"]["figures"]["risk"]
        assert (summary["status"], mark[0]) == (status, look)
        assert html.unescape(mark[1]) == summary["headline"]
        words = html.unescape(mark[2]).replace("\u00a0", " ")
        if status == "fit":
            assert f"{percent(risk['coverage'])} (≤ {100 * risk['max_risk']:g} %" in words
        else:
            assert "%" not in words


def test_an_operating_point_of_an_unfit_calibration_is_marked(client, visitor) -> None:
    made = calibrate(client, "unsafe", WRONG_LABELS)
    warnings = activate(client, made["id"], coverage=0.8)["warnings"]
    headline = client.get("/report?calibration=unsafe").json()["summary"]["headline"]
    messages = [one["message"] for one in made["findings"] if one["level"] == "warning"]
    assert warnings == [headline, *messages]
    points = client.get(f"/calibrations/{made['id']}/operating-points").json()
    assert points["operating_points"][0]["warnings"] == warnings
    assert 'class="point doubted-point"' in row_of(visitor, "unsafe")


def test_the_active_operating_point_is_marked(client, visitor) -> None:
    made = of_outputs(outputs(300, seed=59, scale=6.0))(client, "decided")
    for name in ("first", "second"):
        activate(client, made["id"], name=name, threshold=0.5)
    pattern = r'<a class="point" href="([^"]*)" title="([^"]*)">(.*?)</a>'
    (mark,) = re.findall(pattern, row_of(visitor, "decided"))
    assert mark[0] == f"/pages/calibrations/{made['id']}/operating-point"
    assert html.unescape(mark[1]).endswith(DECISION["author"])
    assert mark[2] == "second"
    withdraw(client, made["id"])
    assert 'class="point"' not in row_of(visitor, "decided")


def test_names_are_searched_and_chosen_for_a_comparison(client, visitor) -> None:
    for name in ("needle_1", "needleX1"):
        calibrate(client, name)
    rows = rows_of(visitor, "/?q=NEEDLE")
    assert {row["data-name"] for row in rows} == {"needle_1", "needleX1"}
    inputs = [a for tag, a in elements(visitor.seen.text) if tag == "input"]
    checkboxes = [a for a in inputs if (a.get("name"), a["type"]) == ("calibration", "checkbox")]
    boxes = {a["aria-label"]: a["value"] for a in checkboxes}
    chosen = [boxes[f"Compare {name}@1"] for name in ("needleX1", "needle_1")]
    page = visitor.open("/report?" + "&".join(f"calibration={value}" for value in chosen))
    assert "<bdi>needle_1@1</bdi> against <bdi>needleX1@1</bdi>" in page.text
    assert "<bdi>&lt;b&gt;</bdi>" in visitor.open("/?q=<b>").text


def test_a_calibration_is_deleted_after_a_question(client, visitor) -> None:
    made = calibrate(client, "unwanted")
    assert f'href="/pages/calibrations/{made["id"]}/delete"' in row_of(visitor, "unwanted")
    address = f"/pages/calibrations/{made['id']}/delete"
    assert "<bdi>unwanted</bdi>@1" in visitor.open(address).text
    assert visitor.send(address).status_code == httpx.codes.SEE_OTHER
    assert client.get(f"/calibrations/{made['id']}").status_code == 404
    assert "unwanted" not in visitor.open("/").text
    assert visitor.send(address).status_code == httpx.codes.NOT_FOUND


def test_a_failure_of_the_service_is_a_page_too(visitor, monkeypatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise ZeroDivisionError("kept to ourselves")

    monkeypatch.setattr(home, "overview", fails)
    for _ in range(2):  # also on the same connection
        answer = visitor.open("/")
        assert answer.status_code == httpx.codes.INTERNAL_SERVER_ERROR
        assert answer.headers["content-type"].startswith("text/html")
        assert answer.headers["x-request-id"] in answer.text
        assert "kept to ourselves" not in answer.text
