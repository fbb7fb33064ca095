"""What a server process and its supervisor say to each other, over a socket pair."""

import struct
from typing import TypeAlias

import msgspec

from service.metrics import Family

SIZE = struct.Struct("<I")


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The process answers requests from now on."""


class Told(msgspec.Struct, frozen=True, tag=True):
    """What the process has counted; the number is that of the question, 0 if there was none."""

    number: int
    families: list[Family]


class Scraped(msgspec.Struct, frozen=True, tag=True):
    """Somebody asks the process what all have counted; it has itself counted this."""

    number: int
    families: list[Family]


class Tell(msgspec.Struct, frozen=True, tag=True):
    """What have you counted."""

    number: int


class All(msgspec.Struct, frozen=True, tag=True):
    """What all have counted, in Prometheus' text format."""

    number: int
    text: bytes


FromProcess: TypeAlias = Ready | Told | Scraped
ToProcess: TypeAlias = Tell | All

from_process = msgspec.msgpack.Decoder(FromProcess)
to_process = msgspec.msgpack.Decoder(ToProcess)


def framed(message: FromProcess | ToProcess) -> bytes:
    """Return a message with its size before it."""
    body = msgspec.msgpack.encode(message)
    return SIZE.pack(len(body)) + body
