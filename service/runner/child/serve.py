"""The child's loop: a request, an answer, a request."""

import socket
import traceback

import numpy as np
import onnx
import onnxruntime as ort

from service.errors import InferenceFailed, ServiceError
from service.runner.channel import Channel, ChannelClosed
from service.runner.child.requests import Requests
from service.runner.frames import Buffer, Frame, FrameError, Kind, Status, encode

MAX_TEXT = 2000
MAX_VIOLATIONS = 20
VERSIONS = {
    "numpy": np.__version__,
    "onnx": onnx.__version__,
    "onnxruntime": ort.__version__,
}


def serve(fd: int) -> None:
    """Answer requests on the socket until the other side closes it."""
    channel = Channel(socket.socket(fileno=fd))
    requests = Requests(VERSIONS)
    try:
        channel.send(encode(Frame(Kind.READY, 0, {"versions": VERSIONS})))
        while True:
            channel.send(_answer(requests, channel.receive()))
    except ChannelClosed:
        return


def _answer(requests: Requests, request: Frame) -> list[Buffer]:
    try:
        fields, tensors = requests.answer(request)
        return encode(Frame(request.kind, request.sequence, fields, tensors))
    except ServiceError as error:
        return _failure(request, error)
    except MemoryError:
        return _failure(request, InferenceFailed("There is not enough memory for the ONNX model."))
    except FrameError:
        return _failure(request, InferenceFailed("The answer of the ONNX model is too large."))
    except Exception:  # noqa: BLE001 - a stranger's model; whatever it broke, the parent is told
        traceback.print_exc()
        return _failure(request, InferenceFailed("The ONNX model could not be run."))


def _failure(request: Frame, error: ServiceError) -> list[Buffer]:
    fields = {
        "code": error.code(),
        "message": _printable(error.message),
        "violations": [
            [_printable(violation.location), _printable(violation.message)]
            for violation in error.violations[:MAX_VIOLATIONS]
        ],
    }
    return encode(Frame(request.kind, request.sequence, fields, status=Status.FAILED))


def _printable(text: str) -> str:
    """Return text that any encoding can carry: names in a stranger's file may hold anything."""
    return text[:MAX_TEXT].encode(errors="replace").decode()
