"""What somebody named is printed as it is, though it looks like markup."""

import io

import pytest
from rich.console import Console
from rich.table import Table

from service.cli.console import add_row
from service.cli.predict import predictions_table


def printed(table: Table) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(table)
    return console.file.getvalue()


@pytest.mark.parametrize("name", ["[/c0]", "[dog]", "cat [tabby]", "a[/b]", "[red]x[/red]"])
def test_a_cell_is_no_markup(name: str) -> None:
    table = Table("name")
    add_row(table, name)
    assert name in printed(table)


@pytest.mark.parametrize("label", ["[/c0]", "[dog]"])
def test_a_class_is_no_markup(label: str) -> None:
    top1 = {"probability": 0.5, "interval": [0.4, 0.6], "measure": "margin", "bin": 1}
    assert label in printed(predictions_table([{"label": label, "top1": top1}]))
