"""The pages in Chromium: from the sign-in to the report, with scripts and without."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from keyed_service import keyed_service
from web_runtimes import ROOT, require_browser

DIGITS = ROOT / "examples" / "digits"
SCRIPT = Path(__file__).parent / "use_pages.mjs"
SECONDS = 300


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the pages show, and in $HOWSURE_PICTURES what they look like."""
    require_browser()
    folder = tmp_path_factory.mktemp("pages")
    pictures = Path(os.environ.get("HOWSURE_PICTURES", folder))
    with keyed_service(folder / "served") as service:
        key = service.make("lab").text
        address = "http://{}:{}/".format(*service.address)
        files = (DIGITS / "model.onnx", DIGITS / "calibration.npz")
        done = subprocess.run(
            ["node", SCRIPT, address, pictures, *files, key],
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
            env=os.environ | {"CHROMIUM": os.environ.get("CHROMIUM") or shutil.which("chromium")},
        )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_nothing_is_complained_of_and_nothing_comes_from_elsewhere(shown) -> None:
    assert shown["complaints"] == []


def test_with_nothing_there_the_page_says_how_to_begin(shown) -> None:
    assert "howsure demo" in shown["empty"]


def test_files_can_be_dropped_on_the_form(shown) -> None:
    assert shown["dropped"] == "dropped.onnx"


def test_an_upload_is_watched_to_its_end_without_a_click(shown) -> None:
    assert shown["made"] == "digits@1 is accepted"
    assert "digits@1" in shown["underWay"]
    for said in ("succeeded", "94.7 %", "entropy"):
        assert said in shown["row"]


def test_the_report_begins_with_its_sentence_with_scripts_and_without(shown) -> None:
    assert " right " in shown["sentence"]
    assert shown["withoutScripts"] == shown["sentence"]
    assert shown["pdf"] > 10_000


def test_bins_are_sorted_by_a_click(shown) -> None:
    def value(text: str) -> float:
        return float(text.removesuffix(" %"))

    assert sorted(shown["sorted"], key=value) == shown["sorted"]
    assert sorted(shown["bins"]) == sorted(shown["sorted"])
    assert shown["bins"] != shown["sorted"]


def test_pages_are_as_wide_as_the_window_and_breach_no_rule_of_accessibility(shown) -> None:
    assert shown["overflows"] == []
    assert shown["violations"] == []
