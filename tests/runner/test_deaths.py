import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from runner_children import busiest, children, descriptors, folders, is_gone, wait_until
from runner_models import check_head, endless_above, linear, rows, save, weights

from service.errors import OnnxModelCrashed, Overloaded
from service.runner import RunnerPool
from service.runner.spawner import FIRST_BACK_OFF_SECONDS, UNAVAILABLE

TOP_K = (1, 5)
X = rows(50)


@pytest.fixture
def others():
    """Children that tests before this one have left to this process."""
    return set(children())


@pytest.fixture
def pool(others):
    with RunnerPool(device="cpu", threads=1) as own:
        yield own


@pytest.fixture
def model(pool, tmp_path):
    files = save(tmp_path, linear())
    return files, pool.inspect(files, top_k=TOP_K, trial={"x": X}).resolved


def is_right(outputs):
    check_head(outputs, X.astype(float) @ weights(), TOP_K)
    return True


def test_children_killed_while_idle_cost_no_request(others, pool, model):
    def own():
        return set(children()) - others

    for _ in range(2):
        assert wait_until(lambda: len(own()) == 2)  # one has the model, one waits
        for pid in own():
            os.kill(pid, signal.SIGKILL)
        assert wait_until(lambda: not own())
        # The thread that reaps a child knows of its death a moment after the kernel does.
        time.sleep(0.2)
        assert is_right(pool.predict(*model, {"x": X}))


def test_a_child_killed_at_work_costs_one_request(pool, tmp_path):
    files = save(tmp_path, endless_above(1000.0))
    resolved = pool.inspect(files, top_k=TOP_K, trial={"x": X}).resolved
    errors = []

    def ask():
        try:
            pool.predict(files, resolved, {"x": X + 2000})
        except OnnxModelCrashed as error:
            errors.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    pid = busiest()
    os.kill(pid, signal.SIGKILL)
    asking.join(20)
    assert len(errors) == 1
    assert "SIGKILL" in errors[0].message
    assert is_right(pool.predict(files, resolved, {"x": X}))


class Asker(threading.Thread):
    """Asks until it is stopped, and counts what came back.

    Two children killed in a row while they start are refused for: the next waits for a while.
    """

    def __init__(self, pool, model):
        super().__init__()
        self.pool, self.model = pool, model
        self.stopping = threading.Event()
        self.right, self.crashed, self.wrong = 0, 0, []

    def run(self):
        while not self.stopping.is_set():
            try:
                self.right += is_right(self.pool.predict(*self.model, {"x": X}))
            except OnnxModelCrashed:
                self.crashed += 1
            except Overloaded as error:
                if error.message != UNAVAILABLE:
                    self.wrong.append(error)
                time.sleep(0.05)
            except BaseException as error:  # noqa: BLE001 - any other is the failure looked for
                self.wrong.append(error)


def test_children_killed_at_any_moment_cost_one_request_each(pool, model):
    askers = [Asker(pool, model) for _ in range(2)]
    for asker in askers:
        asker.start()
    generator = np.random.default_rng(0)
    kills = 0
    for _ in range(10):
        time.sleep(generator.uniform(0.0, 0.6))
        for pid in generator.permutation(children())[:1]:
            os.kill(pid, signal.SIGKILL)
            kills += 1
    for asker in askers:
        asker.stopping.set()
        asker.join(30)
    assert not [asker.wrong for asker in askers if asker.wrong]
    assert all(asker.right for asker in askers)
    assert sum(asker.crashed for asker in askers) <= kills
    time.sleep(4 * FIRST_BACK_OFF_SECONDS)
    assert is_right(pool.predict(*model, {"x": X}))


def test_nothing_is_left_of_a_closed_pool(tmp_path):
    before = (children(), descriptors(), threading.active_count())
    files = save(tmp_path, linear())
    with RunnerPool(threads=1) as own:
        resolved = own.inspect(files, top_k=TOP_K, trial={"x": X}).resolved
        own.predict(files, resolved, {"x": X})
        assert len(children()) > len(before[0])
        os.kill(children()[0], signal.SIGKILL)
    assert wait_until(lambda: (children(), descriptors(), threading.active_count()) == before)
    assert wait_until(lambda: not folders())


def test_a_pool_that_is_closed_ends_the_requests_under_way(tmp_path):
    own = RunnerPool(device="cpu", threads=1)
    files = save(tmp_path, endless_above(1000.0))
    resolved = own.inspect(files, top_k=TOP_K, trial={"x": X}).resolved
    errors = []

    def ask():
        try:
            own.predict(files, resolved, {"x": X + 2000})
        except Overloaded as error:
            errors.append(error)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    busiest()
    begin = time.monotonic()
    own.close()
    for thread in threads:
        thread.join(20)
    assert time.monotonic() - begin < 10
    assert [error.message for error in errors] == ["The service is shutting down."] * 3
    with pytest.raises(Overloaded):
        own.predict(files, resolved, {"x": X})
    with pytest.raises(Overloaded):
        own.inspect(files, top_k=TOP_K, trial={"x": X})
    own.close()
    assert not children()


PARENT = """
import sys, threading
from pathlib import Path
import numpy as np
from service.runner import OnnxModelFiles, RunnerPool

pool = RunnerPool(device="cpu", threads=1)
files = OnnxModelFiles(Path(sys.argv[1]))
x = np.eye(4, 6, dtype=np.float32)
resolved = pool.inspect(files, top_k=[1, 5], trial={"x": x}).resolved
threading.Thread(target=pool.predict, args=(files, resolved, {"x": x + 2000})).start()
print("asked", flush=True)
"""


def test_children_die_with_their_parent(tmp_path):
    # One is in a run that never ends, and would not notice that its socket was closed.
    files = save(tmp_path, endless_above(1000.0))
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(files.path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert parent.stdout.readline() == "asked\n"
        assert wait_until(lambda: len(children(parent.pid)) == 2)
        pids = children(parent.pid)
        busiest(parent.pid)
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()
    assert wait_until(lambda: all(is_gone(pid) for pid in pids))
    assert wait_until(lambda: not folders())
