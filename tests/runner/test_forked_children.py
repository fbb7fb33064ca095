"""A forked child is as alone and as locked in as one that starts by itself."""

from contextlib import closing
from pathlib import Path

import pytest
from forked_children import SERVER
from runner_children import children, is_gone, wait_until
from runner_models import linear, rows, save

from service.runner.pool import RunnerPool
from service.runner.process import RunnerProcess


def what_it_has(start_child):
    """Start a child and return what the kernel says of it."""
    with closing(start_child()) as child:
        child.wait_ready(60)
        folder = Path(f"/proc/{child.pid}")
        session = (folder / "stat").read_text().rpartition(")")[2].split()[1:4]
        opened = [path.readlink().name.split(":")[0] for path in (folder / "fd").iterdir()]
        return {
            "parent, group and session": [
                "own" if number == str(child.pid) else number for number in session
            ],
            "open files": sorted(opened),
            "its folder is gone": (folder / "cwd").readlink().name.endswith("(deleted)"),
            "first to go": (folder / "oom_score_adj").read_text(),
            "threads": len(list((folder / "task").iterdir())),
            "a child of this process": child.pid in children(),
        }


def test_it_has_what_a_child_has_that_starts_by_itself():
    assert what_it_has(SERVER.start_child) == what_it_has(RunnerProcess.start)


@pytest.mark.parametrize("start_child", [SERVER.start_child, RunnerProcess.start])
def test_it_is_locked_in_before_it_reads_a_model(tmp_path, start_child):
    children_of_pool = []

    def remembered():
        children_of_pool.append(start_child())
        return children_of_pool[-1]

    with RunnerPool(device="cpu", threads=1, start_child=remembered) as pool:
        pool.inspect(save(tmp_path, linear()), top_k=(1,), trial={"x": rows(20)})
        status = Path(f"/proc/{children_of_pool[0].pid}/status").read_text().split("\n")
    assert {"NoNewPrivs:\t1", "Seccomp:\t2"} <= set(status)
    assert wait_until(lambda: all(is_gone(child.pid) for child in children_of_pool))
