"""A child process that follows a script, forked from the server of `forked_children`.

It says that it is ready, loads whatever it is asked to, and answers requests as its script says:
honestly, with lies, or not at all. ``probed LOG DEVICE…`` is a child of a machine with these
devices; it writes each device that it is asked to try as a line of the file LOG.
"""

import json
import socket
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

import numpy as np
from forked_children import SERVER

from service.graph.description import OnnxModelDescription, OutputChoice, TensorSpec
from service.runner.launch import environment
from service.runner.messages.channel import Channel, ChannelClosed
from service.runner.messages.frames import (
    HEADER,
    MAGIC,
    MAX_TENSOR_BYTES,
    Frame,
    Kind,
    Status,
    encode,
    parse_header,
)
from service.runner.messages.onnx_models import LoadedOnnxModel, packed_model
from service.runner.messages.predict_batches import (
    Batch,
    BatchResult,
    ResponseHead,
    RowRange,
    SentBodies,
    decode_batch,
    encode_batch,
    encode_result,
)
from service.runner.process import RunnerProcess

FOR_EVER = 600
# The first columns of a row are its top classes and their scores; then come its uncertainties.
N_TOP, N_COLUMNS = 10, 6


def loaded_model(*passes, n_classes=10, top_k=(1, 5), class_labels=None, **changes):
    """Return what a child says of a model of rows ``x`` that it has loaded."""
    description = OnnxModelDescription(
        inputs=(TensorSpec("x", "float32", (None, 6)),),
        outputs=(TensorSpec("y", "float32", None),),
        opset=17,
        ir_version=8,
        class_labels=class_labels,
        external_files=(),
        fixed_batch=None,
    )
    fields = {
        "description": description,
        "output": OutputChoice("y", "logits", "y", "said", n_classes),
        "top_k": top_k,
        "provider": "CPUExecutionProvider",
        "versions": {},
        "passes": passes,
    }
    return LoadedOnnxModel(**fields | changes)


def start_scripted(*arguments):
    """Start a child with a script of this module; the caller closes it."""
    return SERVER.start_program("scripted_child", *arguments)


def start_program(program, *arguments):
    """Start ``python PROGRAM FD ARGUMENTS``, as the runner starts its own children."""
    ours, theirs = socket.socketpair()
    with theirs:
        popen = subprocess.Popen(
            [sys.executable, "-P", program, str(theirs.fileno()), *map(str, arguments)],
            pass_fds=[theirs.fileno()],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return RunnerProcess(popen, Channel(ours))


class Asked:
    """A request, and the frames that may answer it."""

    def __init__(self, header, fields):
        self.header = header
        self.numbers = []
        if header.kind is Kind.BATCH:
            sent = decode_batch(fields).sent
            self.numbers = [one.number + i for one in sent for i in range(one.count)]

    def rows(self, *more):
        """Return one row for each request, and for the requests of further numbers."""
        numbers = [*self.numbers, *more]
        words = np.full((len(numbers), 2 * N_TOP + N_COLUMNS), 0.1, np.float32)
        words[:, :N_TOP] = np.arange(N_TOP)
        ranges = [RowRange(number, 1, ResponseHead(1, None)) for number in numbers]
        return encode_result(BatchResult(ranges, [], 0), words, sequence=self.header.sequence)

    def frame(self, fields=None, *, tensors=None, later=0, kind=None, status=Status.OK):
        kind, sequence = kind or self.header.kind, self.header.sequence + later
        return encode(Frame(kind, sequence, fields or {}, tensors or {}, status=status))

    def progress(self, *reports, **tensors):
        told = {"tensors": tensors, "status": Status.PROGRESS}
        return [part for fields in reports for part in self.frame(fields, **told)]

    def failure(self, **fields):
        return self.frame(fields, status=Status.FAILED)

    def fields(self, fields):
        return [self.announced(len(fields), 0)[0] + fields]

    def announced(self, fields_bytes, tensor_bytes):
        """Return a header that says how much follows."""
        kind, sequence = self.header.kind, self.header.sequence
        return [HEADER.pack(MAGIC, kind, 0, sequence, 0, fields_bytes, tensor_bytes)]


FAILED = {"code": "inference-failed", "message": "m", "violations": []}
NONSENSE = [b"HTTP/1.1 200 OK\r\n\r\n" * 10]
LIES = {
    "another sequence": lambda asked: asked.frame(later=1),
    "another kind": lambda asked: asked.frame(kind=Kind.READY),
    "nonsense": lambda _: NONSENSE,
    "enormous fields": lambda asked: asked.announced(2**23, 0),
    "enormous arrays": lambda asked: asked.announced(2, MAX_TENSOR_BYTES),
    "two answers": lambda asked: [*asked.rows(), *asked.rows()],
    "an unknown request": lambda asked: asked.rows(10**9),
    "nested fields": lambda asked: asked.fields(b"\x94\x90\x90\x00" + b"\x91" * 5000 + b"\x90"),
    "a failure of many lists": lambda asked: asked.failure(**FAILED | {"code": [[]] * 20_000}),
    "progress without end": lambda asked: asked.progress(*[{"done": 1, "total": 2}] * 3),
    "other progress": lambda asked: asked.progress({"done": [1], "total": 10**9}),
    "arrays of progress": lambda asked: asked.progress({"done": 1, "total": 2}, x=np.zeros(9)),
    "no fit": lambda asked: asked.frame(),
    "an unknown failure": lambda asked: asked.failure(**FAILED | {"code": "no-such-code"}),
}


def close(channel, _):
    channel.close()
    time.sleep(FOR_EVER)


def answer_and_die(channel, asked):
    channel.send(asked.rows())
    sys.exit(3)


def answer_half(channel, asked):
    channel.send([b"".join(asked.frame({"a": "b" * 500}))[:50]])
    time.sleep(FOR_EVER)


def print_much(channel, asked):
    sys.stdout.write("\n" * 2**21)
    channel.send(asked.rows())


def answer_twice(channel, asked):
    channel.send(asked.rows())
    time.sleep(0.1)
    channel.send(asked.rows())


SCRIPTS = {
    "honest": lambda channel, asked: channel.send(asked.rows()),
    "die when asked": lambda *_: sys.exit(3),
    "close the socket when asked": close,
    "never answer": lambda *_: time.sleep(FOR_EVER),
    "half an answer": answer_half,
    "answer and die": answer_and_die,
    "speak unasked": answer_twice,
    "many bytes printed": print_much,
    "fail": lambda channel, asked: channel.send(asked.failure(**FAILED)),
}


def answer_unread(sock, channel):
    """Answer the first request, whose number is known, as soon as some of it has arrived."""
    header = parse_header(sock.recv(HEADER.size, socket.MSG_PEEK | socket.MSG_WAITALL))
    batch = Batch([SentBodies(1, "oip", 0, "")], [], 1, 1, 1, 1.0)
    fields = b"".join(encode_batch(batch, [], sequence=1, budget_ms=1))[HEADER.size :]
    channel.send(Asked(header, fields).rows())
    time.sleep(FOR_EVER)


def probe(asked, fields, log, *there):
    """Answer whether a device can be used."""
    device = json.loads(bytes(fields))["fields"]["device"]
    with Path(log).open("a") as file:
        file.write(f"{device}\n")
    return asked.frame({"reason": "" if device in there else "it is not there"})


def start(channel, script):
    """Say that the child is ready, or what the script says instead."""
    match script:
        case "never ready":
            time.sleep(FOR_EVER)
        case "ready with nonsense":
            channel.send(NONSENSE)
            time.sleep(FOR_EVER)
        case "another word first":
            channel.send(encode(Frame(Kind.PREDICT, 0)))
            time.sleep(FOR_EVER)
        case "die at start":
            sys.exit(3)
    channel.send(encode(Frame(Kind.READY, 0, {"versions": {}})))


def answer(sock, channel, script, asked, n_answered):
    if asked.header.kind is Kind.LOAD:
        found = asked.frame(tensors=packed_model(loaded_model()))
        channel.send([*found, b"more"] if script == "talk on after loading" else found)
        if script == "answer unread":
            answer_unread(sock, channel)
        return
    if script == "lie the second time":
        script = "nonsense" if n_answered > 1 else "honest"  # loading counts, too
    if script in SCRIPTS:
        SCRIPTS[script](channel, asked)
    else:
        channel.send(LIES[script](asked))


def main(fd, script, *arguments):
    sock = socket.socket(fileno=fd)
    channel = Channel(sock)
    start(channel, script)
    try:
        for n_answered in count():
            header, fields, _ = channel.receive_unread()
            asked = Asked(header, fields)
            if script == "probed":
                channel.send(probe(asked, fields, *arguments))
            else:
                answer(sock, channel, script, asked, n_answered)
    except ChannelClosed:
        pass
