"""The kinds of jobs, each on one of the supported databases."""

import pytest
from stored_rows import CalibrationJobs, EvaluationJobs

# One table and one dialect do not depend on the other: each is tested once.
COMBINATIONS = [
    ("sqlite", CalibrationJobs),
    pytest.param(("postgresql", EvaluationJobs), marks=pytest.mark.process),
]


@pytest.fixture(params=COMBINATIONS, ids=["calibration-sqlite", "evaluation-postgresql"])
def combination(request):
    return request.param


@pytest.fixture
def jobs(combination, database):
    """Jobs of a kind; a test's database is that of `dialect`."""
    return combination[1](database)
