"""The form for an upload on the home page, and jobs under way."""

import re
import shutil

import httpx
import pytest
from colour_pictures import colour_model, colour_set, zip_of
from keyed_service import keyed_service, logits_of
from page_visitor import Visitor, elements
from running_service import digits

SEE_OTHER = httpx.codes.SEE_OTHER
A_SET = ("calibration", ("c.csv", logits_of()))


def test_the_form_does_what_the_api_does(client, visitor) -> None:
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
    resource = client.get(f"/calibrations/{made}").json()
    assert (resource["name"], resource["config"]["bins"]) == ("by-form", 4)
    assert "by-form</bdi>@1" in visitor.open(answer.headers["location"]).text


@pytest.mark.parametrize("asked", ["unit", '{"preset": "unit", "colour": "bgr"}'])
def test_pictures_are_uploaded_with_their_preprocessing(client, visitor, asked) -> None:
    pixels, labels = colour_set(40)
    files = [
        ("model", ("m.onnx", colour_model((0.0,) * 3, (1.0,) * 3))),
        ("calibration", ("photos.zip", zip_of(pixels, labels))),
        ("config", (None, '{"bins": 2, "folds": 2}')),
    ]
    visitor.open("/")
    refused = visitor.upload([*files, ("preprocessing", (None, ""))])
    assert "<code>preprocessing</code>" in refused.text
    assert 'list="presets"' in refused.text
    made = visitor.upload([*files, ("preprocessing", (None, asked))]).headers["location"]
    resource = client.get(f"/calibrations/{made.removeprefix('/?made=')}").json()
    found = resource["config"]["preprocessing"]
    assert (found["scale"], found["colour"]) == (1 / 255, "bgr" if "bgr" in asked else "rgb")


ERRORS = [
    ([("calibration", ("c.csv", b"a,b\n1,2\n"))], "calibration"),
    ([A_SET, ("name", (None, "<b>"))], "config.name"),
    ([A_SET, ("config", (None, "{"))], "config"),
    ([("calibration", ("", b"", "text/csv"))], "calibration"),
    ([("calibration", ("", b"x", "text/csv"))], "calibration"),
    ([("other", (None, "x"))], "other"),
    ([A_SET, ("preprocessing", (None, "{"))], "preprocessing"),
]


@pytest.mark.parametrize(("files", "location"), ERRORS)
def test_errors_of_an_upload_are_shown_beside_the_form(visitor, files, location) -> None:
    visitor.open("/")
    answer = visitor.upload(files)
    assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    (refusal,) = re.findall(r'role="alert">(.*?)</div>', answer.text, re.DOTALL)
    assert f"<code>{location}" in refusal
    assert 'action="/pages/calibrate"' in answer.text
    assert "<b>" not in answer.text


def test_an_open_service_asks_for_no_key_and_takes_forms_of_its_own_pages(visitor) -> None:
    assert visitor.open("/sign-in").headers["location"] == "/"
    del visitor.client.headers["Origin"]
    answer = visitor.client.post("/pages/calibrate", files=[A_SET])
    assert answer.status_code == httpx.codes.FORBIDDEN


def test_a_form_that_is_too_long_is_refused(visitor) -> None:
    answer = visitor.send("/sign-in", more="x" * 10_000)
    assert answer.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE


def test_a_refused_cancellation_is_a_page(visitor, shelf) -> None:
    done = shelf("logits")
    visitor.open("/")
    answer = visitor.send(f"/pages/calibrations/{done['id']}/cancel")
    assert answer.status_code == httpx.codes.CONFLICT
    assert "<h1>" in answer.text
    assert visitor.send("/pages/calibrations/no%2Fne/cancel").status_code == 404


@pytest.mark.process
def test_a_further_set_of_any_name_is_cancelled_by_its_button(tmp_path, calibrated_digits) -> None:
    name = "a month later? 50 % <b>"
    shutil.copytree(calibrated_digits.folder, tmp_path, dirs_exist_ok=True)
    with keyed_service(tmp_path, first=False, workers=0) as service:
        files = [("evaluation", ("e.npz", digits("evaluation.npz"))), ("name", (None, name))]
        address = "/calibrations/digits/evaluations"
        assert service.client().post(address, files=files).json()["status"] == "queued"
        visitor = Visitor(service)
        forms = [
            a.get("action", "") for tag, a in elements(visitor.open("/").text) if tag == "form"
        ]
        (action,) = [address for address in forms if "/evaluations/" in address]
        assert visitor.send(action).status_code == SEE_OTHER
        (left,) = service.client().get(address).json()["evaluations"]
        assert (left["name"], left["status"]) == (name, "cancelled")
        assert "/evaluations/" not in visitor.open("/").text
