"""What a table of predictions has in its cells, whatever classes and files are called."""

import csv

import numpy as np

from service.cli.scoring.writers import write_csv


class Predicted:
    """A result of two parts."""

    def tables(self):
        for names in (["=1+1", "-2"], ["plain", "@x"]):
            numbers, flags = np.array([-1.5, 2.0], np.float32), np.array([True, False])
            yield {"label": np.array(names), "uncertainty": numbers, "abstain": flags}


def test_names_run_nothing_and_numbers_are_numbers(tmp_path) -> None:
    write_csv(tmp_path / "answers.csv", Predicted())
    with (tmp_path / "answers.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["label"] for row in rows] == ["'=1+1", "'-2", "plain", "'@x"]
    assert [row["uncertainty"] for row in rows] == ["-1.5", "2.0"] * 2
    assert [row["abstain"] for row in rows] == ["true", "false"] * 2
