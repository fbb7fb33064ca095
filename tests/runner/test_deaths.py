"""Children that are killed, and what is left of children and pools."""

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from forked_children import SERVER
from runner_children import busiest, children, folders, is_gone, sockets_and_pipes, wait_until
from runner_models import check_head, endless_above, linear, rows, save, weights

from service.errors import OnnxModelCrashed, Overloaded
from service.runner.messages.frames import HEADER, Kind
from service.runner.pool import RunnerPool

pytestmark = pytest.mark.process

TOP_K = (1, 5)
X = rows(50)


class Doomed:
    """Starts children; at a moment it kills them, or stops them and tells that they are at work."""

    def __init__(self):
        self.processes = []
        self.moment = None
        self.number = signal.SIGKILL
        self.reached = threading.Event()

    def pids(self):
        return [process.pid for process in self.processes if not is_gone(process.pid)]

    def __call__(self):
        process = SERVER.start_child()
        self.processes.append(process)
        send = process._channel.send

        def send_and_signal(buffers, **options):
            kind = Kind(HEADER.unpack(bytes(buffers[0])[: HEADER.size])[1])
            is_the_moment = kind is self.moment
            if is_the_moment:
                self.moment = None
                os.kill(process.pid, signal.SIGSTOP)  # so that it does not answer first
            send(buffers, **options)
            if is_the_moment:
                os.kill(process.pid, self.number)
                self.reached.set()

        process._channel.send = send_and_signal
        return process


@pytest.fixture
def started():
    return Doomed()


@pytest.fixture
def pool(started):
    with RunnerPool(device="cpu", threads=1, start_child=started) as own:
        yield own


@pytest.fixture
def model(pool, tmp_path):
    files = save(tmp_path, linear())
    return files, pool.inspect(files, top_k=TOP_K, trial={"x": X}).resolved


@pytest.mark.parametrize("moment", [None, Kind.LOAD, Kind.PREDICT])
def test_a_child_killed_at_work_fails_one_request_and_an_idle_none(pool, started, model, moment):
    if moment is not Kind.PREDICT:
        assert wait_until(lambda: len(started.pids()) == 2)  # one has the model, one is spare
        pids = started.pids()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        assert wait_until(lambda: all(is_gone(pid) for pid in pids))
    if moment is not None:
        started.moment = moment
        with pytest.raises(OnnxModelCrashed, match="SIGKILL"):
            pool.predict(*model, {"x": X})
    check_head(pool.predict(*model, {"x": X}), X.astype(float) @ weights(), TOP_K)


def held():
    """Return what a pool may leave behind."""
    return {*children(), *sockets_and_pipes(), *threading.enumerate(), *folders()}


def test_nothing_is_left_of_a_closed_pool(tmp_path):
    files = save(tmp_path, linear())
    for _ in range(2):  # the first use also opens what stays
        before, doomed = held(), Doomed()
        with RunnerPool(device="cpu", threads=1, start_child=doomed) as pool:
            pool.inspect(files, top_k=TOP_K, trial={"x": X})
            os.kill(doomed.pids()[0], signal.SIGKILL)
            assert not held() <= before
    assert wait_until(lambda: held() <= before), held() - before


def test_closing_a_pool_fails_running_and_later_requests(pool, started, model):
    started.moment, started.number = Kind.PREDICT, signal.SIGSTOP
    with ThreadPoolExecutor(3) as threads:
        answers = [threads.submit(pool.predict, *model, {"x": X}) for _ in range(3)]
        assert started.reached.wait(60)
        pool.close()
    assert [type(answer.exception()) for answer in answers] == [Overloaded] * 3
    with pytest.raises(Overloaded):
        pool.predict(*model, {"x": X})
    pool.close()
    assert not started.pids()


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
pool.record(files, resolved, {"x": x}, np.zeros(4, dtype=int), seed=0)
threading.Thread(target=pool.predict, args=(files, resolved, {"x": x + 2000})).start()
unwanted = {"onnx", "onnxruntime", "google"}
print(sorted(unwanted & {name.split(".")[0] for name in sys.modules}), flush=True)
"""


def test_children_die_with_their_parent_which_imports_no_onnx(tmp_path):
    # One is in a run that never ends, and would not notice that its socket was closed.
    command = [sys.executable, "-c", PARENT, str(save(tmp_path, endless_above(1000.0)).path)]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as parent:
        try:
            assert parent.stdout.readline() == "[]\n"
            assert wait_until(lambda: len(children(parent.pid)) == 2)
            pids = children(parent.pid)
            busiest(parent.pid)
        finally:
            parent.kill()
    assert wait_until(lambda: all(is_gone(pid) for pid in pids))
    assert not folders(tmp_path)
