import os
import signal
import subprocess
import sys

import pytest

from service.storage.database import open_database
from service.storage.file_locks import OwnerLock

HOLD = """
import sys, time
from pathlib import Path
from service.storage.file_locks import OwnerLock
print(OwnerLock(Path(sys.argv[1])).try_acquire() and "owner", flush=True)
{rest}
"""


def start(path, rest="time.sleep(60)"):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD.format(rest=rest), str(path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline().strip() == "owner"
    return process


def stop(process):
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()


def test_one_owner_at_a_time(tmp_path):
    first, second = OwnerLock(tmp_path / "lock"), OwnerLock(tmp_path / "lock")
    assert first.try_acquire()
    assert first.try_acquire()
    assert not second.try_acquire()
    first.release()
    assert second.try_acquire()
    first.release()
    assert not first.try_acquire()
    second.release()


def test_another_process_is_kept_out_until_the_owner_is_dead(tmp_path):
    owner = start(tmp_path / "lock")
    lock = OwnerLock(tmp_path / "lock")
    assert not lock.try_acquire()
    stop(owner)
    assert lock.try_acquire()
    lock.release()


def test_a_child_that_outlives_the_owner_does_not_own(tmp_path):
    rest = (
        "import subprocess\n"
        "child = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE,"
        " stdout=subprocess.DEVNULL, close_fds=False)\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)"
    )
    owner = start(tmp_path / "lock", rest)
    child = int(owner.stdout.readline())
    stop(owner)
    lock = OwnerLock(tmp_path / "lock")
    try:
        assert lock.try_acquire()
        lock.release()
    finally:
        os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_sqlite_has_one_owner_and_postgresql_many(tmp_path, kind):
    url = "postgresql+psycopg://nobody@127.0.0.1:1/none"
    if kind == "sqlite":
        url = f"sqlite:///{tmp_path / 'howsure.sqlite3'}"
    database = open_database(url)
    lock = OwnerLock.beside(database)
    if kind == "postgresql":
        assert lock is None
    else:
        assert lock.try_acquire()
        assert (tmp_path / "howsure.sqlite3.owner").exists()
        lock.release()
    database.dispose()
