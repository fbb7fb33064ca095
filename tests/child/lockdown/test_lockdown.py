"""A child that looks at a model's bytes can read, reach and take no more than it needs."""

from contextlib import contextmanager
from dataclasses import replace

import locked_child
import pytest
from forked_children import SERVER
from runner_models import linear, memory_hungry, rows, save, weights
from scripted_child import start_program

from service.child.lockdown.landlock import landlock_version
from service.errors import InvalidDataset, InvalidOnnxModel, SandboxUnavailable
from service.runner.child_requests import ChildRequests, ask
from service.runner.messages.frames import Kind
from service.runner.messages.sandbox_rules import SandboxRules
from service.runner.pool import RunnerPool

pytestmark = pytest.mark.process

ALLOWED = SandboxRules(allow_unsandboxed=True)
ROWS = {"location": "inputs", "start": 0, "each_run": 30.0}
REQUESTS = ChildRequests(load_timeout=30.0, run_timeout=30.0, max_classes=100, threads=1)
REFUSED = {"Permission denied", "Operation not permitted"}
DONE = {"done"}
OTHERWISE = dict.fromkeys(
    [
        *("read a library", "open a file in memory", "start a thread", "signal itself"),
        *("read its own limits", "bind itself to processors", "have no capability"),
    ],
    DONE,
) | {
    "use clone3": {"Function not implemented"},
    "use a call younger than the list": {"Function not implemented"},
    "take all memory": {"Cannot allocate memory"},
    "make a large file": {"File too large"},
    "open many files": {"Too many open files"},
}
# These rules would be in the way of CUDA's driver.
OTHERWISE_WITH_CUDA = OTHERWISE | {
    "read a system's file": REFUSED,
    "read its own environment": DONE,
    "make a large file": DONE,
    "open many files": DONE,
}
FILES = ("read a system's file", "read a file beside", "read a file on another thread")
CALLS = ("open a socket", "fork", "run a program", "trace the parent", "signal the parent")


@contextmanager
def child(folder, how, *, start=SERVER.start_program, program="locked_child", **changes):
    """Yield a child with something worse than a model, and the request that has it loaded."""
    secret = folder / "secret"
    secret.write_text("hush")
    message = replace(REQUESTS.message(save(folder, linear()), "cpu"), top_k=(1,), **changes)
    process = start(program, secret, how)
    try:
        process.wait_ready(60)
        yield process, REQUESTS.try_out(message, {"x": rows(2)})
    finally:
        process.close()


def outcomes(process, request):
    """Return what became of all that was tried in the place of a model."""
    with pytest.raises(Exception, match="it was none"):
        ask(process, request)
    return process.call(Kind.PREDICT, ROWS, {}, timeout=30).fields


def check_locked(found, otherwise, secret):
    assert len(found) > 30
    assert {n: o for n, o in found.items() if o not in otherwise.get(n, REFUSED)} == {}
    assert secret.read_text() == "hush"


def test_a_model_can_reach_nothing_outside_its_process(tmp_path):
    """In a child that is started as the service starts its own."""
    with child(tmp_path, "cpu", start=start_program, program=locked_child.__file__) as asked:
        check_locked(outcomes(*asked), OTHERWISE, tmp_path / "secret")


# With the rules that older kernels know; rules have been added up to version 6.
HOW = [(str(version), OTHERWISE) for version in range(1, min(landlock_version(), 6) + 1)]


@pytest.mark.parametrize(("how", "otherwise"), [("cuda", OTHERWISE_WITH_CUDA), *HOW])
def test_neither_with_cuda_nor_on_older_kernels(tmp_path, how, otherwise):
    with child(tmp_path, how) as asked:
        check_locked(outcomes(*asked), otherwise, tmp_path / "secret")


@pytest.mark.parametrize(("name", "left"), [("Landlock", FILES), ("seccomp", CALLS)])
def test_a_kernel_that_lacks_a_part_of_the_sandbox(tmp_path, name, left):
    with child(tmp_path, f"without {name}") as (process, request):
        with pytest.raises(SandboxUnavailable, match=f"{name}.*HOWSURE_ALLOW_UNSANDBOXED"):
            ask(process, request)
        assert process.call(Kind.PREDICT, ROWS, {}, timeout=30).fields == {}
    with child(tmp_path, f"without {name}", sandbox=ALLOWED) as asked:
        found = outcomes(*asked)
    remaining = {*FILES, *CALLS} - {*left}
    assert {name: found[name] for name in remaining if found[name] not in REFUSED} == {}
    assert found[left[0]] == "done"


def test_a_model_that_takes_more_memory_than_it_may_is_refused(tmp_path):
    rules = SandboxRules(memory_bytes=2**28)
    options = {"top_k": (1,), "trial": {"x": rows(4)}}
    with RunnerPool(device="cpu", threads=1, sandbox=rules, start_child=SERVER.start_child) as pool:
        inspected = pool.inspect(save(tmp_path, memory_hungry(2**12)), **options)
        assert inspected.n_classes == weights().shape[1]
        large = save(tmp_path, memory_hungry(2**30), name="large.onnx")
        with pytest.raises((InvalidOnnxModel, InvalidDataset), match="memory"):
            pool.inspect(large, **options)
