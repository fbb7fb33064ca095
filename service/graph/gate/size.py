"""The number and depth of a file's messages, counted in its bytes before they are parsed.

An empty node takes 2 bytes in the file and 150 in memory.
"""

import re
from functools import cache
from typing import TypeAlias

from google.protobuf.descriptor import Descriptor
from onnx import ModelProto, NodeProto

from service.errors import InvalidOnnxModel, ModelRule
from service.graph.gate.file import not_onnx

# A node from PyTorch with its attributes, comments and the shape of its output has about 20.
MAX_MESSAGES_PER_NODE = 24
# The parser's limit is 100. A nested branch adds three levels.
MAX_DEPTH = 64
MAX_VARINT_BYTES = 10
CONTINUES = 0x80

VARINT, FIXED_64, LENGTH, FIXED_32 = 0, 1, 2, 5


def _tags(wire_type: int) -> bytes:
    """Return a pattern of all tags with this type."""
    last = b"".join(b"\\x%02x" % tag for tag in range(wire_type, 128, 8))
    more = b"".join(b"\\x%02x" % tag for tag in range(128 + wire_type, 256, 8))
    return b"(?:[%b]|[%b][\x80-\xff]{0,3}[\0-\x7f])" % (last, more)


# A forest has lists of millions of numbers, each with a tag: they are skipped together.
NUMBERS = re.compile(
    b"(?:%b[\x80-\xff]{0,9}[\0-\x7f]|%b.{4}|%b.{8})++"
    % (_tags(VARINT), _tags(FIXED_32), _tags(FIXED_64)),
    re.DOTALL,
)

NODE = NodeProto.DESCRIPTOR

Children: TypeAlias = dict[int, Descriptor]
Span: TypeAlias = tuple[int, int, Descriptor, int]


def too_many_nodes(most: int) -> InvalidOnnxModel:
    """Return the error for a model with more nodes."""
    return InvalidOnnxModel.because(
        ModelRule.TOO_MANY_NODES,
        f"it has more than {most} nodes, with those of its functions counted at each call; send a "
        "smaller model, or have HOWSURE_MAX_MODEL_NODES raised",
    )


def check_parts(data: bytes, *, max_nodes: int) -> None:
    """Refuse bytes with too many nodes, too many messages of any kind, or too deep nesting.

    Raises
    ------
    InvalidOnnxModel
        If so, or if the bytes are not a protocol buffer.
    """
    most = left = MAX_MESSAGES_PER_NODE * max_nodes
    n_nodes = 0
    waiting: list[Span] = [(0, len(data), ModelProto.DESCRIPTOR, 0)]
    while waiting:
        start, end, kind, depth = waiting.pop()
        n_parts, inside = _messages(data, start, end, _children(kind), depth + 1, left)
        left -= n_parts
        n_nodes += sum(child is NODE for _, _, child, _ in inside)
        if n_nodes > max_nodes:
            raise too_many_nodes(max_nodes)
        if left < 0:
            raise InvalidOnnxModel.because(
                ModelRule.TOO_MANY_PARTS,
                f"the file has more than {most} parts: nodes, attributes, shapes, remarks; leave "
                "out shapes and remarks (value_info, metadata_props), or send a smaller model",
            )
        if inside and depth >= MAX_DEPTH:
            raise InvalidOnnxModel.because(
                ModelRule.TOO_DEEP,
                f"its parts lie more than {MAX_DEPTH} deep in one another; export it with fewer "
                "branches and loops inside of one another",
            )
        waiting += inside


def _messages(
    data: bytes, start: int, end: int, children: Children, depth: int, most: int
) -> tuple[int, list[Span]]:
    """Count the messages in one, up to ``most + 1``; return those to scan as well."""
    n_parts, inside = 0, []
    at = start
    while at < end and n_parts <= most:
        tag, after = _varint(data, at, end)
        if tag & 7 == LENGTH:
            size, at = _varint(data, after, end)
            child = children.get(tag >> 3)
            if child is not None:
                n_parts += 1
                if size and child.fields:
                    inside.append((at, at + size, child, depth))
            at += size
        else:
            numbers = NUMBERS.match(data, at, end)
            if numbers is None:
                raise not_onnx(data)
            at = numbers.end()
        if at > end:
            raise not_onnx(data)
    return n_parts, inside


@cache
def _children(kind: Descriptor) -> Children:
    return {field.number: field.message_type for field in kind.fields if field.message_type}


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Return the number at a position, and its end."""
    if at < end and data[at] < CONTINUES:
        return data[at], at + 1
    number = shift = 0
    for place in range(at, min(end, at + MAX_VARINT_BYTES)):
        byte = data[place]
        number |= (byte & ~CONTINUES) << shift
        if byte < CONTINUES:
            return number, place + 1
        shift += 7
    raise not_onnx(data)
