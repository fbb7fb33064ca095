import json
from dataclasses import dataclass

import numpy as np
import pytest

from howsure.statistics.plain import to_plain


@dataclass(frozen=True)
class Part:
    value: float


@dataclass(frozen=True)
class Whole:
    parts: tuple
    arrays: np.ndarray
    by_level: dict


def test_all_parts_turn_into_what_json_holds():
    whole = Whole((Part(0.5), None), np.float32([1, 2]), {0.99: np.int64(3), 5: True})
    expected = {
        "parts": [{"value": 0.5}, None],
        "arrays": [1.0, 2.0],
        "by_level": {"0.99": 3, "5": True},
    }
    assert to_plain(whole) == expected
    assert json.loads(json.dumps(to_plain(whole))) == expected


def test_numbers_that_are_not_finite_are_null():
    found = to_plain([np.nan, np.array([1.0, -np.inf]), np.float32(np.inf), Part(np.inf)])
    assert found == [None, [1.0, None], None, {"value": None}]


def test_what_is_no_data_is_refused():
    with pytest.raises(TypeError, match="plain data, not object"):
        to_plain(object())
