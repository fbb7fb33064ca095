"""Samples worth a look: as JSON, as CSV and on their page."""

import csv
import io
import re
from typing import Any

import httpx
import numpy as np
import pytest
from keyed_service import keyed_service
from model_services import calibrate_pictures, picture_set
from page_visitor import Visitor, elements, text_of
from PIL import Image

KINDS = ("mislabelled", "surest_errors")


@pytest.fixture(autouse=True, scope="module")
def calibrations(shelf) -> None:
    for name in ("pictures", "scores", "imported", "pairs"):
        shelf(name)


def listed(client: httpx.Client, name: str, **query: Any) -> dict[str, Any]:
    answer = client.get(f"/calibrations/{name}/samples", params=query)
    assert answer.status_code == httpx.codes.OK, answer.text
    return answer.json()


@pytest.mark.parametrize("name", ["pictures@1", "scores"])
def test_the_list_continues_that_of_the_report(client, name) -> None:
    report = client.get("/report", params={"calibration": name}).json()
    for k, event in report["events"].items():
        found = listed(client, name, k=int(k), limit=200)
        first = found["samples"][: len(event["mislabelled"])]
        for sample, candidate in zip(first, event["mislabelled"], strict=True):
            assert sample["row"] == candidate["index"]
            assert sample["expected"] == candidate["posterior"]
            for same in ("label", "predicted", "uncertainty"):
                assert sample[same] == candidate[same]
        n_errors = round((1 - event["accuracy"]) * found["n_samples"])
        assert found["n_errors"] == n_errors
        assert len(found["samples"]) == min(200, n_errors)
        assert found["measure"] == event["served"]


def test_the_page_says_where_numbers_are_cross_fitted(visitor, digits_calibration) -> None:
    for name, is_learned in (("digits", True), ("pictures@1", False)):
        page = visitor.open(f"/pages/calibrations/{name}/samples").text
        assert ("cross-fitted" in page) == is_learned


def test_samples_have_the_numbers_of_their_predictions(client) -> None:
    pictures, labels = picture_set()
    for sample in listed(client, "pictures@1", limit=5)["samples"]:
        row = pictures[sample["row"]]
        body = {"calibration": "pictures@1", "inputs": [row.tolist()]}
        [said] = client.post("/predict", json=body).json()["predictions"]
        assert said["class"] == sample["predicted"] != sample["label"] == labels[sample["row"]]
        for same in ("probability", "interval", "bin", "uncertainty"):
            assert said["top1"][same] == sample[same]
        assert sample["inputs"]["image"]["shape"] == [1, 8, 8]
        assert sample["inputs"]["image"]["first"] == row.ravel()[:8].tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_lists_are_exported_as_csv_without_formulas(client, kind) -> None:
    query = {"kind": kind, "limit": 200}
    address = "/calibrations/scores/samples"
    by_format = client.get(address, params=query | {"format": "csv"})
    by_accept = client.get(address, params=query, headers={"Accept": "text/csv"})
    assert by_format.text == by_accept.text
    assert by_format.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(by_format.text)))
    for row, sample in zip(rows, listed(client, "scores", **query)["samples"], strict=True):
        assert row["label_name"].removeprefix("'") == sample["label_name"]
        assert int(row["row"]) == sample["row"]
        numbers = [float(row[name]) for name in ("probability", "lower", "upper")]
        assert numbers == [sample["probability"], *sample["interval"]]
    assert "'=1+1" in {row["label_name"] for row in rows}


def test_kept_pictures_are_shown_with_a_text(client, visitor) -> None:
    shown = visitor.open("/pages/calibrations/pictures@1/samples")
    samples = listed(client, "pictures@1", limit=24)["samples"]
    texts = [attributes["alt"] for tag, attributes in elements(shown.text) if tag == "img"]
    assert texts == [f"Row {one['row']}, labelled {one['label_name']}" for one in samples]
    row = samples[0]["row"]
    file = visitor.open(f"/pages/calibrations/pictures@1/samples/{row}.png")
    assert file.headers["content-type"] == "image/png"
    expected = picture_set()[0][row, 0].astype(float)
    expected = np.rint((expected - expected.min()) / np.ptp(expected) * 255)
    assert np.array_equal(Image.open(io.BytesIO(file.content)), expected)


def test_samples_that_are_not_stored_are_listed_without_inputs(tmp_path) -> None:
    with keyed_service(tmp_path, first=False, keep_inputs="none") as found:
        calibrate_pictures(found.client(), name="digits")
        samples = listed(found.client(), "digits")["samples"]
        assert samples
        assert all(sample["inputs"] is None for sample in samples)
        visitor = Visitor(found)
        shown = visitor.open("/pages/calibrations/digits/samples")
        assert "<img" not in shown.text
        assert visitor.open("/pages/calibrations/digits/try").status_code == httpx.codes.OK
        drawn = visitor.open("/pages/calibrations/digits/try?draw=1")
        assert drawn.status_code == httpx.codes.NOT_FOUND


def test_a_sample_of_pairs_shows_the_score_that_was_sent(client, visitor) -> None:
    sample = listed(client, "pairs")["samples"][0]
    score = pytest.approx(0.5 + sample["row"] / 800)
    assert sample["inputs"] == {"score": {"shape": [], "first": [score]}}
    page = text_of(visitor.open("/pages/calibrations/pairs/samples").text)
    assert re.search(rf"Row {sample['row']}\b.*?score 0\.\d+", page, re.DOTALL)
