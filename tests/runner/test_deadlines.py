from pathlib import Path

import numpy as np
import pytest
from runner_children import StartedChildren, wait_until
from runner_models import (
    check_head,
    endless_above,
    linear,
    memory_hungry,
    rows,
    save,
    slow_to_load,
    weights,
)

from service.errors import DeadlineExceeded, InvalidDataset, InvalidInput
from service.runner.messages.passes import PassPlan
from service.runner.pool import RunnerPool

OVERCOMMIT = Path("/proc/sys/vm/overcommit_memory")
TOP_K = (1, 5)


@pytest.fixture
def started():
    return StartedChildren()


@pytest.fixture
def hasty(started):
    with RunnerPool(
        device="cpu",
        threads=1,
        load_timeout_s=2,
        run_timeout_s=1,
        start_child=started.start_child,
    ) as pool:
        yield pool


def test_an_endless_trial_is_stopped_and_the_pool_goes_on(hasty, tmp_path):
    x = rows(20)
    with pytest.raises(DeadlineExceeded, match="2 s"):
        hasty.inspect(save(tmp_path, endless_above(-100.0)), top_k=TOP_K, trial={"x": x})
    files = save(tmp_path, linear(), name="good.onnx")
    resolved = hasty.inspect(files, top_k=TOP_K, trial={"x": x}).resolved
    check_head(hasty.predict(files, resolved, {"x": x}), x.astype(float) @ weights(), TOP_K)


def test_an_endless_run_is_stopped_and_the_session_stays(hasty, started, tmp_path):
    x = rows(20)
    files = save(tmp_path, endless_above(1000.0))
    resolved = hasty.inspect(files, top_k=TOP_K, trial={"x": x}).resolved
    hasty.prepare()
    assert wait_until(lambda: len(started.pids()) == 2)  # its own, and a spare one
    before = started.pids()
    for _ in range(2):
        with pytest.raises(DeadlineExceeded, match="1 s"):
            hasty.predict(files, resolved, {"x": 2000 + x})
        with pytest.raises(DeadlineExceeded, match="1 s"):
            hasty.record(files, resolved, {"x": 2000 + x}, np.zeros(20, dtype=int), seed=0)
        check_head(hasty.predict(files, resolved, {"x": x}), x.astype(float) @ weights(), TOP_K)
    assert started.pids() == before


def test_one_endless_run_of_many_has_the_time_of_one(hasty, tmp_path):
    x = rows(20)
    files = save(tmp_path, endless_above(1000.0))
    plan = PassPlan("gradient_norm", passes=1000, seed=0, step=1e-3)
    resolved = hasty.inspect(files, top_k=TOP_K, passes=(plan,), trial={"x": x}).resolved
    with pytest.raises(DeadlineExceeded, match="1 s"):
        hasty.predict(files, resolved, {"x": 2000 + x})
    assert len(hasty.predict(files, resolved, {"x": x}).top_classes) == 20


def test_an_endless_load_is_killed_and_the_pool_goes_on(hasty, tmp_path):
    x = rows(20)
    with pytest.raises(DeadlineExceeded, match="2 s"):
        hasty.inspect(save(tmp_path, slow_to_load()), top_k=TOP_K, trial={"x": x})
    files = save(tmp_path, linear(), name="good.onnx")
    resolved = hasty.inspect(files, top_k=TOP_K, trial={"x": x}).resolved
    check_head(hasty.predict(files, resolved, {"x": x}), x.astype(float) @ weights(), TOP_K)


@pytest.mark.skipif(
    not OVERCOMMIT.exists() or OVERCOMMIT.read_text().strip() == "1",
    reason="this machine promises memory that it does not have",
)
def test_a_model_that_wants_all_memory_is_told_so(hasty, tmp_path):
    with pytest.raises(InvalidDataset, match="memory"):
        hasty.inspect(save(tmp_path, memory_hungry()), top_k=TOP_K, trial={"x": rows(20)})
    files = save(tmp_path, linear(), name="good.onnx")
    resolved = hasty.inspect(files, top_k=TOP_K, trial={"x": rows(20)}).resolved
    with pytest.raises(InvalidInput):
        hasty.predict(files, resolved, {"x": rows(20)[:, :2]})
    assert len(hasty.predict(files, resolved, {"x": rows(20)}).top_classes) == 20
