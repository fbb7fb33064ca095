"""Pictures in requests: the same answer however they are sent, one clear problem for what is none.

The model takes digits of 8 x 8 greys from 0 to 1; its pictures are PNGs of 16 x 16 and 17 levels.
"""

from typing import Any

import httpx
import numpy as np
import pytest
from job_workspaces import logits_set
from model_services import labelled_sets, model_file
from picture_files import encoded as picture_file
from picture_files import scene
from request_formats import BOUNDARY, body, file_part, part, text_part
from running_service import NPZ, calibrated, encoded, npz, quick_config, send

SETS = labelled_sets()
X = SETS["evaluation_inputs"][:30]
PIXELS = (X * 16).astype(np.uint8).transpose(0, 2, 3, 1)
SHAPE = {"colour": "grey", "resize": 8, "crop": 8}
PREPROCESSING = SHAPE | {"interpolation": "nearest", "scale": 1 / 16}
FORM = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY.decode()}"}
PNG, JPEG, WEBP = ({"Content-Type": f"image/{kind}"} for kind in ("png", "jpeg", "webp"))
GIF = picture_file(scene(8, 8), "GIF")


def png(pixels: Any) -> bytes:
    """Return a digit as a picture of twice its size."""
    return picture_file(np.kron(pixels[..., 0], np.ones((2, 2), np.uint8)), "PNG")


PNGS = [png(pixels) for pixels in PIXELS]


@pytest.fixture(scope="module")
def greys(client: httpx.Client) -> str:
    pixels = (SETS["calibration_inputs"] * 16).astype(np.uint8).transpose(0, 2, 3, 1)
    # Pixels and floats have other tie keys, so other folds, on which smooth and learned depend.
    same = {"bins": 5, "folds": 2, "top_k": [1, 5], "lookup": "step", "measures": ["entropy"]}
    for name, config in {"greys": {"preprocessing": PREPROCESSING}, "floats": {}}.items():
        arrays = {"pixels": pixels} if config else {"inputs": SETS["calibration_inputs"]}
        calibrated(
            client,
            {"name": name} | same | config,
            model=model_file("small_cnn.onnx"),
            calibration=npz(labels=SETS["calibration_labels"], **arrays),
        )
    return "greys"


def of_values(client: httpx.Client, values: Any) -> list[dict[str, Any]]:
    """Return what a calibration without pictures answers to the values themselves."""
    rows = {"calibration": "floats", "inputs": values.tolist()}
    return predictions(client.post("/predict", json=rows))


@pytest.fixture(scope="module")
def expected(client: httpx.Client, greys: str) -> list[dict[str, Any]]:
    return of_values(client, X)


def predictions(answer: httpx.Response) -> list[dict[str, Any]]:
    assert answer.status_code == httpx.codes.OK, answer.text
    found: list[dict[str, Any]] = answer.json()["predictions"]
    return found


@pytest.mark.parametrize("axes", [(0, 1, 2, 3), (0, 3, 1, 2)])
def test_pixels_as_values_are_refused(client, greys, axes) -> None:
    """In the axes of the model, too: nothing would prepare them."""
    arrays = npz(inputs=PIXELS.transpose(axes))
    answer = send(client, greys, arrays, NPZ)
    assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert "sent as `pixels`, of shape [rows, height, width, 1]" in answer.json()["detail"]


def test_values_are_not_pixels(client, greys) -> None:
    """Finished values have the scale that preprocessing makes; pixels sent as values have not."""

    def flags(values: Any) -> list[bool]:
        body = {"calibration": greys, "inputs": values.tolist()}
        answers = predictions(client.post("/predict", json=body))
        return [found["out_of_distribution"] for found in answers]

    assert sum(flags(X)) < len(X) / 4
    assert all(flags(X * 16))
    assert all(flags(X / 16))


def test_a_picture_is_a_row(client, greys):
    # Alone as well: the last bits of a score may change with the rows beside it.
    for row in range(5):
        expected = of_values(client, X[row : row + 1])
        assert predictions(send(client, greys, PNGS[row], PNG)) == expected
        webp = picture_file(np.repeat(PIXELS[row], 3, axis=2), "WEBP", lossless=True)
        assert predictions(send(client, greys, webp, WEBP)) == expected
        # What it is, its bytes say.
        assert predictions(send(client, greys, webp, JPEG)) == expected


def test_parts_are_rows_in_their_order_whatever_their_names(client, greys, expected):
    parts = [file_part(f"n{row % 3}", "a.png", content) for row, content in enumerate(PNGS)]
    assert predictions(send(client, greys, body(*parts), FORM)) == expected
    backwards = send(client, greys, body(*parts[::-1]), FORM)
    assert predictions(backwards) == of_values(client, X[::-1])
    # As a client makes it, with no name of a file.
    files = [("picture", (None, content, "image/png")) for content in PNGS[:3]]
    answer = client.post("/predict", params={"calibration": greys}, files=files)
    assert predictions(answer) == of_values(client, X[:3])


def test_pixels_come_as_arrays(client, greys, expected):
    assert predictions(send(client, greys, npz(pixels=PIXELS), NPZ)) == expected
    for pixels in (PIXELS.tolist(), encoded(PIXELS)):
        answer = client.post("/predict", json={"calibration": greys, "inputs": {"pixels": pixels}})
        assert predictions(answer) == expected
    # By any other name they are the model's input already.
    answer = client.post("/predict", json={"calibration": greys, "inputs": X.tolist()})
    assert predictions(answer) == expected


@pytest.mark.parametrize(
    ("status", "told", "content"),
    [
        (422, "expected a picture, JPEG, PNG or WebP, got GIF", GIF),
        (422, "this PNG cannot be decoded: it is damaged or cut off", PNGS[0][:60]),
        (413, "resized", picture_file(np.zeros((1, 3_000_000), np.uint8), "PNG")),
    ],
)
def test_invalid_pictures_are_refused_by_their_place(client, greys, status, told, content):
    """The rules of the decoder are in tests/child/pictures."""
    among_others = body(*(part("A: b", p) for p in (*PNGS[:3], content)))
    named = body(file_part("p", "cät.jpg", content))
    for sent, headers, place in (
        (content, JPEG, "body"),
        (among_others, FORM, "pictures[3]"),
        (named, FORM, "pictures[0] ('c\\xe4t.jpg')"),
    ):
        answer = send(client, greys, sent, headers)
        assert answer.status_code == status, answer.text
        (violation,) = answer.json()["errors"]
        assert violation["location"] == place
        assert told in violation["message"]
    assert len(predictions(send(client, greys, PNGS[0], PNG))) == 1


BAD_FORMS = {
    "no form": (400, "beginning with a boundary", PNGS[0]),
    "no end": (400, "last boundary", body(file_part("p", "a", PNGS[0]))[:-20]),
    "only dashes": (400, "boundary", b"--\r\n\r\n"),
    "no boundary's end": (400, "boundary", b"--" + b"x" * 200),
    "a bad header": (400, "whole", body(part("no header at all", b"x"))),
    "no part": (422, "at least one picture", body()),
    "base64": (422, "own bytes", body(part("Content-Transfer-Encoding: base64", b"aaaa"))),
    "text": (422, "unknown format", body(text_part("calibration", b"greys"))),
    "too many": (413, "10000 rows", body(*[part("A: b", b"")] * 10_001)),
}


@pytest.mark.parametrize("case", BAD_FORMS)
def test_invalid_forms_are_refused(client, greys, case):
    status, told, content = BAD_FORMS[case]
    answer = send(client, greys, content, FORM)
    assert answer.status_code == status, answer.text
    assert told in answer.text


def test_decoded_pictures_are_limited_as_a_body_is(client, greys):
    """Few bytes of PNG are many pixels: those of all parts together have the limit of a body."""
    calibrated(
        client,
        {"name": "as-they-are", "bins": 5, "folds": 2, "preprocessing": {"colour": "grey"}},
        model=model_file("small_cnn.onnx"),
        calibration=npz(labels=SETS["calibration_labels"], inputs=SETS["calibration_inputs"]),
    )
    flat = picture_file(np.zeros((3000, 3000), np.uint8), "PNG")
    answer = send(client, "as-they-are", body(*[part("A: b", flat)] * 4), FORM)
    assert answer.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE, answer.text
    assert "got 4 of 3000 x 3000; send fewer" in answer.text
    answer = send(client, "as-they-are", body(*(part("A: b", p) for p in PNGS[:2])), FORM)
    assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert "pictures of 16 x 16 do not suit the model" in answer.text
    unlike = body(part("A: b", PNGS[0]), part("A: b", flat))
    assert "3000 x 3000, the first one of 16 x 16" in send(client, "as-they-are", unlike, FORM).text


def test_pixels_of_a_request_are_limited(client, greys):
    """Few bytes may keep the model from others for long: they are told by what they claim."""
    flat = picture_file(np.zeros((7900, 8000), np.uint8), "PNG")
    parts = [part("A: b", flat), *[part("A: b", PNGS[0])] * 3, *[part("A: b", flat)] * 4]
    answer = send(client, greys, body(*parts), FORM)
    assert answer.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE, answer.text
    (violation,) = answer.json()["errors"]
    assert violation["location"] == "pictures[7]"
    assert "256 megapixels in all" in violation["message"]


def test_a_calibration_without_preprocessing_says_how_to_get_it(client, greys, expected):
    form = body(file_part("p", "a.png", PNGS[0]))
    for content, headers in ((PNGS[0], PNG), (form, FORM), (npz(pixels=PIXELS), NPZ)):
        answer = send(client, "floats", content, headers)
        assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY, answer.text
        assert "calibrate with `preprocessing`, such as imagenet" in answer.text


def test_a_calibration_of_outputs_takes_no_pictures(client):
    calibrated(client, quick_config(name="outputs"), calibration=logits_set())
    answer = send(client, "outputs", PNGS[0], PNG)
    assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert "no model; send its `logits`" in answer.text
