"""Price list of the tests: CPU seconds of each file, with all processes that its tests start.

A pytest plugin. Every run prints its dearest files. With ``--price-limit`` a run fails when a
file costs more than that many CPU seconds of a machine of usual speed. What fixtures of the
session cost is a row of its own: the first test that needs one did not choose its price.
"""

import math
import os
import time
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

TICKS = os.sysconf("SC_CLK_TCK")
SESSION = "(fixtures of the session)"
ADDED, SECONDS_TO_ADD = 2_000_000, 0.125
SLOW = " (slow tests)"  # of a file; they have no limit


def cpu_of_tree() -> float:
    """Return the CPU seconds of this process, of its ended children and of living descendants."""
    own = os.times()
    seconds = own.user + own.system + own.children_user + own.children_system
    return seconds + sum(_cpu_of(child) for child in _children(os.getpid()))


def _row(item: pytest.Item) -> str:
    """Return what a test is charged to: its file, or the slow tests of that."""
    return item.nodeid.partition("::")[0] + SLOW * bool(item.get_closest_marker("slow"))


def _cpu_of(process: int) -> float:
    try:
        fields = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0.0
    # utime, stime, cutime and cstime of proc(5): fields 14 to 17, counted from the third here.
    seconds = sum(int(ticks) for ticks in fields[11:15]) / TICKS
    return seconds + sum(_cpu_of(child) for child in _children(process))


def _children(process: int) -> list[int]:
    try:
        threads = list(Path(f"/proc/{process}/task").iterdir())
        lists = [(thread / "children").read_text() for thread in threads]
    except OSError:
        return []
    return [int(child) for children in lists for child in children.split()]


@cache
def slowness() -> float:
    """Return how many times slower this machine is than the one that the limit is for, at least 1.

    The same tests have cost 630 and 1,300 CPU seconds on machines of one kind.
    """
    began, total = time.process_time(), 0
    for number in range(ADDED):
        total += number
    return max((time.process_time() - began) / SECONDS_TO_ADD, 1.0)


class PriceList:
    """The prices of one worker, and in the process that prints, of all."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._seconds: Counter[str] = Counter()
        self._read = self._session = 0.0

    def pytest_collection_finish(self) -> None:
        """Read the clock, which is then read once a file: a process may have many threads."""
        self._read = cpu_of_tree()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef):
        """Charge a fixture of the session, with those that it asks for, to the session."""
        if fixturedef.scope != "session":
            return (yield)
        before, inner = cpu_of_tree(), self._seconds[SESSION]
        try:
            return (yield)
        finally:
            self._seconds[SESSION] = inner + cpu_of_tree() - before

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None):
        """Charge the tests of a file that follow one another, with set-up and tear-down, to it."""
        try:
            return (yield)
        finally:
            if nextitem is None or _row(nextitem) != _row(item):
                read, session = cpu_of_tree(), self._seconds[SESSION]
                self._seconds[_row(item)] += read - self._read - (session - self._session)
                self._read, self._session = read, session

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node) -> None:
        """Add the prices of a worker."""
        self._seconds.update(getattr(node, "workeroutput", {}).get("prices", {}))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Hand a worker's prices to the process that prints; fail there for a file too dear."""
        output = getattr(self._config, "workeroutput", None)
        if output is not None:
            output["prices"] = dict(self._seconds)
        elif self._too_dear() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter) -> None:
        """Print the dearest files."""
        terminalreporter.section(f"CPU seconds: {self._seconds.total():.0f}; the dearest files")
        for file, seconds in self._seconds.most_common(self._config.getoption("--prices")):
            terminalreporter.write_line(f"{seconds:8.1f}  {file}")
        for file in self._too_dear():
            terminalreporter.write_line(f"more than the limit of CPU seconds: {file}")

    def _too_dear(self) -> list[str]:
        limit = self._config.getoption("--price-limit") * slowness()
        files = [file for file in self._seconds if file != SESSION and not file.endswith(SLOW)]
        return sorted(file for file in files if self._seconds[file] > limit)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the price list."""
    parser.addoption(
        "--price-limit", type=float, default=math.inf, metavar="SECONDS", help="Fail above it."
    )
    parser.addoption("--prices", type=int, default=10, metavar="N", help="Print N files.")


def pytest_configure(config: pytest.Config) -> None:
    """Start counting."""
    config.pluginmanager.register(PriceList(config), "price-list")
