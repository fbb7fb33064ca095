"""One pool of children for the tests of a file, and an event loop for each test that needs one."""

import inspect
from functools import partial

import pytest
from forked_children import SERVER
from runner_children import StartedChildren
from served_requests import run_loop

from service.runner.pool import RunnerPool


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Run a test that is a coroutine on a loop whose time it may advance."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    run_loop(partial(pyfuncitem.obj, **{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture
def started():
    """The children that a test starts."""
    return StartedChildren()


@pytest.fixture(scope="module")
def pool():
    """One pool for the tests of a file that do it no harm."""
    with RunnerPool(
        device="cpu", threads=1, max_processes=3, start_child=SERVER.start_child
    ) as shared:
        yield shared
