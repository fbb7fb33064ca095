"""Calibrated files in ONNX Runtime Web under Node answer as ONNX Runtime does here."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from web_files import NOT_UNDER_NODE, WEB_FILES, predict_under_node, require_node

pytestmark = pytest.mark.slow


Answers = dict[str, list[dict[str, Any]]]


@pytest.mark.parametrize("name", [name for name in WEB_FILES if name not in NOT_UNDER_NODE])
def test_node_answers_as_this_machine(name: str, file_of, answers_under_node: Answers) -> None:
    file_of(name).check(answers_under_node[name])


# Max pooling passes over NaN on some processors, and trees take a branch.
LOSE_NAN = ("torch", "sklearn, boosted", "sklearn, forest")


@pytest.mark.parametrize(
    "name", [name for name in WEB_FILES if not name.startswith(LOSE_NAN + NOT_UNDER_NODE)]
)
def test_a_row_that_is_not_finite_is_told_apart(name: str, answers_under_node: Answers) -> None:
    hole, *others = sorted(answers_under_node[name], key=lambda answer: answer["class"])

    assert hole["class"] == hole["top1"]["bin"] == -1
    assert hole["top1"]["probability"] is None
    assert hole["out_of_distribution"] is True
    assert set(hole["abstain"].values()) == {True}
    assert all(answer["class"] >= 0 for answer in others)


def test_the_program_of_the_example_prints_the_answers(file_of, tmp_path: Path) -> None:
    require_node()
    rows, *model = file_of("smooth").write(tmp_path)
    file_of("smooth").check(predict_under_node(rows, model))


WRONG_ROWS = [
    ({"inputs": {"pixels": [[0] * 16]}}, 'there are no rows for the input "x"'),
    ([[0] * 16, [0] * 15], 'the rows of the input "x" differ in length'),
]


@pytest.mark.parametrize(("rows", "complaint"), WRONG_ROWS)
def test_rows_that_do_not_fit_are_refused(file_of, rows, complaint: str, tmp_path: Path) -> None:
    require_node()
    path, *model = file_of("interpolated").write(tmp_path)
    path.write_text(json.dumps(rows), encoding="utf-8")

    with pytest.raises(subprocess.CalledProcessError) as caught:
        predict_under_node(path, model)
    assert complaint in caught.value.stderr
