"""Predictions as a table for the terminal."""

from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table


def predictions_table(predictions: list[dict[str, Any]]) -> Table:
    """Return one line for each row and event."""
    table = Table("row", "class", "event", "probability", "interval", box=SIMPLE_HEAD)
    table.add_column("measure", no_wrap=True)
    table.add_column("bin", justify="right")
    for row, prediction in enumerate(predictions):
        events = [key for key in prediction if key.startswith("top")]
        for position, event in enumerate(events):
            found = prediction[event]
            lower, upper = found["interval"]
            table.add_row(
                str(row) if position == 0 else "",
                prediction["label"] if position == 0 else "",
                event,
                f"{found['probability']:.4f}",
                f"{lower:.3f} to {upper:.3f}",
                found["measure"],
                str(found["bin"]),
            )
    return table
