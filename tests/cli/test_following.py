"""What the command line says of how fast a job goes."""

import pytest

from howsure.client import Progress
from service.cli.console import pace


@pytest.mark.parametrize(
    ("rate", "eta", "said"),
    [
        (None, None, ""),
        (1234.5, 8.4, "1,234/s, 8 s left"),
        (0.25, 100.0, "0.25/s, 100 s left"),
        (12.0, 600.0, "12/s, 10 min left"),
        (12.0, 9000.0, "12/s, 2 h left"),
        (0.0, None, "0/s"),
    ],
)
def test_the_pace_of_a_stage_is_said_as_far_as_it_is_known(rate, eta, said) -> None:
    progress = Progress("running", "fit", 1, 2, rows_per_second=rate, eta_seconds=eta)
    assert pace(progress) == said


def test_a_service_that_does_not_tell_its_pace_is_followed_all_the_same() -> None:
    assert pace(Progress.of({"status": "running", "progress": {"stage": "fit"}})) == ""
