"""Services for all modules that only ask them."""

from collections.abc import Iterator

import pytest
from busy_service import BusyService, busy_service_on


@pytest.fixture(scope="session")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BusyService]:
    """A service whose model can be held; ten rows may wait for it."""
    folder = tmp_path_factory.mktemp("busy")
    with busy_service_on(folder, predict_queue_rows=10) as found:
        yield found


@pytest.fixture(autouse=True)
def loaded(request: pytest.FixtureRequest) -> None:
    """Load the model again where an earlier test ended its process: held then, it would stop."""
    if "busy" in request.fixturenames:
        request.getfixturevalue("busy").wait_for_answer()
