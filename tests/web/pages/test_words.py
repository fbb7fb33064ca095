"""Numbers as people read them."""

import pytest

from service.reports.numbers import short, signed


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),  # noqa: RUF001 - the sign of a cell without a number
        (0.0, "0"),
        (0.009, "0.00900"),
        (53.04, "53.0"),
        (100.0, "100"),
        (57659.08, "57,659"),
        (2.318e-05, "2.32e-05"),
    ],
)
def test_three_figures_tell_small_numbers_apart(value: float | None, shown: str) -> None:
    assert short(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "–"), (0.0, "0"), (0.0038, "+0.00380"), (-0.5, "\u22120.500")],  # noqa: RUF001
)
def test_differences_have_a_sign(value: float | None, shown: str) -> None:
    assert signed(value) == shown
