"""Functions in a process of their own, and their memory."""

import os
import resource
import subprocess
import sys
import traceback
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from service.runner.launch import environment


def run_apart(script: str, *arguments: object, folder: Path) -> str:
    """Return what ``python -c SCRIPT ARGUMENTS`` prints; its temporary folder is ``folder``.

    Libraries have the settings that they have in children of the runner.
    """
    found = os.environ | environment()
    found["PYTHONPATH"] += os.pathsep + str(Path(__file__).parent)
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        env=found | {"TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout


@contextmanager
def file_size_limit(n_bytes: int, pid: int = 0) -> Iterator[None]:
    """Refuse writes beyond a size, to any file of a process, as on a full disk; 0 is this one."""
    soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))


def peak_of(work: Callable[[], object]) -> int:
    """Return the most bytes that Python holds while ``work`` runs in a fork of this process."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # Other threads do not come along, which is what the fork is for.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        status = 1
        try:
            tracemalloc.start()
            work()
            os.write(writing, str(tracemalloc.get_traced_memory()[1]).encode())
            status = 0
        except BaseException:  # noqa: BLE001 - nothing of the tests may go on in this process
            traceback.print_exc(file=sys.__stderr__)
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as told:
        peak = told.read()
    _, status = os.waitpid(pid, 0)
    assert status == 0, "the work failed; its traceback stands in the standard error"
    return int(peak)


READ = """
import sys
sys.modules["pandas"] = None  # as in a child of the service
import pyarrow.parquet  # not counted
from pathlib import Path
from service.runner.messages.limits import DatasetLimits
from service.runner.messages.reading import Reading
from service.child.reading.open_set import open_dataset
from howsure.preprocessing import Preprocessing

path, size, *crop = sys.argv[1:]
reading = Reading(preprocessing=Preprocessing(crop=tuple(map(int, crop)) or None))

def peak():  # of this process alone: that of `resource` begins with its parent's
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])

before = peak()
with open_dataset(
    Path(path), location="x", limits=DatasetLimits(), reading=reading
) as dataset:
    n_read = sum(len(batch.labels) for batch in dataset.batches(int(size)))
print(n_read, (peak() - before) // 1024)
"""


def read_apart(path: Path, size: int = 64, crop: tuple[int, ...] = ()) -> tuple[int, int]:
    """Read a set of pictures in a process of its own.

    Returns the number of pictures, and by how many MiB the process grew.
    """
    n_read, grown = run_apart(READ, path, size, *crop, folder=path.parent).split()
    return int(n_read), int(grown)
