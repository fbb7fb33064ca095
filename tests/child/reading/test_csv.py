"""CSV of outputs: its dialects, and what is refused with the cell at fault."""

import numpy as np
import pytest
from dataset_files import read_all, refusal, write_text

from service.errors import InvalidDataset, TooLarge

HEADER = "label,logit_0,logit_1,logit_2\n"
ROWS = "0,0.5,-1,2\n2,1e-3,4,5\n1,6,7,8\n"


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + HEADER + ROWS,
        (HEADER + ROWS).replace("\n", "\r\n"),
        (HEADER + ROWS).rstrip("\n"),
        HEADER + ROWS.replace("\n", "\n\n"),
        HEADER.replace("label", '"label"') + ROWS.replace("0.5", '"0.5"'),
        HEADER + ROWS.replace(",", ", "),
    ],
    ids=["byte order mark", "CRLF", "no last newline", "blank lines", "quotes", "spaces"],
)
def test_dialects_of_csv(path, text):
    found, labels = read_all(write_text(path, text))
    np.testing.assert_array_equal(found["logits"], [[0.5, -1, 2], [1e-3, 4, 5], [6, 7, 8]])
    np.testing.assert_array_equal(labels, [0, 2, 1])


CSV_CASES = {
    "header alone": (HEADER, "", "at least one sample"),
    "no label": ("logit_0,logit_1\n1,2\n", ".label", "a column `label`"),
    "no outputs": ("label\n1\n", "", "`logit_1`, …, or `prob_0`, `prob_1`, …, got `label`"),
    "gap": ("label,logit_0,logit_2\n0,1,2\n", ".logit_1", "none for class 1"),
    "column twice": ("label,logit_0,logit_1,logit_1\n0,1,2,3\n", ".logit_1", "twice"),
    "other column": ("label,x,logit_0,logit_1\n0,.5,1,2\n", "", "leave other columns of numbers"),
    "semicolons": (HEADER.replace(",", ";") + "0;1;2;3\n", "", "by commas"),
    "hexadecimal": (HEADER + "0,1,0x10,3\n", ".logit_1[0]", "got '0x10'"),
    "text after blank lines": (HEADER + "0,1,2,3\n\n\n0,1,x,3\n", ".logit_1[1]", "'x'"),
    "float label": (HEADER + ROWS + "1.5,1,2,3\n", ".label[3]", "an integer, got '1.5'"),
    "huge label": (HEADER + "9" * 30 + ",1,2,3\n", ".label[0]", "an integer"),
    "empty label": (HEADER + ROWS + ",1,2,3\n", ".label[3]", "empty cell"),
    "empty cell": (HEADER + ROWS + "0,1,,3\n", ".logit_1[3]", "empty cell"),
    "nan": (HEADER + ROWS + "0,1,nan,3\n", ".logit_1[3]", "got an empty cell or NaN"),
    "overflow": (HEADER + ROWS + "0,1,1e999,3\n", ".logit_1[3]", "got inf"),
    "too few values": (HEADER + ROWS + "0,1,2\n", "[3]", "expected 4 values, got 3"),
    "newline in a cell": (HEADER + '0,"1\n",2,3\n', "", "expected"),
    "open quote in the header": ('label,"logit_0,logit_1\n0,1,2\n', "", "header line"),
    "prob sum": ("label,prob_0,prob_1\n0,0.5,0.5\n0,0.5,0.6\n", ".prob_*[1]", "got 1.1"),
}


@pytest.mark.parametrize("case", CSV_CASES)
def test_a_broken_rule_of_csv_is_named_with_its_place(path, case):
    text, location, message = CSV_CASES[case]
    error = refusal(write_text(path, text))
    assert type(error) is InvalidDataset
    assert error.violations[0].location.startswith(f"calibration{location}")
    assert message in error.violations[0].message


def test_rows_of_csv_are_counted_over_blocks(path):
    text = HEADER + "0,1.000000001,2.000000001,3.000000001\n" * 100_000
    path = write_text(path, text + "0,1,two,3\n")
    assert refusal(path).violations[0].location == "calibration.logit_1[100000]"
    path = write_text(path, text + "0,1,nan,3\n")
    assert refusal(path, batch_size=5000).violations[0].location == "calibration.logit_1[100000]"


def test_a_csv_of_a_million_columns_is_refused_by_its_header(tmp_path):
    names = ",".join(f"logit_{k}" for k in range(1_000_000))
    path = write_text(tmp_path / "long.csv", f"label,{names}\n")
    error = refusal(path)
    assert type(error) is TooLarge
    assert "header line" in error.message
    path = write_text(tmp_path / "short.csv", "label" + "," * 1_000_000 + "\n")
    error = refusal(path)
    assert type(error) is TooLarge
    assert "got 1000001" in error.message
