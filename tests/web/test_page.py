"""The example's page in Chromium answers as ONNX Runtime does here."""

import json
import re
from typing import Any

import numpy as np
import pytest
from running_service import DIGITS
from web_files import HOLE, LABEL, require_browser, served_example, use_page, write_rows

pytestmark = pytest.mark.slow

CHOSEN = ["torch 18, weights beside it", "sklearn, logistic, maps", "sklearn, boosted trees"]


HALF_PRECISION, NOT_EXPORTED = "float16, opset 13", "not exported"


@pytest.fixture(scope="module")
def pages(file_of, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What the page shows of each model."""
    require_browser()
    folder = tmp_path_factory.mktemp("page")
    names = [*CHOSEN, HALF_PRECISION]
    jobs = [file_of(name).write(folder / f"{number}") for number, name in enumerate(names)]
    rows = write_rows(folder / "rows.json", {"inputs": np.zeros((1, 64))})
    jobs.append([rows, DIGITS / "model.onnx"])
    with served_example() as address:
        shown = use_page(folder, jobs, address)
    return dict(zip([*names, NOT_EXPORTED], shown, strict=True))


@pytest.mark.parametrize("name", CHOSEN)
def test_the_page_answers_as_this_machine(name: str, file_of, pages) -> None:
    shown = pages[name]

    assert "Chrome" in shown["agent"]
    assert shown["complaints"] == []
    file_of(name).check(json.loads(shown["json"]))


def test_the_page_shows_a_line_for_each_row(file_of, pages) -> None:
    shown = pages[HALF_PRECISION]

    answers = json.loads(shown["json"])
    file_of(HALF_PRECISION).check(answers)
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


def test_a_model_that_was_not_exported_is_refused(pages) -> None:
    shown = pages[NOT_EXPORTED]

    assert shown["status"] == "this ONNX file was not exported by Howsure: it holds no calibration"
    assert shown["table"] == []
