"""A child that looks at a model's bytes can read, reach and take no more than it needs."""

from contextlib import contextmanager
from dataclasses import replace

import locked_child
import pytest
from runner_models import linear, memory_hungry, rows, save, weights
from scripted_child import start_program

from service.child.lockdown.landlock import landlock_version
from service.errors import InvalidDataset, InvalidOnnxModel, SandboxUnavailable
from service.runner.child_requests import ChildRequests, ask
from service.runner.messages.frames import Kind
from service.runner.messages.sandbox_rules import SandboxRules
from service.runner.pool import RunnerPool

ALLOWED = SandboxRules(allow_unsandboxed=True)
ROWS = {"location": "inputs", "start": 0, "each_run": 30.0}
QUESTIONS = ChildRequests(load_timeout=30.0, run_timeout=30.0, max_classes=100, threads=1)
REFUSED = {"Permission denied", "Operation not permitted"}
ABSENT = {"Function not implemented"}
DONE = {"done"}
OTHERWISE = {
    "read a library": DONE,
    "open a file in memory": DONE,
    "start a thread": DONE,
    "signal itself": DONE,
    "read its own limits": DONE,
    "bind itself to processors": DONE,
    "have no capability": DONE,
    "have a limit of threads": DONE,
    "use clone3": ABSENT,
    "use a call younger than the list": ABSENT,
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
def child(folder, how):
    """Yield a child with something worse than a model, and the question that has it loaded."""
    secret = folder / "secret"
    secret.write_text("hush")
    message = replace(QUESTIONS.message(save(folder, linear()), "cpu"), top_k=(1,))
    question = QUESTIONS.try_out(message, {"x": rows(2)})
    process = start_program(locked_child.__file__, secret, how)
    try:
        process.wait_ready(60)
        yield process, question
    finally:
        process.close()


def tried(process, question):
    """Return what became of all that was tried in the place of a model."""
    with pytest.raises(Exception, match="it was none"):
        ask(process, question)
    return process.call(Kind.PREDICT, ROWS, {}, timeout=30).fields


# With the rules that older kernels know; rules have been added up to version 6.
HOW = [(str(version), OTHERWISE) for version in range(1, min(landlock_version(), 6) + 1)]


@pytest.mark.parametrize(
    ("how", "otherwise"), [("cpu", OTHERWISE), ("cuda", OTHERWISE_WITH_CUDA), *HOW]
)
def test_a_model_can_reach_nothing_outside_its_process(tmp_path, how, otherwise):
    with child(tmp_path, how) as (process, question):
        found = tried(process, question)
    assert len(found) > 30
    unexpected = {
        name: outcome
        for name, outcome in found.items()
        if outcome not in otherwise.get(name, REFUSED)
    }
    assert unexpected == {}
    assert (tmp_path / "secret").read_text() == "hush"


@pytest.mark.parametrize("name", ["Landlock", "seccomp"])
def test_a_model_is_refused_if_the_kernel_lacks_a_part_of_the_sandbox(tmp_path, name):
    with child(tmp_path, f"without {name}") as (process, question):
        with pytest.raises(SandboxUnavailable, match=f"lacks {name}.*HOWSURE_ALLOW_UNSANDBOXED"):
            ask(process, question)
        assert process.call(Kind.PREDICT, ROWS, {}, timeout=30).fields == {}


@pytest.mark.parametrize(("name", "left"), [("Landlock", FILES), ("seccomp", CALLS)])
def test_allow_unsandboxed_runs_models_with_the_remaining_rules(tmp_path, name, left):
    with child(tmp_path, f"without {name}") as (process, question):
        message = replace(question.message, sandbox=ALLOWED)
        found = tried(process, replace(question, message=message))
    still = {*FILES, *CALLS} - {*left}
    assert {name: found[name] for name in still if found[name] not in REFUSED} == {}
    assert found[left[0]] == "done"


def test_a_model_that_takes_more_memory_than_it_may_is_refused(tmp_path):
    rules = SandboxRules(memory_bytes=2**28)
    with RunnerPool(device="cpu", threads=1, sandbox=rules) as pool:
        found = pool.inspect(save(tmp_path, memory_hungry(2**12)), top_k=(1,), trial={"x": rows(4)})
        assert found.n_classes == weights().shape[1]
        large = save(tmp_path, memory_hungry(2**30), name="large.onnx")
        with pytest.raises((InvalidOnnxModel, InvalidDataset), match="memory"):
            pool.inspect(large, top_k=(1,), trial={"x": rows(4)})
