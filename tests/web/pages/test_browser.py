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


def test_pages_are_as_wide_as_the_window_and_breach_no_rule_of_accessibility(shown) -> None:
    assert shown["overflows"] == []
    assert shown["violations"] == []


def test_pages_are_below_a_megabyte(shown) -> None:
    assert max(shown["bytes"].values()) < 1_000_000


def test_pages_are_readable_without_scripts(shown) -> None:
    assert shown["texts"].keys() == shown["bytes"].keys()
    assert all(len(text) > 100 for text in shown["texts"].values())


def test_with_nothing_there_the_page_says_how_to_begin(shown) -> None:
    assert "howsure demo" in shown["upload"]["empty"]


def test_files_can_be_dropped_on_the_form(shown) -> None:
    assert shown["upload"]["dropped"] == "dropped.onnx"


def test_an_upload_is_watched_to_its_end_without_a_click(shown) -> None:
    seen = shown["upload"]
    assert seen["made"] == "digits@1 is accepted"
    assert "digits@1" in seen["underWay"]
    for said in ("succeeded", "94.7 %", "entropy"):
        assert said in seen["row"]


def test_the_report_begins_with_its_sentence_with_scripts_and_without(shown) -> None:
    seen = shown["report"]
    assert " right " in seen["sentence"]
    (text,) = (
        text
        for path, text in shown["texts"].items()
        if path.startswith("/report") and path.count("calibration=") == 1
    )
    assert seen["sentence"] in text
    assert seen["pdf"] > 10_000


def test_bins_are_sorted_by_a_click(shown) -> None:
    def value(text: str) -> float:
        return float(text.removesuffix(" %"))

    seen = shown["report"]
    assert sorted(seen["sorted"], key=value) == seen["sorted"]
    assert sorted(seen["bins"]) == sorted(seen["sorted"])
    assert seen["bins"] != seen["sorted"]


def test_measures_are_sorted_within_their_groups(shown) -> None:
    seen = shown["measures"]
    assert " serves: " in seen["sentence"]
    assert seen["briers"] == sorted(seen["briers"])
    assert [group[0] for group in seen["groups"]] == ["Measures,", "Baselines:", "Oracle:"]
    for came, rising, falling in zip(seen["groups"], seen["rising"], seen["falling"], strict=True):
        assert rising[0] == falling[0] == came[0]
        assert sorted(rising) == sorted(came)
        assert falling[1:] == rising[:0:-1]
    assert seen["groups"] != seen["rising"]
    assert seen["pdf"] > 10_000


def test_versions_and_names_are_chosen_and_compared(shown) -> None:
    seen = shown["compare"]
    [card] = seen["versions"]
    assert "digits@2 against digits@1" in card
    assert "on the same calibration set" in card
    assert seen["names"] == ["digits@2 against moved@1"]
