import os
import signal
import subprocess
import sys
import threading
from functools import partial
from itertools import chain

import pytest
from own_process import run_apart
from runner_children import busiest, children, folders, is_gone, wait_until
from runner_models import check_head, endless_above, linear, rows, save, weights

from service.errors import OnnxModelCrashed, Overloaded
from service.runner.messages.frames import HEADER, Kind
from service.runner.pool import RunnerPool
from service.runner.process import RunnerProcess

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
    asking.join()
    assert len(errors) == 1
    assert "SIGKILL" in errors[0].message
    assert is_right(pool.predict(files, resolved, {"x": X}))


def start_doomed(moment):
    """Start a child that is killed when it has started, or when a kind of request was sent."""
    process = RunnerProcess.start()
    if moment is None:
        os.kill(process.pid, signal.SIGKILL)
        return process
    send = process._channel.send

    def send_and_kill(buffers, **options):
        is_the_moment = HEADER.unpack(bytes(buffers[0])[: HEADER.size])[1] == moment
        if is_the_moment:
            os.kill(process.pid, signal.SIGSTOP)  # so that it answers nothing any more
        send(buffers, **options)
        if is_the_moment:
            os.kill(process.pid, signal.SIGKILL)

    process._channel.send = send_and_kill
    return process


@pytest.mark.parametrize(("moment", "n_crashed"), [(None, 0), (Kind.LOAD, 1), (Kind.PREDICT, 1)])
def test_a_child_killed_at_any_moment_costs_one_request_at_most(model, moment, n_crashed):
    with RunnerPool(device="cpu", threads=1) as own:
        processes = chain([start_doomed(moment)], iter(RunnerProcess.start, None))
        own._spawner._start = partial(next, processes)
        for _ in range(n_crashed):
            with pytest.raises(OnnxModelCrashed, match="SIGKILL"):
                own.predict(*model, {"x": X})
        for _ in range(3):
            assert is_right(own.predict(*model, {"x": X}))


NOTHING_LEFT = """
import os, signal, sys, threading
from pathlib import Path
from runner_children import children, descriptors, folders, wait_until
from runner_models import rows
from service.runner.messages.onnx_models import OnnxModelFiles
from service.runner.pool import RunnerPool

def held():
    return children(), descriptors(), threading.active_count(), folders()

files = OnnxModelFiles(Path(sys.argv[1]))
for _ in range(2):  # the first use also opens what stays
    before = held()
    with RunnerPool(device="cpu", threads=1) as pool:
        resolved = pool.inspect(files, top_k=(1, 5), trial={"x": rows(50)}).resolved
        pool.predict(files, resolved, {"x": rows(50)})
        assert children()
        os.kill(children()[0], signal.SIGKILL)
assert wait_until(lambda: held() == before), (before, held())
"""


def test_nothing_is_left_of_a_closed_pool(tmp_path):
    run_apart(NOTHING_LEFT, save(tmp_path, linear()).path, folder=tmp_path)


def test_a_pool_that_is_closed_ends_the_requests_under_way(tmp_path):
    others = set(children())
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
    own.close()
    for thread in threads:
        thread.join()
    assert [error.message for error in errors] == ["The service is shutting down."] * 3
    with pytest.raises(Overloaded):
        own.predict(files, resolved, {"x": X})
    with pytest.raises(Overloaded):
        own.inspect(files, top_k=TOP_K, trial={"x": X})
    own.close()
    assert not set(children()) - others


PARENT = """
import sys, threading
from pathlib import Path
import numpy as np
from service.runner.messages.onnx_models import OnnxModelFiles
from service.runner.pool import RunnerPool

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
        [sys.executable, "-c", PARENT, str(files.path)],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
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
    assert not folders(tmp_path)
