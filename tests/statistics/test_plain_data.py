from dataclasses import dataclass

import numpy as np
import pytest

from howsure.statistics.plain import to_plain


@dataclass(frozen=True)
class Part:
    value: float


def test_numbers_that_are_not_finite_are_null():
    found = to_plain([np.nan, np.array([1.0, -np.inf]), np.float32(np.inf), Part(np.inf)])
    assert found == [None, [1.0, None], None, {"value": None}]


def test_what_is_no_data_is_refused():
    with pytest.raises(TypeError, match="plain data, not object"):
        to_plain(object())
