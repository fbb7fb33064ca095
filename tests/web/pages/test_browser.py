"""The pages in Chromium: from the sign-in to the report, with scripts and without."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from keyed_service import keyed_service
from web_files import ROOT, require_browser

pytestmark = pytest.mark.slow


DIGITS = ROOT / "examples" / "digits"
SCRIPT = Path(__file__).parent / "use_pages.mjs"
SECONDS = 300

ACTIVATED = "Fit for automatic use with the active operating point “automatic” on "


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the pages show, and in $HOWSURE_PICTURES what they look like."""
    require_browser()
    pictures = filter(None, [os.environ.get("HOWSURE_PICTURES")])
    with keyed_service(tmp_path_factory.mktemp("pages")) as service:
        key = service.make_known("lab").text
        address = "http://{}:{}/".format(*service.address)
        files = (DIGITS / "model.onnx", DIGITS / "calibration.npz")
        done = subprocess.run(
            ["node", SCRIPT, address, *files, key, *pictures],
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
            env=os.environ | {"CHROMIUM": os.environ.get("CHROMIUM") or shutil.which("chromium")},
        )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.replace("\u00a0", " "))


def test_pages_fetch_nothing_from_elsewhere_fit_the_window_and_are_accessible(shown) -> None:
    assert shown["complaints"] == []
    assert shown["overflows"] == []
    assert shown["violations"] == []


def test_pages_are_small_and_readable_without_scripts(shown) -> None:
    assert max(shown["bytes"].values()) < 600_000
    assert shown["texts"].keys() == shown["bytes"].keys()
    assert all(len(text) > 100 for text in shown["texts"].values())


def test_files_are_dropped_on_the_form_and_the_job_is_watched_without_a_click(shown) -> None:
    seen = shown["upload"]
    assert "howsure demo" in seen["empty"]
    assert seen["dropped"] == "dropped.onnx"
    assert "config.preprocessing" in seen["refused"]
    assert "did you mean 'imagenet'?" in seen["refused"]
    assert seen["kept"] == "model.onnx"
    assert seen["made"] == "digits@1 is accepted"
    assert "digits@1" in seen["underWay"]
    for said in ("fit", "94.3 %"):
        assert said in seen["row"]


def test_the_report_begins_with_its_summary_with_scripts_and_without(shown) -> None:
    """The visits without scripts come after an operating point was activated."""
    seen = shown["report"]
    assert seen["headline"].startswith("Fit for automatic use on ")
    assert sum(ACTIVATED in text for text in shown["texts"].values()) == 1
    assert seen["pdf"] > 10_000


def test_the_first_screen_has_the_decision_and_what_to_do(shown) -> None:
    """Wide and narrow. With warnings, the first finding and its remedy are on it too."""
    assert [len(seen["ends"]) for seen in shown["report"]["firstScreens"]] == [2, 2, 3, 3]
    for seen in shown["report"]["firstScreens"]:
        assert seen["ends"] == sorted(seen["ends"])
        assert seen["ends"][-1] < seen["height"], seen
    assert shown["report"]["warned"].startswith("2 findings")
    assert "labels = (labels - 1) % 10" in shown["report"]["warned"]


def test_findings_that_are_closed_are_printed(shown) -> None:
    assert len(shown["report"]["onPaper"]) > 2
    assert min(shown["report"]["onPaper"]) > 0


def test_events_are_tabs_and_all_of_them_are_printed(shown) -> None:
    seen = shown["report"]
    assert seen["tabs"] == [[True, False], [False, True]]
    assert seen["printed"] == [True, True]


def test_names_are_sorted_and_searched_and_failures_tell_why(shown) -> None:
    seen = shown["home"]
    assert seen["rising"] == sorted(seen["came"]) != seen["came"]
    assert max(seen["heights"]) < 1.2 * min(seen["heights"]), "a row takes more than one line"
    assert seen["searched"] == ["wrong-labels"]
    assert "failed: labels-shifted" in seen["failure"]
    assert seen["deleted"] not in seen["left"]


def test_bins_are_sorted_by_a_click_and_a_snippet_is_copied_as_it_stands(shown) -> None:
    seen = shown["report"]
    by_value = sorted(seen["bins"], key=lambda text: float(text.removesuffix(" %")))
    assert seen["sorted"] == by_value != seen["bins"]
    snippet = shown["integrate"]["text"]
    assert snippet.startswith("curl -s http://")
    assert shown["integrate"]["copied"] == snippet


def test_three_sliders_move_together_and_the_numbers_follow(shown) -> None:
    """Each time they are those of the API, and the mark is where they say."""
    seen, api = shown["operating_point"]["seen"], shown["operating_point"]["api"]
    assert len({found["sentence"] for found in seen}) == len(seen)
    for found, told in zip(seen, api, strict=True):
        expected, of = told["expected"], told["consequences"]
        assert f"{expected['accepted']:,.0f} automatic" in found["sentence"]
        assert f"{expected['reviewed']:,.0f} to review" in found["sentence"]
        assert found["point"] == f"translate({of['coverage']} {of['risk'] or 0})"
        assert ("Not tested" in found["certificate"]) != (told["assurance"] is not None)
        values = {"risk": 100 * told["max_risk"], "coverage": 100 * of["coverage"]}
        values |= {"threshold": told["threshold"]}
        for control in found["controls"]:
            assert control["told"].split()[0] == control["field"]
            # The slider is at the nearest of its steps.
            field = pytest.approx(float(control["field"]), rel=0.02, abs=control["step"])
            assert control["slider"] == field
            if not control["checked"]:
                wanted = values[control["name"]]
                assert float(control["field"]) == pytest.approx(wanted, rel=0.001)
    chosen = [[c["name"] for c in found["controls"] if c["checked"]] for found in seen]
    names = ["risk", "coverage", "coverage", "risk", "risk", "threshold"]
    assert chosen == [[name] for name in names]
    assert "Of 5,000 letters a day" in seen[4]["sentence"]
    assert "labelled samples" in shown["operating_point"]["lacking"]


def test_an_operating_point_that_is_put_in_force_decides_what_answers_say(shown) -> None:
    seen = shown["operating_point"]
    (point,) = seen["history"]
    assert "Active: automatic" in seen["inForce"]
    printed = seen["printed"].partition("Decisions")[2]
    assert "error rate, 5 %" in printed
    assert "A. Reviewer" in printed
    assert (point["author"], point["reason"]) == ("A. Reviewer", "to see")
    assert all("automatic" not in abstain for _, abstain in seen["before"])
    above = [uncertainty > point["threshold"] for uncertainty, _ in seen["after"]]
    assert [abstain["automatic"] for _, abstain in seen["after"]] == above
    assert 0 < sum(above) < len(above)


def test_samples_are_looked_through_exported_and_tried(shown) -> None:
    seen = shown["samples"]
    assert seen["count"] == 24
    words = "Row ", "Labelled", "predicted", "Stated probability of being correct", "Bin", "inputs"
    for word in words:
        assert word in seen["first"]
    assert seen["title"] == "Surest errors, Top-1"
    assert seen["file"] == "samples-surest_errors-1.csv"
    assert "the answer or the label is wrong" in seen["tried"]


def test_a_sample_is_tried_with_a_click_and_in_numbers(shown) -> None:
    seen = shown["try"]
    for sentence in (seen["drawn"], seen["written"]):
        assert re.fullmatch(
            r"Answer: \d\. Answers like this are correct [\d.]+ % of the time \(.* to .*\)\.",
            sentence,
        )
    label = seen["json"]["predictions"][0]["label"]
    assert seen["drawn"].startswith(f"Answer: {label}")


def test_measures_are_sorted_within_their_groups(shown) -> None:
    seen = shown["measures"]
    assert " serves: " in seen["sentence"]
    assert seen["briers"] == sorted(seen["briers"])
    assert [group[0] for group in seen["groups"]] == ["Measures,", "Baselines,", "Oracle:"]
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
    assert "on the same evaluation set" in card
    assert seen["names"] == ["digits@2 against moved@1"]


def test_the_saved_report_opens_from_a_disk_and_asks_for_nothing(shown) -> None:
    seen = shown["saved_report"]
    assert seen["name"] == "digits-1.html"
    assert (seen["asked"], seen["complaints"]) == ([], [])
    assert seen["headline"].startswith(ACTIVATED)
    assert seen["drawn"] > 5


def test_the_saved_report_is_light_dark_narrow_and_on_paper(shown) -> None:
    seen = shown["saved_report"]
    light, dark = seen["grounds"]
    assert light != dark
    assert seen["paper"] == light
    assert seen["overflows"] == [0, 0, 0, 0]
    assert seen["hidden"] == 0
    assert seen["pdf"] > 10_000
