"""Migrations run on each supported database."""

import pytest
from databases import DIALECTS


@pytest.fixture(params=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> str:
    """Return the name of each supported database."""
    return request.param
