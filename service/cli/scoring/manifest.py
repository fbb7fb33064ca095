"""What a scoring was begun with: only the same may go on with its parts."""

import json
from dataclasses import asdict, dataclass
from typing import Any, Self

FORMAT = 1


@dataclass(frozen=True)
class Manifest:
    """What decides every byte of the parts.

    Attributes
    ----------
    input_sha256
        Of the file that is scored.
    calibration_id, calibration
        Its id, and ``name@version``.
    rows_per_part
        Of each part but the last.
    n_rows
        Of all of them.
    """

    input_sha256: str
    calibration_id: str
    calibration: str
    rows_per_part: int
    n_rows: int

    @property
    def n_parts(self) -> int:
        """How many parts there will be."""
        return -(-self.n_rows // self.rows_per_part)

    def rows_of(self, part: int) -> range:
        """Return the rows of a part."""
        start = part * self.rows_per_part
        return range(start, min(start + self.rows_per_part, self.n_rows))

    def as_text(self) -> str:
        """Return it as `read` takes it."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=2) + "\n"

    @classmethod
    def read(cls, text: str) -> Self:
        """Read what `as_text` wrote.

        Raises
        ------
        ValueError
            If it is something else.
        """
        found: Any = json.loads(text)
        if not isinstance(found, dict) or found.pop("format", None) != FORMAT:
            raise ValueError("not a manifest of this version")
        try:
            return cls(**found)
        except TypeError as error:
            raise ValueError("not a manifest") from error

    def differs_from(self, begun: Self) -> str | None:
        """Say in what this differs from what was begun; None if it is the same."""
        if self.input_sha256 != begun.input_sha256:
            return "its rows are those of another file, or this one has changed since"
        if self.calibration_id != begun.calibration_id:
            return f"it was begun with {begun.calibration}, and this asks {self.calibration}"
        if self.rows_per_part != begun.rows_per_part:
            return (
                f"it was begun with {begun.rows_per_part} rows a part; "
                f"go on with --rows {begun.rows_per_part}"
            )
        return None if self == begun else "it was begun otherwise"
