"""The fields of the form that chooses a threshold."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from howsure.shares import percentage

# Controls by their names in the API; some are given in percent.
CONTROLS: Mapping[str, str] = {"risk": "max_risk", "coverage": "coverage", "threshold": "threshold"}
PERCENT = ("risk", "coverage")
# The fields of the page.
LABELS: Mapping[str, str] = {
    "risk": "largest error rate",
    "coverage": "share to accept",
    "threshold": "largest uncertainty or smallest score",
    "delta": "Fails for at most",
    "volume": "Answers a day",
    "name": "Name",
    "author": "Decided by",
    "reason": "Reason",
    "despite": "Warning",
}
MOST_OF_UNIT = 40


@dataclass(frozen=True)
class Chosen:
    """The fields of the form, as they were typed.

    Attributes
    ----------
    by : str
        One of `CONTROLS`.
    value : str
        Its value; error rates and shares in percent.
    failing : str
        Share of calibration sets for which the error rate may be exceeded, in percent.
    volume, unit : str
        Number of answers a day, and the word for them.
    """

    by: str
    value: str
    failing: str = "5"
    volume: str = "10000"
    unit: str = "answers"

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> "Chosen | None":
        """Read a form; None if nothing is chosen in it."""
        by = fields.get("by", "")
        if by not in CONTROLS:
            return None
        unit = " ".join(fields.get("unit", "").split())[:MOST_OF_UNIT]
        return cls(
            by,
            fields.get(by, "").strip(),
            fields.get("failing", "").strip() or cls.failing,
            fields.get("volume", "").strip() or cls.volume,
            unit or cls.unit,
        )

    @classmethod
    def again(cls, chosen_by: Mapping[str, float]) -> "Chosen":
        """Return the form that chooses an operating point again."""
        by = next(name for name, key in CONTROLS.items() if key in chosen_by)
        return cls(
            by,
            typed(by, chosen_by[CONTROLS[by]]),
            percentage(chosen_by["delta"]) if "delta" in chosen_by else cls.failing,
        )

    def fields(self) -> dict[str, str]:
        """Return the fields of the form."""
        return {
            "by": self.by,
            self.by: self.value,
            "failing": self.failing,
            "volume": self.volume,
            "unit": self.unit,
        }

    def choice(self) -> dict[str, str]:
        """Return the parameters of the API, which refuses values that are no numbers."""
        value = share_of(self.value) if self.by in PERCENT else self.value
        return {CONTROLS[self.by]: value, "delta": share_of(self.failing)}


def typed(name: str, value: float) -> str:
    """Return a number of the API as its control shows it."""
    return percentage(value) if name in PERCENT else f"{value:.9g}"  # all of a float32


def share_of(percent: str) -> str:
    """Return a percentage as a share, exactly; unchanged if it is no number."""
    try:
        return str(Decimal(percent) / 100)
    except InvalidOperation:
        return percent
