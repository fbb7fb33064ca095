import pytest

from service.runner import RunnerPool


@pytest.fixture(scope="module")
def pool():
    """One pool for the tests of a file that do it no harm."""
    with RunnerPool(device="cpu", threads=1, max_processes=3) as shared:
        yield shared
