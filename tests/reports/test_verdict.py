"""Whether a difference of scores is better, worse, a tie or none."""

import pytest

from service.reports.verdict import verdict


@pytest.mark.parametrize(
    ("mean", "error", "score", "expected"),
    [
        (0.0, 0.0, "nll", "same"),
        (0.2, 0.1, "nll", "tie"),
        (-0.2, 0.1, "nll", "tie"),
        (0.21, 0.1, "nll", "worse"),
        (-0.21, 0.1, "brier", "better"),
        (0.21, 0.1, "accuracy", "better"),
        (-0.21, 0.1, "accuracy", "worse"),
    ],
)
def test_beyond_two_standard_errors_a_difference_is_no_tie(mean, error, score, expected) -> None:
    assert verdict({"mean": mean, "standard_error": error, "pairs": 9}, score) == expected
