"""One sample, sent or drawn: the answer of the API, in words."""

import html
import io
import json
import re
import time
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest
from digit_pictures import calibrate_pictures, picture_set
from keyed_service import KeyedService, keyed_service, logits_of
from page_visitor import Visitor, elements
from picture_files import encoded
from pointed_numbers import at

WAIT = {"Prefer": "wait=60"}
OK, SEE_OTHER, UNPROCESSABLE = httpx.codes.OK, httpx.codes.SEE_OTHER, 422
HOSTILE = ["<script>alert(1)</script>", "=1+1", "\u202eabc &amp;"]
SCOPES = {("read", "predict"): OK, ("read",): httpx.codes.FORBIDDEN}
EMPTY = ("", b"", "application/octet-stream")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedService]:
    with keyed_service(tmp_path_factory.mktemp("try"), first=False) as found:
        calibrate_pictures(found.client(), name="digits", top_k=[1, 5])
        preset = {"preset": "none", "colour": "grey", "resize": [8, 8], "scale": 16 / 255}
        calibrate_pictures(found.client(), name="pictures", preprocessing=preset)
        lines = logits_of(n=200).decode().splitlines()
        own = [f"{line},{row % 9}.5" for row, line in enumerate(lines[1:])]
        rows = "\n".join([f"{lines[0]},uncertainty_own", *own]).encode()
        asked = {
            "name": "hostile",
            "classes": HOSTILE,
            "top_k": [1, 2],
            "measures": ["entropy", "supplied:own"],
            "serve": {"1": "supplied:own"},
        }
        files = [("calibration", ("c.csv", rows)), ("config", (None, json.dumps(asked)))]
        made = found.client().post("/calibrate", files=files, headers=WAIT)
        assert made.json()["status"] == "succeeded", made.text
        yield found


@pytest.fixture
def visitor(service: KeyedService) -> Visitor:
    return Visitor(service)


def sent(visitor: Visitor, name: str, *, file: Any = EMPTY, numbers: str = "") -> httpx.Response:
    """Send the form as browsers do."""
    address = f"/pages/calibrations/{name}/try"
    visitor.open(address)
    parts = {"file": file, "numbers": (None, numbers)}
    return visitor.client.post(f"{address}?csrf={visitor.token()}", files=parts)


def answer_on(page: httpx.Response) -> dict[str, Any]:
    """Return the answer as the page has it in full."""
    found = re.search(r'id="answer-json"[^>]*><code>(.*?)</code>', page.text, re.DOTALL)
    assert found, page.text
    return json.loads(html.unescape(found[1]))


def sentence_on(page: httpx.Response) -> str:
    found = re.search(r'<p class="sentence">(.*?)</p>', page.text, re.DOTALL)
    assert found, page.text
    return html.unescape(re.sub(r"<[^>]+>", "", found[1]))


def digit(row: int) -> np.ndarray:
    return picture_set()[0][row]


def predicted(service: KeyedService, name: str, **body: Any) -> dict[str, Any]:
    answer = service.client().post("/predict", json={"calibration": name, **body})
    assert answer.status_code == OK, answer.text
    return answer.json()


@pytest.mark.parametrize("way", ["numbers", "json", "npy", "npz", "whole"])
def test_a_sample_is_answered_as_the_api_does(service, visitor, way: str) -> None:
    row = digit(3)
    text = json.dumps(row.tolist())
    packed = io.BytesIO()
    if way == "npy":
        np.save(packed, row[np.newaxis])
    else:
        np.savez(packed, image=row[np.newaxis])
    options: dict[str, Any] = {
        "numbers": {"numbers": text},
        "whole": {"numbers": json.dumps({"inputs": [row.tolist()]})},
        "json": {"file": ("row.json", text)},
        "npy": {"file": ("row.npy", packed.getvalue())},
        "npz": {"file": ("row.npz", packed.getvalue())},
    }[way]
    page = sent(visitor, "digits", **options)
    assert page.status_code == OK, page.text
    assert answer_on(page) == predicted(service, "digits", inputs=[row.tolist()])


def test_every_number_is_one_of_the_answer_or_of_the_report(service, visitor) -> None:
    page = sent(visitor, "digits", numbers=json.dumps(digit(7).tolist()))
    documents = {
        "answer": answer_on(page),
        "report": service.client().get("/report?calibration=digits").json(),
    }
    found = [a for _, a in elements(page.text) if "data-path" in a]
    assert {a["data-path"].split("/")[1] for a in found} == documents.keys()
    for attributes in found:
        assert json.loads(attributes["data-value"]) == at(documents, attributes["data-path"])
    [first] = documents["answer"]["predictions"]
    for k in ("1", "5"):
        measure, index = first[f"top{k}"]["measure"], first[f"top{k}"]["bin"]
        place = f"/report/events/{k}/measures/{measure}/bins/{index}/count"
        assert place in {a["data-path"] for a in found}
    for part in re.findall(r'<p class="sentence">(.*?)</p>', page.text, re.DOTALL):
        plain = re.sub(r'<span class="number".*?</span>|<bdi>.*?</bdi>', "", part)
        assert not re.search(r"\d", plain)


def test_the_answer_is_a_sentence_with_its_interval(service, visitor) -> None:
    row = digit(7)
    page = sent(visitor, "digits", numbers=json.dumps(row.tolist()))
    [first] = predicted(service, "digits", inputs=[row.tolist()])["predictions"]
    assert re.fullmatch(
        rf"It says {first['label']}, and answers like this are right [\d.]+ % of the time "
        r"\([\d.]+ % to [\d.]+ %\)\.",
        sentence_on(page),
    )


def test_a_kept_sample_is_drawn_and_its_label_told(service, visitor) -> None:
    drawn = visitor.open("/pages/calibrations/digits/try?draw=1")
    assert drawn.status_code == SEE_OTHER
    page = visitor.open(drawn.headers["location"])
    row = int(drawn.headers["location"].rpartition("=")[2])
    assert (
        answer_on(page)["predictions"]
        == (predicted(service, "digits", inputs=[digit(row).tolist()])["predictions"])
    )
    label = picture_set()[1][row]
    assert f"Its label is <strong><bdi>{label}</bdi></strong>" in page.text
    assert f'alt="Row {row}, labelled {label}"' in page.text
    is_right = answer_on(page)["predictions"][0]["class"] == label
    assert ("the answer is right" in page.text) == is_right


def test_the_request_that_is_shown_has_that_answer(service, visitor) -> None:
    for name in ("digits", "hostile"):
        page = visitor.open(
            visitor.open(f"/pages/calibrations/{name}/try?draw=1").headers["location"]
        )
        shown = re.search(r'class="request"[^>]*><code>(.*?)</code>', page.text, re.DOTALL)
        assert shown
        body = json.loads(html.unescape(shown[1]))
        again = service.client().post("/predict", json=body)
        assert again.json() == answer_on(page)


def test_errors_among_the_samples_can_be_tried(service, visitor) -> None:
    [worst] = service.client().get("/calibrations/digits/samples?limit=1").json()["samples"]
    page = visitor.open(f"/pages/calibrations/digits/try?row={worst['row']}")
    assert "the answer is wrong, or the label is" in page.text
    [first] = answer_on(page)["predictions"]
    assert first["class"] == worst["predicted"]
    assert first["top1"]["probability"] == worst["probability"]


def test_pictures_are_taken_where_the_calibration_takes_them(service, visitor) -> None:
    picture = encoded(np.repeat(digit(5)[0][..., None] * 16, 3, axis=2).astype(np.uint8), "PNG")
    page = sent(visitor, "pictures", file=("digit.png", picture))
    assert page.status_code == OK, page.text
    address = "/predict?calibration=pictures"
    again = service.client().post(address, content=picture, headers={"Content-Type": "image/png"})
    assert answer_on(page) == again.json()
    assert "image/png" in visitor.open("/pages/calibrations/pictures/try").text
    assert "image/png" not in visitor.open("/pages/calibrations/digits/try").text
    refused = sent(visitor, "digits", file=("digit.png", picture))
    assert refused.status_code == UNPROCESSABLE
    assert "There is no answer" in refused.text


def test_uncertainties_of_ones_own_come_with_the_sample(service, visitor) -> None:
    said = visitor.open("/pages/calibrations/hostile/try").text
    assert "&#34;own&#34;" in said or '"own"' in said
    whole = {"logits": [[3, 0, 0]], "supplied": {"own": [2.5]}}
    page = sent(visitor, "hostile", numbers=json.dumps(whole))
    assert answer_on(page) == predicted(service, "hostile", **whole)
    refused = sent(visitor, "hostile", numbers="[3, 0, 0]")
    assert refused.status_code == UNPROCESSABLE
    assert "supplied.own" in refused.text


def test_names_of_strangers_are_text(visitor) -> None:
    whole = {"logits": [[3, 2, 0]], "supplied": {"own": [2.5]}}
    page = sent(visitor, "hostile", numbers=json.dumps(whole))
    assert "<script>alert" not in page.text
    assert "<bdi>&lt;script&gt;alert(1)&lt;/script&gt;</bdi>" in page.text


def test_an_operating_point_is_answered_too(service, visitor) -> None:
    decision = {"name": "automatic", "coverage": 0.5, "author": "a", "reason": "to see"}
    made = service.client().post("/calibrations/digits/operating-points", json=decision)
    assert made.status_code == httpx.codes.CREATED, made.text
    page = sent(visitor, "digits", numbers=json.dumps(np.full((1, 8, 8), 7).tolist()))
    [first] = answer_on(page)["predictions"]
    said = "<strong>leave it to somebody else</strong>"
    left = f"Operating point <code>automatic</code>: {said}" in page.text
    assert left == first["abstain"]["automatic"]
    assert "<code>automatic</code>" in page.text


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        ({}, 422, "expected a file, or numbers"),
        ({"numbers": "[1, 2"}, 422, "expected JSON"),
        ({"numbers": "[" * 100_000}, 422, "expected JSON"),
        ({"numbers": "7"}, 422, "expected a list of numbers"),
        ({"numbers": '"<b>x</b>"'}, 422, "expected a list of numbers"),
        ({"numbers": "[1, 2]"}, 422, "inputs"),
        ({"numbers": '{"<b>": [1]}'}, 422, "no such input"),
        ({"file": ("x.exe", b"MZ")}, 422, "expected .npy, .npz or .json"),
        ({"file": ("x.npy", b"\x93NUMPY")}, 422, "npy"),
        ({"file": ("x.json", b"\xff\xfe")}, 422, "UTF-8"),
        ({"numbers": "[" + "0," * 600_000 + "0]"}, 400, "a form of one file"),
    ],
)
def test_what_is_refused_is_said_beside_the_form(visitor, options, status, said) -> None:
    page = sent(visitor, "digits", **options)
    assert page.status_code == status, page.text
    assert "There is no answer" in page.text
    assert said in html.unescape(page.text)
    assert 'name="numbers"' in page.text
    assert "<b>" not in page.text


def test_what_was_written_is_there_to_be_put_right(visitor) -> None:
    page = sent(visitor, "digits", numbers="[1, </textarea>")
    assert ">[1, &lt;/textarea&gt;</textarea>" in page.text


@pytest.mark.parametrize(
    ("address", "status"),
    [("nothing/try", 404), ("digits/try?row=600", 404), ("digits/try?row=x", 422)],
)
def test_what_is_not_there_is_said(visitor, address: str, status: int) -> None:
    page = visitor.open(f"/pages/calibrations/{address}")
    assert page.status_code == status
    assert page.headers["content-type"].startswith("text/html")


def test_a_form_of_another_site_is_refused(service, visitor) -> None:
    visitor.open("/pages/calibrations/digits/try")
    for token in ("", "x" * 43):
        answer = visitor.client.post(
            f"/pages/calibrations/digits/try?csrf={token}",
            files={"numbers": (None, "[1]")},
        )
        assert answer.status_code == httpx.codes.FORBIDDEN


def test_forms_have_an_end(visitor) -> None:
    page = sent(visitor, "digits", file=("x.npy", bytes(17 * 1024**2)))
    assert page.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE


def test_who_is_signed_in_may_ask_what_the_key_may(tmp_path) -> None:
    with keyed_service(tmp_path) as service:
        keys = {scopes: service.make("default", *scopes).text for scopes in SCOPES}
        everything = service.client(service.make().text)
        until = time.monotonic() + 5
        while everything.get("/calibrations").status_code != OK:
            assert time.monotonic() < until
            time.sleep(0.02)
        calibrate_pictures(everything, name="digits")
        row = everything.get("/calibrations/digits/samples").json()["samples"][0]["row"]
        for scopes, status in SCOPES.items():
            reader = Visitor(service)
            reader.sign_in(keys[scopes])
            shown = reader.open("/pages/calibrations/digits/try")
            assert ('name="numbers"' in shown.text) == (status == OK)
            tried = reader.open(f"/pages/calibrations/digits/try?row={row}")
            assert tried.status_code == status
            assert ("It says" in tried.text) == (status == OK)
            reader.open("/")
            posted = reader.client.post(
                f"/pages/calibrations/digits/try?csrf={reader.token()}",
                files={"numbers": (None, json.dumps(digit(1).tolist()))},
            )
            assert posted.status_code == status, posted.text
