"""The role of a further set, and how its samples were changed."""

import math
from typing import Any, get_args

import models
from service.errors import InvalidInput, shown

MOST_CHARACTERS = 100
# The texts of the form, with their limits in bytes.
TEXTS = {"role": 20, "type": 4 * MOST_CHARACTERS, "intensity": 40}
SCHEMAS: dict[str, dict[str, Any]] = {
    "role": {
        "type": "string",
        "enum": list(get_args(models.SetRole)),
        "default": "traffic",
        "description": "`traffic`: data that is to come, which changes the verdict. `stress`: data "
        "made to see how far it may drift, which never does.",
    },
    "type": {
        "type": "string",
        "minLength": 1,
        "maxLength": MOST_CHARACTERS,
        "examples": ["rotation"],
        "description": "How the samples were changed.",
    },
    "intensity": {
        "type": "number",
        "minimum": 0,
        "examples": [3],
        "description": "How much they were changed, 0 for not at all.",
    },
}


def variation(role: str | None, kind: str | None, intensity: str | None) -> dict[str, Any]:
    """Return what was sent, as the data of an evaluation.

    Raises
    ------
    InvalidInput
        If a text breaks its rule.
    """
    sent: dict[str, Any] = {}
    if role is not None:
        if role not in get_args(models.SetRole):
            roles = " or ".join(map(repr, get_args(models.SetRole)))
            raise InvalidInput.at("role", f"expected {roles}, got {shown(role)}")
        sent["role"] = role
    if kind is not None:
        if not (0 < len(kind) <= MOST_CHARACTERS and kind.isprintable()):
            raise InvalidInput.at("type", f"expected 1 to {MOST_CHARACTERS} printable characters")
        sent["type"] = kind
    if intensity is not None:
        sent["intensity"] = _number(intensity)
    return sent


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number >= 0.0):
        raise InvalidInput.at("intensity", f"expected a number from 0 on, got {shown(text)}")
    return number
