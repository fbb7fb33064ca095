from dataclasses import dataclass

import numpy as np
import pytest

from howsure.statistics.plain import (
    confidence_percent,
    percent,
    percent_with_interval,
    requested_percent,
    to_plain,
)


@dataclass(frozen=True)
class Part:
    value: float


def test_numbers_that_are_not_finite_are_null():
    found = to_plain([np.nan, np.array([1.0, -np.inf]), np.float32(np.inf), Part(np.inf)])
    assert found == [None, [1.0, None], None, {"value": None}]


def test_what_is_no_data_is_refused():
    with pytest.raises(TypeError, match="plain data, not object"):
        to_plain(object())


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (0.0025, "0.25 %"),
        (0.10449, "10.449 %"),
        (0.07, "7 %"),
        (0.5, "50 %"),
        (1.0, "100 %"),
        (1e-9, "0.0000001 %"),
        (0.012345678, "1.2345678 %"),
        (np.float64(0.1), "10 %"),
    ],
)
def test_a_requested_share_is_never_rounded(share: float, shown: str) -> None:
    assert requested_percent(share) == shown


@pytest.mark.parametrize(
    ("delta", "shown"), [(0.05, "95 %"), (0.07, "93 %"), (0.001, "99.9 %"), (1e-9, "99.9999999 %")]
)
def test_a_confidence_has_the_digits_of_its_delta(delta: float, shown: str) -> None:
    assert confidence_percent(delta) == shown


@pytest.mark.parametrize(
    ("share", "interval", "shown"),
    [
        (0.055, (0.0449, 0.0667), "5.5 % (4.5 % to 6.7 %)"),
        (0.00135, (0.00054, 0.00279), "0.14 % (0.05 % to 0.28 %)"),
        (0.99864, (0.99721, 0.99946), "99.86 % (99.72 % to 99.95 %)"),
        (0.0, (0.0, 0.0005), "0.000 % (0.000 % to 0.050 %)"),
        (0.0, (0.0, 0.03), "0.0 % (0.0 % to 3.0 %)"),
        (0.001, (0.00001, 0.004), "0.10 % (0.001 % to 0.40 %)"),
        (0.000002, (0.0, 0.00001), "below 0.001 % (0.000 % to 0.001 %)"),
    ],
)
def test_a_measured_share_can_be_read_with_its_interval(
    share: float, interval: tuple[float, float], shown: str
) -> None:
    assert percent_with_interval(share, interval) == shown
    assert percent_with_interval(share, interval, weighted=True) == f"{shown[:-1]}, weighted)"


@pytest.mark.parametrize(
    ("share", "shown"),
    [(0.465, "46.5 %"), (0.9996, "99.96 %"), (0.0004, "0.04 %"), (1.2, "120.0 %")],
)
def test_a_share_differs_from_0_and_100_percent_if_it_does(share: float, shown: str) -> None:
    assert percent(share) == shown
