"""Pictures in requests: the same answer however they are sent, one clear problem for others.

The model takes digits of 8 x 8 greys from 0 to 1; its pictures are PNGs of 16 x 16 and 17 levels.
The rules of the decoder are in tests/child/pictures.
"""

from typing import Any

import httpx
import numpy as np
import pytest
from bins_documents import answers
from job_workspaces import logits_set
from model_services import labelled_sets, model_file
from picture_files import encoded as picture_file
from picture_files import scene
from request_formats import BOUNDARY, body, file_part, part, text_part
from running_service import NPZ, calibrated, encoded, npz, send

SETS = labelled_sets()
INPUTS = SETS["calibration_inputs"][:300]
X = SETS["evaluation_inputs"][:30]
PREPROCESSING = {"colour": "grey", "resize": 8, "crop": 8, "interpolation": "nearest"}
FORM = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY.decode()}"}
PNG, JPEG, WEBP = ({"Content-Type": f"image/{kind}"} for kind in ("png", "jpeg", "webp"))
GREYS, FLOATS, SIZES = "pictures-greys", "pictures-floats", "pictures-of-any-size"
OUTPUTS = "pictures-outputs"


def pixels_of(inputs: np.ndarray) -> np.ndarray:
    return (inputs * 16).astype(np.uint8).transpose(0, 2, 3, 1)


PIXELS = pixels_of(X)
# Each digit as a picture of twice its size.
PNGS = [picture_file(np.kron(row[..., 0], np.ones((2, 2), np.uint8)), "PNG") for row in PIXELS]


def anonymous(*contents: bytes) -> bytes:
    """Return a form of pictures without names."""
    return body(*(part("A: b", content) for content in contents))


@pytest.fixture(scope="module", autouse=True)
def made(client: httpx.Client) -> None:
    # Pixels and floats have other tie keys, so other folds, on which smooth and learned depend.
    same = {"lookup": "step", "measures": ["entropy"], "top_k": [1, 5]}
    labels = SETS["calibration_labels"][:300]
    for name, preprocessing, arrays in (
        (GREYS, PREPROCESSING | {"scale": 1 / 16}, {"pixels": pixels_of(INPUTS)}),
        (FLOATS, None, {"inputs": INPUTS}),
        (SIZES, {"colour": "grey"}, {"inputs": INPUTS}),
    ):
        config = {"name": name, "preprocessing": preprocessing} | same
        archive = npz(labels=labels, **arrays)
        calibrated(client, config, model=model_file("small_cnn.onnx"), calibration=archive)
    calibrated(client, {"name": OUTPUTS}, calibration=logits_set())


def predictions(answer: httpx.Response) -> list[dict[str, Any]]:
    assert answer.status_code == httpx.codes.OK, answer.text
    return answer.json()["predictions"]


def of_values(client: httpx.Client, values: np.ndarray, name: str = FLOATS) -> list[dict[str, Any]]:
    """Return what a calibration answers to the values themselves."""
    return answers(client, name, inputs=values.tolist())


def test_values_are_not_pixels(client) -> None:
    """Finished values have the scale that preprocessing makes; pixels sent as values have not."""
    for values, most in ((X, len(X) / 4), (X * 16, None), (X / 16, None)):
        marked = [row["out_of_distribution"] for row in of_values(client, values, GREYS)]
        assert all(marked) if most is None else sum(marked) < most
    # In the axes of the model, too: nothing would prepare them.
    for axes in ((0, 1, 2, 3), (0, 3, 1, 2)):
        answer = send(client, GREYS, npz(inputs=PIXELS.transpose(axes)), NPZ)
        assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY
        assert "[rows, height, width, 1]" in answer.json()["detail"]


def test_a_picture_is_a_row(client) -> None:
    # Alone as well: the last bits of a score may change with the rows beside it.
    for row in range(5):
        expected = of_values(client, X[row : row + 1])
        webp = picture_file(np.repeat(PIXELS[row], 3, axis=2), "WEBP", lossless=True)
        # Its bytes say what it is.
        for content, headers in ((PNGS[row], PNG), (webp, WEBP), (webp, JPEG)):
            assert predictions(send(client, GREYS, content, headers)) == expected


def test_pictures_come_as_parts_and_pixels_as_arrays(client) -> None:
    expected = of_values(client, X)
    # Parts are rows in their order, whatever their names.
    parts = [file_part(f"n{row % 3}", "a.png", content) for row, content in enumerate(PNGS)]
    assert predictions(send(client, GREYS, body(*parts), FORM)) == expected
    backwards = predictions(send(client, GREYS, body(*parts[::-1]), FORM))
    assert backwards == of_values(client, X[::-1])
    # As a client makes it, with no name of a file.
    files = [("picture", (None, content, "image/png")) for content in PNGS[:3]]
    answer = client.post("/predict", params={"calibration": GREYS}, files=files)
    assert predictions(answer) == of_values(client, X[:3])
    assert predictions(send(client, GREYS, npz(pixels=PIXELS), NPZ)) == expected
    for pixels in (PIXELS.tolist(), encoded(PIXELS)):
        assert answers(client, GREYS, inputs={"pixels": pixels}) == expected
    # By any other name they are the model's input already.
    assert of_values(client, X, GREYS) == expected


INVALID = {
    "GIF": (422, picture_file(scene(8, 8), "GIF")),
    "thin": (413, picture_file(np.zeros((1, 3_000_000), np.uint8), "PNG")),
}


@pytest.mark.parametrize(("status", "content"), INVALID.values(), ids=INVALID)
def test_invalid_pictures_are_refused_by_their_place(client, status, content) -> None:
    for sent, headers, place in (
        (content, JPEG, "body"),
        (anonymous(*PNGS[:3], content), FORM, "pictures[3]"),
        (body(file_part("p", "cät.jpg", content)), FORM, "pictures[0] ('c\\xe4t.jpg')"),
    ):
        answer = send(client, GREYS, sent, headers)
        assert answer.status_code == status, answer.text
        assert [error["location"] for error in answer.json()["errors"]] == [place]
    assert len(predictions(send(client, GREYS, PNGS[0], PNG))) == 1


# Few bytes of PNG are many pixels. Those of 63 megapixels may keep the model from others for long.
FLAT = picture_file(np.zeros((3000, 3000), np.uint8), "PNG")
LARGE = picture_file(np.zeros((7900, 8000), np.uint8), "PNG")
REFUSED = {
    "no form": (GREYS, 400, "boundary", PNGS[0]),
    "no end": (GREYS, 400, "last boundary", body(file_part("p", "a", PNGS[0]))[:-20]),
    "only dashes": (GREYS, 400, "boundary", b"--\r\n\r\n"),
    "no boundary's end": (GREYS, 400, "boundary", b"--" + b"x" * 200),
    "a bad header": (GREYS, 400, "whole", body(part("no header at all", b"x"))),
    "no part": (GREYS, 422, "at least one", body()),
    "base64": (GREYS, 422, "own bytes", body(part("Content-Transfer-Encoding: base64", b"aaaa"))),
    "text": (GREYS, 422, "pictures[0]", body(text_part("calibration", b"greys"))),
    "too many": (GREYS, 413, "10000 rows", anonymous(*[b""] * 10_001)),
    "pixels": (GREYS, 413, "pictures[7]", anonymous(LARGE, *PNGS[:3], *[LARGE] * 4)),
    "pixels as a body": (SIZES, 413, "got 4 of 3000 x 3000", anonymous(*[FLAT] * 4)),
    "another size": (SIZES, 422, "16 x 16", anonymous(*PNGS[:2])),
    "two sizes": (SIZES, 422, "3000 x 3000", anonymous(PNGS[0], FLAT)),
    "no preprocessing": (FLOATS, 422, "`preprocessing`", anonymous(PNGS[0])),
    "one and no preprocessing": (FLOATS, 422, "`preprocessing`", PNGS[0], PNG),
    "pixels and no preprocessing": (FLOATS, 422, "`preprocessing`", npz(pixels=PIXELS), NPZ),
    "outputs": (OUTPUTS, 422, "`logits`", PNGS[0], PNG),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(client, case) -> None:
    name, status, word, content, *headers = REFUSED[case]
    answer = send(client, name, content, *(headers or [FORM]))
    assert answer.status_code == status, answer.text
    assert word in answer.text
