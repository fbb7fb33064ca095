import pytest
from forked_children import SERVER

from service.runner.pool import RunnerPool


@pytest.fixture(scope="module")
def pool():
    """One pool for the tests of a file that do it no harm."""
    with RunnerPool(
        device="cpu", threads=1, max_processes=3, start_child=SERVER.start_child
    ) as shared:
        yield shared
