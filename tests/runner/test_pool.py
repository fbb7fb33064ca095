import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from forked_children import SERVER
from runner_children import StartedChildren, wait_until
from runner_models import (
    check_head,
    linear,
    rows,
    save,
    weights,
    with_external_weights,
)

from service.errors import Overloaded
from service.runner.messages.onnx_models import OnnxModelFiles
from service.runner.pool import RunnerPool

TOP_K = (1, 5)


def models(tmp_path, seeds):
    return [
        save(tmp_path, linear(weights(10 + seed, seed=seed)), name=f"{seed}.onnx") for seed in seeds
    ]


def test_many_threads_on_two_models_get_their_own_answers(tmp_path):
    with RunnerPool(
        device="cpu", threads=1, max_processes=2, start_child=SERVER.start_child
    ) as pool:
        files = models(tmp_path, (0, 1))
        resolved = [
            pool.inspect(file, top_k=TOP_K, trial={"x": rows(20)}).resolved for file in files
        ]

        def ask(thread):
            for number in range(25):
                which = (thread + number) % 2
                x = rows(1 + number, seed=100 * thread + number)
                outputs = pool.predict(files[which], resolved[which], {"x": x})
                logits = x.astype(float) @ weights(10 + which, seed=which)
                check_head(outputs, logits, TOP_K)
            return thread

        with ThreadPoolExecutor(8) as executor:
            assert list(executor.map(ask, range(8))) == list(range(8))


def test_the_model_longest_unused_gives_way_and_comes_back(tmp_path):
    started = StartedChildren()
    with RunnerPool(
        device="cpu", threads=1, max_processes=2, start_child=started.start_child
    ) as pool:
        files = models(tmp_path, range(4))
        resolved = [
            pool.inspect(file, top_k=TOP_K, trial={"x": rows(20)}).resolved for file in files
        ]
        for which in (0, 3, 1, 0, 2):
            x = rows(30, seed=which)
            outputs = pool.predict(files[which], resolved[which], {"x": x})
            check_head(outputs, x.astype(float) @ weights(10 + which, seed=which), TOP_K)
        assert len(started.pids()) <= 2 + 1


def test_a_model_stays_loaded_between_requests(tmp_path):
    with RunnerPool(device="cpu", threads=1, start_child=SERVER.start_child) as pool:
        files = save(tmp_path, linear())
        resolved = pool.inspect(files, top_k=TOP_K, trial={"x": rows(20)}).resolved
        pool.predict(files, resolved, {"x": rows(1)})
        files.path.unlink()  # nobody reads it again
        pool.predict(files, resolved, {"x": rows(1)})
        pool.record(files, resolved, {"x": rows(1)}, np.zeros(1, dtype=int), seed=0)


def test_a_stored_choice_serves_in_another_pool(tmp_path):
    files = save(tmp_path, linear())
    with RunnerPool(device="cpu", threads=1, start_child=SERVER.start_child) as pool:
        resolved = pool.inspect(files, top_k=TOP_K, trial={"x": rows(20)}).resolved
    with RunnerPool(device="cpu", threads=1, start_child=SERVER.start_child) as pool:
        outputs = pool.predict(files, json.loads(json.dumps(resolved)), {"x": rows(20)})
        check_head(outputs, rows(20).astype(float) @ weights(), TOP_K)


def test_the_same_file_with_other_companions_is_another_model(tmp_path):
    folders = [tmp_path / "a", tmp_path / "b"]
    found = []
    with RunnerPool(device="cpu", threads=1, start_child=SERVER.start_child) as pool:
        for seed, folder in enumerate(folders):
            folder.mkdir()
            given = with_external_weights(folder, weights(100, seed=seed))
            files = OnnxModelFiles(given.path, given.companions, sha256="the same")
            resolved = pool.inspect(files, top_k=TOP_K, trial={"x": rows(20)}).resolved
            found.append((files, resolved))
        for seed, model in enumerate(found):
            outputs = pool.predict(*model, {"x": rows(20)})
            check_head(outputs, rows(20).astype(float) @ weights(100, seed=seed), TOP_K)


def test_digests_not_paths_tell_models_apart():
    a, b = Path("a"), Path("b")
    one = OnnxModelFiles(a, sha256="1").key({})
    assert OnnxModelFiles(b, sha256="1").key({}) == one
    assert OnnxModelFiles(a, sha256="2").key({}) != one
    assert OnnxModelFiles(a, sha256="1", tenant="another").key({}) != one
    assert OnnxModelFiles(a, sha256="1").key({"top_k": [1]}) != one
    assert OnnxModelFiles(a).key({}) != OnnxModelFiles(b).key({})
    weighted = [
        OnnxModelFiles(a, {"w": path}, "1", {"w": digest}).key({})
        for path, digest in [(a, "x"), (b, "x"), (a, "y")]
    ]
    assert weighted[0] == weighted[1] != weighted[2]


def test_waiting_for_a_busy_child_has_an_end(tmp_path):
    with RunnerPool(
        device="cpu",
        threads=1,
        max_processes=1,
        queue_timeout_s=0.3,
        start_child=SERVER.start_child,
    ) as pool:
        files = save(tmp_path, linear())
        other = save(tmp_path, linear(), name="other.onnx")
        resolved = pool.inspect(files, top_k=TOP_K, trial={"x": rows(5)}).resolved
        (process,) = [slot.process for slot in pool._loaded._slots.values()]
        os.kill(process.pid, signal.SIGSTOP)
        busy = threading.Thread(target=pool.predict, args=(files, resolved, {"x": rows(5)}))
        busy.start()
        assert wait_until(process._lock.locked)
        with pytest.raises(Overloaded, match="model is busy"):
            pool.predict(files, resolved, {"x": rows(5)})
        with pytest.raises(Overloaded, match="Every process"):
            pool.inspect(other, top_k=TOP_K, trial={"x": rows(5)})
        os.kill(process.pid, signal.SIGCONT)
        busy.join()
        assert pool.inspect(other, top_k=TOP_K, trial={"x": rows(5)}).n_classes == 10


WITHOUT_ONNX = """
import sys
from pathlib import Path
import numpy as np
from service.runner.messages.onnx_models import OnnxModelFiles
from service.runner.pool import RunnerPool

with RunnerPool(device=sys.argv[2], threads=1) as pool:
    files = OnnxModelFiles(Path(sys.argv[1]))
    x = np.ones((4, 6), dtype=np.float32)
    resolved = pool.inspect(files, top_k=[1, 5], trial={"x": x}).resolved
    pool.predict(files, resolved, {"x": x})
    pool.record(files, resolved, {"x": x}, np.zeros(4, dtype=int), seed=0)
unwanted = ("onnx", "onnxruntime", "google")
print(sorted(name for name in sys.modules if name.split(".")[0] in unwanted) or "none")
"""


def test_the_parent_imports_no_onnx(tmp_path):
    command = [sys.executable, "-c", WITHOUT_ONNX, str(save(tmp_path, linear()).path), "auto"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "none\n"
    assert done.stderr == ""
