"""The child's loop: a request, an answer, a request."""

import socket
import traceback

import numpy as np
import onnx
import onnxruntime as ort

from service.errors import InferenceFailed, InvalidOnnxModel, ServiceError
from service.model_rules import ModelRule
from service.runner.channel import Channel, ChannelClosed, to_keep
from service.runner.child.failure import describe
from service.runner.child.onnx_session import MORE_MEMORY, NOT_LOADED
from service.runner.child.requests import NAMES_TOO_LONG, Requests
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
    except Exception as error:  # noqa: BLE001 - a stranger's model; the parent is told what it is
        return _failure(header, _told(error, header.kind))


def _told(error: Exception, kind: Kind) -> ServiceError:
    """Return what the parent is told of it, which never is a library's own text."""
    if isinstance(error, ServiceError):
        return error
    if isinstance(error, MemoryError):
        return InvalidOnnxModel.because(ModelRule.TOO_MUCH_MEMORY, MORE_MEMORY)
    if isinstance(error, FrameError):
        return InvalidOnnxModel.because(ModelRule.NAMES_TOO_LONG, NAMES_TOO_LONG)
    traceback.print_exception(error)
    if kind is Kind.LOAD:
        return InvalidOnnxModel.because(ModelRule.NOT_LOADED, NOT_LOADED)
    return InferenceFailed("The ONNX model could not be run.")


def _failure(header: Header, error: ServiceError) -> list[Buffer]:
    code, message, violations = describe(error)
    fields = {"code": code, "message": message, "violations": violations}
    return encode(Frame(header.kind, header.sequence, fields, status=Status.FAILED))
