"""The home page: a row for each name, jobs under way, and the form for an upload."""

import html
import json
import re
from collections.abc import Iterator

import httpx
import numpy as np
import pytest
from colour_pictures import colour_model, colour_set, zip_of
from keyed_service import KeyedService, keyed_service, logits_of
from page_visitor import Visitor, elements, numbers_of, pointed_to
from running_service import calibrated, evaluate, npz

from service.reports.numbers import percent
from service.web import home

SEE_OTHER = httpx.codes.SEE_OTHER
A_SET = ("calibration", ("c.csv", logits_of()))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedService]:
    with keyed_service(tmp_path_factory.mktemp("home"), first=False) as found:
        yield found


def calibrate(service: KeyedService, name: str, **config: object) -> dict:
    return calibrated(service.client(), {"name": name} | config, calibration=logits_of())


def calibrate_part(service: KeyedService, name: str, content: bytes, **config: object) -> dict:
    files = [
        ("calibration", ("c.csv", content)),
        ("config", (None, json.dumps({"name": name} | config))),
    ]
    answer = service.client().post("/calibrate", files=files, headers={"Prefer": "wait=60"})
    return answer.json()


def shifted_logits() -> bytes:
    """Return a set whose labels are one too large, modulo the number of classes."""
    lines = logits_of().decode().splitlines()
    shifted = [lines[0], *(f"{(int(line[0]) + 1) % 3}{line[1:]}" for line in lines[1:])]
    return "\n".join(shifted).encode()


STRICT = [{"max_risk": 0.0001}]


def clean_logits(n: int = 600, *, wrong: bool = False, shift: int = 0) -> bytes:
    """Return a set with labels drawn from the softmax and then shifted.

    If it is ``wrong``, the model is surer than it was and knows nothing.
    """
    rng = np.random.default_rng(n)
    logits = 6 * rng.normal(size=(n, 3))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    if wrong:
        return npz(logits=3 * logits, labels=rng.integers(0, 3, n))
    return npz(logits=logits, labels=(labels + shift) % 3)


def row_of(visitor: Visitor, name: str) -> str:
    """Return the row of a name as HTML."""
    return visitor.open("/").text.partition(f'<tr data-name="{name}"')[2].partition("</tr>")[0]


def rows_of(visitor: Visitor, address: str = "/") -> list[dict[str, str | None]]:
    found = elements(visitor.open(address).text)
    return [attributes for tag, attributes in found if tag == "tr" and "data-name" in attributes]


def test_an_empty_service_shows_how_to_begin(tmp_path) -> None:
    with keyed_service(tmp_path, first=False) as service:
        url = "http://{}:{}".format(*service.address)
        text = Visitor(service).open("/").text
    for command in ("howsure demo", f"--url {url}", f"calibration.npz {url}/calibrate"):
        assert command in text
    assert text.count("<pre>") == 3


def test_a_row_is_the_version_that_a_name_means(service, visitor) -> None:
    """The promoted version, not the newest; the newest name is first."""
    first = calibrate(service, "shown")
    calibrate(service, "shown", measures=["entropy"])
    service.client().post(f"/calibrations/{first['id']}/promote")
    calibrate(service, "other")
    rows = rows_of(visitor)
    assert [row["data-name"] for row in rows] == ["other", "shown"]
    assert rows[1]["data-id"] == first["id"]
    assert "@1" in visitor.seen.text.partition('data-name="shown"')[2]


def test_numbers_of_a_row_are_those_of_its_report(service, visitor) -> None:
    calibrate(service, "judged")
    for row in visitor.open("/").text.split("<tr data-name=")[1:]:
        name = row.split('"')[1]
        report = service.client().get(f"/report?calibration={name}").json()
        found = numbers_of(row.partition("</tr>")[0].partition(">")[2])
        assert len(found) == 3
        for _, path, value in found:
            assert json.loads(value) == pointed_to(report, path)


def test_numbers_of_a_row_are_of_the_evaluation_set_if_there_is_one(service, visitor) -> None:
    calibrated(
        service.client(),
        {"name": "evaluated"},
        calibration=logits_of(),
        evaluation=logits_of(n=90),
    )
    row = row_of(visitor, "evaluated")
    report = service.client().get("/report?calibration=evaluated").json()
    assert report["events"]["1"]["figures"]["set"] == "evaluation"
    values = {path: json.loads(value) for _, path, value in numbers_of(row)}
    assert len(values) == 3
    for path, value in values.items():
        assert value == pointed_to(report, path)


def test_findings_and_failures_are_marked_with_a_link(service, visitor) -> None:
    shifted = shifted_logits()
    made = calibrated(service.client(), {"name": "marked"}, calibration=shifted)
    row = row_of(visitor, "marked")
    first, *others = [found for found in made["findings"] if found["level"] == "warning"]
    link = re.search(r'<a class="level warning" href="([^"]*)" title="([^"]*)">(.*?)</a>', row)
    assert link is not None
    assert link[1] == f"/report?calibration={made['id']}#findings"
    assert html.unescape(link[2]) == first["message"]
    assert link[3] == f'<span class="hidden">warning: </span>{first["code"]} +{len(others)}'
    failed = calibrate_part(service, "marked", shifted, strict=True)
    assert failed["status"] == "failed"
    assert '<a class="state failed" href="/?made=marked@2">@2 failed</a>' in row_of(
        visitor, "marked"
    )
    alone = calibrate_part(service, "failing", shifted, strict=True)
    row = html.unescape(row_of(visitor, "failing"))
    assert f'href="/?made={alone["id"]}"' in row
    assert alone["error"]["detail"] in row
    assert alone["error"]["detail"] in html.unescape(visitor.open(f"/?made={alone['id']}").text)


def test_numbers_that_a_warning_doubts_are_muted(service, visitor) -> None:
    """A notice leaves them as they are."""
    calibrated(service.client(), {"name": "wrong"}, calibration=shifted_logits())
    logits = 3 * np.random.default_rng(0).normal(size=(400, 4))
    labels = logits[:, :3].argmax(axis=1)  # none of the last class, which gives a notice
    calibrated(service.client(), {"name": "noted"}, calibration=npz(logits=logits, labels=labels))
    assert row_of(visitor, "wrong").count('<td class="n doubted"') == 2
    assert "1 notice" in row_of(visitor, "noted")
    assert "doubted" not in row_of(visitor, "noted")


def test_each_row_says_in_a_word_what_its_report_says(service, visitor) -> None:
    """The state of a name is the summary of its report."""
    client = service.client()
    calibrated(client, {"name": "good"}, calibration=clean_logits())
    calibrated(client, {"name": "few", "selective": STRICT}, calibration=clean_logits(603))
    calibrated(client, {"name": "moved"}, calibration=shifted_logits())
    calibrated(client, {"name": "plain", "selective": []}, calibration=clean_logits(601))
    calibrated(client, {"name": "disproved"}, calibration=clean_logits(602))
    further = evaluate(client, "disproved", "upside down", clean_logits(300, wrong=True))
    assert further.json()["status"] == "succeeded", further.text
    calibrated(client, {"name": "mislabelled"}, calibration=clean_logits(604))
    evaluate(client, "mislabelled", "off by one", clean_logits(300, shift=1))
    expected = {
        "good": "fit",
        "few": "not fit",
        "moved": "do not use",
        "plain": "unknown",
        "mislabelled": "fit",  # the labels of the further set are wrong, not the calibration
        "disproved": "not for all data",
    }
    for name, word in expected.items():
        row = row_of(visitor, name)
        assert ">succeeded<" not in row
        (mark,) = re.findall(r'<a class="state [a-z]*" [^>]*title="([^"]*)">([^<]*)</a>', row)
        report = client.get(f"/report?calibration={name}").json()
        summary, risk = report["summary"], report["events"]["1"]["figures"]["risk"]
        said = word
        if word == "fit":
            said = f"fit on {percent(risk['coverage'])} (≤ {100 * risk['max_risk']:g} % wrong)"
        shown = html.unescape(mark[1]).replace("\u00a0", " ")
        assert (html.unescape(mark[0]), shown) == (summary["headline"], said)
    assert "Do not use for data like “upside down”" in summary["headline"]
    summary = client.get("/report?calibration=mislabelled").json()["summary"]
    assert "Labels of the further set “off by one” look wrong: " in summary["sentences"][-1]


def test_an_operating_point_of_an_unfit_calibration_is_marked(service, visitor) -> None:
    made = calibrated(service.client(), {"name": "unsafe"}, calibration=shifted_logits())
    asked = {"name": "automatic", "coverage": 0.8, "author": "A", "reason": "b"}
    points = f"/calibrations/{made['id']}/operating-points"
    warnings = service.client().post(points, json=asked).json()["warnings"]
    messages = [f["message"] for f in made["findings"] if f["level"] == "warning"]
    assert warnings[0].startswith("Do not use this calibration yet")
    assert warnings[1:] == messages
    assert service.client().get(points).json()["operating_points"][0]["warnings"] == warnings
    row = row_of(visitor, "unsafe")
    assert 'class="point doubted-point"' in row
    assert 'automatic<span class="hidden">, do not use</span>' in row


def test_the_active_operating_point_is_marked(service, visitor) -> None:
    made = calibrated(service.client(), {"name": "decided"}, calibration=clean_logits())
    assert 'class="point"' not in row_of(visitor, "decided")
    signed = {"author": "A. <b>", "reason": "agreed"}
    points = f"/calibrations/{made['id']}/operating-points"
    for name in ("first", "second"):
        service.client().post(points, json={"name": name, "threshold": 0.5, **signed})
    row = row_of(visitor, "decided")
    (mark,) = re.findall(r'<a class="point" href="([^"]*)" title="([^"]*)">(.*?)</a>', row)
    assert mark[0] == f"/pages/calibrations/{made['id']}/operating-point"
    assert mark[1].endswith("UTC, by A. &lt;b&gt;")
    assert mark[2] == "second"
    service.client().post(f"{points}/withdraw", json=signed)
    assert 'class="point"' not in row_of(visitor, "decided")


def test_names_are_searched(service, visitor) -> None:
    for name in ("needle_1", "needleX1", "straw"):
        calibrate(service, name)
    assert {row["data-name"] for row in rows_of(visitor, "/?q=NEEDLE")} == {
        "needle_1",
        "needleX1",
    }
    # No wildcard of SQL.
    assert [row["data-name"] for row in rows_of(visitor, "/?q=e_1")] == ["needle_1"]
    assert "No name contains <bdi>&lt;b&gt;</bdi>" in visitor.open("/?q=<b>").text


def test_a_calibration_is_deleted_after_a_question(service, visitor) -> None:
    made = calibrate(service, "unwanted")
    assert f'href="/pages/calibrations/{made["id"]}/delete"' in row_of(visitor, "unwanted")
    address = f"/pages/calibrations/{made['id']}/delete"
    assert "Delete <bdi>unwanted</bdi>@1?" in visitor.open(address).text
    assert visitor.send(address).status_code == SEE_OTHER
    assert service.client().get(f"/calibrations/{made['id']}").status_code == 404
    assert "unwanted" not in visitor.open("/").text
    assert visitor.send(address).status_code == httpx.codes.NOT_FOUND


def test_names_can_be_chosen_for_a_comparison(service, visitor) -> None:
    for name in ("one", "two"):
        calibrate(service, name)
    found = elements(visitor.open("/").text)
    boxes = {
        a["aria-label"]: a["value"]
        for tag, a in found
        if tag == "input" and a.get("name") == "calibration" and a["type"] == "checkbox"
    }
    chosen = [boxes[f"Compare {name}@1"] for name in ("two", "one")]
    page = visitor.open("/report?" + "&".join(f"calibration={value}" for value in chosen))
    assert "one@1</bdi> against <bdi>two@1" in page.text


def test_the_form_does_what_the_api_does(service, visitor) -> None:
    """As browsers send it: with a part for each field, filled in or not."""
    visitor.open("/")
    empty = ("", b"", "application/octet-stream")
    unfilled = ("model", "model_data", "calibration_labels", "evaluation", "evaluation_labels")
    config = ("config", (None, '{"bins": 4}'))
    # The set is longer than any other form may be.
    a_set = ("calibration", ("c.csv", logits_of(n=12_000)))
    files = [a_set, ("name", (None, "by-form")), config, *((name, empty) for name in unfilled)]
    answer = visitor.upload(files)
    assert answer.status_code == SEE_OTHER, answer.text
    made = answer.headers["location"].removeprefix("/?made=")
    resource = service.client().get(f"/calibrations/{made}").json()
    assert (resource["name"], resource["config"]["bins"]) == ("by-form", 4)
    assert "by-form</bdi>@1" in visitor.open(answer.headers["location"]).text


@pytest.mark.parametrize("asked", ["unit", '{"preset": "unit", "colour": "bgr"}'])
def test_pictures_are_uploaded_with_their_preprocessing(service, visitor, asked) -> None:
    pixels, labels = colour_set(40)
    files = [
        ("model", ("m.onnx", colour_model((0.0,) * 3, (1.0,) * 3))),
        ("calibration", ("photos.zip", zip_of(pixels, labels))),
        ("config", (None, '{"bins": 2, "folds": 2}')),
    ]
    visitor.open("/")
    refused = visitor.upload([*files, ("preprocessing", (None, ""))])
    assert "which need <code>preprocessing</code> to become the model" in refused.text
    assert 'list="presets"' in refused.text
    made = visitor.upload([*files, ("preprocessing", (None, asked))]).headers["location"]
    resource = service.client().get(f"/calibrations/{made.removeprefix('/?made=')}").json()
    found = resource["config"]["preprocessing"]
    assert (found["scale"], found["colour"]) == (1 / 255, "bgr" if "bgr" in asked else "rgb")


def test_findings_of_an_upload_are_shown(service, visitor) -> None:
    made = calibrated(service.client(), {"name": "shifted"}, calibration=shifted_logits())
    assert made["findings"]
    text = visitor.open(f"/?made={made['id']}").text
    for found in made["findings"]:
        assert found["code"] in text


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ([("calibration", ("c.csv", b"a,b\n1,2\n"))], "expected a column"),
        ([A_SET, ("name", (None, "<b>"))], "config.name"),
        ([A_SET, ("config", (None, "{"))], "config"),
        ([("calibration", ("", b"", "text/csv"))], "this part is required"),
        ([("calibration", ("", b"x", "text/csv"))], "expected a file with a name"),
        ([("other", (None, "x"))], "there is no such part"),
        ([A_SET, ("preprocessing", (None, "{"))], "this is no valid JSON"),
    ],
)
def test_errors_of_an_upload_are_shown_beside_the_form(visitor, files, said) -> None:
    visitor.open("/")
    answer = visitor.upload(files)
    assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert said in answer.text
    assert "Nothing was stored" in answer.text
    assert 'action="/pages/calibrate?csrf=' in answer.text
    assert "<b>" not in answer.text


def test_a_form_that_is_too_long_is_refused(visitor) -> None:
    visitor.open("/")
    answer = visitor.send("/pages/calibrations/x/cancel", more="x" * 10_000)
    assert answer.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE


def test_a_refused_cancellation_is_a_page(service, visitor) -> None:
    done = calibrate(service, "done")
    visitor.open("/")
    answer = visitor.send(f"/pages/calibrations/{done['id']}/cancel")
    assert answer.status_code == httpx.codes.CONFLICT
    assert "<h1>Conflict</h1>" in answer.text
    assert visitor.send("/pages/calibrations/no%2Fne/cancel").status_code == 404


def test_a_further_set_is_cancelled_by_its_button_whatever_its_name(tmp_path) -> None:
    name = "a month later? 50 % <b>"
    with keyed_service(tmp_path, first=False) as service:
        calibrate(service, "digits")
    with keyed_service(tmp_path, first=False, workers=0) as service:
        files = [("evaluation", ("e.csv", logits_of())), ("name", (None, name))]
        address = "/calibrations/digits/evaluations"
        assert service.client().post(address, files=files).json()["status"] == "queued"
        visitor = Visitor(service)
        (action,) = (
            attributes["action"]
            for tag, attributes in elements(visitor.open("/").text)
            if tag == "form" and "/evaluations/" in attributes.get("action", "")
        )
        assert visitor.send(action).status_code == SEE_OTHER
        (left,) = service.client().get(address).json()["evaluations"]
        assert (left["name"], left["status"]) == (name, "cancelled")
        assert "Running jobs" not in visitor.open("/").text


def test_a_failure_of_the_service_is_a_page_too(tmp_path, monkeypatch) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError("kept to ourselves")

    monkeypatch.setattr(home, "overview", fails)
    with keyed_service(tmp_path, first=False, workers=0) as service:
        visitor = Visitor(service)
        for _ in range(2):  # also on the same connection
            answer = visitor.open("/")
            assert answer.status_code == httpx.codes.INTERNAL_SERVER_ERROR
            assert answer.headers["content-type"].startswith("text/html")
            assert answer.headers["x-request-id"] in answer.text
            assert "kept to ourselves" not in answer.text
