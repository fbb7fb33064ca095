"""How a GPU is run: bound, within its time, one beside the other."""

import time
from pathlib import Path

import numpy as np
import pytest
from devices import usable
from runner_models import (
    check_head,
    endless_above,
    linear,
    memory_hungry,
    rows,
    save,
    session_on,
    weights,
)

from service.child.onnx.session import CUDA
from service.child.onnx.watchdog import Watchdog
from service.errors import DeadlineExceeded, InferenceFailed, InvalidDataset, InvalidInput
from service.runner.pool import RunnerPool
from service.runner.process import GRACE_SECONDS

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

TOP_K = (1, 5)
OVERCOMMIT = Path("/proc/sys/vm/overcommit_memory")


def test_an_endless_run_is_stopped_and_the_session_stays(device):
    watchdog = Watchdog()
    session, x = session_on(device, endless_above(1000.0), watchdog), rows(20)
    expected = x.astype(float) @ weights()
    for _ in range(2):
        begin = time.monotonic()
        with pytest.raises(DeadlineExceeded, match="1 s"), watchdog.request(60, 1.0):
            session.run(["y"], {"x": 2000 + x}, place="inputs")
        assert time.monotonic() - begin < 1 + GRACE_SECONDS
        with pytest.raises(InvalidInput, match="does not take these rows"):
            session.run(["y"], {"x": x[:, :2]}, place="inputs")
        with watchdog.request(60, 30):
            answer = session.run(["y"], {"x": x}, place="inputs")["y"]
        np.testing.assert_allclose(answer, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.skipif(
    not OVERCOMMIT.exists() or OVERCOMMIT.read_text().strip() == "1",
    reason="this machine promises memory that it does not have",
)
def test_a_model_that_wants_all_memory_is_told_so(pool, tmp_path):
    with pytest.raises((InvalidDataset, InferenceFailed), match="memory"):
        pool.inspect(save(tmp_path, memory_hungry()), top_k=TOP_K, trial={"x": rows(20)})


def test_a_pool_on_two_devices(gpu, tmp_path):
    x, devices = rows(300), "cuda:0,cuda:1"
    usable(devices)
    with RunnerPool(device=devices, max_processes=4) as pool:
        for seed in range(4):
            matrix = weights(seed=seed)
            files = save(tmp_path, linear(matrix), name=f"model_{seed}.onnx")
            loaded = pool.inspect(files, top_k=TOP_K, trial={"x": x})
            assert loaded.provider == CUDA
            outputs = pool.predict(files, loaded.resolved, {"x": x})
            check_head(outputs, x.astype(float) @ matrix, TOP_K)


def test_a_device_that_is_not_there_is_an_error(gpu):
    with RunnerPool(device=f"{gpu},cuda:99") as pool, pytest.raises(InferenceFailed, match="99"):
        pool.device()
