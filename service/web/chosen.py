"""What is chosen on the page of the operating point: by what, how much, of how many answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

# What each control is called in the API; those of them that people give in percent.
CONTROLS: Mapping[str, str] = {"risk": "max_risk", "coverage": "coverage", "threshold": "threshold"}
PERCENT = ("risk", "coverage")
MOST_OF_UNIT = 40


@dataclass(frozen=True)
class Chosen:
    """The fields of the form, as they were typed.

    Attributes
    ----------
    by : str
        Which of `CONTROLS`.
    value : str
        Of that one; error rates and shares in percent.
    failing : str
        Of how many calibration sets the certificate may fail, in percent.
    volume, unit : str
        How many there are a day, and what of.
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
        """Return what chooses as an operating point was chosen."""
        by = next(name for name, key in CONTROLS.items() if key in chosen_by)
        return cls(
            by,
            typed(by, chosen_by[CONTROLS[by]]),
            percent_of(chosen_by["delta"]) if "delta" in chosen_by else cls.failing,
        )

    def fields(self) -> dict[str, str]:
        """Return the form that says this."""
        return {
            "by": self.by,
            self.by: self.value,
            "failing": self.failing,
            "volume": self.volume,
            "unit": self.unit,
        }

    def choice(self) -> dict[str, str]:
        """Return what the API is asked for; what is no number it refuses."""
        value = share_of(self.value) if self.by in PERCENT else self.value
        return {CONTROLS[self.by]: value, "delta": share_of(self.failing)}


def linked(chosen: Chosen, preview: Mapping[str, Any]) -> dict[str, str]:
    """Return where the other controls stand for what was chosen, short enough for their fields."""
    seen = preview["consequences"] or {}
    found = {
        "risk": preview["max_risk"],
        "coverage": seen.get("coverage"),
        "threshold": preview["threshold"],
    }
    return {
        name: "" if value is None else f"{100 * value if name in PERCENT else value:.4g}"
        for name, value in found.items()
        if name != chosen.by
    }


def typed(name: str, value: float) -> str:
    """Return a number of the API as it is given in a control."""
    return percent_of(value) if name in PERCENT else f"{value:.9g}"  # all of a float32


def percent_of(share: float) -> str:
    """Return a share in percent, all its digits."""
    return f"{(Decimal(repr(share)) * 100).normalize():f}"


def share_of(percent: str) -> str:
    """Return what was typed in percent as a share, exactly; as it is if it is no number."""
    try:
        return str(Decimal(percent) / 100)
    except InvalidOperation:
        return percent
