"""How many rows a body holds, guessed from its length before anybody reads it."""

from service.bodies import JSON
from service.operations.served import ServedOnnxModel

# Of a guess, how much the last answer counts.
SHARE = 0.2
# JSON takes at least so many bytes for each that the number takes itself.
JSON_FACTOR = 2


def estimate_rows(model: ServedOnnxModel, media_type: str, n_bytes: int) -> int:
    """Return a number of rows, at least 1."""
    known = model.bytes_a_row.get(media_type)
    if known is None:
        known = float(model.row_bytes * (JSON_FACTOR if media_type == JSON else 1))
    return round(n_bytes / known) or 1


def learn_rows(model: ServedOnnxModel, media_type: str, n_bytes: int, n_rows: int) -> None:
    """Take what a body turned out to hold."""
    found = n_bytes / n_rows
    known = model.bytes_a_row.get(media_type, found)
    model.bytes_a_row[media_type] = known + SHARE * (found - known)
