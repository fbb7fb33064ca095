"""The pool of children for all threads: who gets which child, and how long anybody waits."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from runner_children import wait_until
from runner_models import (
    check_head,
    endless_above,
    linear,
    rows,
    save,
    slow_to_load,
    weights,
)

from howsure.bins_document.pass_plan import PassPlan
from service.errors import DeadlineExceeded, Overloaded
from service.runner.child_requests import ChildRequests
from service.runner.messages.onnx_models import OnnxModelFiles
from service.runner.pool import RunnerPool

pytestmark = pytest.mark.process

TOP_K = (1, 5)
X = rows(20)


@pytest.fixture
def own_pool(started, request):
    """A pool of the test's own, with the options of `pytest.mark.parametrize`."""
    options = getattr(request, "param", {})
    with RunnerPool(device="cpu", threads=1, start_child=started.start_child, **options) as pool:
        yield pool


def own_pool_with(**options):
    return pytest.mark.parametrize("own_pool", [options], indirect=True)


def load(pool, files, **options):
    return files, pool.inspect(files, top_k=TOP_K, trial={"x": X}, **options).resolved


def check_answers(pool, model, *, matrix=None, x=X):
    matrix = weights() if matrix is None else matrix
    check_head(pool.predict(*model, {"x": x}), x.astype(float) @ matrix, TOP_K)


@own_pool_with(max_processes=2)
def test_many_threads_get_their_own_answers_and_models_give_way(own_pool, started, tmp_path):
    matrices = [weights(10 + seed, seed=seed) for seed in range(4)]
    models = [
        load(own_pool, save(tmp_path, linear(matrix), name=f"{number}.onnx"))
        for number, matrix in enumerate(matrices)
    ]
    for which in (0, 3, 1, 0, 2):  # the least recently used gives way and comes back
        check_answers(own_pool, models[which], matrix=matrices[which])
    assert len(started.pids()) <= 2 + 1
    models[0][0].path.unlink()

    def ask(thread):
        for number in range(6):
            which, x = 2 + (thread + number) % 2, rows(1 + number, seed=100 * thread + number)
            check_answers(own_pool, models[which], matrix=matrices[which], x=x)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(ask, range(8)))
    models[2][0].path.unlink()  # nobody reads a loaded model again
    check_answers(own_pool, models[2], matrix=matrices[2])


def test_models_are_told_apart_by_digests_and_not_by_paths():
    a, b = Path("a"), Path("b")
    one = OnnxModelFiles(a, sha256="1").key({})
    assert OnnxModelFiles(b, sha256="1").key({}) == one
    weighted = [
        OnnxModelFiles(a, {"w": path}, "1", {"w": digest}).key({})
        for path, digest in [(a, "x"), (b, "x"), (a, "y")]
    ]
    assert weighted[0] == weighted[1]
    tenants = [OnnxModelFiles(a, sha256="1", tenant="another").key({}), *weighted[1:]]
    others = [OnnxModelFiles(a, sha256="2").key({}), OnnxModelFiles(a, sha256="1").key({"k": [1]})]
    plain = [OnnxModelFiles(path).key({}) for path in (a, b)]
    assert len({one, *tenants, *others, *plain}) == 8


@own_pool_with(max_processes=1, queue_timeout_s=0.3)
def test_waiting_for_a_busy_child_has_an_end(own_pool, tmp_path):
    model = load(own_pool, save(tmp_path, linear()))
    other = save(tmp_path, linear(), name="other.onnx")
    (process,) = [child.process for child in own_pool._loaded._unused]
    os.kill(process.pid, signal.SIGSTOP)
    busy = threading.Thread(target=own_pool.predict, args=(*model, {"x": X}))
    busy.start()
    assert wait_until(process._lock.locked)
    with pytest.raises(Overloaded, match="model is busy"):
        own_pool.predict(*model, {"x": X})
    with pytest.raises(Overloaded, match="Every process"):
        load(own_pool, other)
    os.kill(process.pid, signal.SIGCONT)
    busy.join()
    load(own_pool, other)


@own_pool_with(max_processes=1)
def test_callers_of_a_model_take_turns(own_pool, tmp_path):
    model, ended, answered = load(own_pool, save(tmp_path, linear())), threading.Event(), []

    def keep_asking():
        while not ended.is_set():
            answered.append(own_pool.predict(*model, {"x": X}))

    busy, waited = threading.Thread(target=keep_asking), []
    busy.start()
    for _ in range(50):
        before = len(answered)
        own_pool.predict(*model, {"x": X})
        waited.append(len(answered) - before)
    ended.set()
    busy.join()
    assert max(waited) <= 3, waited


@pytest.mark.parametrize(("n_bytes", "seconds"), [(0, 2), (64 * 1024**2, 6), (2**40, 60)])
def test_a_large_model_has_more_time_for_its_trial(tmp_path, n_bytes: int, seconds: float) -> None:
    requests = ChildRequests(
        load_timeout=60.0, trial_timeout=2.0, run_timeout=1.0, max_classes=10, threads=1
    )
    path = tmp_path / "m.onnx"
    with path.open("wb") as file:
        file.truncate(n_bytes)  # a sparse file
    message = requests.message(OnnxModelFiles(path), "cpu")
    assert requests.try_out(message, {}).timeout == pytest.approx(seconds, abs=1e-3)


ENDLESS = [({"trial_timeout_s": 1}, endless_above(-100.0)), ({"load_timeout_s": 1}, slow_to_load())]


@pytest.mark.parametrize(("own_pool", "model"), ENDLESS, indirect=["own_pool"])
def test_an_endless_trial_or_load_is_ended(own_pool, tmp_path, model):
    with pytest.raises(DeadlineExceeded, match="1 s"):
        load(own_pool, save(tmp_path, model))
    check_answers(own_pool, load(own_pool, save(tmp_path, linear(), name="good.onnx")))


@own_pool_with(run_timeout_s=0.5)
def test_an_endless_run_is_ended_and_its_child_goes_on(own_pool, started, tmp_path):
    files = save(tmp_path, endless_above(1000.0))
    model = load(own_pool, files)
    assert wait_until(lambda: len(started.pids()) == 2)  # its own, and a spare one
    before = started.pids()
    with pytest.raises(DeadlineExceeded, match=r"0\.5 s"):
        own_pool.predict(*model, {"x": 2000 + X})
    with pytest.raises(DeadlineExceeded, match=r"0\.5 s"):
        own_pool.record(*model, {"x": 2000 + X}, np.zeros(20, dtype=int), seed=0)
    check_answers(own_pool, model)
    assert started.pids() == before
    # One endless run of many has the time of one.
    plan = PassPlan("gradient_norm", passes=1000, seed=0, step=1e-3)
    many = load(own_pool, files, passes=(plan,))
    with pytest.raises(DeadlineExceeded, match=r"0\.5 s"):
        own_pool.predict(*many, {"x": 2000 + X})
