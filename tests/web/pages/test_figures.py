"""Figures of a report: in its page, as files, and what draws them in a browser."""

import gzip
import hashlib
import json
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from keyed_service import KeyedService, keyed_service, logits_of
from page_visitor import Visitor, elements

import service.web as pages

WAIT = {"Prefer": "wait=60"}
VENDORED = Path(pages.__file__).parent / "vendored"
MOST_OF_A_PAGE = 1_000_000


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedService]:
    with keyed_service(tmp_path_factory.mktemp("figures"), first=False) as found:
        files = [
            ("calibration", ("c.csv", logits_of(n=400))),
            ("config", (None, '{"name": "digits", "bins": 6}')),
        ]
        made = found.client().post("/calibrate", files=files, headers=WAIT)
        assert made.json()["status"] == "succeeded", made.text
        yield found


@pytest.fixture(scope="module")
def page(served: KeyedService) -> httpx.Response:
    return Visitor(served).open("/report?calibration=digits")


@pytest.fixture(scope="module")
def figures(page) -> list[dict[str, str]]:
    return [attributes for tag, attributes in elements(page.text) if tag == "figure"]


def test_the_page_has_pictures_and_is_small(page, figures) -> None:
    assert {"before_after", "reliability", "classes", "risk_coverage"} <= {
        found["data-chart"] for found in figures
    }
    drawn = [attributes for tag, attributes in elements(page.text) if tag == "svg"]
    assert len(drawn) == len(figures)
    assert len(page.content) < MOST_OF_A_PAGE


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_figure_is_a_file_of_its_own(served, figures, theme) -> None:
    address = figures[0]["data-spec"].replace(".json", ".svg")
    answer = served.client().get(address, params={"theme": theme})
    assert answer.headers["content-type"] == "image/svg+xml"
    assert "var(" not in answer.text
    assert ET.fromstring(answer.text).get("role") == "img"  # noqa: S314 -- our own


def test_a_browser_draws_the_numbers_of_the_page(served, figures) -> None:
    for found in figures:
        spec = served.client().get(found["data-spec"]).json()
        assert any(spec["datasets"].values())
        assert "://" not in json.dumps(spec | {"$schema": ""})


@pytest.mark.parametrize(
    "name", ["no/1.svg", "reliability/7.svg", "reliability/1.png", "reliability/1"]
)
def test_there_are_no_other_files(served, figures, name) -> None:
    start = figures[0]["data-spec"].rsplit("/", 2)[0]
    assert served.client().get(f"{start}/{name}").status_code == httpx.codes.NOT_FOUND


def test_scripts_are_what_their_list_says() -> None:
    listed = json.loads((VENDORED / "scripts.json").read_text())
    licences = (VENDORED / "LICENSES.txt").read_text()
    assert {path.name for path in VENDORED.glob("*.gz")} == {f"{name}.js.gz" for name in listed}
    for name, about in listed.items():
        script = gzip.decompress((VENDORED / f"{name}.js.gz").read_bytes())
        assert hashlib.sha256(script).hexdigest() == about["sha256"]
        assert f"{name} {about['version']} ({about['license']})" in licences


def test_scripts_are_sent_compressed_and_as_they_are(served) -> None:
    sizes = []
    for encoding in ("gzip", "identity"):
        answer = served.client().get(
            "/pages/scripts/vega.js", headers={"Accept-Encoding": encoding}
        )
        assert answer.headers["content-type"].startswith("text/javascript")
        sizes.append(int(answer.headers["content-length"]))
        digest = hashlib.sha256(answer.content).hexdigest()
        assert digest == json.loads((VENDORED / "scripts.json").read_text())["vega"]["sha256"]
    assert sizes[0] < sizes[1] / 2
    assert served.client().get("/pages/scripts/passwd").status_code == httpx.codes.NOT_FOUND
