"""The home page: a row for each name, jobs under way, and a form that does what the API does."""

import json
from collections.abc import Iterator

import httpx
import pytest
from keyed_service import KeyedService, keyed_service, logits_of
from page_visitor import Visitor, elements

from service.web import home

SEE_OTHER = httpx.codes.SEE_OTHER
WAIT = {"Prefer": "wait=60"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedService]:
    with keyed_service(tmp_path_factory.mktemp("home"), first=False) as found:
        yield found


@pytest.fixture
def visitor(service: KeyedService) -> Visitor:
    return Visitor(service)


def calibrate(service: KeyedService, name: str, **config: object) -> dict:
    asked = json.dumps({"name": name, **config})
    files = [("calibration", ("c.csv", logits_of())), ("config", (None, asked))]
    answer = service.client().post("/calibrate", files=files, headers=WAIT)
    assert answer.status_code == httpx.codes.CREATED, answer.text
    return answer.json()


def test_with_nothing_there_it_says_how_to_begin(tmp_path) -> None:
    with keyed_service(tmp_path, first=False) as service:
        url = "http://{}:{}".format(*service.address)
        text = Visitor(service).open("/").text
    for command in ("howsure demo", f"--url {url}", f"calibration.npz {url}/calibrate"):
        assert command in text
    assert text.count("<pre>") == 3


def test_a_row_says_what_a_name_means(service, visitor) -> None:
    first = calibrate(service, "shown")
    calibrate(service, "shown", measures=["entropy"])
    service.client().post(f"/calibrations/{first['id']}/promote")
    calibrate(service, "other")
    found = elements(visitor.open("/").text)
    rows = [attributes for tag, attributes in found if tag == "tr" and "data-name" in attributes]
    assert [row["data-name"] for row in rows] == ["other", "shown"]
    # The promoted version, not the newest.
    assert rows[1]["data-id"] == first["id"]
    text = visitor.seen.text
    assert "@1" in text.partition('data-name="shown"')[2]


def test_its_numbers_are_those_of_the_reports(service, visitor) -> None:
    calibrate(service, "judged")
    found = elements(visitor.open("/").text)
    name, compared = "", 0
    reports = {}
    for tag, attributes in found:
        if tag == "tr" and "data-name" in attributes:
            name = attributes["data-name"]
            address = f"/report?calibration={name}"
            reports[name] = service.client().get(address).json()
        if "data-path" in attributes:
            value = reports[name]
            for part in attributes["data-path"].split("/")[1:]:
                value = value[part]
            assert json.loads(attributes["data-value"]) == value
            compared += 1
    assert compared == 3 * len(reports)


def test_the_form_does_what_the_api_does(service, visitor) -> None:
    """As browsers send it: with a part for each field, filled in or not."""
    visitor.open("/")
    empty = ("", b"", "application/octet-stream")
    files = [
        ("model", empty),
        ("calibration", ("c.csv", logits_of())),
        ("name", (None, "by-form")),
        ("model_data", empty),
        ("calibration_labels", empty),
        ("evaluation", empty),
        ("evaluation_labels", empty),
        ("config", (None, '{"bins": 4}')),
    ]
    answer = visitor.upload(files)
    assert answer.status_code == SEE_OTHER, answer.text
    made = answer.headers["location"].removeprefix("/?made=")
    resource = service.client().get(f"/calibrations/{made}").json()
    assert (resource["name"], resource["config"]["bins"]) == ("by-form", 4)
    shown = visitor.open(answer.headers["location"])
    assert "by-form</bdi>@1" in shown.text
    [row] = service.client().get("/audit", params={"subject": made}).json()["entries"]
    assert (row["action"], row["via"], row["result"]) == ("calibrate", "page", "accepted")


def test_files_may_be_as_long_as_those_of_the_api(service, visitor) -> None:
    """Longer than any other form."""
    visitor.open("/")
    set_ = logits_of(n=12_000)
    assert len(set_) > 64 * 1024
    answer = visitor.upload([("calibration", ("c.csv", set_))])
    assert answer.status_code == SEE_OTHER, answer.text


def test_findings_are_told_in_words(service, visitor) -> None:
    lines = logits_of().decode().splitlines()
    shifted = [lines[0], *(f"{(int(line[0]) + 1) % 3}{line[1:]}" for line in lines[1:])]
    visitor.open("/")
    answer = visitor.upload([("calibration", ("c.csv", "\n".join(shifted).encode()))])
    made = answer.headers["location"].removeprefix("/?made=")
    client = service.client()
    with client.stream("GET", f"/calibrations/{made}/events") as events:
        events.read()
    findings = client.get(f"/calibrations/{made}").json()["findings"]
    assert findings
    text = visitor.open(f"/?made={made}").text
    for found in findings:
        assert found["code"] in text


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ([("calibration", ("c.csv", b"a,b\n1,2\n"))], "expected a column"),
        ([("calibration", ("c.csv", logits_of())), ("name", (None, "<b>"))], "config.name"),
        ([("calibration", ("c.csv", logits_of())), ("config", (None, "{"))], "config"),
        ([("calibration", ("", b"", "text/csv"))], "this part is required"),
        ([("calibration", ("", b"x", "text/csv"))], "expected a file with a name"),
        ([("other", (None, "x"))], "there is no such part"),
    ],
)
def test_what_is_wrong_is_said_beside_the_form(service, visitor, files, said) -> None:
    visitor.open("/")
    answer = visitor.upload(files)
    assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert said in answer.text
    assert "nothing of it is kept" in answer.text
    assert 'action="/pages/calibrate?csrf=' in answer.text
    assert "<b>" not in answer.text


def test_a_form_that_is_too_long_is_refused(visitor) -> None:
    visitor.open("/")
    answer = visitor.send("/pages/calibrations/x/cancel", more="x" * 10_000)
    assert answer.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE


def test_what_cannot_be_cancelled_is_said_on_a_page(service, visitor) -> None:
    done = calibrate(service, "done")
    visitor.open("/")
    answer = visitor.send(f"/pages/calibrations/{done['id']}/cancel")
    assert answer.status_code == httpx.codes.CONFLICT
    assert "<h1>Conflict</h1>" in answer.text
    assert visitor.send("/pages/calibrations/no%2Fne/cancel").status_code == 404


def test_who_may_only_read_sees_no_forms(tmp_path) -> None:
    with keyed_service(tmp_path, first=False) as service:
        key = service.make("lab", "read").text
    with keyed_service(tmp_path, first=False) as service:
        visitor = Visitor(service)
        visitor.sign_in(key)
        text = visitor.open("/").text
    assert "/pages/calibrate" not in text
    assert "Sign out" in text


def test_a_further_set_is_cancelled_by_its_button(tmp_path) -> None:
    """Whatever its name holds."""
    name = "a month later? 50 % <b>"
    with keyed_service(tmp_path, first=False) as service:
        calibrate(service, "digits")
    with keyed_service(tmp_path, first=False, workers=0) as service:
        files = [("evaluation", ("e.csv", logits_of())), ("name", (None, name))]
        address = "/calibrations/digits/evaluations"
        asked = service.client().post(address, files=files)
        assert asked.json()["status"] == "queued", asked.text
        visitor = Visitor(service)
        found = elements(visitor.open("/").text)
        (action,) = (
            attributes["action"]
            for tag, attributes in found
            if tag == "form" and "/evaluations/" in attributes.get("action", "")
        )
        assert visitor.send(action).status_code == SEE_OTHER
        (left,) = service.client().get(address).json()["evaluations"]
        assert (left["name"], left["status"]) == (name, "cancelled")
        assert "Under way" not in visitor.open("/").text


def test_a_failure_of_ours_is_a_page_too(tmp_path, monkeypatch) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError("kept to ourselves")

    monkeypatch.setattr(home, "overview", fails)
    with keyed_service(tmp_path, first=False, workers=0) as service:
        visitor = Visitor(service)
        for _ in range(2):  # who comes back on the same connection too
            answer = visitor.open("/")
            assert answer.status_code == httpx.codes.INTERNAL_SERVER_ERROR
            assert answer.headers["content-type"].startswith("text/html")
            assert answer.headers["x-request-id"] in answer.text
            assert "kept to ourselves" not in answer.text
