"""The example's page in Chromium answers as ONNX Runtime does here."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from web_files import HOLE, LABEL, ROOT, WebFile, require_browser, use_page, write_rows

pytestmark = pytest.mark.slow


Chosen = tuple[WebFile, Path, list[Path]]


CHOSEN = ["torch 18, weights beside it", "sklearn, logistic, maps", "sklearn, boosted trees"]


@pytest.mark.parametrize("chosen", CHOSEN, indirect=True)
def test_the_page_answers_as_this_machine(chosen: Chosen, page_address: str) -> None:
    require_browser()
    file, rows, model = chosen

    shown = use_page(page_address, rows, model)

    assert "Chrome" in shown["agent"]
    assert shown["complaints"] == []
    file.check(json.loads(shown["json"]))


@pytest.mark.parametrize("chosen", ["float16, opset 13"], indirect=True)
def test_the_page_shows_a_line_for_each_row(chosen: Chosen, page_address: str) -> None:
    require_browser()
    file, rows, model = chosen

    shown = use_page(page_address, rows, model)

    answers = json.loads(shown["json"])
    file.check(answers)
    assert shown["complaints"] == []
    assert shown["status"].startswith("200 rows in ")
    assert shown["caption"] == "tested, version 3; intervals at 95 %"
    for number, (cells, answer) in enumerate(zip(shown["table"], answers, strict=True)):
        assert cells[0] == str(number)
        if number == HOLE:
            assert cells[1:5] == ["not finite", "", "", ""]
            continue
        assert cells[1] == LABEL.format(answer["class"])
        event = answer["top1"]
        assert [float(value) for value in re.findall(r"[\d.]+", cells[3])] == pytest.approx(
            [100 * value for value in (event["probability"], *event["interval"])], abs=0.0501
        )


def test_a_model_that_was_not_exported_is_refused(page_address: str, tmp_path: Path) -> None:
    require_browser()
    rows = write_rows(tmp_path / "rows.json", {"inputs": np.zeros((1, 64))})

    shown = use_page(page_address, rows, [ROOT / "examples" / "digits" / "model.onnx"])

    assert shown["status"] == "this ONNX file was not exported by Howsure: it holds no calibration"
    assert shown["table"] == []
