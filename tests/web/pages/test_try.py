"""Trying one sample, sent or drawn: the response of the API, in words."""

import html
import json
import re
from typing import Any

import httpx
import numpy as np
import pandas as pd
import pytest
from graph_models import constant, make_model, node, value
from model_services import calibrate_pictures, picture_set
from onnx import TensorProto
from page_visitor import Visitor, numbers_of, pointed_to, text_of
from picture_files import encoded
from running_service import calibrated, npy, npz

from service.predictions.load_calibration import RowInput
from service.web.sample_rows import TakenSample

OK, SEE_OTHER, UNPROCESSABLE = httpx.codes.OK, httpx.codes.SEE_OTHER, 422
EMPTY = ("", b"", "application/octet-stream")
ADDRESS = "/pages/calibrations/pictures@1/try"


@pytest.fixture(autouse=True, scope="module")
def calibrations(shelf) -> None:
    for name in ("pictures", "scores"):
        shelf(name)


def sent(
    visitor: Visitor, name: str = "pictures@1", *, file: Any = EMPTY, numbers: str = ""
) -> httpx.Response:
    address = f"/pages/calibrations/{name}/try"
    visitor.open(address)
    return visitor.upload([("file", file), ("numbers", (None, numbers))], address)


def answer_on(page: httpx.Response) -> dict[str, Any]:
    """Return the answer as the page has it in full."""
    found = re.search(r'id="answer-json"[^>]*><code>(.*?)</code>', page.text, re.DOTALL)
    assert found, page.text
    return json.loads(html.unescape(found[1]))


def digit(row: int) -> np.ndarray:
    return picture_set()[0][row]


def predicted(client: httpx.Client, name: str = "pictures@1", **body: Any) -> dict[str, Any]:
    answer = client.post("/predict", json={"calibration": name, **body})
    assert answer.status_code == OK, answer.text
    return answer.json()


ROW = digit(3)
WAYS: dict[str, dict[str, Any]] = {
    "numbers": {"numbers": json.dumps(ROW.tolist())},
    "whole": {"numbers": json.dumps({"inputs": [ROW.tolist()]})},
    "json": {"file": ("row.json", json.dumps(ROW.tolist()).encode())},
    "npy": {"file": ("row.npy", npy(ROW[np.newaxis]))},
    "npz": {"file": ("row.npz", npz(image=ROW[np.newaxis]))},
}


@pytest.mark.parametrize("way", WAYS)
def test_a_sample_is_answered_as_the_api_does(client, visitor, way: str) -> None:
    page = sent(visitor, **WAYS[way])
    assert page.status_code == OK, page.text
    assert answer_on(page) == predicted(client, inputs=[ROW.tolist()])


def test_each_number_is_one_of_the_answer_or_of_the_report(client, visitor) -> None:
    page = sent(visitor, numbers=json.dumps(digit(7).tolist()))
    report = client.get("/report?calibration=pictures@1").json()
    documents = {"answer": answer_on(page), "report": report}
    found = {path: json.loads(value) for _, path, value in numbers_of(page.text)}
    assert found == {path: pointed_to(documents, path) for path in found}
    [first] = documents["answer"]["predictions"]
    for k in ("1", "5"):
        measure = first[f"top{k}"]["measure"].replace("/", "~1")
        place = f"/report/events/{k}/measures/{measure}/bins/{first[f'top{k}']['bin']}/count"
        assert place in found
    sentence = re.search(r'<p class="sentence">(.*?)</p>', page.text, re.DOTALL)[1]
    assert not re.search(r"\d", re.sub(r'<span class="number".*?</span>|<bdi>.*?<', "", sentence))
    assert first["label"] in html.unescape(text_of(sentence))


def test_a_stored_sample_is_drawn_and_its_label_shown(client, visitor) -> None:
    drawn = visitor.open(f"{ADDRESS}?draw=1")
    assert drawn.status_code == SEE_OTHER
    page = visitor.open(drawn.headers["location"])
    row = int(drawn.headers["location"].rpartition("=")[2])
    answer = answer_on(page)
    assert answer["predictions"] == predicted(client, inputs=[digit(row).tolist()])["predictions"]
    label = picture_set()[1][row]
    assert ("is correct" in page.text) == (answer["predictions"][0]["class"] == label)
    assert f'alt="Row {row}, labelled ' in page.text


@pytest.mark.parametrize("name", ["pictures@1", "scores"])
def test_the_shown_request_has_the_shown_answer(client, visitor, name) -> None:
    drawn = visitor.open(f"/pages/calibrations/{name}/try?draw=1")
    page = visitor.open(drawn.headers["location"])
    shown = re.search(r'class="request"[^>]*><code>(.*?)</code>', page.text, re.DOTALL)
    assert shown
    again = client.post("/predict", json=json.loads(html.unescape(shown[1])))
    assert again.json() == answer_on(page)


def test_pictures_are_accepted_where_the_calibration_accepts_them(client, visitor) -> None:
    preset = {"preset": "none", "colour": "grey", "resize": [8, 8], "scale": 16 / 255}
    calibrate_pictures(client, name="greys", preprocessing=preset)
    picture = encoded(np.repeat(digit(5)[0][..., None] * 16, 3, axis=2).astype(np.uint8), "PNG")
    page = sent(visitor, "greys", file=("digit.png", picture))
    assert page.status_code == OK, page.text
    address = "/predict?calibration=greys"
    again = client.post(address, content=picture, headers={"Content-Type": "image/png"})
    assert answer_on(page) == again.json()
    assert "image/png" in visitor.open("/pages/calibrations/greys/try").text
    assert "image/png" not in visitor.open(ADDRESS).text
    refused = sent(visitor, file=("digit.png", picture))
    assert refused.status_code == UNPROCESSABLE
    assert "No answer" in refused.text


def test_a_supplied_uncertainty_comes_with_the_sample(client, visitor) -> None:
    assert '"own"' in html.unescape(visitor.open("/pages/calibrations/scores/try").text)
    whole = {"logits": [[3, 2, 0]], "supplied": {"own": [0.5]}}
    page = sent(visitor, "scores", numbers=json.dumps(whole))
    assert answer_on(page) == predicted(client, "scores", **whole)
    # The name of the class is text.
    assert "<bdi>&lt;script&gt;alert(1)&lt;/script&gt;</bdi>" in page.text
    assert "<script>alert" not in page.text
    refused = sent(visitor, "scores", numbers="[3, 0, 0]")
    assert refused.status_code == UNPROCESSABLE
    assert "supplied.own" in refused.text


def test_numbers_of_inputs_without_column_names_are_inputs() -> None:
    """As of a model whose inputs are one number a row."""
    inputs = tuple(RowInput(name, "float32", ()) for name in ("a", "b"))
    taken = TakenSample("inputs", inputs, False, (), False, columns=())
    body = json.loads(taken.json_body("some", '{"a": 1, "b": 2}'))
    assert body == {"calibration": "some", "inputs": {"a": [1], "b": [2]}}


NAMES = ("age", "income", "a, “b”")


def named_model(*, has_an_input_each: bool) -> bytes:
    names = NAMES if has_an_input_each else ("x",)
    width = 3 // len(names)
    return make_model(
        [node("Concat", names, ["all"], axis=1), node("Mul", ["all", "scale"], ["logits"])],
        inputs=[value(name, ("N", width), TensorProto.FLOAT) for name in names],
        outputs=[value("logits", ("N", 3), TensorProto.FLOAT)],
        initializers=[constant("scale", [4.0, 4.0, 4.0], np.float32)],
    ).SerializeToString()


@pytest.mark.parametrize("has_an_input_each", [False, True])
def test_a_sample_by_column_name_is_answered(client, visitor, has_an_input_each) -> None:
    """Also in the forms that messages and the code on *Integrate* show."""
    draw, name = np.random.default_rng(8), f"named-{has_an_input_each}"
    rows = draw.uniform(size=(300, 3)).astype(np.float32)
    table = pd.DataFrame(rows, columns=NAMES)
    table["label"] = (4 * rows + draw.gumbel(size=rows.shape)).argmax(axis=1)
    model, content = named_model(has_an_input_each=has_an_input_each), table.to_csv(index=False)
    calibrated(client, {"name": name}, model=model, calibration=content.encode())
    row = dict(zip(NAMES, (0.9, 0.1, 0.5), strict=True))
    expected = predicted(client, name, inputs=[row])
    by_input = {key: [number] for key, number in row.items()}
    last = by_input if has_an_input_each else list(row.values())
    for way in (row, [row], {"inputs": [row]}, last):
        page = sent(visitor, name, numbers=json.dumps(way))
        assert page.status_code == OK, page.text
        assert answer_on(page)["predictions"] == expected["predictions"]
    form = visitor.open(f"/pages/calibrations/{name}/try").text
    hint = text_of(form.partition('id="numbers-hint">')[2].partition("</p>")[0])
    assert ", ".join(NAMES) in hint
    example = html.unescape(form.partition('spellcheck="false" placeholder="')[2].partition('"')[0])
    assert json.loads(example) == dict.fromkeys(NAMES, 0)
    refused = sent(visitor, name, numbers='{"age": 0.5}')
    assert refused.status_code == UNPROCESSABLE
    assert "missing: income" in text_of(refused.text).replace("`", "")


ERRORS = [
    ({}, 422, "numbers"),
    ({"numbers": "[1, </textarea>"}, 422, "numbers"),
    ({"numbers": "[" * 100_000}, 422, "numbers"),
    ({"numbers": '"<b>x</b>"'}, 422, "numbers"),
    ({"numbers": "[1, 2]"}, 422, "inputs"),
    ({"numbers": '{"<b>": [1]}'}, 422, "inputs"),
    ({"file": ("x.exe", b"MZ")}, 422, ".npy"),
    ({"file": ("x.npy", b"\x93NUMPY")}, 422, "npy"),
    ({"file": ("x.json", b"\xff\xfe")}, 422, "UTF-8"),
    ({"numbers": "[" + "0," * 600_000 + "0]"}, 413, "numbers"),
]


@pytest.mark.parametrize(("options", "status", "part"), ERRORS)
def test_errors_are_shown_beside_the_form(visitor, options, status, part) -> None:
    page = sent(visitor, **options)
    assert page.status_code == status, page.text
    (refusal,) = re.findall(r'role="alert">(.*?)</div>', page.text, re.DOTALL)
    assert part in html.unescape(refusal)
    assert 'name="numbers"' in page.text
    assert "<b>" not in page.text
    if "</textarea>" in options.get("numbers", ""):
        assert ">[1, &lt;/textarea&gt;</textarea>" in page.text


@pytest.mark.parametrize(("row", "status"), [("600", 404), ("x", 422)])
def test_an_unknown_row_is_shown_beside_the_form(visitor, row, status) -> None:
    page = visitor.open(f"{ADDRESS}?row={row}")
    assert page.status_code == status
    assert 'name="numbers"' in page.text


def test_a_file_that_is_too_large_is_refused(visitor) -> None:
    page = sent(visitor, file=("x.npy", bytes(17 * 1024**2)))
    assert page.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE
