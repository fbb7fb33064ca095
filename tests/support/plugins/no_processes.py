"""Quick tests: those that start no process and no service, chosen by what they use.

A pytest plugin. ``pytest --quick`` leaves out tests marked ``process`` or ``slow`` and those of
fixtures that need a process or a server, and lets a test fail that starts a process all the same.
"""

import sys

import pytest

# Fixtures that start a process, a service, or use a database server.
FIXTURES = {
    *("service", "client", "command", "busy", "pool"),
    *("postgresql_database_url", "migrated_schemas", "s3_server"),
}
# Parameters of tests with which a fixture needs one.
PARAMETERS = {"postgresql", "s3"}
EVENTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.exec"}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--quick``."""
    parser.addoption("--quick", action="store_true", help="Run tests that start no process.")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the quick tests alone."""
    if not config.getoption("--quick"):
        return
    left_out = [item for item in items if not _is_quick(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if _is_quick(item)]


def _is_quick(item: pytest.Item) -> bool:
    if item.get_closest_marker("process") or item.get_closest_marker("slow"):
        return False
    parameters = list(item.callspec.params.values()) if hasattr(item, "callspec") else []
    if not all(getattr(value, "is_quick", True) for value in parameters):
        return False
    words = {value for value in parameters if isinstance(value, str)}
    return not FIXTURES & set(item.fixturenames) and not PARAMETERS & words


class _Watch:
    """Refuses to start a process while a test runs."""

    test: str | None = None

    def __call__(self, event: str, _: tuple[object, ...]) -> None:
        if self.test is not None and event in EVENTS:
            raise AssertionError(f"{self.test} starts a process: mark it with `process`")

    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef) -> None:
        """Refuse a fixture that is asked for by name while the test runs."""
        assert fixturedef.argname not in FIXTURES, f"mark {self.test} with `process`"

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item):
        self.test = item.nodeid
        try:
            return (yield)
        finally:
            self.test = None


def pytest_configure(config: pytest.Config) -> None:
    """Watch for processes; an audit hook stays as long as Python runs."""
    if config.getoption("--quick"):
        watch = _Watch()
        sys.addaudithook(watch)
        config.pluginmanager.register(watch, "no-processes")
