"""What a process has left behind: children, descriptors, folders."""

import os
import signal
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path

from forked_children import NAME, SERVER

MODULE = b"service.child"
COMPUTING_TICKS = 100


def children(parent=None):
    """Return the process ids of a process's runner children, zombies included.

    A process that is ending has no command line any more, before its files are closed.
    """
    parent = os.getpid() if parent is None else parent
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(folder.name) == SERVER.pid:
            continue
        is_runner = MODULE in command or NAME in command
        if int(fields[1]) == parent and (is_runner or not command):
            found.append(int(folder.name))
    return sorted(found)


@contextmanager
def stopped(*pids):
    """Hold processes for as long as the block runs."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


class StartedChildren:
    """Starts children for one pool or service, and tells which of them are there."""

    def __init__(self):
        self._pids = []

    def start_child(self):
        child = SERVER.start_child()
        self._pids.append(child.pid)
        return child

    def pids(self):
        return [pid for pid in self._pids if not is_gone(pid)]


def is_gone(pid):
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return True
    # While other threads of a killed process still run, its files are open.
    state, n_threads = fields[0], int(fields[17])
    return state == "Z" and n_threads <= 1


def sockets_and_pipes():
    """Return those that this process has open; none of them ever gets the name of another."""
    found = set()
    for path in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # the folder's own descriptor, or one that was closed meanwhile
            found.add(str(path.readlink()))
    return {name for name in found if name.startswith(("socket:", "pipe:"))}


def folders(below=None):
    """Return the folders of children below a temporary folder, by default this process's."""
    return sorted(Path(below or tempfile.gettempdir()).glob("howsure-runner-*"))


def wait_until(condition, *, seconds=60.0):
    """Wait for a condition; say whether it came true. The time is a guard against hanging."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def busiest(parent=None, *, ticks=COMPUTING_TICKS):
    """Wait until a child has computed for longer than one takes to start, and return it."""
    first = {}

    def computing():
        for pid in children(parent):
            used = processor_ticks(pid)
            if used - first.setdefault(pid, used) >= ticks:
                return pid
        return None

    assert wait_until(computing)
    return computing()


def processor_ticks(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])
