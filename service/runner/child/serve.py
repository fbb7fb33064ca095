"""The child's loop: a request, an answer, a request."""

import socket
import traceback

import numpy as np
import onnx
import onnxruntime as ort

from service.errors import InferenceFailed, ServiceError
from service.runner.channel import Channel, ChannelClosed, to_keep
from service.runner.child.failure import describe
from service.runner.child.requests import Requests
from service.runner.frames import (
    Buffer,
    Frame,
    FrameError,
    Header,
    Kind,
    Status,
    encode,
    parse_body,
)

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
            header, fields, payload = channel.receive_unread()
            channel.send(_answer(requests, header, fields, payload))
    except ChannelClosed:
        return


def _answer(requests: Requests, header: Header, fields: Buffer, payload: Buffer) -> list[Buffer]:
    try:
        if header.kind is Kind.BATCH:
            return requests.batch(header, fields, payload)
        request = parse_body(header, fields, to_keep(payload))
        found, tensors = requests.answer(request)
        return encode(Frame(request.kind, request.sequence, found, tensors))
    except ServiceError as error:
        return _failure(header, error)
    except MemoryError:
        return _failure(header, InferenceFailed("There is not enough memory for the ONNX model."))
    except FrameError:
        return _failure(header, InferenceFailed("The answer of the ONNX model is too large."))
    except Exception:  # noqa: BLE001 - a stranger's model; whatever it broke, the parent is told
        traceback.print_exc()
        return _failure(header, InferenceFailed("The ONNX model could not be run."))


def _failure(header: Header, error: ServiceError) -> list[Buffer]:
    code, message, violations = describe(error)
    fields = {"code": code, "message": message, "violations": violations}
    return encode(Frame(header.kind, header.sequence, fields, status=Status.FAILED))
