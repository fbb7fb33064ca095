"""What somebody named is printed as it is, though it looks like markup."""

import io

import pytest
from rich.console import Console

from service.cli.predict import predictions_table


@pytest.mark.parametrize("label", ["[/c0]", "[dog]", "cat [tabby]", "a[/b]", "[red]x[/red]"])
def test_the_name_of_a_class_is_no_markup(label: str) -> None:
    top1 = {"probability": 0.5, "interval": [0.4, 0.6], "measure": "margin", "bin": 1}
    console = Console(file=io.StringIO(), width=200)
    console.print(predictions_table([{"label": label, "top1": top1}]))
    assert label in console.file.getvalue()


def printed(*flags: dict) -> list[str]:
    top1 = {"probability": 0.99, "interval": [0.9, 1.0], "measure": "margin", "bin": 1}
    console = Console(file=io.StringIO(), width=200)
    console.print(predictions_table([{"label": "cat", "top1": top1, **found} for found in flags]))
    return console.file.getvalue().splitlines()


def test_rows_that_should_not_be_relied_on_are_marked() -> None:
    _, header, _, *rows = printed(
        {"out_of_distribution": True, "abstain": {"0.05": True, "0.01": None}},
        {"out_of_distribution": False, "abstain": {"0.05": False, "0.01": False}},
    )
    assert "flags" in header
    assert "out of distribution, abstain (0.05, 0.01)" in rows[0]
    assert "abstain" not in rows[1]
    assert "out of" not in rows[1]


def test_there_is_no_column_without_a_flag() -> None:
    lines = printed({"out_of_distribution": None, "abstain": {}}, {"out_of_distribution": False})
    assert "flags" not in "".join(lines)
