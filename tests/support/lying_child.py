"""A child process that is in the wrong hands: ``python lying_child.py FD HOW``."""

import socket
import sys
import time

import numpy as np

from service.runner.messages.channel import Channel, ChannelClosed
from service.runner.messages.frames import (
    HEADER,
    MAGIC,
    MAX_TENSOR_BYTES,
    Frame,
    Kind,
    Status,
    encode,
)


def failure(request, fields, **tensors):
    return encode(Frame(request.kind, request.sequence, fields, tensors, status=Status.FAILED))


LIES = {
    "another sequence": lambda request: encode(Frame(request.kind, request.sequence + 1)),
    "another kind": lambda request: encode(Frame(Kind.READY, request.sequence)),
    "garbage": lambda _: [b"HTTP/1.1 200 OK\r\n\r\n" * 10],
    "half a frame": lambda request: [
        b"".join(encode(Frame(request.kind, request.sequence, {"a": "b" * 500})))[:100]
    ],
    "enormous": lambda request: [
        HEADER.pack(MAGIC, request.kind, 0, request.sequence, 0, 2, MAX_TENSOR_BYTES)
    ],
    "verbose": lambda request: encode(Frame(request.kind, request.sequence, {"a": [{}] * 100_000})),
    "an unknown failure": lambda request: failure(
        request, {"code": "no-such-code", "message": "m", "violations": []}
    ),
    "a failure with arrays": lambda request: failure(request, {}, a=np.zeros(1)),
    "no text": lambda request: failure(
        request, {"code": "invalid-input", "message": 7, "violations": []}
    ),
}


def main(fd, how):
    channel = Channel(socket.socket(fileno=fd))
    if how == "never ready":
        time.sleep(600)
    if how == "ready with nonsense":
        channel.send([b"nonsense" * 20])
        time.sleep(600)
    if how == "first another word":
        channel.send(encode(Frame(Kind.PREDICT, 0)))
        time.sleep(600)
    if how == "dies at start":
        sys.exit(3)
    channel.send(encode(Frame(Kind.READY, 0, {"versions": {}})))
    try:
        while True:
            request = channel.receive()
            if how == "silence":
                time.sleep(600)
            if how == "closes its socket":
                channel.close()
                time.sleep(600)
            channel.send(LIES[how](request))
    except ChannelClosed:
        pass


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
