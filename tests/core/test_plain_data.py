import json
from dataclasses import dataclass

import numpy as np
import pytest

from service.core.plain_data import PlainData, as_plain


@dataclass(frozen=True)
class Part:
    value: float


class Odd:
    def as_dict(self) -> dict:
        return {"odd": 1}


@dataclass(frozen=True)
class Whole(PlainData):
    parts: tuple
    arrays: np.ndarray
    by_level: dict


def test_all_parts_turn_into_what_json_holds():
    whole = Whole((Part(0.5), Odd(), None), np.float32([1, 2]), {0.99: np.int64(3), 5: True})

    expected = {
        "parts": [{"value": 0.5}, {"odd": 1}, None],
        "arrays": [1.0, 2.0],
        "by_level": {"0.99": 3, "5": True},
    }
    assert whole.as_dict() == expected
    assert json.loads(json.dumps(whole.as_dict())) == expected


def test_what_is_no_data_is_refused():
    with pytest.raises(TypeError, match="plain data, not object"):
        as_plain(object())
