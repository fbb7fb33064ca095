"""Samples worth a look: as JSON, as CSV and on their page, which say the same."""

import csv
import io
import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest
from digit_pictures import calibrate_pictures, picture_set
from keyed_service import KeyedService, keyed_service
from page_visitor import Visitor, elements
from PIL import Image
from pointed_numbers import at

WAIT = {"Prefer": "wait=60"}
HOSTILE = ["<script>alert(1)</script>", "=1+1", "\u202eabc &amp;", "-2", "@x", "+y", "'z", "plain"]
KINDS = ("mislabelled", "surest_errors")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedService]:
    with keyed_service(tmp_path_factory.mktemp("samples"), first=False) as found:
        calibrate_pictures(found.client(), name="pictures", top_k=[1, 5])
        rng = np.random.default_rng(5)
        # More than a shard of them, so that lists are put together.
        logits = rng.normal(size=(9000, 8)) * 3
        wrong = rng.random(9000) < 0.1
        labels = np.where(wrong, rng.integers(0, 8, 9000), logits.argmax(axis=1))
        packed = io.BytesIO()
        np.savez(packed, logits=logits.astype(np.float32), labels=labels)
        config = json.dumps({"name": "hostile", "classes": HOSTILE, "bins": 10, "top_k": [1]})
        files = [("calibration", ("c.npz", packed.getvalue())), ("config", (None, config))]
        made = found.client().post("/calibrate", files=files, headers=WAIT)
        assert made.json()["status"] == "succeeded", made.text
        yield found


def listed(service: KeyedService, name: str, **query: Any) -> dict[str, Any]:
    answer = service.client().get(f"/calibrations/{name}/samples", params=query)
    assert answer.status_code == httpx.codes.OK, answer.text
    return answer.json()


@pytest.mark.parametrize("name", ["pictures", "hostile"])
def test_the_list_is_that_of_the_report_and_goes_on(service, name) -> None:
    report = service.client().get("/report", params={"calibration": name}).json()
    for k, event in report["events"].items():
        found = listed(service, name, k=int(k), limit=200)
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


def test_the_surest_errors_are_the_least_uncertain_ones_of_all_shards(service) -> None:
    found = listed(service, "hostile", kind="surest_errors", limit=200)["samples"]
    uncertainty = [sample["uncertainty"] for sample in found]
    assert uncertainty == sorted(uncertainty)
    rows = [sample["row"] for sample in found]
    assert len({row // 4096 for row in rows}) == 3
    assert len(set(rows)) == len(rows)


def test_what_is_stated_is_what_a_prediction_says(service) -> None:
    pictures, labels = picture_set()
    for sample in listed(service, "pictures", limit=5)["samples"]:
        row = pictures[sample["row"]]
        body = {"calibration": "pictures", "inputs": [row.tolist()]}
        [said] = service.client().post("/predict", json=body).json()["predictions"]
        assert said["class"] == sample["predicted"] != sample["label"] == labels[sample["row"]]
        for same in ("probability", "interval", "bin", "uncertainty"):
            assert said["top1"][same] == sample[same]
        assert sample["inputs"]["image"]["shape"] == [1, 8, 8]
        assert sample["inputs"]["image"]["first"] == row.ravel()[:8].tolist()


def test_lists_are_exported_and_cells_run_nothing(service) -> None:
    for kind in KINDS:
        query = {"kind": kind, "limit": 200}
        document = listed(service, "hostile", **query)
        address = "/calibrations/hostile/samples"
        by_format = service.client().get(address, params=query | {"format": "csv"})
        by_accept = service.client().get(address, params=query, headers={"Accept": "text/csv"})
        assert by_format.text == by_accept.text
        assert by_format.headers["content-type"].startswith("text/csv")
        rows = list(csv.DictReader(io.StringIO(by_format.text)))
        for row, sample in zip(rows, document["samples"], strict=True):
            for name in ("label_name", "predicted_name"):
                text = row[name]
                assert not text.startswith(("=", "+", "-", "@"))
                assert re.sub(r"^'(?=[=+\-@])", "", text) == sample[name]
            assert int(row["row"]) == sample["row"]
            assert float(row["probability"]) == sample["probability"]
            assert [float(row["lower"]), float(row["upper"])] == sample["interval"]
        assert any(row["label_name"] == "'=1+1" for row in rows)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "k"), [("pictures", 1), ("pictures", 5), ("hostile", 1)])
def test_every_number_on_the_page_is_one_of_the_list(service, name, kind, k) -> None:
    shown = Visitor(service).open(f"/pages/calibrations/{name}/samples?kind={kind}&k={k}")
    assert shown.status_code == httpx.codes.OK, shown.text
    document = listed(service, name, kind=kind, k=k, limit=24)
    found = [a for _, a in elements(shown.text) if "data-path" in a]
    for attributes in found:
        assert json.loads(attributes["data-value"]) == at(document, attributes["data-path"])
    rows = [a for a in found if re.fullmatch(r"/samples/\d+/row", a["data-path"])]
    assert len(rows) == len(document["samples"]) > 0
    text = re.sub(r'<span class="number".*?</span>', "", shown.text)
    said = re.sub(r"<bdi>.*?</bdi>|<a .*?</a>", "", text).partition('<ol class="samples">')[2]
    for part in re.findall(r"<(?:h3|p|p class=.hint.)>(.*?)</", said.partition("</ol>")[0]):
        assert not re.search(r"\d", part.replace(f"the label in {k}", "")), part


def test_kept_pictures_are_shown_with_a_text_in_their_place(service) -> None:
    visitor = Visitor(service)
    shown = visitor.open("/pages/calibrations/pictures/samples")
    document = listed(service, "pictures", limit=24)
    pictures = [a for tag, a in elements(shown.text) if tag == "img"]
    assert len(pictures) == len(document["samples"])
    for attributes, sample in zip(pictures, document["samples"], strict=True):
        said = f"Row {sample['row']}, labelled {sample['label_name']}"
        assert attributes["alt"] == said
    row = document["samples"][0]["row"]
    file = visitor.open(f"/pages/calibrations/pictures/samples/{row}.png")
    assert file.headers["content-type"] == "image/png"
    picture = np.asarray(Image.open(io.BytesIO(file.content)), float)
    expected = picture_set()[0][row, 0].astype(float)
    expected = np.rint((expected - expected.min()) / np.ptp(expected) * 255)
    assert np.array_equal(picture, expected)
    assert len(shown.content) < 500_000


def test_names_of_strangers_are_text(service) -> None:
    shown = Visitor(service).open("/pages/calibrations/hostile/samples")
    assert "<script>alert" not in shown.text
    assert "<bdi>&lt;script&gt;alert(1)&lt;/script&gt;</bdi>" in shown.text
    assert "\u202eabc &amp;amp;</bdi>" in shown.text
    # No pictures: their first numbers.
    assert "<img" not in shown.text
    assert "logits" in shown.text


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/calibrations/pictures/samples?k=3", 422),
        ("/calibrations/pictures/samples?k=0", 422),
        ("/calibrations/pictures/samples?kind=others", 422),
        ("/calibrations/pictures/samples?limit=201", 422),
        ("/calibrations/nothing/samples", 404),
        ("/pages/calibrations/pictures/samples?k=3", 422),
        ("/pages/calibrations/pictures/samples?k=%2b1", 422),
        ("/pages/calibrations/pictures/samples?kind=others", 422),
        ("/pages/calibrations/nothing/samples", 404),
        ("/pages/calibrations/pictures/samples/600.png", 404),
        ("/pages/calibrations/pictures/samples/x.png", 422),
        ("/pages/calibrations/hostile/samples/0.png", 404),
    ],
)
def test_what_is_not_there_is_said(service, address: str, status: int) -> None:
    assert service.client().get(address).status_code == status


def test_what_was_imported_has_no_samples(service) -> None:
    document = service.client().get("/calibrations/hostile/bins").json()
    made = service.client().post("/calibrations/import", params={"name": "in"}, json=document)
    assert made.status_code == httpx.codes.CREATED, made.text
    answer = service.client().get("/calibrations/in/samples")
    assert answer.status_code == httpx.codes.CONFLICT
    assert "keeps no records" in answer.json()["detail"]
    shown = Visitor(service).open("/pages/calibrations/in/samples")
    assert shown.status_code == httpx.codes.CONFLICT
    assert "keeps no records" in shown.text


def test_samples_that_are_not_kept_are_listed_all_the_same(tmp_path) -> None:
    with keyed_service(tmp_path, first=False, keep_inputs="none") as found:
        calibrate_pictures(found.client(), name="digits")
        document = listed(found, "digits")
        assert document["samples"]
        assert all(sample["inputs"] is None for sample in document["samples"])
        shown = Visitor(found).open("/pages/calibrations/digits/samples")
        assert "<img" not in shown.text
        assert shown.text.count("Not kept") == min(24, len(document["samples"]))
        tried = Visitor(found).open("/pages/calibrations/digits/try")
        assert "keeps no samples" in tried.text
        drawn = Visitor(found).open("/pages/calibrations/digits/try?draw=1")
        assert drawn.status_code == httpx.codes.NOT_FOUND
