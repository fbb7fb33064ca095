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
