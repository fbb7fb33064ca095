from dataclasses import dataclass

import numpy as np
import pytest

from howsure.shares import confidence_percent, percent, percent_with_interval, requested_percent
from howsure.statistics.plain import to_plain


@dataclass(frozen=True)
class Part:
    value: float


def test_arrays_numbers_and_parts_become_plain():
    found = to_plain([np.nan, np.array([1.0, -np.inf]), np.float32(np.inf), Part(np.inf)])
    assert found == [None, [1.0, None], None, {"value": None}]
    with pytest.raises(TypeError, match="plain data, not object"):
        to_plain(object())


@pytest.mark.parametrize(("share", "text"), [
    (0.0025, "0.25 %"), (0.10449, "10.449 %"), (0.07, "7 %"), (0.5, "50 %"), (1.0, "100 %"),
    (1e-9, "0.0000001 %"), (0.012345678, "1.2345678 %"), (np.float64(0.1), "10 %"),
])  # fmt: skip
def test_a_requested_share_is_never_rounded(share: float, text: str) -> None:
    assert requested_percent(share) == text


def test_a_confidence_has_the_digits_of_its_delta() -> None:
    texts = [confidence_percent(delta) for delta in (0.05, 0.07, 0.001, 1e-9)]
    assert texts == ["95 %", "93 %", "99.9 %", "99.9999999 %"]


@pytest.mark.parametrize(("share", "interval", "text"), [
    (0.055, (0.0449, 0.0667), "5.5 % (4.5 % to 6.7 %)"),
    (0.00135, (0.00054, 0.00279), "0.14 % (0.05 % to 0.28 %)"),
    (0.99864, (0.99721, 0.99946), "99.86 % (99.72 % to 99.95 %)"),
    (0.0, (0.0, 0.0005), "0.000 % (0.000 % to 0.050 %)"),
    (0.0, (0.0, 0.03), "0.0 % (0.0 % to 3.0 %)"),
    (0.001, (0.00001, 0.004), "0.10 % (0.001 % to 0.40 %)"),
    (0.000002, (0.0, 0.00001), "below 0.001 % (0.000 % to 0.001 %)"),
])  # fmt: skip
def test_a_measured_share_can_be_read_with_its_interval(share, interval, text) -> None:
    assert percent_with_interval(share, interval) == text
    assert percent_with_interval(share, interval, weighted=True) == f"{text[:-1]}, weighted)"


def test_a_share_differs_from_0_and_100_percent_if_it_does() -> None:
    texts = [percent(share) for share in (0.465, 0.9996, 0.0004, 1.2)]
    assert texts == ["46.5 %", "99.96 %", "0.04 %", "120.0 %"]
