"""A child process that lies about batches: ``python lying_batches.py FD HOW N_TOP N_COLUMNS``.

It answers each request with one row, and some of them with a lie. It loads whatever it is to, and
then says that it found what a fifth argument says.
"""

import json
import socket
import sys
import time
from itertools import count
from pathlib import Path
from types import ModuleType

import numpy as np

import service

if __name__ == "__main__":
    # As a package without contents: all that a parent imports takes longer than most lies.
    runner = ModuleType("service.runner")
    runner.__path__ = [str(Path(service.__file__).parent / "runner")]
    sys.modules["service.runner"] = runner

from service.runner.messages.channel import Channel, ChannelClosed
from service.runner.messages.frames import HEADER, MAGIC, Frame, Header, Kind, Status, encode
from service.runner.messages.open_inference import Wanted
from service.runner.messages.predict_batches import (
    Batch,
    BatchResult,
    RequestError,
    ResponseHead,
    RowRange,
    Sent,
    SuppliedColumn,
    decode_batch,
    encode_batch,
    encode_result,
)

FLOATS = np.zeros(1, np.float32).tobytes()


class Asked:
    """A batch, and what an honest child would say to it."""

    def __init__(self, header, fields, n_top, n_columns):
        self.header, self.n_top, self.n_columns = header, n_top, n_columns
        self.numbers = [
            sent.number + i for sent in decode_batch(fields).sent for i in range(sent.count)
        ]

    def words(self, n_rows=None):
        n_rows = len(self.numbers) if n_rows is None else n_rows
        words = np.full((n_rows, 2 * self.n_top + self.n_columns), 0.1, np.float32)
        words[:, : self.n_top] = np.arange(self.n_top)
        return words

    def parts(self, **head):
        said = {"rows": 1, "wanted": None, "supplied": {}, **head}
        return [RowRange(number, 1, ResponseHead(**said)) for number in self.numbers]

    def report(self, parts=None, refused=(), waiting=0, words=None):
        parts = self.parts() if parts is None else parts
        words = self.words(sum(p.rows * p.count for p in parts)) if words is None else words
        result = BatchResult(list(parts), list(refused), waiting)
        return encode_result(result, words, sequence=self.header.sequence)

    def with_word(self, place, value, dtype=np.float32):
        words = self.words()
        words.view(dtype)[-1, place] = value
        return self.report(words=words)

    def supplied(self, dtype, shape, data=FLOATS):
        return self.report(self.parts(supplied={"own": SuppliedColumn(dtype, shape, data)}))

    def failure(self, fields):
        return encode(Frame(Kind.BATCH, self.header.sequence, fields, status=Status.FAILED))

    def head(self, fields_bytes, tensor_bytes=0, *, kind=Kind.BATCH, sequence=None):
        sequence = self.header.sequence if sequence is None else sequence
        return [HEADER.pack(MAGIC, kind, 0, sequence, 0, fields_bytes, tensor_bytes)]

    def raw(self, fields):
        return [self.head(len(fields))[0] + fields]


def first(asked, **changes):
    """Return honest parts, of which the first is another."""
    part, *others = asked.parts()
    said = {"number": part.number, "rows": 1, "head": part.head, **changes}
    return [RowRange(**said), *others]


LIES = {
    "another sequence": lambda a: a.head(0, sequence=a.header.sequence + 1),
    "another kind": lambda a: a.head(0, kind=Kind.PREDICT),
    "an older answer again": lambda a: a.head(0, sequence=a.header.sequence - 1),
    "no frame": lambda _: [b"HTTP/1.1 200 OK\r\n\r\n" * 10],
    "enormous fields": lambda a: a.head(2**23),
    "an enormous matrix": lambda a: a.head(2, 2**30),
    "fields that are none": lambda a: a.raw(b"\xc1" * 9),
    "fields of another layout": lambda a: a.raw(b"\x93\x01\x02\x03"),
    "a list without end": lambda a: a.raw(b"\x93\xdd\xff\xff\xff\xff"),
    "text that is none": lambda a: a.raw(b"\x93\x90\x91\x94\x01\xa1\xff\xa1a\x90\x00"),
    "two answers": lambda a: [*a.report(), *a.report()],
    "fewer rows than parts": lambda a: a.report(words=a.words()[:-1]),
    "more rows than parts": lambda a: a.report(words=a.words(len(a.numbers) + 1)),
    "an unknown number": lambda a: a.report(first(a, number=10**9)),
    "a negative number": lambda a: a.report(first(a, number=-1)),
    "one answered twice": lambda a: a.report([*a.parts(), a.parts()[0]]),
    "one answered and refused": lambda a: a.report(
        refused=[RequestError(a.numbers[0], "invalid-input", "m", [])]
    ),
    "one refused twice": lambda a: a.report(
        a.parts()[1:], refused=[RequestError(a.numbers[0], "invalid-input", "m", [])] * 2
    ),
    "refused for no reason": lambda a: a.report(
        a.parts()[1:], refused=[RequestError(a.numbers[0], "no-such-code", "m", [])]
    ),
    "refused at length": lambda a: a.report(
        a.parts()[1:], refused=[RequestError(a.numbers[0], "invalid-input", "m" * 9000, [])]
    ),
    "no rows": lambda a: a.report(first(a, rows=0)),
    "rows below none": lambda a: a.report([*a.parts(), RowRange(1, -1, None)], words=a.words()),
    "no requests": lambda a: a.report(first(a, count=0)),
    "more requests than there are": lambda a: a.report(
        [RowRange(a.numbers[0], 1, a.parts()[0].head, len(a.numbers) + 1)]
    ),
    "a part out of turn": lambda a: a.report(first(a, head=None)),
    "two beginnings": lambda a: a.report(
        [*a.parts(rows=2), *a.parts(rows=2)], waiting=1, words=a.words(2 * len(a.numbers))
    ),
    "more rows than it began with": lambda a: a.report(first(a, rows=2)),
    "more rows than may be": lambda a: a.report(a.parts(rows=10**6), waiting=1),
    "a class too high": lambda a: a.with_word(0, 10, np.float32),
    "a class below none": lambda a: a.with_word(0, -1, np.float32),
    "half a class": lambda a: a.with_word(0, 0.5, np.float32),
    "no number for a class": lambda a: a.with_word(0, np.nan, np.float32),
    "a probability above one": lambda a: a.with_word(a.n_top, 1.1),
    "a probability below none": lambda a: a.with_word(a.n_top, -0.1),
    "a probability that is no number": lambda a: a.with_word(a.n_top, np.nan),
    "an uncertainty that is no number": lambda a: a.with_word(-1, np.nan),
    "an uncertainty without end": lambda a: a.with_word(-1, np.inf),
    "a request forgotten": lambda a: a.report(a.parts()[1:]),
    "all requests forgotten": lambda a: a.report([]),
    "wait for ever": lambda a: a.report([], waiting=1),
    "rows where none are": lambda a: a.report(waiting=1),
    "fewer rows than none left": lambda a: a.report(a.parts()[1:], waiting=-1),
    "numbers of no type": lambda a: a.supplied("O", [1]),
    "numbers of another size": lambda a: a.supplied("float64", [1]),
    "numbers of another shape": lambda a: a.supplied("float32", [2**64 - 1, 0], b""),
    "wanted at length": lambda a: a.report(a.parts(wanted=Wanted("w" * 2**20))),
    "failed for no reason": lambda a: a.failure({"code": "no-such-code"}),
    "failed without a reason": lambda a: a.failure({}),
}


def closes(channel, _):
    channel.close()
    time.sleep(600)


def half_answers(channel, asked):
    channel.send([b"".join(asked.report())[:50]])
    time.sleep(600)


def answers_and_dies(channel, asked):
    channel.send(asked.report())
    sys.exit(3)


def answers_twice(channel, asked):
    channel.send(asked.report())
    time.sleep(0.1)
    channel.send(asked.report())


WAYS = {
    "honest": lambda channel, asked: channel.send(asked.report()),
    "dies when asked": lambda *_: sys.exit(3),
    "closes its socket when asked": closes,
    "never answers": lambda *_: time.sleep(600),
    "half an answer": half_answers,
    "dies after its answer": answers_and_dies,
    "speaks unasked": answers_twice,
    "fails as a whole": lambda channel, asked: channel.send(
        asked.failure({"code": "inference-failed", "message": "m", "violations": []})
    ),
}


def answer(channel, how, asked, n_answered):
    if how == "lies the second time":
        how = "all requests forgotten" if n_answered else "honest"
    if how in WAYS:
        WAYS[how](channel, asked)
    else:
        channel.send(LIES[how](asked))


def load(channel, how, request, found):
    answer = encode(Frame(Kind.LOAD, request.sequence, json.loads(found)))
    if how == "talks on when it has loaded":
        answer.append(b"more")
    channel.send([b"".join(answer)])


def answer_unread(sock, channel, n_top, n_columns):
    """Answer the first request, whose number is no secret, as soon as some of it is there."""
    sock.recv(1, socket.MSG_PEEK)
    batch = Batch([Sent(1, "oip", 0, "")], [], 1, 1, 1, 1.0)
    fields = b"".join(encode_batch(batch, [], sequence=1, budget_ms=1))[HEADER.size :]
    header = Header(Kind.BATCH, Status.OK, 1, 1, len(fields), 0)
    channel.send(Asked(header, fields, n_top, n_columns).report())
    time.sleep(600)


def main(fd, how, n_top, n_columns, found="{}"):
    sock = socket.socket(fileno=fd)
    channel = Channel(sock)
    channel.send(encode(Frame(Kind.READY, 0, {"versions": {}})))
    if how == "answers without reading":
        answer_unread(sock, channel, int(n_top), int(n_columns))
    try:
        for n_answered in count():
            header, fields, _ = channel.receive_unread()
            if header.kind is Kind.LOAD:
                load(channel, how, header, found)
                continue
            answer(channel, how, Asked(header, fields, int(n_top), int(n_columns)), n_answered)
    except ChannelClosed:
        pass


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
