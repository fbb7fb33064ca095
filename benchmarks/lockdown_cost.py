"""Measure what the sandbox adds to a prediction: CPU time of a locked and an unlocked child.

    python benchmarks/lockdown_cost.py [--repeats 40] [--batches 500]

Two children run the same small perceptron; one skips the lock. They get blocks of batches in turns,
over their sockets as in the service, and the CPU time of each child is read from its clock. Prints
microseconds per row, and the ratio of two blocks of the same repeat.
"""

import argparse
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from service.child import serve
from service.runner.child_requests import ChildRequests
from service.runner.launch import environment
from service.runner.messages.channel import Channel
from service.runner.messages.convert import to_fields
from service.runner.messages.frames import Frame, Kind, Status, encode
from service.runner.messages.onnx_models import OnnxModelFiles
from service.runner.messages.predict_batches import Batch, SentBodies, encode_batch
from service.runner.pool import RunnerPool

FEATURES, HIDDEN, CLASSES = 64, 256, 10
ROWS = (1, 32)
WARMING_BATCHES = 500


@dataclass
class Child:
    """A child with the model loaded."""

    channel: Channel
    process: subprocess.Popen[bytes]
    sequence: int = 1

    def ask(self, rows: np.ndarray, times: int) -> float:
        """Send these rows repeatedly; return the child's CPU seconds."""
        head = {"name": "x", "shape": list(rows.shape), "datatype": "FP32"}
        head["parameters"] = {"binary_data_size": rows.nbytes}
        text = json.dumps({"inputs": [head]}).encode()
        body = text + rows.tobytes()
        clock = (~self.process.pid << 3) | 2  # what clock_getcpuclockid returns
        began = time.clock_gettime(clock)
        for _ in range(times):
            self.sequence += 1
            sent = SentBodies(self.sequence, "oip", len(body), "demo", header_length=str(len(text)))
            batch = Batch([sent], [], max_rows=128, max_bytes=2**22, run_rows=128, each_run=60.0)
            frame = encode_batch(batch, [body], sequence=self.sequence, budget_ms=60_000)
            self.channel.send(frame)
            header, fields, _ = self.channel.receive_unread()
            if header.status is not Status.OK:
                raise SystemExit(bytes(fields).decode())
        return time.clock_gettime(clock) - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--batches", type=int, default=500)
    parser.add_argument("--child", nargs=2, metavar=("FD", "HOW"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(int(given.child[0]), given.child[1])
        return
    with tempfile.TemporaryDirectory() as folder:
        question = loading(Path(folder))
        children = {how: start(how, question) for how in ("open", "locked")}
        try:
            print("| rows | open, µs a row | locked, µs a row | locked / open |\n|---|---|---|---|")
            for n_rows in ROWS:
                print_row(children, n_rows, given.repeats, given.batches)
        finally:
            for one in children.values():
                one.process.kill()
                one.process.wait()


def print_row(children: dict[str, Child], n_rows: int, repeats: int, batches: int) -> None:
    rows = np.random.default_rng(1).normal(size=(n_rows, FEATURES)).astype(np.float32)
    for one in children.values():
        one.ask(rows, WARMING_BATCHES)
    found: dict[str, list[float]] = {how: [] for how in children}
    for repeat in range(repeats):
        for how in list(children) if repeat % 2 else reversed(children):
            found[how].append(children[how].ask(rows, batches) * 1e6 / batches / n_rows)
    ratios = [b / a for a, b in zip(found["open"], found["locked"], strict=True)]
    low, _, high = statistics.quantiles(ratios, n=4)
    print(
        f"| {n_rows} | {statistics.median(found['open']):.2f} "
        f"| {statistics.median(found['locked']):.2f} "
        f"| {statistics.median(ratios):.3f} (quartiles {low:.3f} and {high:.3f}) |"
    )


def loading(folder: Path) -> dict[str, Any]:
    """Return the command that loads the model as the service does."""
    path = folder / "model.onnx"
    path.write_bytes(perceptron())
    files = OnnxModelFiles(path)
    rows = np.random.default_rng(0).normal(size=(64, FEATURES)).astype(np.float32)
    with RunnerPool(device="cpu", threads=1) as pool:
        loaded = pool.inspect(files, top_k=(1,), trial={"x": rows})
    questions = ChildRequests(load_timeout=60.0, run_timeout=60.0, max_classes=100, threads=1)
    resolved = {**loaded.resolved, "columns": ["entropy"]}
    question = questions.load(files, resolved, device="cpu")
    return to_fields(question.message)


def start(how: str, question: dict[str, Any]) -> Child:
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and file
            [sys.executable, __file__, "--child", str(theirs.fileno()), how],
            pass_fds=[theirs.fileno()],
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
    channel = Channel(ours)
    channel.receive()
    channel.send(encode(Frame(Kind.LOAD, 1, question, budget_ms=60_000)))
    answer = channel.receive()
    if answer.status is not Status.OK:
        raise SystemExit(str(answer.fields))
    return Child(channel, process)


def child(fd: int, how: str) -> None:
    """Run as one of the children."""
    if how == "open":
        serve.lock_down = lambda *_, **__: None
    serve.serve(fd)


def perceptron() -> bytes:
    generator = np.random.default_rng(0)
    shapes = {"a": (FEATURES, HIDDEN), "b": (HIDDEN, CLASSES)}
    weights = [
        numpy_helper.from_array(generator.normal(0, 0.2, shape).astype(np.float32), name)
        for name, shape in shapes.items()
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("MatMul", ["r", "b"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "perceptron",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", FEATURES])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", CLASSES])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


if __name__ == "__main__":
    main()
