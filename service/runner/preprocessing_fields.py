"""A description of preprocessing as it comes from another process or from the database."""

import math
from collections.abc import Mapping
from typing import Any, get_args

from service.pictures.preprocessing import Colour, Interpolation, Layout, Preprocessing
from service.runner.fields import FieldError, integer, items

_SIDES = 2
_WORDS: Mapping[str, tuple[str, ...]] = {
    "interpolation": get_args(Interpolation),
    "colour": get_args(Colour),
    "layout": get_args(Layout),
}


def read_preprocessing(fields: Mapping[str, Any]) -> Preprocessing | None:
    """Return what is under ``preprocessing``; what was stored before there was any lacks the key.

    Raises
    ------
    FieldError
        If it is no description of preprocessing.
    """
    found = fields.get("preprocessing")
    if found is None:
        return None
    if not isinstance(found, dict) or found.keys() != Preprocessing().as_dict().keys():
        raise FieldError("preprocessing: expected its keys, and no others")
    for name, words in _WORDS.items():
        if found[name] not in words:
            raise FieldError(f"preprocessing: {name}")
    _check_sides(found["resize"], may_be_one=True)
    _check_sides(found["crop"], may_be_one=False)
    n_channels = 1 if found["colour"] == "grey" else 3
    _check_numbers([found["scale"]], n=1, above_zero=True)
    _check_numbers(found["mean"], n=n_channels, above_zero=False)
    _check_numbers(found["std"], n=n_channels, above_zero=True)
    if found["layout"] == "nhw" and n_channels > 1:
        raise FieldError("preprocessing: a layout without channels, of several")
    return Preprocessing.from_dict(found)


def _check_sides(value: object, *, may_be_one: bool) -> None:
    if value is None:
        return
    sides = [value] if may_be_one and type(value) is int else items(value)
    if len(sides) != (_SIDES if isinstance(value, list) else 1):
        raise FieldError("preprocessing: expected height and width")
    for side in sides:
        integer(side, least=1)


def _check_numbers(values: object, *, n: int, above_zero: bool) -> None:
    found = items(values)
    if len(found) != n:
        raise FieldError("preprocessing: expected a number a channel")
    for number in found:
        if type(number) not in (int, float) or not math.isfinite(number):
            raise FieldError("preprocessing: expected finite numbers")
        if above_zero and number <= 0:
            raise FieldError("preprocessing: expected numbers above 0")
