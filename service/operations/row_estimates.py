"""How many rows a body holds, guessed from its length before anybody reads it."""

from weakref import WeakKeyDictionary

from service.bodies import JSON
from service.operations.served import ServedOnnxModel

# Of a guess, how much the last answer counts.
SHARE = 0.2
# JSON takes at least so many bytes for each that the number takes itself.
JSON_FACTOR = 2


class RowEstimates:
    """Bytes a row by model and media type, learnt from the bodies that were read."""

    def __init__(self) -> None:
        self._bytes: WeakKeyDictionary[ServedOnnxModel, dict[str, float]] = WeakKeyDictionary()

    def n_rows(self, model: ServedOnnxModel, media_type: str, n_bytes: int) -> int:
        """Return a number of rows, at least 1."""
        first = model.row_bytes * (JSON_FACTOR if media_type == JSON else 1)
        known = self._bytes.get(model, {}).get(media_type, first)
        return max(1, round(n_bytes / known))

    def learn(self, model: ServedOnnxModel, media_type: str, n_bytes: int, n_rows: int) -> None:
        """Take what a body turned out to hold."""
        of_model = self._bytes.setdefault(model, {})
        found = n_bytes / n_rows
        known = of_model.get(media_type, found)
        of_model[media_type] = known + SHARE * (found - known)
