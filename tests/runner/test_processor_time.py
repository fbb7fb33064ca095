import resource
import signal
import subprocess
import sys
import time

import pytest
from runner_children import children
from runner_models import linear, rows, save

from service.runner.pool import RunnerPool
from service.runner.process import CpuTimeLimit

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel must be Linux")
SPIN = "while True: pass"


@pytest.fixture
def spinning():
    with subprocess.Popen([sys.executable, "-c", SPIN]) as process:
        yield process
        process.kill()


def limit(pid):
    return resource.prlimit(pid, resource.RLIMIT_CPU)[0]


def test_a_process_that_nobody_asks_any_more_is_ended_by_the_kernel(spinning):
    CpuTimeLimit(spinning.pid, renewed_seconds=0).extend(0.1)
    assert spinning.wait(60) == -signal.SIGXCPU


def test_what_is_allowed_comes_on_top_of_what_was_used(spinning):
    while time.clock_gettime((~spinning.pid << 3) | 2) < 1.2:
        time.sleep(0.05)
    CpuTimeLimit(spinning.pid, renewed_seconds=0).extend(3600)
    assert limit(spinning.pid) >= 1.2 + 3600


def test_questions_in_a_row_ask_the_kernel_once(spinning):
    time_of_child = CpuTimeLimit(spinning.pid, renewed_seconds=1000)
    time_of_child.extend(10)
    first = limit(spinning.pid)
    assert first != resource.RLIM_INFINITY
    resource.prlimit(spinning.pid, resource.RLIMIT_CPU, (first + 5, resource.RLIM_INFINITY))
    time_of_child.extend(10)
    assert limit(spinning.pid) == first + 5
    time_of_child.extend(2000)
    assert limit(spinning.pid) >= first + 5


def test_a_process_that_is_gone_is_left_alone(spinning):
    spinning.kill()
    spinning.wait()
    CpuTimeLimit(spinning.pid).extend(10)


def test_whoever_runs_a_model_is_limited(tmp_path):
    files = save(tmp_path, linear())
    with RunnerPool(device="cpu", threads=1, load_timeout_s=20, run_timeout_s=10) as pool:
        before = set(children())
        pool.inspect(files, top_k=(1,), trial={"x": rows(20)})
        limits = [limit(pid) for pid in set(children()) | before]
    assert any(found != resource.RLIM_INFINITY for found in limits)
