import subprocess
import sys
import threading

import pytest

from service.runner.spawner import LongLivedThread

AFTER_MAIN = """
import threading, time
from service.runner.spawner import LongLivedThread

thread = LongLivedThread("t")
thread.submit(int).result()

def later():
    time.sleep(0.3)
    print(thread.submit(lambda: "alive").result(), flush=True)

threading.Thread(target=later).start()
"""


def test_all_runs_on_one_thread_in_order():
    thread = LongLivedThread("t")
    futures = [thread.submit(threading.get_ident) for _ in range(5)]
    found = {future.result() for future in futures}
    assert len(found) == 1
    assert threading.get_ident() not in found
    thread.close()


def test_errors_are_those_of_the_caller():
    thread = LongLivedThread("t")
    with pytest.raises(ZeroDivisionError):
        thread.submit(lambda: 1 / 0).result()
    assert thread.submit(lambda: 2).result() == 2
    thread.close()


def test_a_closed_thread_cancels():
    for used in (True, False):
        thread = LongLivedThread("t")
        if used:
            assert thread.submit(lambda: 1).result() == 1
        thread.close()
        thread.close()
        assert thread.submit(lambda: 1).cancelled()


def test_it_outlives_the_main_thread():
    done = subprocess.run(
        [sys.executable, "-c", AFTER_MAIN], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "alive\n"
